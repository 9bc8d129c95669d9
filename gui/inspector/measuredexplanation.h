// SPDX-License-Identifier: GPL-3.0-or-later
// Explains, from the records of the overlaid step, why a device did nothing before a block, or after its last one: in
// words, what traces/analysis found. Says nothing of the prediction but where a block took longer than that.
#pragma once

#include "gui/document/document.h"

namespace pipewright {

/// Why the device of a block waited before it in the recorded step, or why the block began then.
QString measuredWhy(const Design& design, const Prediction& prediction, const Document::Overlay& overlay, TaskId task);

/// The idle time before a block in the recorded step; 0: none, or it was not recorded.
Nanoseconds measuredIdleBefore(const Prediction& prediction, const Document::Overlay& overlay, TaskId task);

} // namespace pipewright
