// SPDX-License-Identifier: GPL-3.0-or-later
// Predicts how much of each device's memory a run will hold: the peak of the Program's buffers, and everything else
// that the executor keeps for the whole run. It is computed from the program, the devices' capabilities and the sizes
// that links and work state, without allocating. So a run that does not fit is refused before it begins, and the
// allocated bytes can be compared with the prediction exactly.
#pragma once

#include "core/base/diagnostic.h"
#include "executor/runtime/plan.h"

#include <string>

namespace pipewright {

struct HeldMemory {
    Bytes peak = 0;  ///< predicted
    Bytes gaps = 0;  ///< between buffers, which are aligned and placed once for the whole run
    Bytes maths = 0; ///< Capabilities::workspaceBytes
    Bytes text = 0;  ///< StageWork::bytesBeside: for training, text and losses
    /// Backend::linkMemory of all links that begin or end there: room for the sends that they may store. It is
    /// allocated beforehand, so it is an exact size and not a bound.
    Bytes links = 0;

    Bytes beside() const { return gaps + maths + text + links; }
    Bytes total() const { return peak + beside(); }
    bool operator==(const HeldMemory&) const = default;
};

/// Per device. `places` per device, `links` as planLinks() finds them. For devices of other processes it assumes this
/// process's options.
std::vector<HeldMemory> predictMemory(const Program& program, std::span<const BufferPlaces> places,
                                      std::span<const PlannedLink> links, int storedSends, const StageWork& work,
                                      Backend& backend);

/// The same, with buffers and links planned here: the memory that a Runtime with these arguments would allocate.
/// `eagerSlots` as in RuntimeOptions.
std::vector<HeldMemory> predictMemory(const Program& program, int eagerSlots, StageWork& work, Backend& backend);
/// 0 where transfers block both devices: these rendezvous.
int storedSends(const Program& program, int eagerSlots);

LinkOptions linkOptions(const PlannedLink& link, int storedSends, bool mayBeSlowed);

/// "1.2 MiB at the peak of its buffers, 33 MiB for its maths, …": without the parts that are 0.
std::string describe(const HeldMemory& memory);

/// One diagnostic for each device of this process that would hold more than `limit` (0: no limit), and for devices that
/// would together hold more than the memory that they share.
Diagnostics whyNotFitting(std::span<const HeldMemory> predicted, Backend& backend, Bytes limit);

/// A warning for each device whose allocated bytes differ from the prediction.
Diagnostics whyNotAsPredicted(std::span<const HeldMemory> predicted, std::span<const Bytes> allocated);

} // namespace pipewright
