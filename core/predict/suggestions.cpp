// SPDX-License-Identifier: GPL-3.0-or-later
// Beam search over edits: single moves near the block, into idle time, along the critical path and around the memory
// peak; then one or more further moves from the best few. Every edit is predicted. O(evaluations x blocks).
#include "core/predict/suggestions.h"

#include "core/schedule/edits.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

namespace pipewright {

namespace {

constexpr int nearby = 6;   // places that a block is tried earlier and later
constexpr int fillers = 12; // blocks behind idle time that are tried inside it
constexpr int chainLength = 20;
constexpr std::size_t beam = 4; // edits that are continued with a further move

struct Candidate {
    Block block;
    int index = 0; ///< as in moveBlock(): before the block that is there now
    auto operator<=>(const Candidate&) const = default;
};
using Group = std::vector<Candidate>;

struct Peak {
    Bytes bytes = 0;
    double activations = 0;
    int device = -1;
};

Peak highestPeak(const Metrics& metrics)
{
    Peak peak;
    for (std::size_t d = 0; d < metrics.devices.size(); ++d) {
        if (peak.device < 0 || metrics.devices[d].peakBytes > peak.bytes)
            peak.device = static_cast<int>(d);
        peak.bytes = std::max(peak.bytes, metrics.devices[d].peakBytes);
        peak.activations = std::max(peak.activations, metrics.devices[d].peakActivations);
    }
    return peak;
}

bool lower(const Peak& a, const Peak& b)
{
    return std::tie(a.bytes, a.activations) < std::tie(b.bytes, b.activations);
}

TaskId taskOf(const Program& program, const Block& block)
{
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (isBlockOrUpdate(program.tasks[t].kind) && program.tasks[t].block() == block)
            return t;
    return none;
}

/// Where edits are looked for: one schedule and its prediction.
class Surroundings {
public:
    Surroundings(const Schedule& schedule, const Prediction& prediction)
        : m_schedule(schedule), m_program(prediction.program), m_timeline(prediction.timeline)
    {
    }

    /// The candidates of all groups in turn, so that a small budget still sees a few of each.
    std::vector<Candidate> collect(TaskId subject, int peakDevice) const
    {
        std::vector<Group> groups;
        if (subject != none) {
            groups.push_back(around(subject));
            groups.push_back(intoTheGapBefore(subject));
            groups.push_back(alongTheChain(subject));
        }
        TaskId last = 0;
        for (TaskId t = 0; t < m_program.tasks.size(); ++t)
            if (m_timeline.end[t] > m_timeline.end[last])
                last = t;
        if (!m_program.tasks.empty() && last != subject)
            groups.push_back(alongTheChain(last));
        if (peakDevice >= 0)
            groups.push_back(offThePeak(peakDevice));

        std::vector<Candidate> result;
        std::set<Candidate> seen;
        for (std::size_t i = 0, left = 1; left > 0; ++i) {
            left = 0;
            for (const Group& group : groups) {
                if (i >= group.size())
                    continue;
                ++left;
                if (seen.insert(group[i]).second)
                    result.push_back(group[i]);
            }
        }
        return result;
    }

private:
    const std::vector<Block>& order(int device) const { return m_schedule.order[device]; }

    void addMoves(Group& group, const Position& at, int direction, int places) const
    {
        if (at.device < 0)
            return;
        const auto size = static_cast<int>(order(at.device).size());
        for (int n = 1; n <= places; ++n) {
            // Moving after the n-th next block takes one more, since the index still counts the block itself.
            const int index = direction < 0 ? at.index - n : at.index + n + 1;
            if (index >= 0 && index <= size)
                group.push_back({order(at.device)[at.index], index});
        }
    }

    Group around(TaskId subject) const
    {
        Group group;
        const Position at = find(m_schedule, m_program.tasks[subject].block());
        addMoves(group, at, -1, nearby);
        addMoves(group, at, 1, nearby);
        return group;
    }

    /// Blocks that come later on the device and could run while it is idle.
    Group intoTheGapBefore(TaskId subject) const
    {
        Group group;
        const Position at = find(m_schedule, m_program.tasks[subject].block());
        if (at.device < 0)
            return group;
        const auto size = static_cast<int>(order(at.device).size());
        for (int i = at.index + 1; i < std::min(size, at.index + 1 + fillers); ++i)
            group.push_back({order(at.device)[i], at.index});
        return group;
    }

    /// Back along what each block waited for. Where that is its device's order, the block may go earlier or
    /// what stood in its way may go later.
    Group alongTheChain(TaskId task) const
    {
        Group group;
        for (int link = 0; link < chainLength && task != none; ++link) {
            TaskId data = m_program.afterData[task];
            const TaskId onDevice = m_program.afterOnDevice[task];
            const Nanoseconds ready = data == none ? 0 : m_timeline.end[data];
            if (onDevice != none && m_timeline.end[onDevice] >= ready) {
                if (m_program.tasks[task].kind == TaskKind::Compute)
                    addMoves(group, find(m_schedule, m_program.tasks[task].block()), -1, 3);
                if (m_program.tasks[onDevice].kind == TaskKind::Compute)
                    addMoves(group, find(m_schedule, m_program.tasks[onDevice].block()), 1, nearby);
                task = onDevice;
                continue;
            }
            while (data != none && moves(m_program.tasks[data].kind))
                data = m_program.afterData[data];
            task = data;
        }
        return group;
    }

    /// Forwards before the moment of the peak may wait, weight gradients behind it may come before it.
    Group offThePeak(int device) const
    {
        Group group;
        const Program::Device& lane = m_program.devices[device];
        if (lane.liveBytes.empty())
            return group;
        auto at = static_cast<std::size_t>(std::max_element(lane.liveBytes.begin(), lane.liveBytes.end())
                                           - lane.liveBytes.begin());
        while (at > 0 && lane.instructions[at].kind != InstructionKind::Compute)
            --at;
        if (lane.instructions[at].kind != InstructionKind::Compute)
            return group;
        const Position peak = find(m_schedule, m_program.tasks[lane.instructions[at].task].block());
        if (peak.device < 0)
            return group;
        const std::vector<Block>& blocks = order(device);
        for (int i = peak.index, forwards = 0; i >= 0 && forwards < 3; --i) {
            if (blocks[i].op != Op::F)
                continue;
            addMoves(group, {device, i}, 1, nearby);
            ++forwards;
        }
        for (int i = peak.index + 1; i < std::min(static_cast<int>(blocks.size()), peak.index + 1 + fillers); ++i)
            if (blocks[i].op == Op::W)
                group.push_back({blocks[i], peak.index});
        return group;
    }

    const Schedule& m_schedule;
    const Program& m_program;
    const Timeline& m_timeline;
};

/// An edit that was predicted.
struct Tried {
    std::vector<BlockMove> moves;
    Schedule schedule;
    Nanoseconds makespan = 0;
    Nanoseconds subjectStart = 0;
    Peak peak;
};

/// The same but for the microbatches of the blocks that are moved.
bool alike(const std::vector<BlockMove>& a, const std::vector<BlockMove>& b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const BlockMove& one, const BlockMove& other) {
        BlockMove same = one;
        same.block.microbatch = other.block.microbatch;
        return same == other;
    });
}

class Search {
public:
    Search(const Design& design, const Block& subject, const SuggestionLimits& limits,
           const std::function<bool()>& cancelled)
        : m_design(design), m_candidate(design), m_subject(subject), m_cancelled(cancelled),
          m_base(predictPlaced(design)), m_peak(highestPeak(m_base.metrics)), m_overAlready(isOver(m_base.metrics))
    {
        const std::int64_t blocks = std::max<std::int64_t>(1, design.schedule.blocks());
        m_left = static_cast<int>(
            std::min<std::int64_t>(limits.evaluations, std::max<std::int64_t>(12, limits.work / blocks)));
        m_steps = limits.steps;
    }

    /// Every edit that was predicted; nothing when cancelled.
    std::vector<Tried> run()
    {
        std::vector<Tried> all;
        // Half of the budget for single moves, the rest for where they led.
        extend({}, m_design.schedule, m_base, m_steps > 1 ? m_left / 2 : m_left, all);
        for (int step = 1; step < m_steps && m_left > 0 && !m_stopped; ++step) {
            const std::vector<std::size_t> best = beamOf(all, static_cast<std::size_t>(step));
            for (const std::size_t index : best) {
                const Tried from = all[index]; // a copy: `all` grows
                m_candidate.schedule = from.schedule;
                extend(from.moves, from.schedule, predictPlaced(m_candidate), m_left / 3 + 1, all);
            }
        }
        if (m_stopped)
            all.clear();
        return all;
    }

    Nanoseconds makespan() const { return m_base.metrics.makespan; }
    const Peak& peak() const { return m_peak; }

    /// The gathered parameters of the subject's stage, or else those of all stages, stay to the end of the step, where
    /// they are freed after each visit (ZeRO 3) and that shortens the step; no moves.
    std::optional<Tried> holding()
    {
        const Zero& zero = m_design.schedule.zero;
        if (m_stopped || !zero.sharesParameters() || !zero.reshard.of(m_subject.stage))
            return std::nullopt;
        Reshard others; // than the subject's
        for (int stage = 0; stage < m_design.schedule.stages(); ++stage)
            if (stage != m_subject.stage && zero.reshard.of(stage))
                others.stages.push_back(stage);
        for (const Reshard& reshard : {others, Reshard{}}) {
            m_candidate.schedule = m_design.schedule;
            m_candidate.schedule.zero.reshard = reshard;
            const Prediction prediction = predictPlaced(m_candidate);
            if (prediction.metrics.makespan >= makespan() || (!m_overAlready && isOver(prediction.metrics)))
                continue;
            Tried tried;
            tried.schedule = m_candidate.schedule;
            tried.makespan = prediction.metrics.makespan;
            tried.peak = highestPeak(prediction.metrics);
            return tried;
        }
        return std::nullopt;
    }

private:
    bool isOver(const Metrics& metrics) const
    {
        const auto& devices = m_design.cluster.devices;
        for (std::size_t d = 0; d < std::min(devices.size(), metrics.devices.size()); ++d)
            if (devices[d].memory > 0 && metrics.devices[d].peakBytes > devices[d].memory)
                return true;
        return false;
    }

    /// Of the edits with so many moves those worth a further one: shorter, else the subject sooner.
    std::vector<std::size_t> beamOf(const std::vector<Tried>& all, std::size_t moves) const
    {
        std::vector<std::size_t> result;
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i].moves.size() == moves && all[i].makespan <= makespan())
                result.push_back(i);
        std::stable_sort(result.begin(), result.end(), [&all](std::size_t a, std::size_t b) {
            return std::tie(all[a].makespan, all[a].subjectStart, all[a].peak.bytes)
                   < std::tie(all[b].makespan, all[b].subjectStart, all[b].peak.bytes);
        });
        if (result.size() > beam)
            result.resize(beam);
        return result;
    }

    void extend(const std::vector<BlockMove>& before, const Schedule& schedule, const Prediction& prediction,
                int budget, std::vector<Tried>& all)
    {
        const TaskId subject = taskOf(prediction.program, m_subject);
        const Surroundings surroundings(schedule, prediction);
        for (const Candidate& candidate : surroundings.collect(subject, highestPeak(prediction.metrics).device)) {
            if (m_left <= 0 || budget-- <= 0)
                return;
            if (m_stopped || (m_cancelled && m_cancelled())) {
                m_stopped = true;
                return;
            }
            const Position from = find(schedule, candidate.block);
            // Moved twice, a block would better have been moved once.
            const bool again = std::any_of(before.begin(), before.end(),
                                           [&](const BlockMove& m) { return m.block == candidate.block; });
            if (again || candidate.index == from.index || candidate.index == from.index + 1)
                continue;
            EditResult edit = moveBlock(schedule, candidate.block, candidate.index, m_design.dataflow.skips);
            if (!edit.legal() || !m_seen.insert(edit.schedule.order).second)
                continue;
            --m_left;
            const auto& order = schedule.order[from.device];
            const bool earlier = candidate.index < from.index;
            const Block& neighbour = order[earlier ? candidate.index : candidate.index - 1];
            m_candidate.schedule = std::move(edit.schedule);
            try {
                const Prediction after = predictPlaced(m_candidate);
                if (!m_overAlready && isOver(after.metrics))
                    continue;
                Tried tried{before, std::move(m_candidate.schedule), after.metrics.makespan, 0,
                            highestPeak(after.metrics)};
                tried.moves.push_back({candidate.block, neighbour, earlier, from.device});
                if (const TaskId task = taskOf(after.program, m_subject); task != none)
                    tried.subjectStart = after.timeline.start[task];
                all.push_back(std::move(tried));
            } catch (const Error&) {
                continue; // what cannot be compiled is no suggestion
            }
        }
    }

    const Design& m_design;
    Design m_candidate; ///< with the schedule that is predicted
    const Block m_subject;
    const std::function<bool()>& m_cancelled;
    const Prediction m_base;
    const Peak m_peak;
    const bool m_overAlready;
    int m_left = 0;
    int m_steps = 1;
    bool m_stopped = false;
    std::set<std::vector<std::vector<Block>>> m_seen;
};

} // namespace

std::vector<Suggestion> suggestEdits(const Design& design, const Block& subject, const SuggestionLimits& limits,
                                     const std::function<bool()>& cancelled)
{
    std::vector<Suggestion> result;
    std::vector<Tried> all;
    std::optional<Tried> held;
    Nanoseconds makespan = 0;
    Peak peak;
    try {
        Search search(design, subject, limits, cancelled);
        makespan = search.makespan();
        peak = search.peak();
        all = search.run();
        held = search.holding();
    } catch (const Error&) {
        return result; // no prediction, no gain
    }
    const auto add = [&](const Tried& tried) {
        result.push_back({tried.moves, tried.schedule, tried.makespan - makespan, tried.peak.bytes - peak.bytes,
                          tried.peak.activations - peak.activations});
    };

    std::vector<const Tried*> byTime;
    const Tried* leaner = nullptr;
    for (const Tried& tried : all) {
        byTime.push_back(&tried);
        const bool affordable =
            static_cast<double>(tried.makespan) <= static_cast<double>(makespan) * (1 + limits.slower);
        if (!affordable || !lower(tried.peak, peak))
            continue;
        const auto key = [](const Tried& t) {
            return std::make_tuple(t.makespan, t.moves.size(), t.peak.bytes, t.peak.activations);
        };
        if (!leaner || key(tried) < key(*leaner))
            leaner = &tried;
    }
    std::stable_sort(byTime.begin(), byTime.end(), [](const Tried* a, const Tried* b) {
        return std::make_tuple(a->makespan, a->moves.size(), a->peak.bytes)
               < std::make_tuple(b->makespan, b->moves.size(), b->peak.bytes);
    });
    for (const Tried* tried : byTime) {
        if (tried->makespan >= makespan || result.size() >= limits.most)
            break;
        // The same first move continued otherwise is no other idea, nor is that of another microbatch to the same end.
        const bool known = std::any_of(result.begin(), result.end(), [&](const Suggestion& s) {
            return s.moves.front().block == tried->moves.front().block
                   || (s.makespan == tried->makespan - makespan && s.peakBytes == tried->peak.bytes - peak.bytes
                       && alike(s.moves, tried->moves));
        });
        if (!known)
            add(*tried);
    }
    if (leaner && limits.most > 0) {
        const bool shown = std::any_of(result.begin(), result.end(),
                                       [&](const Suggestion& s) { return s.schedule == leaner->schedule; });
        if (!shown) {
            if (result.size() >= limits.most)
                result.resize(limits.most - 1);
            add(*leaner);
        }
    }
    if (held && limits.most > 0) {
        const auto place = std::find_if(result.begin(), result.end(),
                                        [&](const Suggestion& s) { return s.makespan > held->makespan - makespan; });
        result.insert(place, {{},
                              held->schedule,
                              held->makespan - makespan,
                              held->peak.bytes - peak.bytes,
                              held->peak.activations - peak.activations});
        result.resize(std::min(result.size(), limits.most));
    }
    return result;
}

} // namespace pipewright
