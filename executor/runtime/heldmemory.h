// SPDX-License-Identifier: GPL-3.0-or-later
// What a run will hold of each device's memory, told before it begins: the predicted peak of the Program's buffers, and
// all that the executor keeps beside them for the whole run. It is computed from the program, the capabilities of the
// devices and what links and work say they take; an allocator is never asked. So it can refuse a run that a device has
// no room for, and what was allocated can be held against it to the byte.
#pragma once

#include "core/base/diagnostic.h"
#include "executor/runtime/plan.h"

#include <string>

namespace pipewright {

struct HeldMemory {
    Bytes peak = 0;  ///< predicted
    Bytes gaps = 0;  ///< between buffers, which are aligned and placed once for the whole run
    Bytes maths = 0; ///< Capabilities::workspaceBytes
    Bytes text = 0;  ///< StageWork::bytesBeside: of training, text and losses
    /// Backend::linkMemory of all links that begin or end there: the sends that they may store. It is all taken
    /// beforehand, so this is what is held, not a bound of it.
    Bytes links = 0;

    Bytes beside() const { return gaps + maths + text + links; }
    Bytes total() const { return peak + beside(); }
    bool operator==(const HeldMemory&) const = default;
};

/// Per device. `places` per device, `links` as planLinks() finds them. Of devices of other processes it holds what this
/// process's options would make of them.
std::vector<HeldMemory> predictMemory(const Program& program, std::span<const BufferPlaces> places,
                                      std::span<const PlannedLink> links, int storedSends, const StageWork& work,
                                      Backend& backend);

/// The same, with buffers and links planned here: what a Runtime of these arguments would allocate. `eagerSlots` as in
/// RuntimeOptions.
std::vector<HeldMemory> predictMemory(const Program& program, int eagerSlots, StageWork& work, Backend& backend);
/// A transfer that blocks both devices is a rendezvous.
int storedSends(const Program& program, int eagerSlots);

LinkOptions linkOptions(const PlannedLink& link, int storedSends, bool mayBeSlowed);

/// "1.2 MiB at the peak of its buffers, 33 MiB for its maths, …": without the parts that are nothing.
std::string describe(const HeldMemory& memory);

/// Of this process's devices: each that would hold more than `limit` (0: there is none), and those that would together
/// hold more than the memory which they share.
Diagnostics whyNotFitting(std::span<const HeldMemory> predicted, Backend& backend, Bytes limit);

/// A warning for each device that holds anything else.
Diagnostics whyNotAsPredicted(std::span<const HeldMemory> predicted, std::span<const Bytes> allocated);

} // namespace pipewright
