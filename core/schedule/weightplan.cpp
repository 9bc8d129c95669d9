// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers the updates of each stage in its device's order, assigns every backward to the update that follows it, and
// asks the schedule's rule (weightrules.h) for the version that each block reads. O(blocks),
// besides sorting the microbatches of each update.
#include "core/schedule/weightplan.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

class Planner {
public:
    Planner(const Schedule& schedule, const OrderGraph& graph, bool allowMissing, Diagnostics& diagnostics)
        : m_schedule(schedule), m_graph(graph), m_allowMissing(allowMissing), m_diagnostics(diagnostics),
          m_stages(static_cast<std::size_t>(schedule.stages())),
          m_microbatches(static_cast<std::size_t>(schedule.microbatches))
    {
    }

    WeightPlan run()
    {
        gatherStages();
        m_plan.reads.resize(m_graph.blocks.size());
        m_plan.updates.resize(m_stages);
        m_plan.batches.resize(m_stages);
        m_latest.assign(m_graph.blocks.size(), 0);
        m_batchOf.assign(m_stages * m_microbatches, -1);
        for (std::size_t stage = 0; stage < m_stages; ++stage)
            m_schedule.dataParallelDevices.empty() ? batchByOrder(stage) : batchByNumber(stage);
        m_rule = makeRule(m_schedule.weightPolicy);
        if (!hasErrors(m_diagnostics))
            checkRule();
        if (!hasErrors(m_diagnostics))
            for (std::size_t stage = 0; stage < m_stages; ++stage)
                askRule(static_cast<int>(stage));
        return std::move(m_plan);
    }

private:
    std::size_t cell(std::size_t stage, int microbatch) const
    {
        return stage * m_microbatches + static_cast<std::size_t>(microbatch);
    }

    std::string placeOf(BlockIndex i) const
    {
        const auto device = static_cast<std::size_t>(m_graph.deviceOfBlock[i]);
        return fmt::format("device {}, position {} ({})", device, i - m_graph.firstOfDevice[device],
                           toString(m_graph.blocks[i]));
    }

    void fault(BlockIndex block, std::string what, std::string hint)
    {
        m_diagnostics.push_back({Severity::Error, placeOf(block), std::move(what), std::move(hint)});
    }

    /// The blocks of each stage, device after device in the order they run there.
    void gatherStages()
    {
        m_blocks.resize(m_stages);
        for (BlockIndex i = 0; i < m_graph.blocks.size(); ++i)
            m_blocks[m_graph.blocks[i].stage].push_back(i);
    }

    void batchByOrder(std::size_t stage)
    {
        std::vector<std::int32_t> pending;
        std::vector<BlockIndex> pendingBlocks;
        for (const BlockIndex i : m_blocks[stage]) {
            const Block& block = m_graph.blocks[i];
            m_latest[i] = static_cast<std::int32_t>(m_plan.updates[stage].size());
            if (block.op == Op::U) {
                closeBatch(stage, i, pending);
                pending.clear();
                pendingBlocks.clear();
            } else if (makesWeightGrad(block.op)) {
                pending.push_back(block.microbatch);
                pendingBlocks.push_back(i);
                if (block.op == Op::W && m_latest[m_graph.indexOf(Op::I, block.stage, block.microbatch)] != m_latest[i])
                    fault(i,
                          fmt::format("an update of stage {} stands between {} and this block", block.stage,
                                      toString(m_graph.blocks[m_graph.indexOf(Op::I, block.stage, block.microbatch)])),
                          "layer norms' gradients come from I and the others from W: keep both on one side of the "
                          "update");
            }
        }
        if (!pending.empty() && !m_allowMissing)
            fault(pendingBlocks.back(),
                  "its gradient is never applied: other gradients of the schedule have an update block",
                  fmt::format("place U{}.{} behind it", stage, pending.back()));
        for (const std::int32_t m : pending)
            m_batchOf[cell(stage, m)] = static_cast<std::int32_t>(m_plan.updates[stage].size());
    }

    /// The workers of a stage stand on several devices: an update takes the microbatches up to its own number.
    void batchByNumber(std::size_t stage)
    {
        std::vector<BlockIndex> updates;
        for (const BlockIndex i : m_blocks[stage])
            if (m_graph.blocks[i].op == Op::U)
                updates.push_back(i);
        for (const BlockIndex i : m_blocks[stage])
            if (isHalfBackward(m_graph.blocks[i].op))
                return fault(i, "a half backward, in a stage whose gradient sums pass from device to device",
                             "use full backwards (B)");
        std::int32_t next = 0;
        for (const BlockIndex u : updates) {
            std::vector<std::int32_t> batch;
            for (; next <= m_graph.blocks[u].microbatch; ++next)
                batch.push_back(next);
            closeBatch(stage, u, batch);
        }
        if (next < m_schedule.microbatches && !m_allowMissing)
            m_diagnostics.push_back({Severity::Error, fmt::format("stage {}", stage),
                                     fmt::format("the gradients from microbatch {} on are never applied", next),
                                     fmt::format("place U{}.{}", stage, m_schedule.microbatches - 1)});
        for (; next < m_schedule.microbatches; ++next)
            m_batchOf[cell(stage, next)] = static_cast<std::int32_t>(m_plan.updates[stage].size());
    }

    void closeBatch(std::size_t stage, BlockIndex update, std::vector<std::int32_t> batch)
    {
        if (batch.empty() && !m_allowMissing)
            fault(update, "there is no gradient since the update before it",
                  "remove it, or move it behind a backward of its stage");
        const auto number = static_cast<std::int32_t>(m_plan.updates[stage].size());
        std::sort(batch.begin(), batch.end());
        for (const std::int32_t m : batch)
            m_batchOf[cell(stage, m)] = number;
        m_plan.reads[update] = {number, 0, number, noBlock};
        m_plan.updates[stage].push_back(update);
        m_plan.batches[stage].push_back(std::move(batch));
    }

    void checkRule()
    {
        const Diagnostics wrong = checkPolicy(m_schedule.weightPolicy);
        m_diagnostics.insert(m_diagnostics.end(), wrong.begin(), wrong.end());
        if (!m_schedule.dataParallelDevices.empty() && !m_rule->namesVersions())
            m_diagnostics.push_back({Severity::Error, "schedule.weights",
                                     fmt::format("{} reads the newest weights where a block stands, and a stage's "
                                                 "microbatches are spread over devices",
                                                 titleOf(m_schedule.weightPolicy.rule)),
                                     "keep each stage on one device, or use synchronous, cdp-v1 or cdp-v2"});
        for (std::size_t stage = 0; stage < m_stages && !hasErrors(m_diagnostics); ++stage)
            for (std::size_t update = 0; update < m_plan.batches[stage].size(); ++update) {
                const auto refusal =
                    m_rule->refuses(m_schedule.stages(), static_cast<int>(m_plan.batches[stage][update].size()));
                if (refusal && !m_allowMissing) {
                    m_diagnostics.push_back(*refusal);
                    break;
                }
            }
    }

    BlockIndex forwardOf(int stage, int microbatch) const { return m_graph.indexOf(Op::F, stage, microbatch); }
    int latestAt(BlockIndex block) const { return block == noBlock ? 0 : m_latest[block]; }

    void askRule(int stage)
    {
        const auto s = static_cast<std::size_t>(stage);
        // Forwards first: I and B need the version that their forward read, and R reads the same one.
        for (const bool forwards : {true, false})
            for (const BlockIndex i : m_blocks[s]) {
                const Op op = m_graph.blocks[i].op;
                if (isPass(op) && makesActivation(op) == forwards)
                    askRule(stage, i);
            }
    }

    void askRule(int stage, BlockIndex i)
    {
        const Block& block = m_graph.blocks[i];
        const auto s = static_cast<std::size_t>(stage);
        const BlockIndex forward = forwardOf(stage, block.microbatch);
        if (isRecompute(block.op) && forward != noBlock) {
            m_plan.reads[i] = m_plan.reads[forward];
            return;
        }
        WeightQuestion question;
        question.stages = m_schedule.stages();
        question.stage = stage;
        question.batch = m_batchOf[cell(s, block.microbatch)];
        if (question.batch < 0) // its backward is in the tray
            question.batch = m_latest[i];
        int first = block.microbatch;
        if (const auto b = static_cast<std::size_t>(question.batch);
            b < m_plan.batches[s].size() && !m_plan.batches[s][b].empty()) {
            const auto& batch = m_plan.batches[s][b];
            question.inBatch =
                static_cast<int>(std::lower_bound(batch.begin(), batch.end(), block.microbatch) - batch.begin());
            question.batchSize = static_cast<int>(batch.size());
            first = batch.front();
        }
        question.latest = m_latest[i];
        question.latestAtInjection = latestAt(forwardOf(0, block.microbatch));
        question.latestAtBatchInjection = latestAt(forwardOf(0, first));
        question.latestAtFirstForward = latestAt(forwardOf(stage, first));
        question.atForward = forward == noBlock ? 0 : m_plan.reads[forward].version;

        // W of a linear layer reads no weights; it gets the entry of its I.
        const BlockIndex gradient = block.op == Op::W ? m_graph.indexOf(Op::I, stage, block.microbatch) : i;
        WeightRead& read = m_plan.reads[i];
        read.update = question.batch;
        if (gradient != i && gradient != noBlock) {
            read.version = m_plan.reads[gradient].version;
            read.steps = m_plan.reads[gradient].steps;
            return;
        }
        const WeightAnswer answer = makesActivation(block.op) ? m_rule->forward(question) : m_rule->backward(question);
        read.version = answer.version;
        read.steps = answer.steps;
        if (read.steps > 0)
            read.madeBy = answer.prediction == PredictionOf::Block     ? i
                          : answer.prediction == PredictionOf::Forward ? forward
                          : makesActivation(block.op)                  ? forwardOf(stage, first)
                                                                       : m_graph.backwardOf(stage, first);
        checkAvailable(i, read);
        if (makesInputGrad(block.op) && forward != noBlock && m_schedule.recomputeOf(block.stage).insideBackward())
            checkRecomputed(i, read, m_plan.reads[forward]);
    }

    /// Recomputation needs the forward's weights, and a backward reads one version.
    void checkRecomputed(BlockIndex i, const WeightRead& read, const WeightRead& forward)
    {
        if (read.version == forward.version && read.steps == forward.steps)
            return;
        const auto text = [](const WeightRead& weights) {
            return weights.steps > 0 ? fmt::format("version {} predicted {} steps on", weights.version, weights.steps)
                                     : fmt::format("version {}", weights.version);
        };
        fault(
            i,
            fmt::format("it recomputes what the forward computed with {} of stage {}'s weights, but {} has it read {}",
                        text(forward), m_graph.blocks[i].stage, titleOf(m_schedule.weightPolicy.rule), text(read)),
            "recompute by R blocks, which read the forward's weights: --recompute block");
    }

    void checkAvailable(BlockIndex i, const WeightRead& read)
    {
        const Block& block = m_graph.blocks[i];
        const auto stage = static_cast<std::size_t>(block.stage);
        if (m_schedule.dataParallelDevices.empty() && read.version > m_latest[i]) {
            const auto update = static_cast<std::size_t>(read.version - 1);
            fault(i,
                  fmt::format("{} has it read version {} of stage {}'s weights, which {} makes later",
                              titleOf(m_schedule.weightPolicy.rule), read.version, block.stage,
                              update < m_plan.updates[stage].size()
                                  ? toString(m_graph.blocks[m_plan.updates[stage][update]])
                                  : "no update"),
                  "move the update before it, or choose a rule that reads older weights");
        } else if (read.steps > 0 && read.madeBy > i) {
            fault(i, fmt::format("it shares the prediction that {} makes later", toString(m_graph.blocks[read.madeBy])),
                  "keep a batch's microbatches in ascending order");
        }
    }

    const Schedule& m_schedule;
    const OrderGraph& m_graph;
    bool m_allowMissing;
    Diagnostics& m_diagnostics;
    std::size_t m_stages, m_microbatches;
    WeightPlan m_plan;
    std::unique_ptr<const VersionRule> m_rule;
    std::vector<std::vector<BlockIndex>> m_blocks; ///< per stage
    std::vector<std::int32_t> m_latest;            ///< per block: updates of its stage before it on its device
    std::vector<std::int32_t> m_batchOf;           ///< per stage and microbatch
};

} // namespace

bool hasUpdates(const Schedule& schedule)
{
    for (const auto& blocks : schedule.order)
        if (std::any_of(blocks.begin(), blocks.end(), [](const Block& block) { return block.op == Op::U; }))
            return true;
    return false;
}

WeightPlan planWeights(const Schedule& schedule, const OrderGraph& graph, bool allowMissing, Diagnostics& diagnostics)
{
    const bool cyclic =
        schedule.weightPolicy.rule == WeightRule::CdpV1 || schedule.weightPolicy.rule == WeightRule::CdpV2;
    if (schedule.shardedStates && (schedule.dataParallelDevices.empty() || !cyclic))
        diagnostics.push_back(
            {Severity::Error, "schedule.sharded_states",
             "a stage's states hop from worker to worker only where workers take turns on it in the cyclic way",
             "give \"in_turn\" and the rule cdp-v1 or cdp-v2, or leave \"sharded_states\" out"});
    if (!graph.hasUpdates()) {
        if (schedule.weightPolicy.rule != WeightRule::Synchronous)
            diagnostics.push_back(
                {Severity::Error, "schedule.weights",
                 fmt::format("{} is the rule, and the order has no update blocks", titleOf(schedule.weightPolicy.rule)),
                 "place update blocks such as \"U0.0\", or leave \"weights\" out"});
        if (!schedule.dataParallelDevices.empty())
            diagnostics.push_back({Severity::Error, "schedule.in_turn",
                                   "several devices work on a stage, and no block updates it",
                                   "place update blocks such as \"U0.0\""});
        return {};
    }
    return Planner(schedule, graph, allowMissing, diagnostics).run();
}

} // namespace pipewright
