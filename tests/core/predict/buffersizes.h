// SPDX-License-Identifier: GPL-3.0-or-later
// The size of every buffer and the persistent bytes of a device, by formulas of the tests' own.
#pragma once

#include "core/design/design.h"
#include "core/design/stagestate.h"
#include "core/program/program.h"
#include "core/schedule/replicas.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace pipewright::test {

class BufferSizes {
public:
    explicit BufferSizes(const Design& design)
        : m_design(design), m_costs(design.costs),
          m_shares(design.schedule.zero.level > 0 && design.schedule.replicas() > 1)
    {
        for (const std::vector<Block>& blocks : design.schedule.order)
            for (const Block& block : blocks)
                if (block.op == Op::B)
                    m_fullBackwards.emplace(block.stage, block.microbatch);
    }

    /// The size of a buffer according to the design.
    Bytes sizeOf(const Buffer& b) const
    {
        const StageCosts& stage = m_costs.stages[static_cast<std::size_t>(b.stage)];
        switch (b.kind) {
        case BufferKind::Parameters: return isCopy(b) ? stage.parameters : parameters(b.stage, b.replica);
        case BufferKind::WeightVersion:
        case BufferKind::PredictedWeights: return stage.parameters;
        case BufferKind::SentWeights:
        case BufferKind::ReceivedWeights:
            return m_shares ? share(b.stage, b.replica, stage.parameters) : stage.parameters;
        case BufferKind::Gradients: return isCopy(b) ? stage.gradients : gradients(b.stage, b.replica);
        case BufferKind::PartialGradient:
        case BufferKind::ReceivedPartialGradient: return stage.gradients;
        case BufferKind::Framework:
            return heldBesides(m_design.schedule, m_costs)[static_cast<std::size_t>(b.device)].bytes;
        case BufferKind::OptimizerState: return optimizerState(b.stage, b.replica);
        case BufferKind::OffloadedUntilInputGrad:
        case BufferKind::ReloadedUntilInputGrad:
        case BufferKind::SavedUntilInputGrad: return scaled(stage.savedUntilInputGrad, b.microbatch);
        case BufferKind::OffloadedUntilWeightGrad:
        case BufferKind::ReloadedUntilWeightGrad:
        case BufferKind::SavedUntilWeightGrad: return scaled(stage.savedUntilWeightGrad, b.microbatch);
        case BufferKind::SavedFromInputGrad: {
            const Bytes spared = m_fullBackwards.contains({b.stage, b.microbatch}) ? stage.sparedByBackward : 0;
            return scaled(std::max<Bytes>(0, stage.savedFromInputGrad - spared), b.microbatch);
        }
        case BufferKind::RecomputedUntilInputGrad: return scaled(stage.recomputedUntilInputGrad, b.microbatch);
        case BufferKind::RecomputedUntilWeightGrad: return scaled(stage.recomputedUntilWeightGrad, b.microbatch);
        case BufferKind::SequenceGradient: return scaled(stage.sequenceGradient, b.microbatch);
        case BufferKind::Output:
        case BufferKind::ReceivedOutput: return scaled(b.skip ? skipBytes(b.stage, -1) : stage.output, b.microbatch);
        case BufferKind::Gradient:
        case BufferKind::ReceivedGradient:
            return scaled(b.skip ? skipBytes(b.consumerStage, b.stage)
                                 : m_costs.stages[static_cast<std::size_t>(b.stage) - 1].output,
                          b.microbatch);
        case BufferKind::Workspace: return b.bytes; // a buffer does not state its operation
        case BufferKind::ReduceInbox: return b.bytes;
        case BufferKind::GatheredParameters:
            return held(b.stage, b.replica, m_shares ? stage.parameters : stage.gatheredParameters);
        case BufferKind::WholeGradients: // summed once, the device's share is a part of it
            if (m_shares)
                return held(b.stage, b.replica, stage.gradients);
            return held(b.stage, b.replica, stage.wholeGradients)
                   - (m_design.schedule.zero.reduce == Zero::Reduce::Last ? held(b.stage, b.replica, stage.gradients)
                                                                          : 0);
        case BufferKind::KeptGradients: return gradientShare(b.replica, held(b.stage, b.replica, stage.gradients));
        }
        return -1;
    }

    /// Of gradients, the part that a replica updates with: of fp32 values where they are of these.
    Bytes gradientShare(int replica, Bytes whole) const
    {
        const int replicas = m_design.schedule.replicas();
        return whole % 4 == 0 ? 4 * shareOfReplica(whole / 4, replica, replicas).count()
                              : shareOfReplica(whole, replica, replicas).count();
    }

    /// The device that updates a stage keeps all of its state. Other devices that run the stage keep no optimizer state
    /// and, with sharded states, nothing.
    Bytes persistentBytes(int device) const
    {
        const Schedule& s = m_design.schedule;
        Bytes bytes = 0;
        for (std::size_t stage = 0; stage < s.deviceOfStage.size(); ++stage) {
            const StageCosts& costs = m_costs.stages[stage];
            for (int replica = 0; replica < s.replicas(); ++replica) {
                const int number = static_cast<int>(stage);
                if (s.placement(replica)[stage] == device)
                    bytes += parameters(number, replica) + gradients(number, replica) + optimizerState(number, replica);
            }
            if (s.dataParallelDevices.empty() || s.shardedStates || s.deviceOfStage[stage] == device)
                continue;
            const std::vector<int>& workers = s.dataParallelDevices[stage];
            if (std::find(workers.begin(), workers.end(), device) != workers.end())
                bytes += costs.parameters + costs.gradients;
        }
        return bytes;
    }

private:
    /// Of the bytes of a stage, a replica's: of whole parameters, if it has as many as fp32 gradients.
    Bytes share(int stage, int replica, Bytes whole) const
    {
        const Bytes count = m_costs.stages[static_cast<std::size_t>(stage)].gradients / 4;
        const Bytes each = count > 0 && whole % count == 0 ? whole / count : 0;
        const int replicas = m_design.schedule.replicas();
        return each > 0 ? each * shareOfReplica(count, replica, replicas).count()
                        : shareOfReplica(whole, replica, replicas).count();
    }
    /// What is there all the time.
    Bytes parameters(int stage, int replica) const
    {
        const Bytes whole = held(stage, replica, m_costs.stages[static_cast<std::size_t>(stage)].parameters);
        return m_shares && m_design.schedule.zero.level > 2 ? share(stage, replica, whole) : whole;
    }
    Bytes gradients(int stage, int replica) const
    {
        const Bytes whole = held(stage, replica, m_costs.stages[static_cast<std::size_t>(stage)].gradients);
        return m_shares && m_design.schedule.zero.level > 1 ? 0 : whole; // not before a step's first backward
    }
    Bytes optimizerState(int stage, int replica) const
    {
        const Bytes whole = held(stage, replica, m_costs.stages[static_cast<std::size_t>(stage)].optimizerState);
        return m_shares ? share(stage, replica, whole) : whole;
    }

    /// On another device that works on the stage.
    bool isCopy(const Buffer& b) const
    {
        return b.device != m_design.schedule.placement(b.replica)[static_cast<std::size_t>(b.stage)];
    }
    /// Of `whole` bytes of a stage, those that are not of a parameter which its device holds for another stage.
    Bytes held(int stage, int replica, Bytes whole) const
    {
        const auto deviceOf = [&](int of) {
            return m_design.schedule.placement(replica)[static_cast<std::size_t>(of)];
        };
        const StageCosts& costs = m_costs.stages[static_cast<std::size_t>(stage)];
        const Bytes gradients = std::max(costs.gradients, costs.wholeGradients);
        Bytes bytes = whole;
        for (const SharedParameter& shared : m_design.dataflow.shared)
            if (shared.otherStage == stage && gradients > 0 && !shared.copied
                && deviceOf(shared.rootStage) == deviceOf(stage))
                bytes -= std::llround(static_cast<long double>(std::min(shared.bytes, gradients)) * whole / gradients);
        return bytes;
    }

    Bytes scaled(Bytes bytes, int microbatch) const
    {
        if (m_costs.microbatches.empty())
            return bytes;
        return std::llround(static_cast<double>(bytes)
                            * m_costs.microbatches[static_cast<std::size_t>(microbatch)].bytes);
    }
    /// Bytes of the skip connection from a stage; `to` below 0: to any stage.
    Bytes skipBytes(int from, int to) const
    {
        for (const SkipConnection& skip : m_design.dataflow.skips)
            if (skip.fromStage == from && (to < 0 || skip.toStage == to))
                return skip.bytes;
        return 0;
    }

    const Design& m_design;
    const Costs& m_costs;
    bool m_shares;                                 ///< drawn replicas share out states
    std::set<std::pair<int, int>> m_fullBackwards; ///< stages and microbatches
};

} // namespace pipewright::test
