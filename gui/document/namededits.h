// SPDX-License-Identifier: GPL-3.0-or-later
// Edit requests as the designer makes and names them: the reorders of one device that are asked for by mouse, key and
// field alike, and the name that an edit has in the undo history.
#pragma once

#include "core/predict/editrequest.h"

#include <QString>

#include <span>

namespace pipewright {

/// A placed block before the one that is now at `index` of its device (the number of blocks: to the end).
ReorderDevice blockMove(const Design& design, const Block& block, int index);
/// The blocks at some positions (ascending) past so many of the others, later or (negative) earlier.
ReorderDevice blocksMove(const Design& design, int device, std::span<const std::uint32_t> moved, int places);
/// The blocks at two positions change places.
ReorderDevice blockExchange(const Design& design, int device, int first, int second);
/// So many forwards before the device's first backward (core/schedule/warmup.h).
ReorderDevice warmUpChange(const Design& design, int device, int forwards);

/// The name of an edit's undo step. `before` and `present` are what the request was applied to.
QString editName(const EditRequest& request, const Design& before, const Prediction* present,
                 const EditedDesign& after);

} // namespace pipewright
