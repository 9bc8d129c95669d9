// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"
#include "app/withqt.h"
#include "core/base/textfile.h"
#include "core/exchange/animatedpage.h"

namespace pipewright::app {

const bool hasQt = false;

int openDesigner(int, char**, const std::vector<std::string>&)
{
    throw Error({}, "this program was built without Qt, so it has no designer",
                "take the .deb or the .tar.gz, or use a command: pipewright --help");
}

void writeDrawnPicture(const Picture& picture, const std::string& path, bool overwrite, double, double seconds)
{
    writeFileAtomically(path, extensionOf(path) == "html" ? animatedPage(picture, seconds) : picture.svg, overwrite);
}

} // namespace pipewright::app
