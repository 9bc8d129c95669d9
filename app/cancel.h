// SPDX-License-Identifier: GPL-3.0-or-later
// Cancellation of long work: the first Ctrl-C (or terminate signal) requests its end, a second one ends the process.
#pragma once

#include <atomic>

namespace pipewright::app {

/// Set by the first signal; false until then. One per process, since signals are per process.
const std::atomic<bool>* cancelOnSignals();

} // namespace pipewright::app
