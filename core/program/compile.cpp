// SPDX-License-Identifier: GPL-3.0-or-later
// The compiler's passes in order: check the costs, build the order graph, plan the weight versions, simulate the
// device lists to get start times, infer the transfers, apply stated transfer orders, project onto devices. O(blocks).
// Source: JaxPP, arXiv 2412.14374, section 4. Long schedules first try the shortcut of repeat.h.
#include "core/program/compile.h"

#include "core/base/freedmemory.h"
#include "core/program/liveness.h"
#include "core/program/pairtimes.h"
#include "core/program/repeat.h"
#include "core/program/transferinference.h"
#include "core/program/transferorder.h"
#include "core/program/transferstreams.h"
#include "core/program/weightversions.h"
#include "core/schedule/ordergraph.h"
#include "core/schedule/steadystate.h"
#include "core/schedule/validate.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

namespace pipewright {

namespace {

Diagnostics checkCosts(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow)
{
    Diagnostics diagnostics;
    if (costs.stages.size() != static_cast<std::size_t>(schedule.stages()))
        diagnostics.push_back(
            {Severity::Error, "costs.stages",
             fmt::format("costs of {} stages for a schedule of {}", costs.stages.size(), schedule.stages()),
             "give one entry per stage"});
    for (std::size_t s = 0; s < costs.stages.size(); ++s) {
        const StageCosts& c = costs.stages[s];
        if (std::any_of(allOps.begin(), allOps.end(), [&](Op op) { return c.*timeField(op) < 0; }))
            diagnostics.push_back(
                {Severity::Error, fmt::format("costs.stages, stage {}", s), "a negative time", "times are 0 or more"});
        if (c.recomputedUntilInputGrad + c.recomputedUntilWeightGrad > 0
            && !schedule.recomputeOf(static_cast<int>(s)).byBlock())
            diagnostics.push_back(
                {Severity::Error, fmt::format("costs.stages, stage {}", s),
                 fmt::format("{} are made again by a recompute, and the stage has none",
                             exactSize(c.recomputedUntilInputGrad + c.recomputedUntilWeightGrad)),
                 "let the stage recompute by blocks (\"recompute\" of the schedule), or count the bytes as saved"});
    }
    if (!costs.microbatches.empty() && costs.microbatches.size() != static_cast<std::size_t>(schedule.microbatches))
        diagnostics.push_back({Severity::Error, "costs.microbatches",
                               fmt::format("scales of {} microbatches for a schedule of {}", costs.microbatches.size(),
                                           schedule.microbatches),
                               "give one entry per microbatch, or none"});
    for (const MicrobatchScale& scale : costs.microbatches)
        if (!(scale.time >= 0 && scale.time <= 1e6 && scale.bytes >= 0 && scale.bytes <= 1e6))
            diagnostics.push_back(
                {Severity::Error, "costs.microbatches",
                 fmt::format("a microbatch {} times as long and {} times as large", scale.time, scale.bytes),
                 "scales are between 0 and 1e6; 1 is the usual microbatch"});
    if (costs.hostGaps.size() > static_cast<std::size_t>(schedule.devices()))
        diagnostics.push_back(
            {Severity::Error, "costs.host_gaps",
             fmt::format("gaps of {} devices for a schedule of {}", costs.hostGaps.size(), schedule.devices()),
             "give one entry per device, or none"});
    if (costs.nodeLinks.any() && std::ssize(costs.nodeLinks.nodeOfDevice) < schedule.devices())
        diagnostics.push_back({Severity::Error, "costs.nodes",
                               fmt::format("they say where {} devices stand, and the schedule has {}",
                                           costs.nodeLinks.nodeOfDevice.size(), schedule.devices()),
                               "give every device its node, or leave the nodes out"});
    for (const HostGaps& gaps : costs.hostGaps)
        if (*std::min_element(gaps.before.begin(), gaps.before.end()) < 0)
            diagnostics.push_back({Severity::Error, "costs.host_gaps", "a negative time", "a gap takes 0 or more"});
    if (!(costs.overlapFactor >= 0 && costs.overlapFactor <= 1e6))
        diagnostics.push_back({Severity::Error, "costs.overlap_factor", fmt::format("{}", costs.overlapFactor),
                               "1: as long as one after the other; 0.5: both in the time of one"});
    const Diagnostics ofParts = checkParts(schedule, costs);
    diagnostics.insert(diagnostics.end(), ofParts.begin(), ofParts.end());
    for (const SharedParameter& shared : dataflow.shared)
        if (std::min(shared.rootStage, shared.otherStage) < 0
            || std::max(shared.rootStage, shared.otherStage) >= schedule.stages())
            diagnostics.push_back(
                {Severity::Error, "dataflow.shared",
                 fmt::format("a parameter shared by stages {} and {}", shared.rootStage, shared.otherStage),
                 "name stages of the schedule"});
    return diagnostics;
}

/// Refuses what a schedule with U blocks cannot be combined with.
void checkVersioned(const Schedule& schedule, const Dataflow& dataflow)
{
    const auto joining = std::find_if(dataflow.shared.begin(), dataflow.shared.end(),
                                      [](const SharedParameter& shared) { return shared.joinsStages(); });
    if (joining != dataflow.shared.end())
        throw Error(
            "dataflow.shared",
            fmt::format("stages {} and {} share a parameter, and the schedule updates its stages one by one",
                        joining->rootStage, joining->otherStage),
            "use a model whose output head is its own (\"tied_head\": false), or a schedule without update blocks");
    if (!schedule.transferOrder.empty())
        throw Error("schedule.transfer_order", "the order of transfers is stated, and the schedule has update blocks",
                    "let transfers go where the data puts them: remove \"transfer_order\"");
}

/// Checks offload: one entry per stage, a host link in the costs, and no stated transfer order.
void checkOffload(const Schedule& schedule, const Costs& costs)
{
    const auto refuse = [](bool when, const char* what, const char* remedy) {
        if (when)
            throw Error("schedule.offload", what, remedy);
    };
    if (schedule.offload.empty())
        return;
    refuse(schedule.offload.size() != schedule.deviceOfStage.size(),
           "it does not say of each stage whether it offloads", "give one entry per stage, or none");
    if (std::find(schedule.offload.begin(), schedule.offload.end(), true) == schedule.offload.end())
        return;
    refuse(!costs.hostLink, "stages offload, and the costs say nothing of the link to the host's memory",
           "state it (\"host_link\" of the costs), or take a cluster that does");
    refuse(!schedule.transferOrder.empty(), "stages offload, and the order of transfers is stated",
           "let transfers go where the data puts them: remove \"transfer_order\"");
}

/// Refuses what shared gradients and parameters cannot be combined with.
void checkZero(const Schedule& schedule, const OrderGraph& graph, const Costs& costs)
{
    const auto refuse = [&](bool when, const char* what, const char* remedy) {
        if (when)
            throw Error("schedule.zero", fmt::format("level {}, and {}", schedule.zero.level, what), remedy);
    };
    if (!schedule.zero.sharesGradients())
        return;
    const bool drawn = schedule.replicas() > 1;
    refuse(drawn
               && std::any_of(costs.stages.begin(), costs.stages.end(),
                              [](const StageCosts& stage) { return stage.exchangesStates(); }),
           "its copies are drawn and counted, too", "take --zero 1, or copies of one kind");
    refuse(drawn && schedule.zero.reduce == Zero::Reduce::Each,
           "sums after each microbatch add up in another order than replicas without shared gradients",
           "take --reduce last, or copies that are only counted (--data-parallel N) of a pipeline that runs one way");
    refuse(drawn && !schedule.transferOrder.empty(),
           "the order of transfers is stated, among which are those that gather the replicas' shares",
           "let transfers go where the data puts them: remove \"transfer_order\"");
    refuse(graph.hasUpdates(), "the schedule updates its stages amid the step",
           "take --zero 1, or a family that updates at the end of a step");
}

/// Without loop commuting the W of the root stage waits for the other owner's gradient of the same microbatch.
void addSharedGradientInputs(OrderGraph& graph, const Dataflow& dataflow, int microbatches)
{
    const auto last = [&](int stage, int m) {
        const BlockIndex full = graph.indexOf(Op::B, stage, m);
        return full != noBlock ? full : graph.indexOf(Op::W, stage, m);
    };
    for (std::uint32_t k = 0; k < dataflow.shared.size(); ++k)
        for (int m = 0; m < microbatches && dataflow.shared[k].joinsStages(); ++m) {
            const BlockIndex root = last(dataflow.shared[k].rootStage, m),
                             other = last(dataflow.shared[k].otherStage, m);
            if (root != noBlock && other != noBlock)
                graph.skipInputs.push_back({root, other, k, OrderGraph::SkipInput::Kind::SharedGradient});
        }
    std::stable_sort(graph.skipInputs.begin(), graph.skipInputs.end(),
                     [](const auto& a, const auto& b) { return a.block < b.block; });
}

std::vector<Nanoseconds> earliestStarts(const Schedule& schedule, const OrderGraph& graph)
{
    std::vector<Nanoseconds> earliest;
    for (const Pin& pin : schedule.pins) {
        const Block& b = pin.block;
        if (!isPass(b.op) || b.stage < 0 || b.stage >= schedule.stages() || b.microbatch < 0
            || b.microbatch >= schedule.microbatches || b.replica != schedule.replicaOf(b.microbatch))
            continue;
        const BlockIndex index = graph.indexOf(b.op, b.stage, b.microbatch);
        if (index == noBlock)
            continue;
        earliest.resize(graph.blocks.size(), 0);
        earliest[index] = std::max(earliest[index], pin.earliestStart);
    }
    return earliest;
}

/// Transfer time of the chain value that arrives at each stage: activations from the stage before,
/// gradients from the stage after; 0 on the same device. For an average microbatch: it only decides the order.
class ArrivalDelays {
public:
    ArrivalDelays(const Schedule& schedule, const Costs& costs)
        : m_stages(costs.stages.size()), m_activation(m_stages * static_cast<std::size_t>(schedule.replicas()), 0),
          m_gradient(m_activation)
    {
        for (int replica = 0; replica < schedule.replicas(); ++replica) {
            const std::vector<int>& placement = schedule.placement(replica);
            const std::size_t first = m_stages * static_cast<std::size_t>(replica);
            for (std::size_t s = 0; s + 1 < m_stages; ++s) {
                const int here = placement[s], there = placement[s + 1];
                if (here == there)
                    continue;
                m_activation[first + s + 1] = costs.linkBetween(here, there).transferTime(costs.stages[s].output);
                m_gradient[first + s] = costs.linkBetween(there, here).transferTime(costs.stages[s].output);
            }
        }
    }

    Nanoseconds of(const Block& block) const
    {
        const std::size_t at =
            m_stages * static_cast<std::size_t>(block.replica) + static_cast<std::size_t>(block.stage);
        return block.op == Op::F ? m_activation[at] : m_gradient[at];
    }

private:
    std::size_t m_stages;
    std::vector<Nanoseconds> m_activation, m_gradient; ///< per replica and stage
};

void findBuses(Program& program, const Costs& costs)
{
    if (!costs.hasBus())
        return;
    const auto see = [&](int from, int to) {
        if (const std::string& bus = costs.linkBetween(from, to).bus; !bus.empty())
            program.busOfLink.try_emplace({from, to}, bus);
    };
    for (const Task& task : program.tasks) {
        if (!task.joinsTwoDevices())
            continue;
        see(task.device, task.otherDevice());
        if (isReduction(task.kind))
            see(task.otherDevice(), task.device);
    }
}

/// Makes the lists of eight neighbouring devices at once and keeps them for the next calls, since each construction
/// reads all tasks.
class SomeAtATime {
public:
    explicit SomeAtATime(int outstandingSends) : m_outstandingSends(outstandingSends) {}

    Program::Device operator()(const Program& outline, int device)
    {
        constexpr int atATime = 8;
        const int first = device - device % atATime;
        if (first != m_first) {
            m_devices = {};
            m_devices = withLists(outline, first, std::min(first + atATime, static_cast<int>(outline.devices.size())),
                                  m_outstandingSends);
            m_first = first;
        }
        return m_devices[static_cast<std::size_t>(device - first)];
    }

private:
    int m_outstandingSends, m_first = -1;
    std::vector<Program::Device> m_devices;
};

/// One compilation of a whole schedule, without the shortcut for steady states.
class Compilation {
public:
    /// Finds the order and the start times. Keeps references to all.
    Compilation(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow, const CompileOptions& options)
        : m_schedule(schedule), m_costs(costs), m_dataflow(dataflow), m_options(options),
          m_graph(std::in_place, schedule, dataflow.skips, options.allowMissing, m_diagnostics)
    {
        if (hasErrors(m_diagnostics))
            throw Error(options.allowMissing ? std::move(m_diagnostics) : worstFirst(std::move(m_diagnostics)));
        m_diagnostics = checkCosts(schedule, costs, dataflow);
        if (hasErrors(m_diagnostics))
            throw Error(std::move(m_diagnostics));
        m_weights = planWeights(schedule, *m_graph, options.allowMissing, m_diagnostics);
        if (hasErrors(m_diagnostics))
            throw Error(std::move(m_diagnostics));
        if (m_weights.versioned())
            checkVersioned(schedule, dataflow);
        checkOffload(schedule, costs);
        checkZero(schedule, *m_graph, costs);
        addWeightInputs(*m_graph, m_weights, schedule);
        if (!options.commuteSharedGradients)
            addSharedGradientInputs(*m_graph, dataflow, schedule.microbatches);
        m_earliest = earliestStarts(schedule, *m_graph);
        runInOrder();
        if (!m_run.stuck.empty())
            throw Deadlock(m_run.stuck);
    }

    const OrderGraph& graph() const { return *m_graph; }
    /// Per block, device after device.
    const std::vector<Nanoseconds>& start() const { return m_run.start; }
    /// False with blocks that take no time, whose order comes from the simulation and may not repeat, and with weight
    /// versions, which are numbered through the whole step.
    bool mayRepeat() const
    {
        return !m_weights.versioned()
               && std::equal(m_run.start.begin(), m_run.start.end(), m_run.end.begin(),
                             [](Nanoseconds start, Nanoseconds end) { return start < end; });
    }

    Program program() const
    {
        Program program = sequence(planned());
        projectOntoDevices(program, m_schedule.devices(), outstandingSends(), projectionThreads(program));
        return program;
    }

    /// Uses as little memory as possible; must be the last call.
    WithoutLists withoutLists()
    {
        StepPlan plan = planned();
        m_run = {};
        releaseFreedMemory();
        Program program = sequence(std::move(plan));
        m_graph.reset();
        releaseFreedMemory();
        projectOntoDevices(program, m_schedule.devices(), outstandingSends(), 1, Lists::LeftOut);
        return {std::move(program), SomeAtATime(outstandingSends())};
    }

private:
    int outstandingSends() const { return std::max(1, m_options.outstandingSends); }

    StepPlan planned() const
    {
        return {sortedByStart(m_run),
                m_costs.communication != Communication::Overlapped ? m_run.end : std::vector<Nanoseconds>(),
                OffloadPlan(m_schedule, m_costs, *m_graph, m_run),
                planReplicaSums(m_schedule, m_costs, m_dataflow, *m_graph, m_run, m_options.commuteSharedGradients)};
    }

    /// The Program without its devices.
    Program sequence(StepPlan plan) const
    {
        Program program;
        program.shape() = m_schedule;
        program.communication = m_costs.communication;
        inferTransfers(program, m_schedule, *m_graph, std::move(plan), m_earliest, m_costs, m_dataflow, m_weights,
                       m_options);
        applyTransferOrder(program, m_schedule.transferOrder);
        chainStreams(program);
        findBuses(program, m_costs);
        return program;
    }

    void runInOrder()
    {
        const ArrivalDelays delays(m_schedule, m_costs);
        std::vector<std::array<Nanoseconds, opCount>> usual;
        for (const StageCosts& stage : m_costs.stages)
            for (std::array<Nanoseconds, opCount>& times = usual.emplace_back(); const Op op : allOps)
                times[indexOf(op)] = stage.*timeField(op);
        const auto alone = [&](BlockIndex i) {
            const Block& block = m_graph->blocks[i];
            return m_costs.microbatches.empty() ? usual[block.stage][indexOf(block.op)]
                                                : m_costs.duration(block.op, block.stage, block.microbatch);
        };
        const bool gaps = m_costs.hasHostGaps();
        const auto gap = [&](BlockIndex i) {
            return gaps ? m_costs.hostGap(m_graph->blocks[i].op, m_graph->deviceOfBlock[i]) : 0;
        };
        PairTimes pairs(m_costs);
        const auto together = [&](BlockIndex i) {
            const Block &first = m_graph->blocks[i], &second = m_graph->blocks[i + 1];
            return pairs.length(first, second, statedPartOrder(m_schedule, {first, second}));
        };
        // A block with the gap before it.
        const auto duration = [&](BlockIndex i) {
            return m_graph->unitSize(i) == 1 ? gap(i) + alone(i) : std::max(gap(i), gap(i + 1)) + together(i);
        };
        const auto delay = [&](BlockIndex input, BlockIndex block) {
            if (m_graph->chainInput[block] == input)
                return delays.of(m_graph->blocks[block]);
            const int from = m_graph->deviceOfBlock[input], to = m_graph->deviceOfBlock[block];
            return from == to ? 0 : m_costs.linkBetween(from, to).latency;
        };
        m_run = runOrder(*m_graph, m_earliest, duration, delay);
    }

    const Schedule& m_schedule;
    const Costs& m_costs;
    const Dataflow& m_dataflow;
    const CompileOptions& m_options;
    Diagnostics m_diagnostics;
    std::optional<OrderGraph> m_graph;
    WeightPlan m_weights;
    std::vector<Nanoseconds> m_earliest;
    OrderRun m_run;
};

/// The least number of repetitions for the shortened schedule: enough for all devices to reach the steady state, and
/// then for the lifetime of any buffer; activations live until their microbatch's backward.
int usefulRepetitions(int inFlight, bool keepsActivations)
{
    return keepsActivations ? inFlight * 3 / 2 + 6 : inFlight + 3;
}

/// What `copied(program, shortened, starts)` makes of the Program of a shortened schedule (repeat.h), where order and
/// start times repeat.
template<typename Copied>
auto compileRepetition(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow,
                       const CompileOptions& options, Copied copied)
    -> decltype(copied(std::declval<Program>(), std::declval<ShortenedSchedule>(), std::vector<Nanoseconds>()))
{
    if (!costs.microbatches.empty() || !schedule.offload.empty() || schedule.zero.sharesGradients())
        return std::nullopt;
    std::optional<SteadyState> steady = findSteadyState(schedule);
    if (!steady)
        return std::nullopt;
    const bool keeps =
        !schedule.recompute.empty()
        || std::any_of(costs.stages.begin(), costs.stages.end(), [](const StageCosts& stage) {
               return std::max({stage.savedUntilInputGrad, stage.savedUntilWeightGrad, stage.savedFromInputGrad,
                                stage.recomputedUntilInputGrad, stage.recomputedUntilWeightGrad})
                      > 0;
           });
    int repetitions = usefulRepetitions(steady->inFlight, keeps);
    const auto savesHalf = [&] {
        return 2 * (steady->repetitions - repetitions) * steady->microbatches >= schedule.microbatches;
    };
    try {
        while (savesHalf()) {
            const ShortenedSchedule shortened = shorten(schedule, *steady, repetitions);
            const Compilation compilation(shortened.schedule, costs, dataflow, options);
            if (!compilation.mayRepeat())
                return std::nullopt;
            const int together = repetitionsOfStarts(compilation.graph(), shortened.steady, compilation.start(), keeps);
            if (together > 1) {
                steady = takenTogether(*steady, together);
                repetitions = repetitions / together + 3;
                continue;
            }
            if (together == 1)
                if (auto made = copied(compilation.program(), shortened, compilation.start()))
                    return made;
            repetitions *= 2; // uneven stages take longer to reach the steady state
        }
    } catch (const Error&) {
        // The diagnostics have positions of the shortened schedule; compiling the whole schedule gives the right ones.
    }
    return std::nullopt;
}

} // namespace

Program compile(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow, const CompileOptions& options)
{
    if (std::optional<Program> program = compileRepetition(schedule, costs, dataflow, options, repeatSteadyState))
        return *std::move(program);
    return Compilation(schedule, costs, dataflow, options).program();
}

std::optional<Outline> compileOutline(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow,
                                      const AmountsOf& amountsOf)
{
    return compileRepetition(
        schedule, costs, dataflow, {},
        [&](Program program, const ShortenedSchedule& shortened, const std::vector<Nanoseconds>& start) {
            return repeatOutline(std::move(program), shortened, start, amountsOf);
        });
}

WithoutLists compileWithoutLists(const Schedule& schedule, const Costs& costs, const Dataflow& dataflow)
{
    releaseFreedMemory(); // freed by earlier work, such as reading the file
    return Compilation(schedule, costs, dataflow, {}).withoutLists();
}

} // namespace pipewright
