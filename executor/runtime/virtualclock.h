// SPDX-License-Identifier: GPL-3.0-or-later
// Logical time in place of measured time (RuntimeOptions::virtualClock): every task takes its predicted duration, so a
// run gives the same times whatever the machine does, and they are the predictor's. Each device has a clock of its own
// (Actor::clock), which its tasks and waits move on; these are the times at which devices meet.
#pragma once

#include "core/base/units.h"

#include <vector>

namespace pipewright {

/// Each element is written by one actor before it posts the transfer that makes another actor read it.
struct VirtualClock {
    std::vector<Nanoseconds> bufferReady;                ///< per buffer, since a block wrote it
    std::vector<Nanoseconds> transferStart, transferEnd; ///< per transfer
    std::vector<Nanoseconds> senderReady, receiverReady; ///< blocking transfers: when each side reached it

    void prepare(std::size_t buffers, std::size_t transfers)
    {
        bufferReady.resize(buffers);
        for (auto* times : {&transferStart, &transferEnd, &senderReady, &receiverReady})
            times->resize(transfers);
    }
};

} // namespace pipewright
