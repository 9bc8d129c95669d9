// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"

#include "gui/designer/designer.h"

#include <cstdlib>

namespace pipewright::app {

namespace {

bool isSet(const char* variable)
{
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
}

} // namespace

// Qt aborts without a screen, so that is checked first.
int openDesigner(int argc, char** argv, const std::vector<std::string>& files)
{
    if (!isSet("DISPLAY") && !isSet("WAYLAND_DISPLAY") && !isSet("QT_QPA_PLATFORM"))
        throw Error({}, "the designer needs a screen, and neither DISPLAY nor WAYLAND_DISPLAY is set",
                    "log in graphically, use ssh -X, or use a command: pipewright --help");
    return runDesigner(argc, argv, files);
}

} // namespace pipewright::app
