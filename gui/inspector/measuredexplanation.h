// SPDX-License-Identifier: GPL-3.0-or-later
// Explains in words, from what traces/analysis found in the overlaid step, why a device was idle before a block or
// after its last one. The prediction is mentioned only where a block took longer than predicted.
#pragma once

#include "gui/document/document.h"

namespace pipewright {

/// Why the device of a block waited before it in the recorded step, or why the block began then.
QString measuredWhy(const Design& design, const Prediction& prediction, const Document::Overlay& overlay, TaskId task);

/// The idle time before a block in the recorded step; 0: none, or it was not recorded.
Nanoseconds measuredIdleBefore(const Prediction& prediction, const Document::Overlay& overlay, TaskId task);

} // namespace pipewright
