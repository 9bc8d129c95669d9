// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/gatherplan.h"

#include "core/design/stagestate.h"
#include "core/schedule/statedgather.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace pipewright {

namespace {

/// The stages of one device whose parameters are gathered.
class DevicePlan {
public:
    DevicePlan(const Zero& zero, const OrderGraph& graph) : m_zero(zero), m_graph(graph) {}

    void addReader(BlockIndex block) { m_stages[m_graph.blocks[block].stage].readers.push_back(block); }

    /// What must be gathered before the blocks [begin, end), which start together.
    void addBefore(BlockIndex begin, BlockIndex end, std::vector<GatherPlan::Gather>& gathers)
    {
        std::vector<std::pair<BlockIndex, int>> next; // the readers that come next, each of another stage
        std::size_t now = 0;
        for (auto& [number, stage] : m_stages) {
            while (stage.next < stage.readers.size() && stage.readers[stage.next] < begin)
                ++stage.next;
            if (stage.next < stage.readers.size()) {
                next.emplace_back(stage.readers[stage.next], number);
                now += static_cast<std::size_t>(stage.readers[stage.next] < end);
            }
        }
        if (now == 0)
            return;
        std::sort(next.begin(), next.end());
        next.resize(std::min(next.size(), std::max(now, 1 + static_cast<std::size_t>(m_zero.prefetch))));
        for (auto& [number, stage] : m_stages)
            if (m_zero.reshard.of(number) && std::none_of(next.begin(), next.end(), [own = number](const auto& use) {
                    return use.second == own;
                }))
                stage.gathered = false;
        for (const auto& [reader, number] : next)
            if (!std::exchange(m_stages[number].gathered, true))
                gathers.push_back({begin, reader});
    }

    std::map<int, std::vector<BlockIndex>> takeReaders()
    {
        std::map<int, std::vector<BlockIndex>> readers;
        for (auto& [number, stage] : m_stages)
            readers.emplace(number, std::move(stage.readers));
        return readers;
    }

private:
    struct Stage {
        std::vector<BlockIndex> readers;
        std::size_t next = 0;
        bool gathered = false;
    };
    const Zero& m_zero;
    const OrderGraph& m_graph;
    std::map<int, Stage> m_stages;
};

/// The block that a name in the schedule means: a backward may have been split since.
BlockIndex indexOf(const OrderGraph& graph, const PipelineShape& shape, const Block& block)
{
    if (!isPass(block.op) || block.stage < 0 || block.stage >= shape.stages() || block.microbatch < 0
        || block.microbatch >= shape.microbatches)
        return noBlock;
    return block.op == Op::B || block.op == Op::I ? graph.backwardOf(block.stage, block.microbatch)
                                                  : graph.indexOf(block.op, block.stage, block.microbatch);
}

/// The first block of what starts together with this one.
BlockIndex unitBegin(const OrderGraph& graph, BlockIndex block)
{
    return block > 0 && graph.deviceOfBlock[block - 1] == graph.deviceOfBlock[block] && graph.unitSize(block - 1) > 1
               ? block - 1
               : block;
}

} // namespace

GatherPlan::GatherPlan(const Schedule& schedule, const std::vector<bool>& gathered, const OrderGraph& graph)
    : m_graph(graph), m_gathers(graph.firstOfDevice.size() - 1), m_readers(m_gathers.size())
{
    for (std::size_t device = 0; device < m_gathers.size(); ++device) {
        const BlockIndex first = graph.firstOfDevice[device], behind = graph.firstOfDevice[device + 1];
        DevicePlan plan(schedule.zero, graph);
        for (BlockIndex i = first; i < behind; ++i)
            if (isPass(graph.blocks[i].op) && gathered[static_cast<std::size_t>(graph.blocks[i].stage)])
                plan.addReader(i);
        for (BlockIndex i = first; i < behind; i += graph.unitSize(i))
            plan.addBefore(i, i + graph.unitSize(i), m_gathers[device]);
        m_readers[device] = plan.takeReaders();
    }
    for (const StatedGather& stated : schedule.gathers)
        state(schedule, stated);
    if (!schedule.gathers.empty())
        for (std::vector<Gather>& ofDevice : m_gathers)
            std::sort(ofDevice.begin(), ofDevice.end());
}

void GatherPlan::state(const PipelineShape& shape, const StatedGather& stated)
{
    const auto refuse = [&](std::string_view why) { m_withoutEffect.push_back({stated, why}); };
    const BlockIndex reader = indexOf(m_graph, shape, stated.reader);
    const BlockIndex first = reader == noBlock ? noBlock : earliest(reader);
    if (first == noBlock)
        return refuse("its block is not there, or reads nothing that is gathered");
    const auto device = static_cast<std::size_t>(m_graph.deviceOfBlock[reader]);
    Gather wanted{noBlock, reader};
    if (stated.before) {
        wanted.before = indexOf(m_graph, shape, *stated.before);
        if (wanted.before == noBlock || m_graph.deviceOfBlock[wanted.before] != m_graph.deviceOfBlock[reader])
            return refuse("the block before which it is to stand is not on its device");
        wanted.before = unitBegin(m_graph, wanted.before);
        if (wanted.before > reader)
            return refuse("it would come behind the block that reads it");
        if (wanted.before < first)
            return refuse("the stage's parameters are still there: a block before it reads them");
    } else if (isFirstReader(reader))
        return refuse("it is the first of its stage, so there is nothing to keep");
    std::vector<Gather>& gathers = m_gathers[device];
    std::erase_if(gathers, [reader](const Gather& gather) { return gather.reader == reader; });
    if (stated.before)
        gathers.push_back(wanted);
}

BlockIndex GatherPlan::earliest(BlockIndex reader) const
{
    const auto& ofDevice = m_readers[static_cast<std::size_t>(m_graph.deviceOfBlock[reader])];
    const auto stage = ofDevice.find(m_graph.blocks[reader].stage);
    if (stage == ofDevice.end())
        return noBlock;
    const auto place = std::lower_bound(stage->second.begin(), stage->second.end(), reader);
    if (place == stage->second.end() || *place != reader)
        return noBlock;
    if (place == stage->second.begin())
        return m_graph.firstOfDevice[static_cast<std::size_t>(m_graph.deviceOfBlock[reader])];
    const BlockIndex before = unitBegin(m_graph, *std::prev(place));
    return std::min(before + m_graph.unitSize(before), reader);
}

bool GatherPlan::isFirstReader(BlockIndex reader) const
{
    const auto& ofDevice = m_readers[static_cast<std::size_t>(m_graph.deviceOfBlock[reader])];
    const auto stage = ofDevice.find(m_graph.blocks[reader].stage);
    return stage != ofDevice.end() && stage->second.front() == reader;
}

std::vector<bool> gatheredStages(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow)
{
    std::vector<bool> gathered(costs.stages.size());
    for (std::size_t s = 0; schedule.zero.sharesParameters() && s < gathered.size(); ++s) {
        gathered[s] = costs.stages[s].gather > 0;
        for (int replica = 0; replica < schedule.replicas() && !gathered[s]; ++replica) {
            const StageState held = stageState(schedule, costs, dataflow, static_cast<int>(s), replica);
            gathered[s] = schedule.replicas() > 1 ? held.parameters > 0 : held.gathered > 0;
        }
    }
    return gathered;
}

Diagnostics notesOnGathers(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow)
{
    Diagnostics notes;
    if (schedule.gathers.empty())
        return notes;
    Diagnostics faults;
    const OrderGraph graph(schedule, {}, true, faults);
    if (hasErrors(faults))
        return notes;
    constexpr std::size_t listed = 3;
    const GatherPlan plan(schedule, gatheredStages(schedule, costs, dataflow), graph);
    const std::vector<GatherPlan::WithoutEffect>& all = plan.withoutEffect();
    for (const auto& [stated, reason] : all) {
        if (notes.size() == listed) {
            notes.push_back({Severity::Note, "schedule.gathers",
                             fmt::format("{} more have no effect either", all.size() - listed), notes.front().hint});
            break;
        }
        notes.push_back({Severity::Note, "schedule.gathers",
                         fmt::format("{} {} has no effect: {}", gatherName(stated.reader),
                                     stated.before ? "before " + toString(*stated.before) : "held", reason),
                         "remove it, unless it is to hold again when blocks are moved back"});
    }
    return notes;
}

} // namespace pipewright
