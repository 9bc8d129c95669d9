// SPDX-License-Identifier: GPL-3.0-or-later
// The peak of one device: live bytes, added up instruction by instruction while liveness writes them, and the highest
// that they reach; the same of what the device keeps in host memory, and of its saved activations. What fills the
// device at that moment: core/predict/peakbreakdown.
#pragma once

#include "core/base/units.h"

#include <algorithm>

namespace pipewright {

struct DevicePeaks {
    Bytes persistent = 0, live = 0, peak = 0;
    Bytes hostLive = 0, hostPeak = 0;   ///< what was offloaded from the device
    int liveChunks = 0, mostChunks = 0; ///< activations of one stage, microbatch and sequence piece

    /// Before the first instruction: what stays for the whole step is there.
    void begin() { live = peak = persistent; }

    /// An instruction that defines `kept` bytes and needs `workspace` more while it runs. Returns the live bytes
    /// meanwhile.
    Bytes define(Bytes kept, Bytes workspace)
    {
        live += kept;
        const Bytes running = live + workspace;
        peak = std::max(peak, running);
        return running;
    }

    /// Bytes come to host memory (positive) or leave it.
    void moveOnHost(Bytes bytes)
    {
        hostLive += bytes;
        hostPeak = std::max(hostPeak, hostLive);
    }

    void keepChunk() { mostChunks = std::max(mostChunks, ++liveChunks); }
    void releaseChunk() { --liveChunks; }
};

} // namespace pipewright
