// SPDX-License-Identifier: GPL-3.0-or-later
// Inputs of the searching families: pass times per stage and the memory that each pass allocates or frees. As in the
// zero-bubble papers, F allocates M_B, I frees what W does not need, and W frees the rest, M_W.
#pragma once

#include "core/families/family.h"

#include <cstdint>
#include <vector>

namespace pipewright {

/// Times per stage, in whole nanoseconds exactly as uniformCosts() splits them. O(stages).
std::vector<StageTimes> passTimes(const FamilyParameters& parameters, int chunks);

/// Memory of one stage's passes in an arbitrary unit; forward + inputGrad + weightGrad = 0.
struct ActivationSteps {
    std::int64_t forward = 0, inputGrad = 0, weightGrad = 0;
    std::int64_t limit = 0; ///< per device

    /// From the limit and the saved bytes of the parameters. Where those are 0 the unit is 1/37 of a forward,
    /// of which W gives back 16: M_W / M_B = 32h / (34h + 5as) with heads of 128 and a sequence of 1,024, the
    /// models of arXiv 2401.10241 and 2405.15362, whose bubble rates per limit it reproduces.
    ActivationSteps(const FamilyParameters& parameters, int chunks);
};

/// Checks that there are times for all stages or none, that bytes are consistent, and that the limit allows
/// `leastMicrobatches` per device.
Diagnostics checkSearchInputs(const FamilyParameters& parameters, int chunks, double leastMicrobatches);

/// Chunk activations that the limit allows per device, freed by W; unlimited: `most`.
int chunkLimit(const FamilyParameters& parameters, int chunks, int most);

} // namespace pipewright
