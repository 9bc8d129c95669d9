// SPDX-License-Identifier: GPL-3.0-or-later
// Sorts computations by predicted end and inserts each transfer right after its producer; deadlock freedom is checked
// by building a Program from the rows. O(actions log actions).
#include "core/exchange/pytorchcomms.h"

#include "core/base/indexed.h"
#include "core/predict/evaluator.h"
#include "core/program/overlaps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace pipewright {

namespace {

using Type = PytorchAction::Type;

/// One entry per (kind, stage, microbatch).
template<class Value, int kinds>
class PassTable {
public:
    PassTable(int stages, int microbatches, Value initial)
    {
        m_ofKind.fill(ByStageAndMicrobatch<Value>(stages, microbatches, initial));
    }
    Value& at(int kind, StageIndex stage, MicrobatchIndex microbatch) { return m_ofKind[kind](stage, microbatch); }

private:
    std::array<ByStageAndMicrobatch<Value>, kinds> m_ofKind;
};

constexpr int gradientKind(bool gradient)
{
    return gradient ? 1 : 0;
}

/// The stage that produces a transfer's value: sender and receiver each name their own stage.
int producerOf(const PytorchAction& action)
{
    if (action.isSend())
        return action.stage;
    return action.type == Type::RecvF ? action.stage - 1 : action.stage + 1;
}

} // namespace

PytorchRows communicationOrder(const Program& program, const Costs& costs)
{
    Timeline timeline;
    Evaluator(program, costs).evaluate(timeline);
    // (end of the computation or of the one that makes the value, task): ties keep the Program's order, which is
    // topological, so the result is too. On one stream transfers begin in the order of their streams.
    const bool streams = program.communication == Communication::OneStream;
    std::vector<std::pair<Nanoseconds, TaskId>> sequence;
    sequence.reserve(program.tasks.size());
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (program.tasks[t].kind == TaskKind::Compute)
            sequence.emplace_back(timeline.end[t], t);
        else if (program.tasks[t].kind == TaskKind::Transfer)
            sequence.emplace_back(streams ? timeline.start[t] : timeline.end[program.afterData[t]], t);
    std::sort(sequence.begin(), sequence.end());

    PytorchRows rows(program.devices.size());
    for (const auto& [time, t] : sequence) {
        const Task& task = program.tasks[t];
        std::vector<PytorchAction>& row = rows[task.device];
        if (task.kind == TaskKind::Compute) {
            row.push_back({computeType(task.op), task.stage, task.microbatch()});
            row.back().together = overlapsWith(program, t) != none;
        } else {
            const bool gradient = !makesActivation(task.op);
            row.push_back({gradient ? Type::SendB : Type::SendF, task.stage, task.microbatch()});
            rows[task.destination()].push_back(
                {gradient ? Type::RecvB : Type::RecvF, task.stage + (gradient ? -1 : 1), task.microbatch()});
        }
    }
    return rows;
}

std::vector<TransferPrecedence> transferOrderOf(const Schedule& schedule, const PytorchRows& rows)
{
    // A gradient is named by the block that makes it, a full or a split backward.
    PassTable<std::uint8_t, 1> split(schedule.stages(), schedule.microbatches, 0);
    for (const std::vector<PytorchAction>& row : rows)
        for (const PytorchAction& action : row)
            if (action.type == Type::I)
                split.at(0, action.stage, action.microbatch) = 1;
    const auto nameOf = [&](const PytorchAction& action) {
        const int producer = producerOf(action), consumer = producer + (action.carriesGradient() ? -1 : 1);
        const Op op = !action.carriesGradient() ? Op::F : split.at(0, producer, action.microbatch) ? Op::I : Op::B;
        return Transfer{{op, producer, action.microbatch}, schedule.deviceOfStage[consumer]};
    };
    std::vector<TransferPrecedence> order;
    std::set<TransferPrecedence> stated; // two ranks that talk only to each other say everything twice
    for (const std::vector<PytorchAction>& row : rows) {
        std::optional<Transfer> before;
        for (const PytorchAction& action : row) {
            if (!action.isTransfer())
                continue;
            const Transfer transfer = nameOf(action);
            if (before && stated.insert({*before, transfer}).second)
                order.push_back({*before, transfer});
            before = transfer;
        }
    }
    return order;
}

Diagnostics checkRowsForDeadlock(const Program& program, const PytorchRows& rows, Communication communication)
{
    PassTable<TaskId, 4> computations(program.stages(), program.microbatches, none);
    PassTable<TaskId, 2> transfers(program.stages(), program.microbatches, none);
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (task.kind == TaskKind::Compute)
            computations.at(static_cast<int>(task.op), task.stage, task.microbatch()) = t;
        else if (task.kind == TaskKind::Transfer)
            transfers.at(gradientKind(!makesActivation(task.op)), task.stage, task.microbatch()) = t;
    }
    Program order; // only the fields that the check reads
    order.tasks = program.tasks;
    order.afterData = program.afterData;
    order.extraDependencies = program.extraDependencies;
    order.devices.resize(rows.size());
    for (std::size_t rank = 0; rank < rows.size(); ++rank) {
        std::vector<Instruction>& instructions = order.devices[rank].instructions;
        instructions.reserve(rows[rank].size());
        for (const PytorchAction& action : rows[rank])
            if (action.isCompute())
                instructions.push_back({InstructionKind::Compute,
                                        computations.at(static_cast<int>(action.type), action.stage, action.microbatch),
                                        none});
            else if (action.isTransfer())
                instructions.push_back(
                    {action.isSend() ? InstructionKind::Send : InstructionKind::Receive,
                     transfers.at(gradientKind(action.carriesGradient()), producerOf(action), action.microbatch),
                     none});
            else if (action.isSendWait()) // a Free without a buffer waits for the transfer
                instructions.push_back(
                    {InstructionKind::Free,
                     transfers.at(gradientKind(action.carriesGradient()), action.stage, action.microbatch), none});
    }
    return checkDeadlock(order, communication);
}

namespace {

class TransferCheck {
public:
    TransferCheck(const Schedule& schedule, const PytorchRows& rows, const std::vector<std::vector<int>>& cells,
                  const std::vector<int>& lines, CellFaults& faults)
        : m_schedule(schedule), m_rows(rows), m_cells(cells), m_lines(lines), m_faults(faults),
          m_seen(schedule.stages(), schedule.microbatches, 0)
    {
    }

    void run()
    {
        for (std::size_t rank = 0; rank < m_rows.size(); ++rank)
            for (std::size_t i = 0; i < m_rows[rank].size(); ++i) {
                const PytorchAction& action = m_rows[rank][i];
                if (action.isTransfer())
                    transfer(rank, i, action);
                else if (action.isCompute())
                    compute(rank, i, action);
            }
        if (!m_faults.any())
            missingSends();
        if (!m_faults.any())
            pairOrders();
    }

private:
    using Place = std::pair<std::size_t, std::size_t>; ///< rank, index

    int deviceOf(int stage) const { return m_schedule.deviceOfStage[stage]; }
    bool exists(int stage) const { return stage >= 0 && stage < m_schedule.stages(); }
    std::uint8_t& seen(Type type, int stage, int microbatch)
    {
        return m_seen.at(static_cast<int>(type), stage, microbatch);
    }

    void fault(Place place, const std::string& what, std::string hint = {})
    {
        const auto [rank, i] = place;
        m_faults.add(m_lines[rank], fmt::format("cell {} ({}): {}", m_cells[rank][i], toString(m_rows[rank][i]), what),
                     std::move(hint));
    }

    void transfer(std::size_t rank, std::size_t i, const PytorchAction& a)
    {
        const Place here{rank, i};
        if (!exists(a.stage) || deviceOf(a.stage) != static_cast<int>(rank))
            return fault(here, fmt::format("rank {} does not hold stage {}", rank, a.stage),
                         "a send or receive carries the number of the rank's own stage");
        if (a.microbatch >= m_schedule.microbatches)
            return fault(here, fmt::format("unknown microbatch {}", a.microbatch),
                         fmt::format("microbatches are numbered 0 to {}", m_schedule.microbatches - 1));
        const bool up = a.type == Type::SendF || a.type == Type::RecvB;
        const int other = a.stage + (up ? 1 : -1);
        if (!exists(other))
            return fault(here, fmt::format("there is no stage {} on the other side", other), "remove the cell");
        if (deviceOf(other) == static_cast<int>(rank))
            return fault(here, fmt::format("stage {} is on the same rank", other),
                         "nothing is sent between stages of one rank; remove the cell");
        if (seen(a.type, a.stage, a.microbatch)++)
            return fault(here, "the same transfer stands twice", "remove one");
        const bool forward = !a.carriesGradient();
        const bool computed = seen(Type::F, a.stage, a.microbatch) > 0;
        const bool backwardDone = seen(Type::B, a.stage, a.microbatch) > 0;
        const bool done = forward ? computed : backwardDone;
        const Type needs = forward ? Type::F : Type::B;
        if (a.isSend() && !done)
            return fault(
                here,
                fmt::format("is sent before {} has made it", toString(PytorchAction{needs, a.stage, a.microbatch})),
                "a send stands behind the computation");
        if (!a.isSend() && done)
            return fault(
                here,
                fmt::format("is received after {} needed it", toString(PytorchAction{needs, a.stage, a.microbatch})),
                "a receive stands before the computation");
        const auto pair = a.isSend() ? std::pair(static_cast<int>(rank), deviceOf(other))
                                     : std::pair(deviceOf(other), static_cast<int>(rank));
        (a.isSend() ? m_sends : m_receives)[pair].push_back(here);
    }

    void compute(std::size_t rank, std::size_t i, const PytorchAction& a)
    {
        if (a.type == Type::W)
            return;
        const bool forward = a.type == Type::F;
        seen(forward ? Type::F : Type::B, a.stage, a.microbatch) = 1; // an I counts as the backward
        const int source = a.stage + (forward ? -1 : 1);
        const Type receive = forward ? Type::RecvF : Type::RecvB;
        if (exists(source) && deviceOf(source) != static_cast<int>(rank) && !seen(receive, a.stage, a.microbatch))
            fault({rank, i},
                  fmt::format("its input has not been received: {} is missing before it",
                              toString(PytorchAction{receive, a.stage, a.microbatch})),
                  "PyTorch stops here with an assertion");
    }

    void missingSends()
    {
        for (const auto& [pair, receives] : m_receives)
            for (const Place& place : receives) {
                const PytorchAction& a = m_rows[place.first][place.second];
                const PytorchAction send{a.type == Type::RecvF ? Type::SendF : Type::SendB, producerOf(a),
                                         a.microbatch};
                if (!seen(send.type, send.stage, send.microbatch))
                    fault(place, fmt::format("rank {} never sends it: {} is missing there", pair.first, toString(send)),
                          "the receive would wait for ever");
            }
        for (const auto& [pair, sends] : m_sends)
            for (const Place& place : sends) {
                const PytorchAction& a = m_rows[place.first][place.second];
                const Type receive = a.type == Type::SendF ? Type::RecvF : Type::RecvB;
                const int stage = a.stage + (a.type == Type::SendF ? 1 : -1);
                if (!seen(receive, stage, a.microbatch))
                    fault(place,
                          fmt::format("rank {} never receives it: {} is missing there", pair.second,
                                      toString(PytorchAction{receive, stage, a.microbatch})),
                          "remove the send");
            }
    }

    /// NCCL and Gloo match sends with receives by their order, not by a name.
    void pairOrders()
    {
        for (const auto& [pair, sends] : m_sends) {
            const std::vector<Place>& receives = m_receives[pair];
            for (std::size_t i = 0; i < sends.size() && i < receives.size(); ++i) {
                const PytorchAction& s = m_rows[sends[i].first][sends[i].second];
                const PytorchAction& r = m_rows[receives[i].first][receives[i].second];
                if (s.carriesGradient() != r.carriesGradient() || s.stage != producerOf(r)
                    || s.microbatch != r.microbatch) {
                    fault(
                        receives[i],
                        fmt::format("is number {} that rank {} receives from rank {}, which sends {} as its number {}",
                                    i + 1, pair.second, pair.first, toString(s), i + 1),
                        "transfers between two ranks are matched by their order: use the same on both");
                    break;
                }
            }
        }
    }

    const Schedule& m_schedule;
    const PytorchRows& m_rows;
    const std::vector<std::vector<int>>& m_cells;
    const std::vector<int>& m_lines;
    CellFaults& m_faults;
    PassTable<std::uint8_t, 8> m_seen; ///< by action type: F, full or split backward under B, and the transfers
    std::map<std::pair<int, int>, std::vector<Place>> m_sends, m_receives; ///< per (source, destination)
};

} // namespace

void checkTransfers(const Schedule& schedule, const PytorchRows& rows, const std::vector<std::vector<int>>& cells,
                    const std::vector<int>& lines, CellFaults& faults)
{
    TransferCheck(schedule, rows, cells, lines, faults).run();
}

} // namespace pipewright
