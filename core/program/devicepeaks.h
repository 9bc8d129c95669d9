// SPDX-License-Identifier: GPL-3.0-or-later
// The memory peak of one device: live bytes, added up while liveness writes the instructions, and their maximum; the
// same for the device's bytes in host memory and for its saved activations. core/predict/peakbreakdown lists the
// buffers at the peak.
#pragma once

#include "core/base/units.h"

#include <algorithm>

namespace pipewright {

struct DevicePeaks {
    Bytes persistent = 0, live = 0, peak = 0;
    Bytes hostLive = 0, hostPeak = 0;   ///< what was offloaded from the device
    int liveChunks = 0, mostChunks = 0; ///< activations of one stage, microbatch and sequence piece

    /// Before the first instruction only the persistent buffers are live.
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
