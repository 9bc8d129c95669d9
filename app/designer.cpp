// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/designer.h"
#include "app/withqt.h"
#include "core/base/diagnostic.h"
#include "gui/widgets/picture.h"

#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace pipewright::app {

namespace {

bool isSet(const char* variable)
{
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
}

/// Qt maps its plugins when it begins, and crashes where there is room for a part of one.
void requireRoomForQt()
{
    constexpr std::size_t room = std::size_t{32} << 20;
    void* const found = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED)
        throw std::bad_alloc();
    munmap(found, room);
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
    if (!path.ends_with(".svg") && !path.ends_with(".html"))
        requireRoomForQt();
    pipewright::writePicture(picture, path, overwrite, dotsPerInch, seconds);
}

} // namespace pipewright::app
