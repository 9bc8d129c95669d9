// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/leftout.h"

#include <algorithm>

namespace pipewright {

std::vector<std::string> leftOut(const Design& design)
{
    std::vector<std::string> list;
    if (!design.workload || !design.costs.isFormula())
        return list;
    const ModelShape& shape = design.workload->shape;
    const Parallelism& parallel = shape.parallel;
    if (!design.costs.hasHostGaps())
        list.emplace_back("the host's time before a block");
    if (shape.architecture == Architecture::Table)
        return list;
    const std::vector<DeviceSpec>& devices = design.cluster.devices;
    if (!std::all_of(devices.begin(), devices.end(), [](const DeviceSpec& device) { return device.rates != nullptr; }))
        list.emplace_back("what is bound by memory between matrix products");
    if (shape.narrowParameters && design.schedule.zero.sharesParameters())
        list.emplace_back("the second copy of a layer's weights, which is made while its blocks run");
    if (parallel.tensor > 1)
        list.emplace_back("the few numbers per token of a softmax over a split vocabulary");
    if (parallel.sequence) {
        list.emplace_back(parallel.foldedExperts
                              ? "the sums of the norms' and routers' gradients over members with other tokens"
                              : "the sums of the norms' gradients over members with other tokens");
        list.emplace_back("gathering a split input again for its weight gradient, which is usually hidden");
    }
    if (parallel.context > 1)
        list.emplace_back("that causal masks give members with later tokens more work");
    if (shape.experts > 0 && parallel.expertSpread == 1)
        list.emplace_back("that tokens choose experts unevenly");
    return list;
}

} // namespace pipewright
