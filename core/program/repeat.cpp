// SPDX-License-Identifier: GPL-3.0-or-later
// Compares the last two repetitions of the shortened Program task by task, buffer by buffer and instruction by
// instruction, back to the oldest task that is still referred to. If they are equal except for the shift by one
// repetition, inserts shifted copies of the last one. The induction is in the header.
// O(tasks of the shortened Program) to compare, O(tasks of the result) to copy.
#include "core/program/repeat.h"

#include "core/base/parallelfor.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>

namespace pipewright {

namespace {

/// In one list of the shortened Program: the end of the last repetition, and the length of a repetition.
struct Cut {
    std::size_t end = 0, length = 0;
};

/// The difference between the numbers of one repetition and those of the one before.
struct Step {
    std::uint32_t tasks = 0, buffers = 0, operands = 0;
    std::int32_t microbatches = 0;
    BufferId persistent = 0; ///< buffers before this one are the same in all repetitions

    TaskId later(TaskId task, std::uint32_t times) const { return task == none ? none : task + times * tasks; }
    BufferId laterBuffer(BufferId b, std::uint32_t times) const
    {
        return b == none || b < persistent ? b : b + times * buffers;
    }
    Instruction moved(Instruction instruction, std::uint32_t times) const
    {
        return {instruction.kind, later(instruction.task, times), laterBuffer(instruction.buffer, times)};
    }
};

/// Inserts `times` copies of the last repetition and renumbers the entries after it.
template<typename T, typename Move>
void extendBy(std::uint32_t times, std::vector<T>& list, Cut cut, Move move)
{
    std::vector<T> whole;
    const auto append = [&](std::size_t begin, std::size_t end, std::uint32_t by) {
        const std::size_t first = whole.size();
        whole.insert(whole.end(), list.begin() + static_cast<std::ptrdiff_t>(begin),
                     list.begin() + static_cast<std::ptrdiff_t>(end));
        for (std::size_t i = first; i < whole.size(); ++i)
            whole[i] = move(whole[i], by);
    };
    whole.reserve(list.size() + times * cut.length);
    whole.assign(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(cut.end));
    for (std::uint32_t i = 1; i <= times; ++i)
        append(cut.end - cut.length, cut.end, i);
    append(cut.end, list.size(), times);
    list.swap(whole);
}

void extendLists(Program::Device& device, std::uint32_t times, Cut cut, const Step& step)
{
    extendBy(times, device.instructions, cut,
             [&step](const Instruction& instruction, std::uint32_t by) { return step.moved(instruction, by); });
    extendBy(times, device.liveBytes, cut, [](Bytes live, std::uint32_t) { return live; });
}

class Repeater {
public:
    Repeater(const Program& program, const ShortenedSchedule& shortened, const std::vector<Nanoseconds>& start)
        : m_program(program), m_shortened(shortened)
    {
        m_step.microbatches = shortened.steady.microbatches;
        while (m_step.persistent < program.buffers.size() && program.buffers[m_step.persistent].microbatch < 0)
            ++m_step.persistent;
        m_found = !program.versioned() && buffersInOrder() && findCut(start);
        if (m_found) {
            findOldest();
            m_found = numbersRepeat() && lastRepeats();
        }
    }

    bool found() const { return m_found; }

    /// `whole`: a copy of the shortened Program; receives the repetitions that were left out.
    void repeatIn(Program& whole) const
    {
        const Cut tasks{m_cut, m_step.tasks};
        const Cut buffers{m_bufferBegin[m_cut], m_step.buffers}, operands{whole.operandBegin[m_cut], m_step.operands};
        const auto moveBuffer = [this](BufferId b, std::uint32_t times) { return laterBuffer(b, times); };
        const auto moveOperands = [this](std::uint32_t position, std::uint32_t times) {
            return position + times * m_step.operands;
        };
        const std::array<std::function<void()>, 2> halves{
            [&] {
                repeatTasksIn(whole);
                extend(whole.operandBegin, tasks, moveOperands);
                extend(whole.operandSplit, tasks, moveOperands);
                extend(whole.operands, operands, moveBuffer);
            },
            [&] {
                whole.buffers.repeat(buffers.end, buffers.length, times(), m_step.microbatches);
                for (std::size_t d = 0; d < whole.devices.size(); ++d)
                    extendLists(whole.devices[d], times(), m_instructions[d], m_step);
            }};
        parallelFor(halves.size(), [&](std::size_t i) { halves[i](); });
        whole.microbatches += m_shortened.leftOut * m_shortened.steady.microbatches;
    }

    /// The same of what an Outline holds: `program` is a copy of the shortened Program, `amounts` are its tasks'.
    Outline outline(Program program, std::vector<TaskAmounts> amounts) const
    {
        // Freed first, since the shortened Program may still be large.
        for (auto* const list : {&program.operandBegin, &program.operandSplit, &program.operands})
            *list = {};
        program.buffers = {};
        const auto devices = std::make_shared<std::vector<Program::Device>>();
        for (Program::Device& device : program.devices)
            devices->push_back(std::move(device)); // its peaks stay
        repeatTasksIn(program);
        extend(amounts, Cut{m_cut, m_step.tasks}, [](const TaskAmounts& same, std::uint32_t) { return same; });
        program.microbatches += m_shortened.leftOut * m_shortened.steady.microbatches;
        return {std::move(program), std::move(amounts),
                [devices, cuts = m_instructions, step = m_step, times = times()](const Program&, int d) {
                    Program::Device whole = (*devices)[static_cast<std::size_t>(d)];
                    extendLists(whole, times, cuts[static_cast<std::size_t>(d)], step);
                    return whole;
                }};
    }

private:
    void repeatTasksIn(Program& whole) const
    {
        const Cut tasks{m_cut, m_step.tasks};
        const auto move = [this](const auto& item, std::uint32_t times) { return moved(item, times); };
        const auto moveTask = [this](TaskId t, std::uint32_t times) { return later(t, times); };
        extend(whole.tasks, tasks, move);
        extend(whole.afterOnDevice, tasks, moveTask);
        extend(whole.afterData, tasks, moveTask);
        extend(whole.extraDependencies, m_extra, move);
        extend(whole.overlaps, m_overlaps, move);
    }

    std::uint32_t times() const { return static_cast<std::uint32_t>(m_shortened.leftOut); }

    template<typename T, typename Move>
    void extend(std::vector<T>& list, Cut cut, Move move) const
    {
        extendBy(times(), list, cut, move);
    }

    TaskId later(TaskId task, std::uint32_t times) const { return m_step.later(task, times); }
    BufferId laterBuffer(BufferId b, std::uint32_t times) const { return m_step.laterBuffer(b, times); }

    static bool isOfAMicrobatch(const Task& task)
    {
        return task.kind == TaskKind::Compute || task.kind == TaskKind::Transfer;
    }

    // The same item in a repetition so many later.
    Task moved(Task task, std::uint32_t times) const
    {
        if (isOfAMicrobatch(task))
            task.setMicrobatch(task.microbatch() + static_cast<std::int32_t>(times) * m_step.microbatches);
        return task;
    }
    Buffer moved(Buffer buffer, std::uint32_t times) const
    {
        if (buffer.microbatch >= 0)
            buffer.microbatch += static_cast<std::int32_t>(times) * m_step.microbatches;
        return buffer;
    }
    Instruction moved(Instruction instruction, std::uint32_t times) const { return m_step.moved(instruction, times); }
    Program::ExtraDependency moved(Program::ExtraDependency extra, std::uint32_t times) const
    {
        extra.task = later(extra.task, times);
        extra.after = later(extra.after, times);
        return extra;
    }
    Program::Overlap moved(Program::Overlap pair, std::uint32_t times) const
    {
        return {later(pair.first, times), later(pair.second, times), pair.order};
    }

    /// Are buffers numbered in the order in which tasks define them? Fills m_bufferBegin.
    bool buffersInOrder()
    {
        BufferId next = m_step.persistent;
        m_bufferBegin.reserve(m_program.tasks.size() + 1);
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            m_bufferBegin.push_back(next);
            for (const BufferId b : m_program.writes(t))
                if (b != next++)
                    return false;
        }
        m_bufferBegin.push_back(next);
        return next == m_program.buffers.size();
    }

    /// Cuts one repetition before the first device leaves its repeating part, and checks that all devices are in
    /// theirs at that point.
    bool findCut(const std::vector<Nanoseconds>& start)
    {
        const std::size_t devices = m_shortened.steady.parts.size();
        std::vector<std::size_t> firstBlock(devices, 0), done(devices, 0);
        for (std::size_t d = 1; d < devices; ++d)
            firstBlock[d] = firstBlock[d - 1] + m_shortened.schedule.order[d - 1].size();
        std::vector<TaskId> before(devices, none);
        m_start.assign(m_program.tasks.size(), 0);
        m_cut = none;
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            if (m_program.tasks[t].kind != TaskKind::Compute)
                continue;
            const auto d = static_cast<std::size_t>(m_program.tasks[t].device);
            const SteadyState::Part& part = m_shortened.steady.parts[d];
            m_start[t] = start[firstBlock[d] + done[d]];
            if (done[d] + 2 * part.period == part.end)
                before[d] = t;
            if (m_cut == none && done[d] + part.period == part.end) {
                if (before[d] == none)
                    return false;
                m_cut = t;
                m_step.tasks = t - before[d];
                m_duration = m_start[t] - m_start[before[d]];
                for (std::size_t other = 0; other < devices; ++other)
                    if (done[other] < m_shortened.steady.parts[other].begin + m_shortened.steady.parts[other].period)
                        return false;
            }
            ++done[d];
        }
        if (m_cut == none)
            return false;
        m_step.buffers = m_bufferBegin[m_cut] - m_bufferBegin[m_cut - m_step.tasks];
        m_step.operands = m_program.operandBegin[m_cut] - m_program.operandBegin[m_cut - m_step.tasks];
        m_extra = cutOf(m_program.extraDependencies);
        m_overlaps = cutOf(m_program.overlaps);
        for (const Program::Device& device : m_program.devices) {
            const std::size_t end = issuedBefore(device, m_cut);
            m_instructions.push_back({end, end - issuedBefore(device, m_cut - m_step.tasks)});
        }
        return true;
    }

    /// For a list that is sorted by tasks.
    template<typename T>
    Cut cutOf(const std::vector<T>& list) const
    {
        const std::size_t end = before(list, m_cut);
        return {end, end - before(list, m_cut - m_step.tasks)};
    }
    template<typename T>
    static std::size_t before(const std::vector<T>& list, TaskId task)
    {
        const auto end =
            std::lower_bound(list.begin(), list.end(), task, [](const T& item, TaskId t) { return taskOf(item) < t; });
        return static_cast<std::size_t>(end - list.begin());
    }
    static TaskId taskOf(const Program::ExtraDependency& extra) { return extra.task; }
    static TaskId taskOf(const Program::Overlap& pair) { return pair.first; }

    /// The number of a device's instructions up to the last one of a task before `task`, without the frees after it.
    static std::size_t issuedBefore(const Program::Device& device, TaskId task)
    {
        std::size_t issued = 0;
        for (std::size_t i = 0; i < device.instructions.size(); ++i)
            if (const Instruction& instruction = device.instructions[i]; instruction.kind != InstructionKind::Free) {
                if (instruction.task >= task)
                    break;
                issued = i + 1;
            }
        return issued;
    }

    /// The oldest task that the last repetition, or anything after it, refers to.
    void findOldest()
    {
        TaskId task = m_cut - m_step.tasks;
        BufferId buffer = m_bufferBegin[task];
        const TaskId first = task;
        const auto see = [&](TaskId t) { task = std::min(task, t); };
        const auto seeBuffer = [&](BufferId b) { buffer = b < m_step.persistent ? buffer : std::min(buffer, b); };
        for (TaskId t = first; t < m_program.tasks.size(); ++t) {
            see(m_program.afterOnDevice[t]);
            see(m_program.afterData[t]);
        }
        for (std::size_t i = m_program.operandBegin[first]; i < m_program.operands.size(); ++i)
            seeBuffer(m_program.operands[i]);
        for (std::size_t i = m_extra.end - m_extra.length; i < m_program.extraDependencies.size(); ++i)
            see(m_program.extraDependencies[i].after);
        for (std::size_t d = 0; d < m_program.devices.size(); ++d) {
            const auto& instructions = m_program.devices[d].instructions;
            for (std::size_t i = m_instructions[d].end - m_instructions[d].length; i < instructions.size(); ++i) {
                see(instructions[i].task);
                seeBuffer(instructions[i].buffer);
            }
        }
        const auto of =
            std::upper_bound(m_bufferBegin.begin(), m_bufferBegin.end(), buffer); // one past the task that defines it
        m_oldest = std::min(task, static_cast<TaskId>(of - m_bufferBegin.begin() - 1));
    }

    /// From the oldest task on: is every task and buffer the shifted copy of the one a repetition earlier?
    bool numbersRepeat() const
    {
        if (m_cut < 2 * m_step.tasks)
            return false;
        const TaskId first = std::min(m_oldest, m_cut - 2 * m_step.tasks) + m_step.tasks;
        for (TaskId t = first; t < m_cut; ++t) {
            const TaskId earlier = t - m_step.tasks;
            if (moved(m_program.tasks[earlier], 1) != m_program.tasks[t] || !isOfAMicrobatch(m_program.tasks[t])
                || (m_program.tasks[t].kind == TaskKind::Compute && m_start[t] != m_start[earlier] + m_duration)
                || !same(m_program.writes(earlier), m_program.writes(t)))
                return false;
        }
        for (BufferId b = m_bufferBegin[first]; b < m_bufferBegin[m_cut]; ++b)
            if (moved(m_program.buffers[b - m_step.buffers], 1) != m_program.buffers[b])
                return false;
        return true;
    }

    /// Are the last repetition's dependencies, operands and instructions those of the one before it, shifted?
    bool lastRepeats() const
    {
        for (TaskId t = m_cut - m_step.tasks; t < m_cut; ++t) {
            const TaskId earlier = t - m_step.tasks;
            if (later(m_program.afterOnDevice[earlier], 1) != m_program.afterOnDevice[t]
                || later(m_program.afterData[earlier], 1) != m_program.afterData[t]
                || !same(m_program.reads(earlier), m_program.reads(t)))
                return false;
        }
        const auto identical = [](Bytes live, std::uint32_t) { return live; };
        const auto move = [this](const auto& item, std::uint32_t times) { return moved(item, times); };
        bool repeats =
            endRepeats(m_program.extraDependencies, m_extra, move) && endRepeats(m_program.overlaps, m_overlaps, move);
        for (std::size_t d = 0; repeats && d < m_program.devices.size(); ++d)
            repeats = endRepeats(m_program.devices[d].instructions, m_instructions[d], move)
                      && endRepeats(m_program.devices[d].liveBytes, m_instructions[d], identical);
        return repeats && asManyGoAsCome();
    }

    /// Does each device free as many buffers as it defines in the last repetition? Otherwise they accumulate, for
    /// example sent ones until the limit of outstanding sends is reached.
    bool asManyGoAsCome() const
    {
        std::vector<std::ptrdiff_t> more(m_program.devices.size(), 0);
        const auto count = [&](BufferId b, int change) {
            if (m_program.buffers.kind(b) != BufferKind::Workspace)
                more[m_program.buffers[b].device] += change;
        };
        for (BufferId b = m_bufferBegin[m_cut] - m_step.buffers; b < m_bufferBegin[m_cut]; ++b)
            count(b, 1);
        for (std::size_t d = 0; d < more.size(); ++d)
            for (std::size_t i = m_instructions[d].end - m_instructions[d].length; i < m_instructions[d].end; ++i)
                if (const BufferId freed = m_program.devices[d].instructions[i].buffer; freed != none)
                    count(freed, -1);
        return std::all_of(more.begin(), more.end(), [](std::ptrdiff_t n) { return n == 0; });
    }

    template<typename T, typename Move>
    static bool endRepeats(const std::vector<T>& list, Cut cut, Move move)
    {
        if (cut.end < 2 * cut.length)
            return false;
        for (std::size_t i = cut.end - cut.length; i < cut.end; ++i)
            if (move(list[i - cut.length], 1) != list[i])
                return false;
        return true;
    }

    bool same(std::span<const BufferId> earlier, std::span<const BufferId> ones) const
    {
        return std::equal(earlier.begin(), earlier.end(), ones.begin(), ones.end(),
                          [this](BufferId x, BufferId y) { return laterBuffer(x, 1) == y; });
    }

    const Program& m_program;
    const ShortenedSchedule& m_shortened;
    Step m_step;
    std::vector<BufferId> m_bufferBegin; ///< per task: its first buffer, or that of the next task
    std::vector<Nanoseconds> m_start;    ///< per task, of those that are blocks
    Nanoseconds m_duration = 0;          ///< of one repetition
    TaskId m_cut = none, m_oldest = none;
    Cut m_extra, m_overlaps;
    std::vector<Cut> m_instructions; ///< per device
    bool m_found = false;
};

/// The earliest start of any block that is an input of a block that starts at `from` or later.
Nanoseconds oldestNeeded(const OrderGraph& graph, const std::vector<Nanoseconds>& start, Nanoseconds from,
                         bool keepsActivations)
{
    Nanoseconds oldest = from;
    const auto need = [&](BlockIndex block) {
        if (block != noBlock)
            oldest = std::min(oldest, start[block]);
    };
    for (BlockIndex i = 0; i < graph.blocks.size(); ++i) {
        if (start[i] < from)
            continue;
        const Block& block = graph.blocks[i];
        need(graph.chainInput[i]);
        if (!keepsActivations || makesActivation(block.op))
            continue;
        const BlockIndex forward = graph.indexOf(Op::F, block.stage, block.microbatch);
        need(forward);
        if (isRecompute(block.op))
            need(graph.chainInput[forward]); // what F read may stay until R
    }
    return oldest;
}

/// Does every block start one repetition's duration after the corresponding block of the repetition before? Checked
/// from one repetition after the oldest block that the last repetition or anything after it needs.
bool startsRepeat(const OrderGraph& graph, const SteadyState& steady, const std::vector<Nanoseconds>& start,
                  bool keepsActivations)
{
    Nanoseconds cut = std::numeric_limits<Nanoseconds>::max(); // one repetition before the first device's part ends
    Nanoseconds duration = 0;                                  // of a repetition
    for (std::size_t d = 0; d < steady.parts.size(); ++d) {
        const SteadyState::Part& part = steady.parts[d];
        if (part.end < 2 * part.period)
            return false;
        const std::size_t end = graph.firstOfDevice[d] + part.end - part.period;
        if (start[end] < cut) {
            cut = start[end];
            duration = cut - start[end - part.period];
        }
    }
    const auto repeatSince = [&](Nanoseconds since) {
        for (std::size_t d = 0; d < steady.parts.size(); ++d) {
            const SteadyState::Part& part = steady.parts[d];
            const Nanoseconds* const starts = start.data() + graph.firstOfDevice[d];
            for (std::size_t i = part.end - part.period; i-- > 0 && starts[i] >= since;)
                if (starts[i] < cut
                    && (i < part.begin + part.period || starts[i] != starts[i - part.period] + duration))
                    return false;
        }
        return true;
    };
    if (duration <= 0 || !repeatSince(cut - duration)) // the usual case, without searching for the oldest
        return false;
    return repeatSince(duration
                       + std::min(oldestNeeded(graph, start, cut - duration, keepsActivations), cut - 2 * duration));
}

} // namespace

int repetitionsOfStarts(const OrderGraph& graph, const SteadyState& steady, const std::vector<Nanoseconds>& start,
                        bool keepsActivations)
{
    constexpr int most = 64;
    for (int n = 1; n <= std::min(most, steady.repetitions / 2); ++n)
        if (startsRepeat(graph, takenTogether(steady, n), start, keepsActivations))
            return n;
    return 0;
}

std::optional<Program> repeatSteadyState(Program program, const ShortenedSchedule& shortened,
                                         const std::vector<Nanoseconds>& start)
{
    const Repeater repeater(program, shortened, start);
    if (!repeater.found())
        return std::nullopt;
    repeater.repeatIn(program);
    return program;
}

std::optional<Outline> repeatOutline(Program program, const ShortenedSchedule& shortened,
                                     const std::vector<Nanoseconds>& start, const AmountsOf& amountsOf)
{
    const Repeater repeater(program, shortened, start);
    if (!repeater.found())
        return std::nullopt;
    std::vector<TaskAmounts> amounts = amountsOf(program);
    if (amounts.empty())
        return std::nullopt;
    return repeater.outline(std::move(program), std::move(amounts));
}

} // namespace pipewright
