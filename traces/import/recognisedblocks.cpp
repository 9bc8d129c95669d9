// SPDX-License-Identifier: GPL-3.0-or-later
// Assigns each range its launches by binary search per thread, and numbers steps.
// O(activities log activities).
#include "traces/import/recognisedblocks.h"

#include "traces/import/stockschedules.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

namespace pipewright {

namespace {

struct Span {
    Nanoseconds start = 0, end = 0;
    bool any = false;
    void add(Nanoseconds from, Nanoseconds to)
    {
        start = any ? std::min(start, from) : from;
        end = any ? std::max(end, to) : to;
        any = true;
    }
};

/// The task of an action of a device; nothing for waits, shards and reductions. Nothing for sends either: transfers are
/// recorded at the receiver, and stand for their source as long as it is not known.
std::optional<Task> taskOf(const PytorchAction& action, int device)
{
    if (action.isCompute())
        return Task(TaskKind::Compute, action.block().op, 0, action.stage, action.microbatch, device);
    const auto received = [&](Op op, int stage) {
        return Task(TaskKind::Transfer, op, 0, stage, action.microbatch, device, device);
    };
    if (action.type == PytorchAction::Type::RecvF && action.stage > 0)
        return received(Op::F, action.stage - 1);
    if (action.type == PytorchAction::Type::RecvB)
        return received(Op::I, action.stage + 1);
    return std::nullopt;
}

class Recogniser {
public:
    explicit Recogniser(TraceData& data) : m_data(data) {}

    RecognisedBlocks run()
    {
        collect();
        if (m_ranges.empty())
            return {};
        findLaunches();
        if (!m_anyKernels)
            beginAfterReceives(m_data, m_ranges);
        place();
        finish();
        return std::move(m_blocks);
    }

private:
    using Launch = std::pair<Nanoseconds, std::uint32_t>; ///< (start of the call, correlation)
    int rankOf(std::uint32_t lane) const { return m_data.lanes[lane].rank; }

    void collect()
    {
        m_steps = profilerSteps(m_data);
        for (const auto& [rank, steps] : m_steps) {
            std::vector<StepSpan>& spans = m_stepSpans[rank];
            for (const auto& [number, step] : steps)
                spans.push_back({step.first, step.second, step.second, number - steps.begin()->first});
            std::sort(spans.begin(), spans.end(),
                      [](const StepSpan& a, const StepSpan& b) { return a.start < b.start; });
            for (std::size_t i = 1; i < spans.size(); ++i)
                spans[i].latestEnd = std::max(spans[i].latestEnd, spans[i - 1].latestEnd);
        }
        NamedRanges named = namedRanges(m_data);
        m_ranges = std::move(named.host);
        m_deviceRanges = std::move(named.device);
        if (m_ranges.empty()) {
            StockBlocks stock = stockBlocks(m_data, m_steps);
            m_ranges = std::move(stock.ranges);
            if (m_ranges.empty() && hasMegatronRanges())
                m_data.report.warn(
                    "Megatron's own ranges do not say of which microbatch they are, so no block is known",
                    "train with resources/examples/megatron_nvtx.py, which leaves ranges F0.3 and B0.3");
            if (!stock.refusal.empty())
                m_data.report.warn("the blocks of its pipeline cannot be recognised: " + stock.refusal,
                                   "run the schedule by PyTorch's _PipelineScheduleRuntime, which names them PP:0F3");
        }
        std::sort(m_ranges.begin(), m_ranges.end(), [&](const PipelineRange& a, const PipelineRange& b) {
            return std::tuple(rankOf(a.lane), a.start, a.name) < std::tuple(rankOf(b.lane), b.start, b.name);
        });
        for (auto& [key, ranges] : m_deviceRanges)
            std::sort(ranges.begin(), ranges.end(),
                      [](const PipelineRange& a, const PipelineRange& b) { return a.start < b.start; });
    }

    /// Whether the trace has ranges of --nvtx-ranges, named after functions:
    /// "megatron.core.pipeline_parallel.schedules.….warmup".
    bool hasMegatronRanges() const
    {
        return std::any_of(m_data.activities.begin(), m_data.activities.end(), [&](const Activity& a) {
            return a.kind() == ActivityKind::Range && m_data.strings.text(a.name).starts_with("megatron.");
        });
    }

    /// Collects launching calls per thread, and their kernels per process and correlation.
    void findLaunches()
    {
        std::set<std::uint32_t> withRanges;
        for (const PipelineRange& range : m_ranges)
            withRanges.insert(range.lane);
        for (const Activity& a : m_data.activities) {
            if (a.correlation == 0)
                continue;
            const std::uint64_t key = (static_cast<std::uint64_t>(rankOf(a.lane)) << 32) | a.correlation;
            if (a.kind() == ActivityKind::Runtime) {
                // Threads without ranges belong to autograd or to libraries; their launches are merged per rank.
                if (withRanges.contains(a.lane))
                    m_launches[a.lane].emplace_back(a.start, a.correlation);
                else
                    m_otherLaunches[rankOf(a.lane)].emplace_back(a.start, a.correlation);
            } else if (a.kind() == ActivityKind::Kernel) {
                const bool nccl = m_data.strings.text(a.name).starts_with("nccl");
                (nccl ? m_transfers : m_kernels)[key].add(a.start, a.end);
            }
        }
        for (auto& [lane, launches] : m_launches)
            std::sort(launches.begin(), launches.end());
        for (auto& [rank, launches] : m_otherLaunches)
            std::sort(launches.begin(), launches.end());
        m_anyKernels = !m_kernels.empty() || !m_transfers.empty();
    }

    void addLaunched(const std::vector<Launch>& launches, const PipelineRange& range, bool transfer, Span& span) const
    {
        for (auto at = std::lower_bound(launches.begin(), launches.end(), Launch{range.start, 0});
             at != launches.end() && at->first <= range.end; ++at) {
            const auto& spans = transfer ? m_transfers : m_kernels;
            const auto found = spans.find((static_cast<std::uint64_t>(rankOf(range.lane)) << 32) | at->second);
            if (found != spans.end())
                span.add(found->second.start, found->second.end);
        }
    }

    /// `occurrence`: number of earlier ranges of the rank with the same name.
    Span deviceTime(const PipelineRange& range, const PytorchAction& action, std::size_t occurrence,
                    std::size_t occurrences) const
    {
        const bool transfer = action.isTransfer();
        Span span;
        if (const auto own = m_launches.find(range.lane); own != m_launches.end())
            addLaunched(own->second, range, transfer, span);
        if (!transfer && action.type != PytorchAction::Type::F)
            if (const auto others = m_otherLaunches.find(rankOf(range.lane)); others != m_otherLaunches.end())
                addLaunched(others->second, range, transfer, span);
        if (!span.any && !m_anyKernels) { // a trace without kernels may still have device annotations
            const auto found = m_deviceRanges.find({rankOf(range.lane), range.name});
            if (found != m_deviceRanges.end() && found->second.size() == occurrences)
                span.add(found->second[occurrence].start, found->second[occurrence].end);
        }
        if (!span.any && !transfer)
            span.add(range.start, range.end);
        return span;
    }

    /// The first step in which the range begins, counted from the rank's first; -1: in none.
    int stepOf(const PipelineRange& range, int occurrence) const
    {
        const auto steps = m_stepSpans.find(rankOf(range.lane));
        if (steps == m_stepSpans.end())
            return occurrence;
        auto at = std::upper_bound(steps->second.begin(), steps->second.end(), range.start,
                                   [](Nanoseconds time, const StepSpan& step) { return time < step.start; });
        int found = -1;
        while (at != steps->second.begin() && (at - 1)->latestEnd > range.start) {
            --at;
            if (at->end > range.start)
                found = found < 0 ? at->number : std::min(found, at->number);
        }
        return found;
    }

    std::uint32_t taskId(const Task& task)
    {
        const std::tuple key(task.kind, task.op, task.stage, task.microbatch());
        const auto [found, isNew] = m_taskIds.try_emplace(key, static_cast<std::uint32_t>(m_blocks.tasks.size()));
        if (isNew) {
            m_blocks.tasks.push_back(task);
            m_blocks.labels.push_back(toString(task.block()));
        }
        return found->second;
    }

    void place()
    {
        std::map<std::pair<int, std::uint32_t>, std::size_t> occurrences, seen;
        for (const PipelineRange& range : m_ranges) {
            ++occurrences[{rankOf(range.lane), range.name}];
            m_data.lanes[range.lane].unknown = false;
        }
        std::set<std::pair<int, std::uint32_t>> recorded; // (step, task)
        for (const PipelineRange& range : m_ranges) {
            const std::pair key(rankOf(range.lane), range.name);
            const std::size_t occurrence = seen[key]++;
            const int step = stepOf(range, static_cast<int>(occurrence));
            if (step < 0) {
                m_data.report.repair("blocks outside every profiler step; they are shown and not compared",
                                     m_data.strings.text(range.name));
                continue;
            }
            const int device = rankOf(range.lane);
            for (const PytorchAction& action : range.actions) {
                noteTransfer(range, action, step);
                const auto task = taskOf(action, device);
                const Span span = task ? deviceTime(range, action, occurrence, occurrences[key]) : Span();
                if (!span.any)
                    continue;
                const std::uint32_t id = taskId(*task);
                if (!recorded.emplace(step, id).second) {
                    m_data.report.repair(
                        "blocks that a step has twice, as with data parallelism; the first is compared",
                        m_data.strings.text(range.name));
                    continue;
                }
                m_blocks.devices = std::max(m_blocks.devices, device + 1);
                m_blocks.records.push_back({id, step, device, span.start, span.end});
            }
        }
    }

    /// For traces without kernels: notes when results were sent, and who waited for them from when on.
    void noteTransfer(const PipelineRange& range, const PytorchAction& action, int step)
    {
        const bool backward = action.isBackward();
        if (action.isSend())
            m_sent[{step, action.carriesGradient(), action.stage, action.microbatch}] = range.start;
        else if (range.sent && (backward || action.type == PytorchAction::Type::F))
            m_sent[{step, backward, action.stage, action.microbatch}] = *range.sent;
        if (!range.receives || (!backward && action.type != PytorchAction::Type::F))
            return;
        PytorchAction receive = action;
        receive.type = backward ? PytorchAction::Type::RecvB : PytorchAction::Type::RecvF;
        if (const auto task = taskOf(receive, rankOf(range.lane)))
            m_arrivals.push_back({step, *task, range.waitsFrom, range.start});
    }

    /// A transfer is placed only if its receiver waited before the data was sent; the end of others is unknown.
    void placeTransfers()
    {
        for (const Arrival& arrival : m_arrivals) {
            const Task& task = arrival.task;
            const auto sent = m_sent.find({arrival.step, !makesActivation(task.op), task.stage, task.microbatch()});
            if (sent != m_sent.end() && arrival.since <= sent->second && sent->second < arrival.at)
                m_blocks.records.push_back({taskId(task), arrival.step, task.destination(), sent->second, arrival.at});
        }
    }

    void finish()
    {
        if (!m_anyKernels)
            placeTransfers();
        std::map<int, Span> steps;
        for (const TaskRecord& record : m_blocks.records)
            steps[record.step].add(record.start, record.end);
        for (const auto& [step, span] : steps)
            m_blocks.steps.push_back({step, span.start, span.end, 0});
        // A transfer's source is where its stage computes.
        std::map<int, int> deviceOfStage;
        for (const Task& task : m_blocks.tasks)
            if (task.kind == TaskKind::Compute)
                deviceOfStage[task.stage] = task.device;
        for (std::size_t i = 0; i < m_blocks.tasks.size(); ++i) {
            Task& task = m_blocks.tasks[i];
            if (task.kind != TaskKind::Transfer)
                continue;
            if (const auto source = deviceOfStage.find(task.stage); source != deviceOfStage.end())
                task.device = source->second;
            m_blocks.labels[i] +=
                " from device " + std::to_string(task.device) + " to device " + std::to_string(task.destination());
        }
    }

    TraceData& m_data;
    std::vector<PipelineRange> m_ranges;
    std::map<std::pair<int, std::uint32_t>, std::vector<PipelineRange>> m_deviceRanges;
    ProfilerSteps m_steps;
    struct StepSpan {
        Nanoseconds start = 0, end = 0;
        Nanoseconds latestEnd = 0; ///< of it and those that began before
        int number = 0;
    };
    std::map<int, std::vector<StepSpan>> m_stepSpans; ///< by rank, in the order of their starts
    std::unordered_map<std::uint32_t, std::vector<Launch>> m_launches;
    std::unordered_map<int, std::vector<Launch>> m_otherLaunches;
    std::unordered_map<std::uint64_t, Span> m_kernels, m_transfers;
    std::map<std::tuple<TaskKind, Op, int, int>, std::uint32_t> m_taskIds;
    struct Arrival {
        int step = 0;
        Task task;
        Nanoseconds since = 0, at = 0;
    };
    std::vector<Arrival> m_arrivals;
    std::map<std::tuple<int, bool, int, int>, Nanoseconds> m_sent; ///< by step, gradient, stage and microbatch
    bool m_anyKernels = false;
    RecognisedBlocks m_blocks;
};

} // namespace

RecognisedBlocks recogniseBlocks(TraceData& data)
{
    return Recogniser(data).run();
}

} // namespace pipewright
