// SPDX-License-Identifier: GPL-3.0-or-later
// A family's design with a GPT as small as can be: it has every kind of layer, and bits tell orders of addition apart
// in it as in a large one.
#pragma once

#include "core/design/design.h"
#include "core/design/stagecosts.h"
#include "core/workload/transformer.h"
#include "makers/schedules.h"

namespace pipewright::test {

/// As many devices and microbatches as given, or a few more where the family asks for them.
inline Schedule scheduleOf(std::string_view family, int devices, int microbatches)
{
    return makeSchedule(family, possibleParameters(*findFamily(family), devices, microbatches));
}

/// Eight layers, cut into the family's stages; costs without times.
inline Design tinyGpt(std::string_view family, int devices, int microbatches)
{
    Design design;
    design.name = "tiny";
    design.schedule = scheduleOf(family, devices, microbatches);
    ModelShape shape;
    shape.layers = 8;
    shape.hidden = 16;
    shape.heads = shape.keyValueHeads = 2;
    shape.headSize = 8;
    shape.ffn = 32;
    shape.sequence = 8;
    shape.microbatchSize = 2;
    shape.sequencePieces = design.schedule.sequencePieces;
    shape.tiedHead = !findFamily(family)->updates;
    design.workload = makeWorkload(shape, Optimizer::AdamW, "test");
    design.layersPerStage = evenPartition(*design.workload, design.schedule.stages());
    design.costs = uniformCosts({}, design.schedule.stages(), design.schedule.chunks());
    return design;
}

} // namespace pipewright::test
