// SPDX-License-Identifier: GPL-3.0-or-later
// Inserts and checks the cells around transfers, one pass per row with a map of pending sends. O(actions log actions).
#include "core/exchange/pytorchwaits.h"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>

namespace pipewright {

namespace {

using Type = PytorchAction::Type;

std::vector<PytorchAction> completed(const std::vector<PytorchAction>& row, const Schedule& schedule,
                                     PytorchVersion version)
{
    const auto stages = static_cast<std::size_t>(schedule.stages());
    std::vector<std::uint8_t> gathered(stages, 0), sendsForward(stages, 0);
    std::vector<int> backwardsLeft(stages, schedule.microbatches);
    std::vector<PytorchAction> result, due, gradientWaits;
    result.reserve(2 * row.size());
    for (const PytorchAction& a : row)
        if (!std::exchange(gathered[a.stage], 1))
            result.push_back({Type::Unshard, a.stage, -1});
    for (std::size_t i = 0; i < row.size(); ++i) {
        const PytorchAction& a = row[i];
        const auto stage = static_cast<std::size_t>(a.stage);
        result.push_back(a);
        if (a.type == Type::SendF)
            sendsForward[stage] = 1;
        if (a.type == Type::SendB)
            gradientWaits.push_back({Type::WaitSendB, a.stage, a.microbatch});
        if (a.isBackward() && sendsForward[stage] && version >= PytorchVersion::V2_15)
            due.push_back({Type::WaitSendF, a.stage, a.microbatch});
        if ((a.type == Type::B || a.type == Type::W) && --backwardsLeft[stage] == 0) {
            if (version >= PytorchVersion::V2_10)
                due.push_back({Type::ReduceGrad, a.stage, -1});
            if (version >= PytorchVersion::V2_15)
                due.push_back({Type::WaitReduceGrad, a.stage, -1});
            due.push_back({Type::Reshard, a.stage, -1});
        }
        // Not between the members of an overlap, nor between a gradient and its send.
        if (a.together || (i + 1 < row.size() && row[i + 1].type == Type::SendB && row[i + 1].stage == a.stage))
            continue;
        result.insert(result.end(), due.begin(), due.end());
        due.clear();
    }
    if (version >= PytorchVersion::V2_15)
        result.insert(result.end(), gradientWaits.begin(), gradientWaits.end());
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

void addBookkeeping(PytorchRows& rows, const Schedule& schedule, PytorchVersion version)
{
    for (std::vector<PytorchAction>& row : rows)
        row = completed(row, schedule, version);
}

void checkWaits(const PytorchRows& rows, const std::vector<std::vector<int>>& cells, const std::vector<int>& lines,
                CellFaults& faults)
{
    WaitCheck(rows, cells, lines, faults).run();
}

} // namespace pipewright
