// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/costs.h"

#include <cmath>

namespace pipewright {

Nanoseconds LinkCosts::transferTime(Bytes bytes) const
{
    if (bytesPerSecond <= 0 || bytes <= 0)
        return latency;
    return latency + std::llround(static_cast<double>(bytes) / bytesPerSecond * 1e9);
}

Nanoseconds Costs::duration(Op op, int stage) const
{
    const StageCosts& costs = stages[static_cast<std::size_t>(stage)];
    switch (op) {
    case Op::F: return costs.forward;
    case Op::B: return costs.backward;
    case Op::I: return costs.inputGrad;
    case Op::W: return costs.weightGrad;
    case Op::U: return costs.update;
    case Op::R: return costs.recompute;
    }
    return 0;
}

const LinkCosts& Costs::linkBetween(int fromDevice, int toDevice) const
{
    const auto pair = linkOfPair.find({fromDevice, toDevice});
    return pair == linkOfPair.end() ? link : pair->second;
}

Costs uniformCosts(const DeviceWorth& worth, int stages, int chunks)
{
    const Nanoseconds share = worth.perChunk ? 1 : chunks;
    StageCosts stage;
    stage.forward = worth.forward / share;
    stage.inputGrad = worth.inputGrad / share;
    stage.weightGrad = worth.weightGrad / share;
    stage.backward = stage.inputGrad + stage.weightGrad;
    stage.recompute = stage.forward;
    stage.savedUntilWeightGrad = worth.savedForWeightGrad / chunks;
    stage.savedUntilInputGrad = worth.saved / chunks - stage.savedUntilWeightGrad;
    Costs costs;
    costs.stages.assign(static_cast<std::size_t>(stages), stage);
    costs.link.latency = worth.transfer;
    return costs;
}

} // namespace pipewright
