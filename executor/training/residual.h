// SPDX-License-Identifier: GPL-3.0-or-later
// How a part of a layer, attention or MLP, reads the stream and adds to it. All parts share this code. A part has one
// norm before it (GPT and later models), one norm after the sum (BERT), or norms before and after the part (Gemma 2). F
// calls enter(), computes from input() to sum(), and calls leave(); I calls enterGrad(), computes from outputGrad() to
// the gradient of the input, and calls leaveGrad().
#pragma once

#include "executor/training/norm.h"
#include "executor/training/stagelayout.h"

#include <optional>
#include <span>

namespace pipewright {

class Residual {
public:
    /// The names of the part's norm ("ln1"), of a second one behind it, and of its tensors.
    struct Names {
        const char *norm, *normInput, *input, *normBehind, *inputOfBehind;
    };
    static constexpr Names attention{"ln1", "ln1.input", "qkv.input", "attentionNorm", "attentionNorm.input"};
    static constexpr Names mlp{"ln2", "ln2.input", "fc1.input", "mlpNorm", "mlpNorm.input"};

    Residual(const ModelShape& shape, int layer, const StageLayout& layout, const ParameterLayout& parameters,
             const Names& names);

    /// Fills the part's input.
    void enter(std::span<const float> parameters, const StageMemory& memory, std::span<const float> stream) const;
    std::span<float> input(const StageMemory& memory) const { return memory.floats(m_input); }
    /// Where the part's last step writes, and whether it adds there.
    std::span<float> sum(const StageMemory& memory, std::span<float> stream) const
    {
        return m_behind ? memory.floats(m_inputOfBehind) : stream;
    }
    kernels::Store store() const { return m_behind ? kernels::Store::Replace : kernels::Store::Add; }
    void leave(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream) const;

    /// Fills the gradient of the part's output. `outputGrad`: memory of the stream's size.
    void enterGrad(std::span<const float> parameters, const StageMemory& memory, std::span<float> stream,
                   std::span<float> outputGrad, std::span<float> gradients) const;
    void leaveGrad(std::span<const float> parameters, const StageMemory& memory, std::span<const float> inputGrad,
                   std::span<float> stream, std::span<float> gradients) const;

private:
    int m_rows;
    bool m_normsSum; ///< the norm is behind the sum
    Norm m_norm;
    Slice m_normInput, m_input;
    std::optional<Norm> m_behind;
    Slice m_inputOfBehind;
};

} // namespace pipewright
