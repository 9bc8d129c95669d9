// SPDX-License-Identifier: GPL-3.0-or-later
// The times of another order. Tasks before the first changed block keep their times. Between the first and the last
// changed block the task order need not be topological, so a task that lacks an input is put on that input's waiting
// list and run when it ends (data-driven execution); tasks never reached form a cycle. After the last changed block the
// order is topological again, and the Evaluator continues from there. O(tasks from the first change on).
#include "core/predict/orderpreview.h"

#include "core/base/takeout.h"
#include "core/program/overlaps.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

/// The present times, and the parts of the Program that do not depend on the order.
Prediction withoutOrder(const Prediction& present)
{
    Prediction result;
    const Program& program = present.program;
    Program& copy = result.program;
    copy.tasks = program.tasks;
    copy.afterOnDevice = program.afterOnDevice;
    copy.afterData = program.afterData; // idle time is attributed by it
    copy.extraDependencies = program.extraDependencies;
    copy.overlaps = program.overlaps;
    copy.partOrders = program.partOrders;
    copy.shape() = program;
    result.transfers = present.transfers;
    result.transferred = present.transferred;
    result.timeline.start = present.timeline.start;
    result.timeline.end = present.timeline.end;
    return result;
}

} // namespace

OrderPreview::OrderPreview(const Design& design, const Prediction& present)
    : m_design(design), m_present(present), m_result(withoutOrder(present)), m_evaluator(m_result.program)
{
    const Program& program = present.program;
    for (TaskId t = 0; t < program.tasks.size(); ++t) // for blocks only the Evaluator's edges are used from now on
        if (program.tasks[t].kind == TaskKind::Compute)
            m_result.program.afterOnDevice[t] = none;
    const std::size_t count = program.tasks.size(), devices = program.devices.size();
    m_lanes.resize(devices);
    m_tails.resize(devices);
    m_partner = overlapPartners(program);
    m_evaluator.setHostGaps(design.costs);
    std::vector<TaskId> last(devices, none);
    for (TaskId t = 0; t < count; ++t) {
        const TaskId onDevice = program.afterOnDevice[t];
        m_evaluator.node(t).duration = present.timeline.end[t] - present.timeline.start[t];
        const Task& task = program.tasks[t];
        const auto d = static_cast<std::size_t>(task.device);
        if (task.kind == TaskKind::Compute) {
            // The second of a pair has the same predecessor as the first.
            m_possible = m_possible && onDevice == (isSecondOfPair(t) ? program.afterOnDevice[m_partner[t]] : last[d]);
            m_possible = m_possible && (!isSecondOfPair(t) || m_partner[t] == last[d]);
            last[d] = t;
            m_lanes[d].push_back(t);
        } else if (task.kind != TaskKind::Transfer) {
            for (std::size_t other = 0; other < devices; ++other)
                for (int slot = 0; slot < 2; ++slot)
                    if (last[other] != none && m_evaluator.node(t).after[slot] == last[other])
                        m_tails[other].push_back({t, slot});
        }
    }
    for (std::size_t d = 0; d < devices; ++d)
        m_possible =
            m_possible && d < design.schedule.order.size() && m_lanes[d].size() == design.schedule.order[d].size();
    // Pieces, transfers that hold up others, stated orders of transfers, versions of weights, buses and offloads tie
    // tasks together in other ways than a chain.
    PipelineShape rest = program;
    takeOut(rest.microbatches, rest.deviceOfStage, rest.replicaPlacements, rest.zero, rest.weightPolicy,
            rest.recompute);
    m_possible = m_possible && rest == PipelineShape{} && program.communication == Communication::Overlapped
                 && design.schedule.transferOrder.empty() && !program.versioned() && program.busOfLink.empty();
    // Exchanges with copies stand beside the blocks, before the first or behind the last one of a stage.
    m_possible = m_possible && std::none_of(program.tasks.begin(), program.tasks.end(), [](const Task& task) {
                     return isCopyCollective(task.kind);
                 });
    // Likewise parameters that replicas gather.
    m_possible = m_possible && !program.sharesParametersOfReplicas();
    // Sums over replicas are placed in idle time, which depends on the order.
    for (const StageCosts& stage : design.costs.stages)
        m_possible = m_possible && (program.replicas() == 1 || stage.gradients == 0);
    for (const Program::ExtraDependency& extra : program.extraDependencies)
        m_possible = m_possible && !isReduction(program.tasks[extra.task].kind);
    m_sequence.resize(count);
    for (TaskId t = 0; t < count; ++t)
        m_sequence[t] = t;
    m_waiter.assign(count, none);
    m_nextWaiter.assign(count, none);

    m_unchanged = static_cast<TaskId>(count);
    prepareMeters();
}

void OrderPreview::chooseDevice(int device)
{
    if (m_device == device)
        return;
    m_device = device;
    const std::vector<TaskId>& lane = m_lanes[device];
    m_positionOf.clear();
    for (std::size_t i = 0; i < lane.size(); ++i)
        m_positionOf.emplace(m_present.program.tasks[lane[i]].block(), static_cast<int>(i));
    std::vector<Program::Device>& devices = m_result.program.devices;
    devices.assign(m_present.program.devices.size(), {});
    for (std::size_t d = 0; d < devices.size(); ++d) {
        devices[d].persistentBytes = m_present.program.devices[d].persistentBytes;
        devices[d].peakBytes = m_present.metrics.devices[d].peakBytes;
        devices[d].peakActivations = m_present.program.devices[d].peakActivations;
    }
    m_result.timeline.memory.assign(devices.size(), {});
    splitInstructions();
}

template<typename Use>
void OrderPreview::eachLocalInput(const Block& block, Use use) const
{
    const auto look = [&](Op op, int stage) {
        Block input = block;
        input.op = op;
        input.stage = stage;
        if (const auto found = m_positionOf.find(input); found != m_positionOf.end())
            use(found->second);
    };
    if (const std::optional<Op> own = waitsFor(block.op))
        look(*own, block.stage);
    if (makesInputGrad(block.op))
        look(Op::R, block.stage);
    const int step = stageStep(block.op);
    const auto lookAllOf = [&](int stage) {
        for (const Op op : allOps)
            if (stageStep(op) == step)
                look(op, stage);
    };
    if (step == 0)
        return;
    lookAllOf(block.stage - step);
    for (const SkipConnection& skip : m_design.dataflow.skips)
        if ((step > 0 ? skip.toStage : skip.fromStage) == block.stage)
            lookAllOf(step > 0 ? skip.fromStage : skip.toStage);
}

bool OrderPreview::keepsLocalOrder(std::span<const std::uint32_t> positions, std::size_t from, std::size_t to,
                                   Diagnostics* why) const
{
    const std::vector<TaskId>& lane = m_lanes[m_device];
    const auto blockAt = [&](std::size_t position) { return m_present.program.tasks[lane[position]].block(); };
    std::vector<std::size_t> now(to - from); // where those between from and to go
    for (std::size_t i = from; i < to; ++i)
        now[positions[i] - from] = i;
    const auto newPosition = [&](int position) {
        const auto p = static_cast<std::size_t>(position);
        return p < from || p >= to ? p : now[p - from];
    };
    const auto refuse = [&](std::size_t i, std::string what, std::string hint) {
        if (why != nullptr)
            *why = {{Severity::Error,
                     fmt::format("device {}, position {} ({})", m_device, i, toString(blockAt(positions[i]))),
                     std::move(what), std::move(hint)}};
        return false;
    };
    // A moved block may separate a pair, so one more block at each end is checked.
    const std::size_t begin = from > 0 ? from - 1 : from, end = std::min(to + 1, positions.size());
    for (std::size_t i = begin; i < end; ++i) {
        const Block block = blockAt(positions[i]);
        int late = -1;
        eachLocalInput(block, [&](int input) {
            if (newPosition(input) > i)
                late = input;
        });
        if (late >= 0)
            return refuse(i,
                          fmt::format("it needs {}, which comes later on the same device",
                                      toString(blockAt(static_cast<std::size_t>(late)))),
                          fmt::format("move it behind position {}", newPosition(late)));
        if (block.op != Op::I || block.stage != 0 || m_design.schedule.firstStageMaySplit)
            continue;
        Block weight = block;
        weight.op = Op::W;
        const auto found = m_positionOf.find(weight);
        if (found != m_positionOf.end() && newPosition(found->second) != i + 1)
            return refuse(
                i, fmt::format("the first stage may not split, and its {} does not follow at once", toString(weight)),
                "allow the first stage to split, or join the two: nothing waits for the input gradient of "
                "stage 0");
    }
    return true;
}

void OrderPreview::chain(std::span<const std::uint32_t> positions, std::size_t from, std::size_t to)
{
    const auto device = static_cast<std::size_t>(m_device);
    const std::vector<TaskId>& lane = m_lanes[device];
    for (std::size_t i = from; i < std::min(to + 1, lane.size()); ++i) {
        const TaskId task = lane[positions[i]];
        const TaskId before = i > 0 ? lane[positions[i - 1]] : task;
        TaskId& after = m_evaluator.node(task).after[0];
        after = before;
        if (isSecondOfPair(task) && m_partner[task] == before) {
            const TaskId beforeBoth = m_evaluator.node(before).after[0];
            after = beforeBoth == before ? task : beforeBoth;
        }
        m_sequence[lane[i]] = task;
    }
    for (const Tail& tail : m_tails[device])
        m_evaluator.node(tail.task).after[tail.slot] = lane[positions.back()];
}

const Prediction* OrderPreview::evaluate(int device, std::span<const std::uint32_t> positions, Diagnostics* why)
{
    chooseDevice(device);
    const std::vector<TaskId>& lane = m_lanes[device];
    if (!m_possible || positions.size() != lane.size())
        return nullptr;
    std::size_t from = 0, to = positions.size();
    while (from < to && positions[from] == from)
        ++from;
    while (to > from && positions[to - 1] == to - 1)
        --to;
    if (!keepsLocalOrder(positions, from, to, why))
        return nullptr;
    // When a block moves away from its pair, the other block changes too.
    if (from < to && isSecondOfPair(lane[from]))
        --from;
    if (from < to && to < lane.size() && isSecondOfPair(lane[to]))
        ++to;

    const auto count = static_cast<TaskId>(m_sequence.size());
    const TaskId first = from < to ? lane[from] : count;
    const auto restore = [](const std::vector<Nanoseconds>& source, std::vector<Nanoseconds>& target, TaskId begin,
                            TaskId end) {
        std::copy(source.begin() + begin, source.begin() + end, target.begin() + begin);
    };
    if (m_unchanged < first) {
        restore(m_present.timeline.start, m_result.timeline.start, m_unchanged, first);
        restore(m_present.timeline.end, m_result.timeline.end, m_unchanged, first);
    }
    m_unchanged = first;

    breakPairs(positions, from, to);
    chain(positions, from, to);
    const bool runs = from == to || run(first, lane[to - 1]);
    if (runs && from < to)
        m_evaluator.evaluateFrom(lane[to - 1] + 1, m_result.timeline);
    if (!runs && why != nullptr)
        *why = describeStuck(first, lane[to - 1]);
    if (runs) {
        rebuildMemory(positions, from, to);
        m_result.metrics = measureFrom(first);
    }
    std::vector<std::uint32_t> present(positions.size());
    for (std::uint32_t i = 0; i < present.size(); ++i)
        present[i] = i;
    if (!present.empty())
        chain(present, from, to);
    return runs ? &m_result : nullptr;
}

bool OrderPreview::attempt(TaskId task)
{
    TaskId missing = none;
    const Nanoseconds ready = m_evaluator.ready(task, m_result.timeline, &missing);
    if (missing != none) {
        m_nextWaiter[task] = m_waiter[missing];
        m_waiter[missing] = task;
        return false;
    }
    const Nanoseconds begin = m_evaluator.startOf(task, ready);
    m_result.timeline.start[task] = begin;
    m_result.timeline.end[task] = begin + m_evaluator.duration(task);
    return true;
}

// In the present order a task may now come before one of its inputs; it then runs directly after that input. Tasks that
// never run are part of a cycle.
bool OrderPreview::run(TaskId first, TaskId last)
{
    std::vector<Nanoseconds>& end = m_result.timeline.end;
    std::fill(end.begin() + first, end.begin() + last + 1, notRun);
    TaskId done = 0;
    for (TaskId t = first; t <= last; ++t) {
        if (!attempt(t))
            continue;
        m_stack.push_back(t);
        while (!m_stack.empty()) {
            const TaskId finished = m_stack.back();
            m_stack.pop_back();
            ++done;
            for (TaskId waiter = std::exchange(m_waiter[finished], none); waiter != none;) {
                const TaskId next = m_nextWaiter[waiter];
                if (attempt(waiter))
                    m_stack.push_back(waiter);
                waiter = next;
            }
        }
    }
    if (done == last - first + 1)
        return true;
    std::fill(m_waiter.begin() + first, m_waiter.begin() + last + 1, none);
    return false;
}

TaskId OrderPreview::unfinishedInput(TaskId task) const
{
    // Data dependencies first: they explain more than the order of a device.
    if (const TaskId data = m_evaluator.node(task).after[1]; data != task && m_result.timeline.end[data] < 0)
        return data;
    TaskId unfinished = none;
    (void)m_evaluator.ready(task, m_result.timeline, &unfinished);
    return unfinished;
}

Diagnostics OrderPreview::describeStuck(TaskId first, TaskId last) const
{
    const Program& program = m_present.program;
    const auto isStuck = [&](TaskId t) { return m_result.timeline.end[t] < 0; };
    TaskId at = first;
    while (at < last && !isStuck(at))
        ++at;
    // Every unfinished task waits for another unfinished one, so following the waits ends in a cycle.
    std::vector<TaskId> path;
    std::vector<std::uint32_t> placeOf(m_sequence.size(), none); // in the path
    while (placeOf[at] == none) {
        placeOf[at] = static_cast<std::uint32_t>(path.size());
        path.push_back(at);
        at = unfinishedInput(at);
    }
    path.erase(path.begin(), path.begin() + placeOf[at]);
    std::erase_if(path, [&](TaskId t) { return program.tasks[t].kind == TaskKind::Transfer; });
    std::string story;
    for (std::size_t i = 0; i < path.size(); ++i) {
        const Task& task = program.tasks[path[i]];
        const Task& input = program.tasks[path[(i + 1) % path.size()]];
        const bool behind = task.device == input.device;
        if (i == 0)
            story = toString(task.block());
        story += behind ? fmt::format("{} stands behind {}", i == 0 ? "" : ", which", toString(input.block()))
                        : fmt::format("{} waits for {} of device {}", i == 0 ? "" : ", which", toString(input.block()),
                                      input.device);
    }
    const Task& task = program.tasks[path.front()];
    return {{Severity::Error, fmt::format("device {} ({})", task.device, toString(task.block())),
             fmt::format("the orders of the devices wait for each other: {}", story),
             "choose a place within the marked range"}};
}

OrderPreview::Range OrderPreview::legalRange(int device, int position)
{
    chooseDevice(device);
    joinPairs();
    const std::vector<TaskId>& lane = m_lanes[device];
    const auto own = static_cast<std::size_t>(position);
    const TaskId subject = lane[own];
    const Program& program = m_present.program;
    const Block block = program.tasks[subject].block();
    Range range{0, static_cast<int>(lane.size()) - 1};
    if (!m_design.schedule.firstStageMaySplit && block.stage == 0 && isHalfBackward(block.op)) {
        Block half = block;
        half.op = block.op == Op::I ? Op::W : Op::I;
        if (m_positionOf.contains(half))
            return {position, position};
    }

    // On the device itself.
    eachLocalInput(block, [&](int input) { range.first = std::max(range.first, input + 1); });
    for (std::size_t i = own + 1; i < lane.size(); ++i) {
        bool needs = false;
        eachLocalInput(program.tasks[lane[i]].block(), [&](int input) { needs = needs || input == position; });
        if (needs) {
            range.last = static_cast<int>(i) - 1;
            break;
        }
    }
    // By way of other devices: the nearest block here that it depends on, and the nearest that depends on it.
    const auto positionOf = [&](TaskId task) {
        return static_cast<int>(std::lower_bound(lane.begin(), lane.end(), task) - lane.begin());
    };
    const auto isHere = [&](TaskId task) {
        return program.tasks[task].kind == TaskKind::Compute && program.tasks[task].device == device;
    };
    if (isFirstOfPair(subject) || isSecondOfPair(subject))
        breakPair(std::min(subject, m_partner[subject]));
    const auto eachInput = [&](TaskId task, auto use) {
        const auto& after = m_evaluator.node(task).after;
        for (int slot = task == subject || after[0] == subject ? 1 : 0; slot < 2; ++slot)
            if (after[slot] != task)
                use(after[slot]);
        for (const Program::ExtraDependency& extra : m_evaluator.extras(task))
            if (extra.after != none)
                use(extra.after);
    };
    const TaskId lowest = range.first > 0 ? lane[range.first - 1] : 0;
    const TaskId highest = lane[range.last];
    std::vector<char> marked(m_sequence.size(), 0);
    marked[subject] = 1;
    for (TaskId t = subject + 1; t-- > lowest;) {
        if (!marked[t])
            continue;
        if (t != subject && isHere(t)) {
            range.first = std::max(range.first, positionOf(t) + 1);
            break;
        }
        eachInput(t, [&](TaskId input) { marked[input] = 1; });
    }
    std::fill(marked.begin(), marked.end(), char{0});
    marked[subject] = 1;
    for (TaskId t = subject + 1; t <= highest; ++t) {
        bool depends = false;
        eachInput(t, [&](TaskId input) { depends = depends || marked[input]; });
        if (!depends)
            continue;
        if (isHere(t)) {
            range.last = positionOf(t) - 1;
            break;
        }
        marked[t] = 1;
    }
    joinPairs();
    return range;
}

} // namespace pipewright
