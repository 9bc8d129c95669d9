// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/trainabledesign.h"

#include "core/design/groupstages.h"
#include "core/design/stagecosts.h"
#include "core/model/transformer.h"
#include "core/schedule/weightplan.h"
#include "executor/run/backendcheck.h"

namespace pipewright {

Workload withAttention(const Workload& workload, AttentionMemory memory)
{
    ModelShape shape = workload.shape;
    if (shape.architecture != Architecture::Classifier)
        shape.attention = memory;
    return makeWorkload(shape, workload.optimizer, workload.source);
}

Workload withWidened(const Workload& workload, bool widened)
{
    ModelShape shape = workload.shape;
    shape.widened = widened && shape.dataType == DataType::Bf16;
    return makeWorkload(shape, workload.optimizer, workload.source);
}

Design trainableDesign(const Design& design)
{
    if (Diagnostics why = whyNotTrainable(design); !why.empty())
        throw Error(std::move(why));
    if (hasGroups(design))
        throw Error("cluster.devices", "a group's members share its stages, and here every device has its own",
                    "train it with `pipewright run`, or take a cluster without groups");
    Design result = design;
    applyBytes(*design.workload, design.layersPerStage, design.schedule.memoryChoices(), result.costs);
    result.dataflow.shared = sharedParametersOf(*design.workload, design.layersPerStage, true);
    if (hasUpdates(design.schedule)) {
        result.workload = makeWorkload(design.workload->shape, inModel(design.schedule.weightPolicy.optimizer),
                                       design.workload->source);
        applyBytes(*result.workload, result.layersPerStage, design.schedule.memoryChoices(), result.costs);
    }
    return result;
}

int microbatchesPerUpdate(const Program& program)
{
    for (TaskId t = 0; program.versioned() && t < program.tasks.size(); ++t)
        if (program.tasks[t].kind == TaskKind::Compute)
            return program.weights[t].batchSize;
    return program.microbatches;
}

} // namespace pipewright
