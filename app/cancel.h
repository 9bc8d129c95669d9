// SPDX-License-Identifier: GPL-3.0-or-later
// How a person ends long work: the first Ctrl-C (or a terminate signal) asks it to end, a second one ends the process
// as usual.
#pragma once

#include <atomic>

namespace pipewright::app {

/// Set by the first signal; false until then. One for the process, as signals are.
const std::atomic<bool>* cancelOnSignals();

} // namespace pipewright::app
