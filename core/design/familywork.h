// SPDX-License-Identifier: GPL-3.0-or-later
// What families that search have to know of a design before they make its schedule: the times and the bytes of its
// passes.
#pragma once

#include "core/design/design.h"
#include "core/families/family.h"

#include <string_view>
#include <vector>

namespace pipewright {

/// How the source of the model begins that is taken where no model was asked for.
inline constexpr std::string_view standInSource = "built in: ";

/// Sets the mean pass times of one device, and the time of one transfer.
void takeWork(FamilyParameters& parameters, const Costs& costs);

/// What F keeps in every stage, and what stays from its I until its W; empty when no bytes are known. With full
/// recomputation F keeps its input.
std::vector<StageSaved> memoryOfStages(const Costs& costs);

/// Sets the bytes for a family that searches: those of the design's costs, or of its model in an even cut (or in
/// `layersPerStage`) where the family has other stages. Nothing is set where times were given and the model is the one
/// that stands in for none: there the papers' ratio holds (families/searchinputs.h). `recompute`: what the family's
/// stages will make again. Throws Error for a cut that is not of the model.
void takeMemory(FamilyParameters& parameters, const Family& family, const Design& base,
                const std::vector<int>& layersPerStage = {}, const std::vector<Recompute>& recompute = {});

} // namespace pipewright
