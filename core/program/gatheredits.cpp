// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/gatheredits.h"

#include "core/program/gatherplan.h"
#include "core/schedule/statedgather.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace pipewright {

namespace {

/// The gathers of a design, with what is stated of one of them taken back.
class Gathers {
public:
    Gathers(const Design& design, const Block& reader)
        : m_free(design.schedule), m_graph(design.schedule, {}, true, m_faults),
          m_gathered(gatheredStages(design.schedule, design.costs, design.dataflow)), m_reader(reader)
    {
        freeGather(m_free, reader);
        if (hasErrors(m_faults))
            return;
        m_index = indexOf(reader);
        m_rule.emplace(m_free, m_gathered, m_graph);
        if (m_index == noBlock || m_rule->earliest(m_index) == noBlock)
            m_faults.push_back({Severity::Error, toString(reader), "reads nothing that is gathered",
                                "share out the parameters with ZeRO 3, and name a block of a stage that is gathered"});
    }

    const Diagnostics& faults() const { return m_faults; }

    /// Where the gather stands now; noBlock: nowhere.
    BlockIndex now(const Schedule& schedule) const { return placeIn(GatherPlan(schedule, m_gathered, m_graph)); }

    EditResult at(BlockIndex place) const
    {
        EditResult result{m_free, {}};
        StatedGather stated{m_reader};
        if (place >= m_rule->earliest(m_index))
            stated.before = m_graph.blocks[place];
        if (placeIn(*m_rule) != (stated.before ? place : noBlock))
            stateGather(result.schedule, stated);
        return result;
    }

    BlockIndex indexOf(const Block& block) const
    {
        for (BlockIndex i = 0; i < m_graph.blocks.size(); ++i)
            if (m_graph.blocks[i] == block)
                return i;
        return noBlock;
    }

    BlockIndex reader() const { return m_index; }
    BlockIndex firstOfDevice() const
    {
        return m_graph.firstOfDevice[static_cast<std::size_t>(m_graph.deviceOfBlock[m_index])];
    }
    bool isOnDevice(BlockIndex block) const { return m_graph.deviceOfBlock[block] == m_graph.deviceOfBlock[m_index]; }

private:
    BlockIndex placeIn(const GatherPlan& plan) const
    {
        for (const GatherPlan::Gather& gather : plan.ofDevice(m_graph.deviceOfBlock[m_index]))
            if (gather.reader == m_index)
                return gather.before;
        return noBlock;
    }

    Schedule m_free;
    Diagnostics m_faults;
    OrderGraph m_graph;
    std::vector<bool> m_gathered;
    Block m_reader;
    BlockIndex m_index = noBlock;
    std::optional<GatherPlan> m_rule;
};

EditResult refused(const Design& design, const Block& reader, std::string what, std::string hint)
{
    return {design.schedule, {{Severity::Error, gatherName(reader), std::move(what), std::move(hint)}}};
}

EditResult tooLate(const Design& design, const Block& reader)
{
    return refused(design, reader, fmt::format("{} reads what is gathered, so it cannot come later", toString(reader)),
                   fmt::format("latest place: before {}", toString(reader)));
}

} // namespace

EditResult placeGather(const Design& design, const Block& reader, const Block& before)
{
    const Gathers gathers(design, reader);
    if (hasErrors(gathers.faults()))
        return {design.schedule, gathers.faults()};
    const BlockIndex place = gathers.indexOf(before);
    if (place == noBlock || !gathers.isOnDevice(place))
        return refused(design, reader, fmt::format("{} does not run on its device", toString(before)),
                       "name a block of the device that gathers");
    return place > gathers.reader() ? tooLate(design, reader) : gathers.at(place);
}

EditResult moveGatherBy(const Design& design, const Block& reader, int places)
{
    const Gathers gathers(design, reader);
    if (hasErrors(gathers.faults()))
        return {design.schedule, gathers.faults()};
    const BlockIndex now = gathers.now(design.schedule);
    if (now == noBlock)
        return refused(design, reader, "nothing is gathered for it: the device holds the parameters until it runs",
                       "gather them again first");
    const std::int64_t place = std::int64_t{now} + places;
    if (place > gathers.reader())
        return tooLate(design, reader);
    if (place < gathers.firstOfDevice())
        return refused(design, reader, "it is before the first block of its device already", "it cannot come earlier");
    return gathers.at(static_cast<BlockIndex>(place));
}

} // namespace pipewright
