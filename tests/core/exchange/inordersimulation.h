// SPDX-License-Identifier: GPL-3.0-or-later
// Ranks that run a compute_comms file with one stream for computations and one for sends and receives, for tests. It
// reads the file by itself and knows nothing of Programs: every rank has two lists, and whatever stands first in its
// list and has what it needs begins. A send begins together with its receive, when both stand first in their lists.
#pragma once

#include "core/design/costs.h"

#include <QRegularExpression>
#include <QString>
#include <QStringList>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace pipewright::test {

class InOrderSimulation {
public:
    explicit InOrderSimulation(const std::string& csv)
    {
        static const QRegularExpression cellOf("^(\\d+)(F|B|I|W|SEND_F|RECV_F|SEND_B|RECV_B)(\\d+)$");
        for (const QString& line : QString::fromStdString(csv).split('\n', Qt::SkipEmptyParts)) {
            Rank& rank = m_ranks.emplace_back();
            for (const QString& cell : line.split(',')) {
                const QRegularExpressionMatch match = cellOf.match(cell);
                if (!match.hasMatch())
                    continue; // waits, reductions and sharding take no time here
                const Action action{match.captured(2).toStdString(), match.captured(1).toInt(),
                                    match.captured(3).toInt()};
                const bool moves = action.op.size() > 1;
                (moves ? rank.transfers : rank.blocks).push_back(action);
                if (!moves)
                    m_rankOfStage[action.stage] = m_ranks.size() - 1;
            }
        }
    }

    /// The step's length; nothing when the ranks wait for each other for ever.
    std::optional<Nanoseconds> step(const Costs& costs)
    {
        m_made.clear();
        m_arrived.clear();
        for (Rank& rank : m_ranks)
            rank.nextBlock = rank.nextTransfer = 0, rank.computed = rank.moved = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t rank = 0; rank < m_ranks.size(); ++rank) {
                while (compute(rank, costs))
                    moved = true;
                while (transfer(rank, costs))
                    moved = true;
            }
        }
        Nanoseconds end = 0;
        for (const Rank& rank : m_ranks) {
            if (rank.nextBlock < rank.blocks.size() || rank.nextTransfer < rank.transfers.size())
                return std::nullopt;
            end = std::max({end, rank.computed, rank.moved});
        }
        return end;
    }

    /// "0SEND_F0,0RECV_B0": what the rank sends and receives.
    std::string transfersOf(std::size_t rank) const
    {
        std::string text;
        for (const Action& a : m_ranks[rank].transfers)
            text += std::to_string(a.stage) + a.op + std::to_string(a.microbatch) + ",";
        return text;
    }
    std::size_t ranks() const { return m_ranks.size(); }

private:
    struct Action {
        std::string op;
        int stage, microbatch;
        bool operator==(const Action&) const = default;
    };
    struct Rank {
        std::vector<Action> blocks, transfers;
        std::size_t nextBlock = 0, nextTransfer = 0;
        Nanoseconds computed = 0, moved = 0; ///< until when its two streams are busy
    };
    using Value = std::tuple<char, int, int>; ///< F or B, the stage that made or receives it, microbatch

    bool compute(std::size_t number, const Costs& costs)
    {
        Rank& rank = m_ranks[number];
        if (rank.nextBlock == rank.blocks.size())
            return false;
        const auto& [op, stage, microbatch] = rank.blocks[rank.nextBlock];
        const StageCosts& times = costs.stages[static_cast<std::size_t>(stage)];
        const bool forward = op == "F", weights = op == "W";
        const int source = forward ? stage - 1 : stage + 1;
        Nanoseconds ready = 0;
        if (weights) {
            ready = m_made.at({'B', stage, microbatch});
        } else if (const auto maker = m_rankOfStage.find(source); maker != m_rankOfStage.end()) {
            const char kind = forward ? 'F' : 'B';
            const auto& values = maker->second == number ? m_made : m_arrived;
            const auto value = values.find({kind, maker->second == number ? source : stage, microbatch});
            if (value == values.end())
                return false;
            ready = value->second;
        }
        rank.computed = std::max(rank.computed, ready)
                        + (forward     ? times.forward
                           : weights   ? times.weightGrad
                           : op == "I" ? times.inputGrad
                                       : times.backward);
        if (!weights)
            m_made[{forward ? 'F' : 'B', stage, microbatch}] = rank.computed;
        ++rank.nextBlock;
        return true;
    }

    bool transfer(std::size_t number, const Costs& costs)
    {
        Rank& rank = m_ranks[number];
        if (rank.nextTransfer == rank.transfers.size() || !rank.transfers[rank.nextTransfer].op.starts_with("SEND"))
            return false;
        const Action& send = rank.transfers[rank.nextTransfer];
        const char kind = send.op.back();
        const int to = send.stage + (kind == 'F' ? 1 : -1);
        Rank& receiver = m_ranks[m_rankOfStage.at(to)];
        const auto value = m_made.find({kind, send.stage, send.microbatch});
        if (value == m_made.end() || receiver.nextTransfer == receiver.transfers.size()
            || receiver.transfers[receiver.nextTransfer] != Action{std::string("RECV_") + kind, to, send.microbatch})
            return false;
        const auto from = static_cast<int>(number);
        const Nanoseconds end = std::max({rank.moved, receiver.moved, value->second})
                                + costs.linkBetween(from, static_cast<int>(m_rankOfStage.at(to))).latency;
        rank.moved = receiver.moved = m_arrived[{kind, to, send.microbatch}] = end;
        ++rank.nextTransfer;
        ++receiver.nextTransfer;
        return true;
    }

    std::vector<Rank> m_ranks;
    std::map<int, std::size_t> m_rankOfStage;
    std::map<Value, Nanoseconds> m_made, m_arrived;
};

} // namespace pipewright::test
