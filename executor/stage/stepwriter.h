// SPDX-License-Identifier: GPL-3.0-or-later
// What an operation adds to the passes of a layer, or of a node alone: its calls of kernels, with operands that a plan
// resolves.
// One row per operation; a row without a function has nothing to do in that pass.
#pragma once

#include "executor/stage/layermaths.h"
#include "executor/stage/nodeplan.h"

#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace pipewright {

class StepWriter {
public:
    StepWriter(const NodePlan& of, const LayerSettings& run, LayerSteps& made) : plan(of), settings(run), m_made(made)
    {
    }

    const NodePlan& plan;
    const LayerSettings settings;

    void forward(Step step) { m_made.forward.push_back(std::move(step)); }
    void core(Step step)
    {
        m_made.cores.push_back(step);
        forward(std::move(step));
    }
    void inputGrad(Step step) { m_made.inputGrad.push_back(std::move(step)); }
    void weightGrad(Step step) { m_made.weightGrad.push_back(std::move(step)); }
    /// Gradients of parameters from tensors that a layer has until I only; a node alone has them in W too.
    void parameterGrad(Step step)
    {
        (plan.isAlone() ? m_made.weightGrad : m_made.inputGrad).push_back(std::move(step));
    }
    /// In F; nothing if they are the same place.
    void copy(const Place& from, const Place& to);

    /// Where I adds to the gradient of an operand, and whether it is the first to write there.
    struct Target {
        Place place;
        kernels::Store store;
    };
    Target gradientOf(int operand);
    /// The same for operations that add to what is in the stream without a buffer between.
    Target streamGradient(bool inPlace);
    /// Of a tensor of which only some rows have a gradient: fills it with zeros, unless it is the stream's and there is
    /// one already. Returns its place.
    Place empty(int tensor);
    /// Before the gradient of a value is read: completes it.
    void completeGradient(int tensor);

private:
    LayerSteps& m_made;
    std::vector<int> m_written;           ///< tensors whose gradient has a first part
    bool m_streamIsEmpty = plan.isHead(); ///< no gradient is in the stream yet
};

/// A row of the mathematics of stages. The functions add the steps of the node that makes a tensor.
struct OperationSteps {
    std::string_view operation;
    void (*forward)(StepWriter& writer, int tensor) = nullptr;
    void (*inputGrad)(StepWriter& writer, int tensor) = nullptr;
    void (*weightGrad)(StepWriter& writer, int tensor) = nullptr;
};

/// The stages' row of an operation; null: they have no mathematics of it.
const OperationSteps* findSteps(std::string_view operation);

std::span<const OperationSteps> productSteps();
std::span<const OperationSteps> normSteps(); ///< and activations
std::span<const OperationSteps> attentionSteps();
std::span<const OperationSteps> expertSteps();
std::span<const OperationSteps> endSteps(); ///< of the two ends of a model

} // namespace pipewright
