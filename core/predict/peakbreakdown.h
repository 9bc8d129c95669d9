// SPDX-License-Identifier: GPL-3.0-or-later
// The breakdown of a device's memory peak: the instruction at the peak of its list, its time, and the live buffers,
// grouped by what a user can change about them. A replay of one instruction list, O(instructions of the device).
#pragma once

#include "core/predict/timeline.h"

#include <string>
#include <vector>

namespace pipewright {

/// Its parts add up to `peak`.
struct MemoryPeak {
    struct Saved {
        int stage = 0;
        int microbatches = 0; ///< whose activations are live
        Bytes bytes = 0;
        int replica = 0;
        bool operator==(const Saved&) const = default;
    };

    int device = 0;
    std::string deviceName; ///< may be empty
    Bytes limit = 0;        ///< of the device; 0: not known
    Bytes peak = 0;
    Nanoseconds time = 0;
    std::string during;       ///< "F0.3", "F0.3 to device 1": what runs when the peak is reached
    Bytes persistent = 0;     ///< parameters, gradients, optimizer state, and …
    Bytes framework = 0;      ///< … what a framework holds besides
    std::vector<Saved> saved; ///< kept by F for the backward (and by I for W), by stage
    Bytes weights = 0;        ///< besides the newest: older versions still in use, and predicted weights
    Bytes gathered = 0;       ///< parameters that copies of the pipeline share out, as a whole
    Bytes wholeGradients = 0; ///< gradient sums that are still to be shared out over them
    Bytes received = 0;       ///< arrived from other devices and not yet used up
    Bytes made = 0;           ///< outputs and gradients made here that wait to be sent or used
    Bytes workspace = 0;      ///< of the instruction at the peak

    Bytes savedBytes() const;
    int savedActivations() const; ///< microbatches x stages that are live
    bool operator==(const MemoryPeak&) const = default;
};

/// The first moment at which the device's instruction list reaches its peak. `timeline` has the program's times.
MemoryPeak memoryPeak(const Program& program, const Timeline& timeline, int device);

/// "1.5 GiB all the time, 2 GiB of saved activations (stage 1: 3 microbatches, 2 GiB), 8 MiB received, …"
std::string describeParts(const MemoryPeak& peak);

/// The change that brings the peak below the limit: the part that must shrink, and by how much.
std::string remedy(const MemoryPeak& peak);

} // namespace pipewright
