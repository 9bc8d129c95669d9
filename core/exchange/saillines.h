// SPDX-License-Identifier: GPL-3.0-or-later
// Schedules as the zero-bubble tools of sail-sg print them: one line per device, cells "F0 B0 W0" between blanks or
// commas. B is the input gradient there and BW the full backward; with lower-case letters the devices hold two stages
// each in a V, r and 2p-1-r. In a V, f is the second chunk's forward. The tools number backward chunks in the order of
// the gradients, so B and W belong to the second chunk. In other files b and w are the second chunk's. The second
// chunk's backward always runs first, which tells the two apart.
#pragma once

#include "core/exchange/importedorder.h"

namespace pipewright {

/// Throws Error naming line and cell.
Imported importSailLines(std::string_view text, const std::string& source);

} // namespace pipewright
