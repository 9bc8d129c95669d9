// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/designer.h"
#include "app/withqt.h"
#include "core/base/diagnostic.h"
#include "gui/widgets/picture.h"

#include <cstdlib>

namespace pipewright::app {

namespace {

bool isSet(const char* variable)
{
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
}

} // namespace

const bool hasQt = true;

// Qt aborts without a screen, so that is checked first.
int openDesigner(int argc, char** argv, const std::vector<std::string>& files)
{
    if (!isSet("DISPLAY") && !isSet("WAYLAND_DISPLAY") && !isSet("QT_QPA_PLATFORM"))
        throw Error({}, "the designer needs a screen, and neither DISPLAY nor WAYLAND_DISPLAY is set",
                    "log in graphically, use ssh -X, or use a command: pipewright --help");
    return runDesigner(argc, argv, files);
}

void writeDrawnPicture(const Picture& picture, const std::string& path, bool overwrite, double dotsPerInch,
                       double seconds)
{
    pipewright::writePicture(picture, path, overwrite, dotsPerInch, seconds);
}

} // namespace pipewright::app
