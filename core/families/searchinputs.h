// SPDX-License-Identifier: GPL-3.0-or-later
// Inputs of the searching families: pass times per stage and the memory that each pass allocates or frees. As in the
// zero-bubble papers, F allocates M_B, I frees what W does not need, and W frees the rest, M_W.
#pragma once

#include "core/families/family.h"
#include "core/schedule/block.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace pipewright {

/// Times per stage, in whole nanoseconds exactly as uniformCosts() splits them. O(stages).
std::vector<StageTimes> passTimes(const FamilyParameters& parameters, int chunks);

/// The stages of families that search: one on each device, or two in a V.
std::vector<int> searchPlacement(int devices, int chunks);

/// What the passes of a stage allocate, in an arbitrary unit; negative: free. They add up to 0.
struct ActivationSteps {
    std::int64_t forward = 0, inputGrad = 0, weightGrad = 0;
    std::int64_t growth() const { return std::max<std::int64_t>(0, inputGrad); }
    bool operator==(const ActivationSteps&) const = default;
};

ActivationSteps stepsOf(const StageSaved& saved);
/// The most that a device's blocks keep at a time. O(blocks).
std::int64_t mostKept(const std::vector<Block>& lane, const std::vector<ActivationSteps>& ofStage);

/// The memory of all stages and the limit of every device, in one unit.
struct SearchMemory {
    std::vector<ActivationSteps> ofStage;
    std::vector<std::int64_t> limit;  ///< per device
    std::vector<std::int64_t> growth; ///< per device: the most that an I adds, for which each F leaves room

    /// From the limit and the bytes of the parameters, for stages as searchPlacement() places them. `memoryLimit`
    /// counts in microbatches: in the most that one keeps of the device's own stages. Where no bytes are known the unit
    /// is 1/37 of a forward, of which W gives back 16: M_W / M_B = 32h / (34h + 5as) with heads of 128 and a sequence
    /// of 1,024, the models of arXiv 2401.10241 and 2405.15362, whose bubble rates per limit it reproduces.
    SearchMemory(const FamilyParameters& parameters, int chunks);

    bool fits(const std::vector<std::vector<Block>>& order) const; ///< O(blocks)
    bool isEven() const;                                           ///< all stages and devices are alike
    /// Forwards of its stages, in turn, that a device has room for before its first I.
    int forwardsThatFit(int device) const;

private:
    int m_chunks;
};

/// A V's memory in chunks instead of bytes, each from its F until its W.
SearchMemory countedInChunks(const FamilyParameters& parameters);

/// Checks that there are times and bytes for all stages or none, that bytes are consistent, and that the limit allows
/// `leastMicrobatches` per device.
Diagnostics checkSearchInputs(const FamilyParameters& parameters, int chunks, double leastMicrobatches);

/// The error for a limit within which a family finds no schedule.
Error noScheduleFits(const FamilyParameters& parameters, std::string_view hint);

} // namespace pipewright
