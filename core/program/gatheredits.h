// SPDX-License-Identifier: GPL-3.0-or-later
// Edits of where a device gathers parameters that copies share out (ZeRO 3): one gather is moved among the blocks of
// its device, or left out, and goes back to where the rule of gatherplan.h puts it (freeGather()).
#pragma once

#include "core/design/design.h"
#include "core/schedule/edits.h"

namespace pipewright {

/// The design's schedule with the gather that `reader` reads first placed before the block `before` of its device.
/// Where the device still has the parameters then, since an earlier block reads them, they are held from there on:
/// there is no gather. A reader without a gather gets one. The place of the rule is not stated. The diagnostics say why
/// a place cannot be. O(blocks).
EditResult placeGather(const Design& design, const Block& reader, const Block& before);

/// The same, by so many blocks of its device from where it stands, earlier with a negative number.
EditResult moveGatherBy(const Design& design, const Block& reader, int places);

} // namespace pipewright
