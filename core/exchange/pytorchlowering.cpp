// SPDX-License-Identifier: GPL-3.0-or-later
// One list of turns per rank, taken round by round. A receive is posted with its send, so a computation is ready as
// soon as the one that makes its value has had its turn.
#include "core/exchange/pytorchlowering.h"

#include "core/base/diagnostic.h"
#include "core/base/indexed.h"
#include "core/exchange/pytorchgathers.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace pipewright {

namespace {

using Type = PytorchAction::Type;

/// What a rank appends in one turn: a block or the two of an overlapped pair; nothing for an action without values.
using Turn = std::span<const Block>;

/// The turns of one rank.
class RankTurns {
public:
    RankTurns(const Schedule& schedule, int rank)
        : m_order(schedule.order[rank]), m_uses(schedule.stages()), m_gathered(schedule.stages(), 0),
          m_left(schedule.stages(), schedule.microbatches)
    {
        for (std::size_t i = 0; i < m_order.size();) {
            const std::size_t length = i + 1 < m_order.size()
                                               && std::binary_search(schedule.overlaps.begin(), schedule.overlaps.end(),
                                                                     Overlap{m_order[i], m_order[i + 1]})
                                           ? 2
                                           : 1;
            m_actions.push_back(std::span(m_order).subspan(i, length));
            i += length;
        }
        for (std::size_t action = 0; action < m_actions.size(); ++action)
            for (const Block& block : m_actions[action])
                m_uses[block.stage].actions.push_back(action);
        for (int stage = 0; stage < schedule.stages(); ++stage)
            if (!m_uses[stage].actions.empty())
                m_stages.push_back(stage);
    }

    std::vector<Turn> turns()
    {
        std::vector<Turn> turns;
        for (std::size_t action = 0; action < m_actions.size(); ++action) {
            turns.resize(turns.size() + gatherFor(action));
            turns.push_back(m_actions[action]);
            for (const Block& block : m_actions[action])
                if (makesWeightGrad(block.op) && --m_left[block.stage] == 0)
                    turns.resize(turns.size() + 2); // the reduction and the wait for it
        }
        return turns;
    }

private:
    struct Uses {
        std::vector<std::size_t> actions; ///< of a stage, ascending
        std::size_t next = 0;             ///< the first that has not had its turn
    };

    /// Gathers the next stages, and lets go of those that are not among them. Returns how many actions that takes.
    std::size_t gatherFor(std::size_t action)
    {
        constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
        m_ahead.clear();
        for (const int stage : m_stages) {
            Uses& uses = m_uses[stage];
            while (uses.next < uses.actions.size() && uses.actions[uses.next] < action)
                ++uses.next;
            m_ahead.emplace_back(uses.next < uses.actions.size() ? uses.actions[uses.next] : never, stage);
        }
        std::sort(m_ahead.begin(), m_ahead.end());
        std::size_t taken = 0, changes = 0;
        bool takesLast = false;
        for (std::size_t i = 0; i < m_ahead.size(); ++i) {
            const auto [use, stage] = m_ahead[i];
            // The stages of a pair are gathered together.
            const bool isOfPair = i > 0 && use == m_ahead[i - 1].first;
            const bool wanted =
                use != never && (taken < static_cast<std::size_t>(gatheredByPytorch) || (isOfPair && takesLast));
            taken += wanted;
            takesLast = wanted;
            changes += m_gathered[stage] != wanted;
            m_gathered[stage] = wanted;
        }
        return changes;
    }

    std::span<const Block> m_order;
    std::vector<Turn> m_actions;
    ByStage<Uses> m_uses;
    ByStage<std::uint8_t> m_gathered;
    ByStage<int> m_left; ///< backwards that its reduction waits for
    std::vector<int> m_stages;
    std::vector<std::pair<std::size_t, int>> m_ahead; ///< next use, stage
};

class Lowering {
public:
    explicit Lowering(const Schedule& schedule)
        : m_schedule(schedule), m_forward(schedule.stages(), schedule.microbatches, 0), m_backward(m_forward),
          m_rows(schedule.order.size())
    {
    }

    PytorchRows run()
    {
        std::vector<std::vector<Turn>> turns;
        std::vector<std::size_t> next(m_rows.size(), 0);
        for (std::size_t rank = 0; rank < m_rows.size(); ++rank)
            turns.push_back(RankTurns(m_schedule, static_cast<int>(rank)).turns());
        for (bool progress = true; progress;) {
            progress = false;
            for (std::size_t rank = 0; rank < m_rows.size(); ++rank) {
                if (next[rank] == turns[rank].size() || !isReady(turns[rank][next[rank]]))
                    continue;
                append(rank, turns[rank][next[rank]++]);
                progress = true;
            }
        }
        for (std::size_t rank = 0; rank < m_rows.size(); ++rank)
            if (next[rank] < turns[rank].size())
                throw Error(toString(turns[rank][next[rank]].front()), "what it needs is never made",
                            "check the schedule");
        return std::move(m_rows);
    }

private:
    bool isReady(Turn turn) const
    {
        return std::all_of(turn.begin(), turn.end(), [this](const Block& block) {
            if (makesActivation(block.op))
                return block.stage == 0 || m_forward(block.stage - 1, block.microbatch);
            return !makesInputGrad(block.op) || block.stage + 1 == m_schedule.stages()
                   || m_backward(block.stage + 1, block.microbatch);
        });
    }

    void append(std::size_t rank, Turn turn)
    {
        // The members of a pair stand in one cell, with what they send behind it.
        for (const Block& block : turn) {
            m_rows[rank].push_back({computeType(block.op), block.stage, block.microbatch});
            m_rows[rank].back().together = &block != &turn.back();
        }
        for (const Block& block : turn)
            if (makesActivation(block.op)) {
                m_forward(block.stage, block.microbatch) = 1;
                handOn(rank, block, block.stage + 1, Type::SendF, Type::RecvF);
            } else if (makesInputGrad(block.op)) {
                m_backward(block.stage, block.microbatch) = 1;
                handOn(rank, block, block.stage - 1, Type::SendB, Type::RecvB);
            }
    }

    void handOn(std::size_t rank, const Block& block, int to, Type send, Type receive)
    {
        if (to < 0 || to >= m_schedule.stages())
            return;
        const auto peer = static_cast<std::size_t>(m_schedule.deviceOfStage[to]);
        if (peer == rank)
            return;
        m_rows[rank].push_back({send, block.stage, block.microbatch});
        m_rows[peer].push_back({receive, to, block.microbatch});
    }

    const Schedule& m_schedule;
    ByStageAndMicrobatch<std::uint8_t> m_forward, m_backward; ///< whether it has had its turn
    PytorchRows m_rows;
};

} // namespace

PytorchRows loweredByPytorch(const Schedule& schedule)
{
    return Lowering(schedule).run();
}

} // namespace pipewright
