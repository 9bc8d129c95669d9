// SPDX-License-Identifier: GPL-3.0-or-later
// The buffers that the blocks of a step made so far, by stage and microbatch, while transfer inference writes them.
#pragma once

#include "core/program/pendingtransfers.h"

#include <array>
#include <vector>

namespace pipewright {

class StepBuffers {
public:
    /// The buffers of one stage and microbatch. Cells of a microbatch are adjacent: blocks read their neighbours', too.
    struct alignas(32) Cell {
        BufferId savedUntilInputGrad = none, savedUntilWeightGrad = none, savedFromInputGrad = none;
        Arrival output;   ///< F's result, where its consumer reads it
        Arrival gradient; ///< I's or B's result, likewise
        std::array<BufferId, 2> saved() const { return {savedUntilInputGrad, savedUntilWeightGrad}; }
    };

    explicit StepBuffers(const PipelineShape& shape)
        : m_stages(static_cast<std::size_t>(shape.stages())), m_pieces(shape.sequencePieces),
          m_cells(m_stages * static_cast<std::size_t>(shape.microbatches))
    {
        if (m_pieces > 1)
            m_sequenceGradient.assign(m_cells.size() / static_cast<std::size_t>(m_pieces), none);
        if (!shape.recompute.empty())
            m_recomputed.assign(m_cells.size(), {none, none});
    }

    Cell& cell(int stage, int microbatch) { return m_cells[index(stage, microbatch)]; }

    bool recomputes() const { return !m_recomputed.empty(); }
    /// What R made: until I or B, until W or B. Only where recomputes().
    std::array<BufferId, 2>& recomputed(const Block& block)
    {
        return m_recomputed[index(block.stage, block.microbatch)];
    }

    /// With pieces of sequences.
    BufferId& sequenceGradient(const Block& block)
    {
        return m_sequenceGradient[index(block.stage, block.microbatch / m_pieces)];
    }
    bool isLastPiece(const Block& block) const { return m_pieces == 1 || (block.microbatch + 1) % m_pieces == 0; }

private:
    std::size_t index(int stage, int microbatch) const
    {
        return static_cast<std::size_t>(microbatch) * m_stages + static_cast<std::size_t>(stage);
    }

    std::size_t m_stages;
    int m_pieces;
    std::vector<Cell> m_cells; ///< microbatch by microbatch, stage by stage
    std::vector<BufferId> m_sequenceGradient;
    std::vector<std::array<BufferId, 2>> m_recomputed;
};

} // namespace pipewright
