// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/throughput.h"

#include "core/model/transformer.h"
#include "core/program/replicasums.h"

namespace pipewright {

double tokensPerSecond(const Design& design, Nanoseconds makespan)
{
    if (!design.workload || makespan <= 0)
        return 0;
    return static_cast<double>(design.workload->shape.tokens()) * design.schedule.microbatches
           * design.workload->shape.parallel.data * 1e9 / static_cast<double>(makespan);
}

double modelFlops(const Design& design)
{
    if (!design.workload)
        return 0;
    double flops = 0;
    for (const Layer& layer : wholeLayersOf(*design.workload)) {
        flops += layer.forwardFlops + layer.inputGradFlops + layer.weightGradFlops;
        for (const AttentionSize& size : layer.attentions)
            flops += 3 * size.wholeFlops() - size.flops() - size.backwardFlops();
    }
    return flops * design.schedule.microbatches * design.workload->shape.parallel.data;
}

double modelFlopsUtilization(const Design& design, Nanoseconds makespan)
{
    double peak = 0;
    const ProductType products = productsOf(design);
    for (std::size_t device = 0; device < design.schedule.order.size(); ++device) {
        if (device >= design.cluster.devices.size() || !(design.cluster.devices[device].peakOf(products) > 0))
            return 0;
        peak += design.cluster.devices[device].peakOf(products);
    }
    if (makespan <= 0 || !(peak > 0) || !design.workload)
        return 0;
    peak *= static_cast<double>(design.workload->shape.parallel.devicesPerStage());
    return modelFlops(design) / (peak * static_cast<double>(makespan) / 1e9);
}

Bytes transferBytes(const Program& program)
{
    Bytes sum = 0;
    for (TaskId task = 0; task < program.tasks.size(); ++task)
        if (program.tasks[task].kind == TaskKind::Transfer)
            sum += movedBytes(program, task);
    return sum;
}

} // namespace pipewright
