// SPDX-License-Identifier: GPL-3.0-or-later
// Stated transfer orders: builds the dependency edges of the Program, adds the stated pairs, and writes the tasks out
// anew in a depth-first topological order that keeps the present order wherever it can. A cycle is reported by the
// deadlock check. O(tasks + edges).
#include "core/program/transferorder.h"

#include "core/program/compile.h"
#include "core/program/deadlock.h"
#include "core/program/overlaps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace pipewright {

namespace {

using Extra = Program::ExtraDependency;

/// I and B produce the same gradient, so a stated pair stays valid when a backward is split. Their collectives differ.
Transfer withoutHalf(Transfer transfer)
{
    if (!transfer.isCollective())
        transfer.producer.op = sentAs(transfer.producer.op);
    return transfer;
}

bool isCompute(const Task& task)
{
    return task.kind != TaskKind::Transfer;
}

class Reordering {
public:
    explicit Reordering(Program& program) : m_program(program) {}

    void run(const std::vector<TransferPrecedence>& stated)
    {
        findStated(stated);
        if (m_stated.empty())
            return;
        collectInputs();
        sort();
        permute();
        chain();
    }

private:
    struct Pair {
        TaskId before = none, after = none;
    };

    void findStated(const std::vector<TransferPrecedence>& stated)
    {
        for (const StatedPair& pair : statedPairs(m_program, stated)) {
            // A pair of a transfer and a collective of its own producer concerns only the members.
            const bool isAmid =
                (pair.names->first.isCollective() && m_program.afterData[pair.after] == pair.before)
                || (pair.names->second.isCollective() && m_program.afterData[pair.before] == pair.after);
            if (!isAmid)
                m_stated.push_back({pair.before, pair.after});
        }
    }

    /// The tasks that each task must follow. Dependencies that only come from the inferred order (the places of
    /// blocking transfers) are left out; chain() adds them anew.
    void collectInputs()
    {
        const std::size_t count = m_program.tasks.size();
        std::vector<std::uint8_t> isSecond(count, 0);
        for (const Pair& pair : m_stated)
            isSecond[pair.after] = 1;
        std::vector<Pair> edges = m_stated;
        const std::vector<TaskId> partners = overlapPartners(m_program);
        std::vector<TaskId> last(deviceCount(), none);
        std::vector<std::vector<TaskId>> sentSince(last.size());
        for (TaskId t = 0; t < count; ++t) {
            const Task& task = m_program.tasks[t];
            if (!isCompute(task)) {
                edges.push_back({m_program.afterData[t], t});
                if (!partners.empty() && partners[m_program.afterData[t]] != none)
                    edges.push_back({partners[m_program.afterData[t]], t}); // nothing comes between the two of a pair
                if (!isSecond[t])
                    sentSince[task.device].push_back(t);
                continue;
            }
            for (const int device : {task.device, isReduction(task.kind) ? task.otherDevice() : task.device}) {
                const auto d = static_cast<std::size_t>(device);
                edges.push_back({std::exchange(last[d], t), t});
                // A block that is moved forward stays after the sends of the blocks before it.
                for (const TaskId sent : std::exchange(sentSince[d], {}))
                    edges.push_back({sent, t});
            }
            if (!isReduction(task.kind)) // reductions wait for their two devices
                edges.push_back({m_program.afterData[t], t});
        }
        for (const Extra& extra : m_program.extraDependencies)
            if (isCompute(m_program.tasks[extra.task]))
                edges.push_back({extra.after, extra.task});
        std::erase_if(edges, [](const Pair& edge) { return edge.before == none || edge.before == edge.after; });
        m_inputBegin.assign(count + 1, 0);
        for (const Pair& edge : edges)
            ++m_inputBegin[edge.after + 1];
        for (std::size_t t = 0; t < count; ++t)
            m_inputBegin[t + 1] += m_inputBegin[t];
        m_inputs.resize(edges.size());
        std::vector<std::uint32_t> next(m_inputBegin.begin(), m_inputBegin.end() - 1);
        for (const Pair& edge : edges)
            m_inputs[next[edge.after]++] = edge.before;
    }

    std::size_t deviceCount() const
    {
        int most = 0;
        for (const Task& task : m_program.tasks)
            most = std::max({most, task.device, task.recordedOn()});
        return static_cast<std::size_t>(most) + 1;
    }

    /// The present order with every task after its inputs: a depth-first topological sort.
    void sort()
    {
        enum : std::uint8_t { New, Open, Done };
        struct Visit {
            TaskId task;
            std::uint32_t next;
        };
        const std::size_t count = m_program.tasks.size();
        std::vector<std::uint8_t> state(count, New);
        std::vector<Visit> stack;
        m_order.reserve(count);
        for (TaskId root = 0; root < count; ++root) {
            if (state[root] != New)
                continue;
            stack.push_back({root, m_inputBegin[root]});
            state[root] = Open;
            while (!stack.empty()) {
                Visit& visit = stack.back();
                if (visit.next == m_inputBegin[visit.task + 1]) {
                    state[visit.task] = Done;
                    m_order.push_back(visit.task);
                    stack.pop_back();
                    continue;
                }
                const TaskId input = m_inputs[visit.next++];
                if (state[input] == Open)
                    throw Deadlock(circle());
                if (state[input] == New) {
                    state[input] = Open;
                    stack.push_back({input, m_inputBegin[input]});
                }
            }
        }
    }

    /// The deadlock check of a Program in which the stated pairs are dependencies; its report has the cycle.
    Diagnostics circle() const
    {
        Program told;
        told.tasks = m_program.tasks;
        told.afterData = m_program.afterData;
        told.devices.resize(deviceCount());
        for (TaskId t = 0; t < told.tasks.size(); ++t)
            if (told.tasks[t].kind == TaskKind::Compute)
                told.devices[told.tasks[t].device].instructions.push_back({InstructionKind::Compute, t, none});
        for (const Extra& extra : m_program.extraDependencies)
            if (isCompute(told.tasks[extra.task]))
                told.extraDependencies.push_back(extra);
        for (const Pair& pair : m_stated)
            told.extraDependencies.push_back({pair.after, pair.before, 0});
        Diagnostics story = checkDeadlock(told);
        for (Diagnostic& part : story)
            part.hint = "let the transfer that carries what the other one needs go first, or take back what is stated "
                        "of one of them in \"transfer_order\"";
        return story;
    }

    void permute()
    {
        const std::size_t count = m_program.tasks.size();
        std::vector<TaskId> placeOf(count);
        for (TaskId t = 0; t < count; ++t)
            placeOf[m_order[t]] = t;
        const auto moved = [&](TaskId t) { return t == none ? none : placeOf[t]; };
        const Program old = m_program;
        m_program.tasks.clear();
        m_program.afterOnDevice.clear();
        m_program.afterData.clear();
        m_program.operandBegin.clear();
        m_program.operandSplit.clear();
        m_program.operands.clear();
        m_program.extraDependencies.clear();
        m_program.overlaps.clear();
        for (const TaskId t : m_order) {
            m_program.tasks.push_back(old.tasks[t]);
            m_program.afterOnDevice.push_back(moved(old.afterOnDevice[t]));
            m_program.afterData.push_back(moved(old.afterData[t]));
            m_program.operandBegin.push_back(static_cast<std::uint32_t>(m_program.operands.size()));
            const auto reads = old.reads(t), writes = old.writes(t);
            m_program.operands.insert(m_program.operands.end(), reads.begin(), reads.end());
            m_program.operandSplit.push_back(static_cast<std::uint32_t>(m_program.operands.size()));
            m_program.operands.insert(m_program.operands.end(), writes.begin(), writes.end());
        }
        m_program.operandBegin.push_back(static_cast<std::uint32_t>(m_program.operands.size()));
        for (Extra extra : old.extraDependencies) {
            if (!isCompute(old.tasks[extra.task]))
                continue;
            extra.task = moved(extra.task);
            extra.after = moved(extra.after);
            m_program.extraDependencies.push_back(extra);
        }
        for (const Program::Overlap& pair : old.overlaps)
            m_program.overlaps.push_back({moved(pair.first), moved(pair.second), pair.order});
        std::sort(m_program.overlaps.begin(), m_program.overlaps.end(),
                  [](const auto& a, const auto& b) { return a.first < b.first; });
    }

    /// Adds the dependencies that follow from the new order: when a device reaches a send, and the steps of blocking
    /// transfers. On a stream of their own, transfers wait for each other (chainStreams()) and for no later block.
    void chain()
    {
        std::vector<TaskId> last(deviceCount(), none);
        std::map<TaskId, TaskId> firstOfPair;
        for (const Program::Overlap& pair : m_program.overlaps)
            firstOfPair[pair.second] = pair.first;
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            const Task& task = m_program.tasks[t];
            TaskId& here = last[task.device];
            if (task.kind == TaskKind::Transfer) {
                if (m_program.blocks()) {
                    TaskId& there = last[task.destination()];
                    m_program.afterOnDevice[t] = here;
                    if (there != none)
                        m_program.extraDependencies.push_back({t, there, 0});
                    here = there = t;
                    continue;
                }
                if (m_program.communication == Communication::Overlapped && here != none
                    && here != m_program.afterData[t])
                    m_program.extraDependencies.push_back({t, here, 0});
                continue;
            }
            if (isCopyCollective(task.kind) && !m_program.blocks())
                continue; // beside the blocks
            const auto pair = firstOfPair.find(t);
            m_program.afterOnDevice[t] = pair != firstOfPair.end() ? m_program.afterOnDevice[pair->second] : here;
            if (task.joinsTwoDevices()) {
                TaskId& there = last[task.otherDevice()];
                const TaskId after = std::exchange(m_program.afterData[t], there);
                if (after != none && isCopyCollective(m_program.tasks[after].kind))
                    m_program.extraDependencies.push_back({t, after, 0});
                there = t;
            }
            here = t;
        }
        std::stable_sort(m_program.extraDependencies.begin(), m_program.extraDependencies.end(),
                         [](const Extra& a, const Extra& b) { return a.task < b.task; });
    }

    Program& m_program;
    std::vector<Pair> m_stated;
    std::vector<std::uint32_t> m_inputBegin; ///< per task, into m_inputs
    std::vector<TaskId> m_inputs;
    std::vector<TaskId> m_order; ///< the tasks as they come now
};

Transfer keyOf(Transfer transfer)
{
    if (transfer.isCollective())
        transfer.collective = 0; // the groups' Program has only the block
    return withoutHalf(transfer);
}

/// By keyOf(): the task of each transfer, or of each collective's block; `none` where there is none.
std::map<Transfer, TaskId> tasksOf(const Program& program, const std::vector<TransferPrecedence>& stated)
{
    std::map<Transfer, TaskId> found;
    for (const TransferPrecedence& pair : stated)
        for (const Transfer& transfer : {pair.first, pair.second})
            found.emplace(keyOf(transfer), none);
    if (found.empty())
        return found;
    const auto note = [&found](const Transfer& key, TaskId task) {
        if (const auto entry = found.find(key); entry != found.end())
            entry->second = task;
    };
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (program.tasks[t].kind == TaskKind::Transfer)
            note(keyOf(nameOf(program, t)), t);
        else if (program.tasks[t].kind == TaskKind::Compute)
            note({program.tasks[t].block(), 0, 0}, t);
    return found;
}

} // namespace

Diagnostics notesOnStatedPairs(const Program& program, const std::vector<TransferPrecedence>& stated)
{
    constexpr std::size_t listed = 3;
    const std::map<Transfer, TaskId> found = tasksOf(program, stated);
    Diagnostics notes;
    std::size_t more = 0;
    for (const TransferPrecedence& pair : stated)
        for (const Transfer& transfer : {pair.first, pair.second})
            if (found.at(keyOf(transfer)) == none) {
                if (notes.size() == listed)
                    ++more;
                else
                    notes.push_back(
                        {Severity::Note, "schedule.transfer_order",
                         fmt::format("{} before {} has no effect: there is no {}", textOf(pair.first),
                                     textOf(pair.second), textOf(transfer)),
                         "remove the pair, unless it is to hold again when blocks or stages are moved back"});
                break;
            }
    if (more > 0)
        notes.push_back({Severity::Note, "schedule.transfer_order",
                         fmt::format("{} more pairs have no effect either", more), notes.front().hint});
    return notes;
}

bool sameTransfer(const Transfer& one, const Transfer& other)
{
    return withoutHalf(one) == withoutHalf(other);
}

std::vector<StatedPair> statedPairs(const Program& program, const std::vector<TransferPrecedence>& stated)
{
    const std::map<Transfer, TaskId> found = tasksOf(program, stated);
    std::vector<StatedPair> pairs;
    for (const TransferPrecedence& pair : stated) {
        const TaskId before = found.at(keyOf(pair.first)), after = found.at(keyOf(pair.second));
        if (before == none || after == none)
            continue;
        const bool collectiveFirst = pair.first.isCollective(), collectiveSecond = pair.second.isCollective();
        if (collectiveFirst && collectiveSecond)
            throw Error(
                "schedule.transfer_order",
                fmt::format("{} and {} are both collectives: these come in the order of their blocks, and within a "
                            "block in that of the stage's plan",
                            textOf(pair.first), textOf(pair.second)),
                "move the blocks, or the lines of the plan; a pair may name a collective and a transfer of its group");
        if ((collectiveFirst || collectiveSecond) && program.tasks[before].device != program.tasks[after].device)
            throw Error("schedule.transfer_order",
                        fmt::format("{} and {} are not of the same group: only what its members send stands before or "
                                    "behind their collectives",
                                    textOf(pair.first), textOf(pair.second)),
                        fmt::format("name a transfer that leaves device {}",
                                    program.tasks[collectiveFirst ? before : after].device));
        pairs.push_back({&pair, before, after});
    }
    return pairs;
}

void applyTransferOrder(Program& program, const std::vector<TransferPrecedence>& stated)
{
    if (!stated.empty())
        Reordering(program).run(stated);
}

Transfer nameOf(const Program& program, TaskId transfer)
{
    const Task& task = program.tasks[transfer];
    const std::int32_t destination = task.kind == TaskKind::Offload  ? Transfer::toHost
                                     : task.kind == TaskKind::Reload ? Transfer::fromHost
                                                                     : task.destination();
    return {program.tasks[program.afterData[transfer]].block(), destination};
}

std::vector<IssuedTransfer> transfersOf(const Program& program, int device)
{
    std::vector<IssuedTransfer> list;
    if (device < 0 || static_cast<std::size_t>(device) >= program.devices.size())
        return list;
    for (const Instruction& instruction : program.devices[device].instructions) {
        const bool out = instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Offload;
        if (out || instruction.kind == InstructionKind::Receive || instruction.kind == InstructionKind::Reload)
            list.push_back({nameOf(program, instruction.task), instruction.task, out});
    }
    return list;
}

std::vector<IssuedTransfer> collectivesOf(const Program& program, int device)
{
    std::vector<IssuedTransfer> list;
    if (device < 0 || static_cast<std::size_t>(device) >= program.devices.size())
        return list;
    for (const Instruction& instruction : program.devices[device].instructions)
        if (instruction.kind == InstructionKind::Gather || instruction.kind == InstructionKind::ReduceGradients) {
            const bool sums = instruction.kind == InstructionKind::ReduceGradients;
            list.push_back({{program.tasks[instruction.task].block(), sums ? Transfer::sums : Transfer::gathers},
                            instruction.task,
                            sums});
        }
    return list;
}

} // namespace pipewright
