// SPDX-License-Identifier: GPL-3.0-or-later
// The reference for cyclic data parallelism: the emulation of its authors.
#pragma once

#include "core/design/design.h"
#include "executor/stage/gptreference.h"
#include "executor/stage/stagemaths.h"
#include "executor/training/optimizer.h"
#include "executor/training/textdata.h"

#include <algorithm>
#include <vector>

namespace pipewright::test {

/// The authors' emulation of cyclic training: every rank applies, stage by stage, the mean gradient of this step or
/// of the step before, to parameters and momentum of its own; the gradient is summed rank after rank.
class LaggedRanks {
public:
    LaggedRanks(const Design& design, const OptimizerSettings& optimizer, bool freshest, std::uint64_t seed)
        : m_ranks(design.schedule.stages()), m_freshest(freshest)
    {
        int first = 0;
        for (const int layers : design.layersPerStage) {
            m_maths.emplace_back(*design.workload, first, first + layers, m_ranks);
            m_optimizers.emplace_back(m_maths.back().parameters(), optimizer);
            first += layers;
        }
        for (int rank = 0; rank < m_ranks; ++rank) {
            Rank& own = m_rank.emplace_back();
            for (std::size_t j = 0; j < m_maths.size(); ++j) {
                own.parameters.emplace_back(m_maths[j].parameters().count());
                m_maths[j].parameters().initialise(own.parameters.back(), seed);
                own.state.emplace_back(m_optimizers[j].stateElements());
                own.updates.push_back(0);
            }
        }
        for (const StageMaths& maths : m_maths)
            m_gradient.emplace_back(maths.parameters().count());
        m_before = m_gradient;
    }

    void step(int t, const TextData& data, const ModelShape& shape)
    {
        m_before = m_gradient;
        for (auto& gradient : m_gradient)
            std::fill(gradient.begin(), gradient.end(), 0.0f);
        for (int rank = 0; rank < m_ranks; ++rank)
            addGradient(m_rank[rank], t * m_ranks + rank, data, shape);
        for (int rank = 0; rank < m_ranks; ++rank)
            for (std::size_t j = 0; j < m_maths.size(); ++j) {
                const bool fresh = m_freshest && static_cast<int>(j) >= m_ranks - 1 - rank;
                if (!fresh && t == 0)
                    continue; // there is no step before
                Rank& own = m_rank[rank];
                m_optimizers[j].update(kernels::hostOperations(), ++own.updates[j], own.parameters[j],
                                       fresh ? m_gradient[j] : m_before[j], own.state[j]);
            }
    }

    /// The parameters that the last gradients lead to, wherever they are applied.
    std::vector<float> newest()
    {
        std::vector<float> all;
        for (std::size_t j = 0; j < m_maths.size(); ++j) {
            Rank& last = m_rank.back();
            if (!m_freshest)
                m_optimizers[j].update(kernels::hostOperations(), ++last.updates[j], last.parameters[j], m_gradient[j],
                                       last.state[j]);
            all.insert(all.end(), last.parameters[j].begin(), last.parameters[j].end());
        }
        return all;
    }

private:
    struct Rank {
        std::vector<std::vector<float>> parameters, state;
        std::vector<int> updates;
    };

    void addGradient(const Rank& own, int microbatch, const TextData& data, const ModelShape& shape)
    {
        std::vector<std::int32_t> tokens(static_cast<std::size_t>(shape.tokens())), targets(tokens);
        data.sample(0, microbatch, tokens, targets);
        std::vector<StageRoom> rooms;
        for (std::size_t j = 0; j < m_maths.size(); ++j) {
            rooms.emplace_back(m_maths[j]);
            m_maths[j].forward(own.parameters[j],
                               {tokens, j > 0 ? rooms[j - 1].output : std::vector<float>(), targets, rooms[j].loss},
                               rooms[j].memory(), rooms[j].output);
        }
        for (std::size_t j = m_maths.size(); j-- > 0;)
            m_maths[j].backward(own.parameters[j], rooms[j].memory(),
                                j + 1 < m_maths.size() ? rooms[j + 1].inputGrad : std::vector<float>(),
                                rooms[j].inputGrad, m_gradient[j]);
    }

    int m_ranks;
    bool m_freshest;
    std::vector<StageMaths> m_maths;
    std::vector<StageOptimizer> m_optimizers;
    std::vector<Rank> m_rank;
    std::vector<std::vector<float>> m_gradient, m_before;
};

} // namespace pipewright::test
