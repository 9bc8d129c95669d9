// SPDX-License-Identifier: GPL-3.0-or-later
// A linear layer of a stage: its three passes, with a bias if the model has one. Stores only the offsets of its
// parameters.
#pragma once

#include "executor/training/parameterlayout.h"

#include <optional>
#include <span>
#include <string>

namespace pipewright {

class Linear {
public:
    /// The parameters "NAME.weight" and, if there is one, "NAME.bias" of a layer.
    Linear(const ParameterLayout& parameters, int layer, const std::string& name);

    int inputs() const { return m_inputs; }
    int outputs() const { return m_outputs; }
    /// Some of its outputs as a smaller linear layer.
    Linear part(int firstOutput, int outputs) const;

    void forward(const kernels::Operations& on, int rows, std::span<const float> parameters,
                 std::span<const float> input, std::span<float> output, kernels::Store store = kernels::Store::Replace,
                 std::span<float> activated = {}) const;
    void inputGrad(const kernels::Operations& on, int rows, std::span<const float> parameters,
                   std::span<const float> outputGrad, std::span<float> inputGrad,
                   kernels::Store store = kernels::Store::Replace, std::span<const float> activationInput = {}) const;
    /// Adds to the gradients.
    void weightGrad(const kernels::Operations& on, int rows, std::span<const float> input,
                    std::span<const float> outputGrad, std::span<float> gradients) const;

private:
    template<class T>
    std::span<T> weightIn(std::span<T> flat) const
    {
        return flat.subspan(m_weight, std::size_t(m_inputs) * std::size_t(m_outputs));
    }
    template<class T>
    std::span<T> biasIn(std::span<T> flat) const
    {
        return m_bias ? flat.subspan(*m_bias, std::size_t(m_outputs)) : std::span<T>();
    }
    kernels::LinearShape shape(int rows) const { return {rows, m_inputs, m_outputs}; }

    int m_inputs, m_outputs;
    std::size_t m_weight;              ///< where it begins, in floats
    std::optional<std::size_t> m_bias; ///< likewise
};

} // namespace pipewright
