// SPDX-License-Identifier: GPL-3.0-or-later
// DualPipe with parts: forwards and backwards have parts on a compute and a communication stream, in units that are
// longer on later stages, so that no two stages are equal.
#pragma once

#include "makers/designs.h"

namespace pipewright::test {

/// 14 units.
inline std::vector<BlockPart> forwardParts(Nanoseconds unit)
{
    return {{"attention", 4 * unit, PartStream::Compute, true},
            {"dispatch", 3 * unit, PartStream::Communication, true},
            {"experts", 4 * unit, PartStream::Compute, true},
            {"combine", 3 * unit, PartStream::Communication, true}};
}

/// 21 units.
inline std::vector<BlockPart> backwardParts(Nanoseconds unit)
{
    return {{"combine", 3 * unit, PartStream::Communication, true},
            {"experts", 5 * unit, PartStream::Compute, true},
            {"weights", 4 * unit, PartStream::Compute, false},
            {"dispatch", 3 * unit, PartStream::Communication, true},
            {"attention", 6 * unit, PartStream::Compute, true}};
}

/// A unit takes `unit` on stage 0, and a tenth of it more on each later stage.
inline Design partedDesign(const char* family = "dualpipe-v", int devices = 2, int microbatches = 8,
                           Nanoseconds unit = 10'000)
{
    Design design = unitDesign(familySchedule(family, devices, microbatches));
    for (std::size_t s = 0; s < design.costs.stages.size(); ++s) {
        StageCosts& stage = design.costs.stages[s];
        const Nanoseconds here = unit + unit / 10 * static_cast<Nanoseconds>(s);
        stage.parts[indexOf(Op::F)] = forwardParts(here);
        stage.parts[indexOf(Op::B)] = backwardParts(here);
        stage.forward = sumOf(stage.parts[indexOf(Op::F)]);
        stage.backward = sumOf(stage.parts[indexOf(Op::B)]);
        stage.inputGrad = stage.backward / 2;
        stage.weightGrad = stage.backward - stage.inputGrad;
    }
    return design;
}

} // namespace pipewright::test
