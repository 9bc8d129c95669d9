// SPDX-License-Identifier: GPL-3.0-or-later
// The parameters of a stage: names, shapes and their places in one flat range of floats, in the order of
// the layers. Gradients and each part of the optimizer state have the same layout. Initial values depend
// on the seed and the parameter's name alone, so every cut of the model into stages starts from the same
// weights, and a tied head starts as an exact copy of the embedding.
#pragma once

#include "core/model/workload.h"
#include "kernels/operations.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

struct Parameter {
    enum class Start { Zero, One, Normal };

    std::string name; ///< "layer 3/qkv.weight"
    int rows = 1;     ///< outputs of a weight; 1 for biases and norms
    int columns = 0;
    std::size_t offset = 0; ///< in floats, from the start of the stage's parameters
    Start start = Start::Zero;
    double deviation = 0; ///< of a Normal start
    std::string drawnAs;  ///< name that its random numbers are drawn under; differs from `name` for a tied copy

    std::size_t count() const { return std::size_t(rows) * std::size_t(columns); }
    double correctionRate = 0; ///< of a correction of the experts' choice: BalanceStep applies it; gradients are counts
    bool isCorrection = false;
    bool isMatrix() const { return start == Start::Normal; } ///< weight decay is for matrices only

    template<class T>
    std::span<T> in(std::span<T> flat) const
    {
        return flat.subspan(offset, count());
    }
};

class ParameterLayout {
public:
    /// Layers [first, last). Normal starts have deviation 0.02, residual projections 0.02 / sqrt(2 · layers)
    /// (Radford et al. 2019, GPT-2, section 2.3). Precondition: the workload is runnable.
    ParameterLayout(const Workload& workload, int first, int last);

    std::size_t count() const { return m_count; } ///< floats in all; equals the layers' parameters
    std::span<const Parameter> parameters() const { return m_parameters; }

    /// The parameter of the workload's layer number `layer`, for example (3, "qkv.weight"). Throws Error.
    const Parameter& at(int layer, std::string_view name) const;
    const Parameter* findAt(int layer, std::string_view name) const; ///< null: there is none

    /// The two holders of the tied matrix, where this stage has them: [vocabulary][hidden] each. The
    /// embedding is the root of the reduction root + other.
    const Parameter* embeddingMatrix() const;
    const Parameter* headMatrix() const;

    void initialise(std::span<float> parameters, std::uint64_t seed) const;

private:
    const Parameter* find(std::string_view name) const;

    std::vector<std::string> m_layerNames; ///< of the whole workload
    std::vector<Parameter> m_parameters;
    std::size_t m_count = 0;
};

} // namespace pipewright
