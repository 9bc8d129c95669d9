// SPDX-License-Identifier: GPL-3.0-or-later
// Inserts and checks the cells around transfers, one pass per row with a map of pending sends. O(actions log actions).
#include "core/exchange/pytorchwaits.h"

#include "core/base/indexed.h"
#include "core/program/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace pipewright {

namespace {

using Type = PytorchAction::Type;

/// Where values are sent and used, which shows what a received value proves: its sender has used all that it read
/// before.
class Arrivals {
public:
    Arrivals(const PytorchRows& rows, const PipelineShape& shape) : m_stages(shape.stages())
    {
        for (Places* places : {&m_sent[0], &m_sent[1], &m_used[0], &m_used[1]})
            *places = Places(m_stages, shape.microbatches);
        for (std::size_t rank = 0; rank < rows.size(); ++rank)
            for (std::size_t i = 0; i < rows[rank].size(); ++i)
                note(rows[rank][i], {static_cast<std::int64_t>(rank), static_cast<std::int64_t>(i)});
    }

    struct Place {
        std::int64_t rank = -1, index = -1; ///< of the row; -1: there is none
    };

    /// The computation that uses a sent value.
    Place useOf(const PytorchAction& send) const { return at(m_used[send.carriesGradient()], send.stage, send); }
    /// The send of the value that a computation reads.
    Place sourceOf(const PytorchAction& a) const
    {
        if (a.type == Type::F)
            return at(m_sent[0], a.stage - 1, a);
        return a.isBackward() ? at(m_sent[1], a.stage + 1, a) : Place{};
    }

private:
    using Places = ByStageAndMicrobatch<Place>;

    void note(const PytorchAction& a, Place place)
    {
        if (a.isSend())
            m_sent[a.carriesGradient()](a.stage, a.microbatch) = place;
        else if (a.type == Type::F && a.stage > 0)
            m_used[0](a.stage - 1, a.microbatch) = place;
        else if (a.isBackward() && a.stage + 1 < m_stages)
            m_used[1](a.stage + 1, a.microbatch) = place;
    }

    Place at(const Places& places, int stage, const PytorchAction& a) const
    {
        return stage < 0 || stage >= m_stages ? Place{} : places(stage, a.microbatch);
    }

    int m_stages;
    Places m_sent[2], m_used[2]; ///< [0] outputs, [1] gradients, by the stage that makes them
};

/// The sends of one rank whose waits are still missing.
class Outstanding {
public:
    explicit Outstanding(const Arrivals& arrivals) : m_arrivals(arrivals) {}

    void add(const PytorchAction& send)
    {
        const Type wait = send.carriesGradient() ? Type::WaitSendB : Type::WaitSendF;
        m_sends.push_back({{wait, send.stage, send.microbatch}, m_arrivals.useOf(send)});
    }

    /// Before a send: adds the waits that keep the number in flight to one rank at the Program's limit, as the
    /// predicted memory assumes.
    void makeRoomFor(const PytorchAction& send, std::vector<PytorchAction>& waits)
    {
        const std::int64_t receiver = m_arrivals.useOf(send).rank;
        auto excess =
            std::count_if(m_sends.begin(), m_sends.end(), [&](const Send& each) { return each.used.rank == receiver; })
            - CompileOptions{}.outstandingSends + 1;
        take(waits, [&](const Send& each) { return excess > 0 && each.used.rank == receiver && excess-- > 0; });
    }

    /// After a computation: adds the waits of sends that have certainly arrived. A stage's gradient comes after its
    /// output was used.
    void arrived(const PytorchAction& computation, std::vector<PytorchAction>& waits)
    {
        const Arrivals::Place source = m_arrivals.sourceOf(computation);
        take(waits, [&](const Send& send) {
            return (source.rank >= 0 && send.used.rank == source.rank && send.used.index < source.index)
                   || (computation.isBackward() && send.wait.type == Type::WaitSendF
                       && send.wait.stage == computation.stage && send.wait.microbatch == computation.microbatch);
        });
    }

    void all(std::vector<PytorchAction>& waits)
    {
        take(waits, [](const Send&) { return true; });
    }

private:
    struct Send {
        PytorchAction wait;
        Arrivals::Place used;
    };

    template<typename Taken>
    void take(std::vector<PytorchAction>& waits, Taken taken)
    {
        std::erase_if(m_sends, [&](const Send& send) {
            if (!taken(send))
                return false;
            waits.push_back(send.wait);
            return true;
        });
    }

    const Arrivals& m_arrivals;
    std::vector<Send> m_sends;
};

/// Where a device gathers parameters and frees them, by the blocks before and after; empty where it holds all.
class Gathers {
public:
    Gathers(const Program& program, std::size_t device)
    {
        std::vector<int> gathered;
        std::map<int, Block> last; // reader
        for (const Instruction& instruction : program.devices[device].instructions) {
            if (instruction.task == none)
                continue;
            const Task& task = program.tasks[instruction.task];
            if (instruction.kind == InstructionKind::Gather && task.op != Op::U) {
                gathered.push_back(task.stage);
                if (const auto reader = last.find(task.stage); reader != last.end())
                    m_freed[reader->second].push_back(task.stage);
            } else if (instruction.kind == InstructionKind::Compute) {
                last[task.stage] = task.block();
                if (!gathered.empty())
                    m_gathered[task.block()] = std::exchange(gathered, {});
            }
        }
    }
    bool any() const { return !m_gathered.empty(); }
    std::span<const int> before(const Block& block) const { return at(m_gathered, block); }
    std::span<const int> freedAfter(const Block& block) const { return at(m_freed, block); }

private:
    using Stages = std::map<Block, std::vector<int>>;
    static std::span<const int> at(const Stages& stages, const Block& block)
    {
        const auto found = stages.find(block);
        return found == stages.end() ? std::span<const int>() : found->second;
    }
    Stages m_gathered, m_freed;
};

std::vector<PytorchAction> completed(const std::vector<PytorchAction>& row, const Arrivals& arrivals,
                                     const PipelineShape& shape, const Gathers& gathers, PytorchVersion version)
{
    const std::size_t stages = shape.stages();
    std::vector<std::uint8_t> gathered(stages, 0);
    std::vector<int> backwardsLeft(stages, shape.microbatches);
    std::vector<PytorchAction> result, due;
    Outstanding outstanding(arrivals);
    result.reserve(2 * row.size());
    for (const PytorchAction& a : row)
        if (!gathers.any() && !std::exchange(gathered[a.stage], 1))
            result.push_back({Type::Unshard, a.stage, -1});
    for (std::size_t i = 0; i < row.size(); ++i) {
        const PytorchAction& a = row[i];
        if (version >= PytorchVersion::V2_15 && a.isSend())
            outstanding.makeRoomFor(a, result);
        if (a.isCompute())
            for (const int stage : gathers.before(a.block()))
                result.push_back({Type::Unshard, stage, -1});
        result.push_back(a);
        if (version >= PytorchVersion::V2_15) {
            if (a.isSend())
                outstanding.add(a);
            else if (a.isCompute())
                outstanding.arrived(a, due);
        }
        if (a.isCompute())
            for (const int stage : gathers.freedAfter(a.block()))
                due.push_back({Type::Reshard, stage, -1});
        if ((a.type == Type::B || a.type == Type::W) && --backwardsLeft[a.stage] == 0) {
            if (version >= PytorchVersion::V2_10)
                due.push_back({Type::ReduceGrad, a.stage, -1});
            if (version >= PytorchVersion::V2_15)
                due.push_back({Type::WaitReduceGrad, a.stage, -1});
            due.push_back({Type::Reshard, a.stage, -1});
        }
        // No waits between the members of an overlap, nor between a computation and the send of its value.
        if (a.together || (i + 1 < row.size() && row[i + 1].isSend() && row[i + 1].stage == a.stage))
            continue;
        result.insert(result.end(), due.begin(), due.end());
        due.clear();
    }
    outstanding.all(result);
    return result;
}

/// The waits of one file.
class WaitCheck {
public:
    WaitCheck(const PytorchRows& rows, const std::vector<std::vector<int>>& cells, const std::vector<int>& lines,
              CellFaults& faults)
        : m_rows(rows), m_cells(cells), m_lines(lines), m_faults(faults)
    {
        for (const std::vector<PytorchAction>& row : rows)
            for (const PytorchAction& a : row) {
                m_sendsAreWaitedFor = m_sendsAreWaitedFor || a.isSendWait();
                m_reductionsAreWaitedFor = m_reductionsAreWaitedFor || a.type == Type::WaitReduceGrad;
            }
    }

    void run()
    {
        for (std::size_t rank = 0; rank < m_rows.size(); ++rank) {
            sends(rank);
            reductions(rank);
        }
    }

private:
    void fault(std::size_t rank, std::size_t i, const std::string& what, std::string hint)
    {
        m_faults.add(m_lines[rank], fmt::format("cell {} ({}): {}", m_cells[rank][i], toString(m_rows[rank][i]), what),
                     std::move(hint));
    }

    void sends(std::size_t rank)
    {
        if (!m_sendsAreWaitedFor)
            return;
        const std::vector<PytorchAction>& row = m_rows[rank];
        std::map<std::tuple<bool, int, int>, std::size_t> pending; // (gradient, stage, microbatch): index of the send
        for (std::size_t i = 0; i < row.size(); ++i) {
            const PytorchAction& a = row[i];
            if (a.isSend())
                pending[{a.carriesGradient(), a.stage, a.microbatch}] = i;
            else if (a.isSendWait() && pending.erase({a.carriesGradient(), a.stage, a.microbatch}) == 0)
                fault(rank, i, fmt::format("there is no {} to wait for", toString(sendOf(a))),
                      "a wait stands once, behind the send with its stage and microbatch");
        }
        for (const auto& entry : pending)
            fault(rank, entry.second, "is never waited for",
                  "add its WAIT_SEND_F or WAIT_SEND_B, at the end of the line for example");
    }

    void reductions(std::size_t rank)
    {
        if (!m_reductionsAreWaitedFor)
            return;
        const std::vector<PytorchAction>& row = m_rows[rank];
        std::size_t pending = row.size(); // index of the reduction in flight
        for (std::size_t i = 0; i < row.size(); ++i) {
            const PytorchAction& a = row[i];
            const bool inFlight = pending < row.size();
            if (a.type == Type::ReduceGrad) {
                if (inFlight)
                    fault(rank, i, fmt::format("{} is still in flight", toString(row[pending])),
                          "a rank runs one reduction at a time: put its WAIT_REDUCE_GRAD before this cell");
                pending = i;
            } else if (a.type == Type::WaitReduceGrad) {
                if (!inFlight || row[pending].stage != a.stage)
                    fault(rank, i, "this reduction is not in flight",
                          "a wait stands behind the REDUCE_GRAD of its stage");
                pending = row.size();
            }
        }
        if (pending < row.size())
            fault(rank, pending, "is never waited for", "add WAIT_REDUCE_GRAD behind it");
    }

    static PytorchAction sendOf(const PytorchAction& wait)
    {
        return {wait.carriesGradient() ? Type::SendB : Type::SendF, wait.stage, wait.microbatch};
    }

    const PytorchRows& m_rows;
    const std::vector<std::vector<int>>& m_cells;
    const std::vector<int>& m_lines;
    CellFaults& m_faults;
    bool m_sendsAreWaitedFor = false, m_reductionsAreWaitedFor = false;
};

} // namespace

void addBookkeeping(PytorchRows& rows, const Program& program, PytorchVersion version)
{
    const Arrivals arrivals(rows, program);
    for (std::size_t device = 0; device < rows.size(); ++device)
        rows[device] = completed(rows[device], arrivals, program, Gathers(program, device), version);
}

void checkWaits(const PytorchRows& rows, const std::vector<std::vector<int>>& cells, const std::vector<int>& lines,
                CellFaults& faults)
{
    WaitCheck(rows, cells, lines, faults).run();
}

} // namespace pipewright
