// SPDX-License-Identifier: GPL-3.0-or-later
// What the dock says about each transfer between devices, and about each microbatch of a step.
#pragma once

#include "gui/dock/steptable.h"

namespace pipewright {

/// A row per transfer between two devices: from, to, size, when its value was there, how long it waited, how long it
/// took. O(tasks).
StepRows transferRows(const Document& document);

/// A row per microbatch (of each copy of the pipeline): when its first block begins and its last ends, the time
/// between, and its blocks' time. O(tasks).
StepRows microbatchRows(const Document& document);

} // namespace pipewright
