// SPDX-License-Identifier: GPL-3.0-or-later
// O(layers).
#include "core/design/stageparameters.h"

#include <algorithm>

namespace pipewright {

std::int64_t parametersOf(std::span<const Layer> layers)
{
    std::int64_t count = 0;
    for (const Layer& layer : layers)
        count += layer.parameters;
    return count;
}

std::int64_t trainedParametersOf(std::span<const Layer> layers)
{
    std::int64_t count = parametersOf(layers);
    for (const Layer& layer : layers)
        count -= layer.frozenParameters;
    return count;
}

std::int64_t sharedOut(const Parallelism& parallel, const Zero& zero, std::int64_t all, std::int64_t experts)
{
    const std::int64_t copies =
        std::int64_t(parallel.data) * (zero.over == Zero::Over::DataAndContext ? parallel.context : 1);
    // Folded, the devices with an expert see other parts of the same sequences where there are fewer copies.
    const std::int64_t holders = !parallel.foldedExperts         ? copies / parallel.expert
                                 : zero.over == Zero::Over::Data ? std::min(copies, parallel.holdersOfExpert())
                                                                 : parallel.holdersOfExpert();
    const auto share = [](std::int64_t count, std::int64_t over) { return (count + over - 1) / over; };
    return share(all - experts, copies) + share(experts, std::max<std::int64_t>(1, holders));
}

std::int64_t expertParametersOf(std::span<const Layer> layers)
{
    std::int64_t experts = 0;
    for (const Layer& layer : layers)
        experts += layer.expertParameters;
    return experts;
}

std::int64_t updatedParametersOf(const Parallelism& parallel, const Zero& zero, std::span<const Layer> layers)
{
    const std::int64_t trained = trainedParametersOf(layers);
    return zero.level == 0 ? trained : sharedOut(parallel, zero, trained, expertParametersOf(layers));
}

int gatheredBytes(const StateBytesPerParameter& state, DataType type)
{
    return std::min(state.parameter, bytesOf(type));
}

NarrowParameters narrowParametersOf(const ModelShape& shape, std::span<const Layer> layers)
{
    NarrowParameters narrow;
    for (const Layer& layer : layers)
        if (shape.narrowParameters) {
            narrow.all += layer.narrowParameters;
            narrow.experts += layer.narrowExpertParameters;
        }
    return narrow;
}

Bytes parameterBytes(const ModelShape& shape, std::int64_t count, std::int64_t narrow, int each)
{
    return (count - narrow) * each + (narrow > 0 ? bytesIn(shape.products, narrow) : 0);
}

} // namespace pipewright
