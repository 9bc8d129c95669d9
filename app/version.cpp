// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/version.h"

#include "app/withqt.h"

#include "commit.h" // made by every build, see app/CMakeLists.txt

#include <fmt/format.h>

namespace pipewright::app {

std::string_view versionNumber()
{
    return PIPEWRIGHT_VERSION;
}

std::string versionText()
{
    const std::string_view commit = PIPEWRIGHT_COMMIT;
    return fmt::format("pipewright {}{}{}", versionNumber(), commit.empty() ? "" : fmt::format(" (commit {})", commit),
                       hasQt ? "" : ", without Qt");
}

} // namespace pipewright::app
