// SPDX-License-Identifier: GPL-3.0-or-later
// What kernels need to know of a model, from its dimensions alone: for references that must not share code with the
// stages that they judge.
#pragma once

#include "core/model/modelshape.h"
#include "kernels/activation.h"
#include "kernels/experts.h"
#include "kernels/rotary.h"

#include <algorithm>

namespace pipewright::test {

inline kernels::ActivationKind kindOf(Activation activation)
{
    switch (activation) {
    case Activation::GeluTanh: return kernels::ActivationKind::GeluTanh;
    case Activation::Gelu: return kernels::ActivationKind::Gelu;
    case Activation::Silu: return kernels::ActivationKind::Silu;
    case Activation::ClampedSilu: return kernels::ActivationKind::ClampedSilu;
    }
    return kernels::ActivationKind::GeluTanh;
}

inline kernels::RotaryFrequencies frequenciesOf(const Rotary& rotary)
{
    const auto scaling = [&] {
        switch (rotary.scaling) {
        case Rotary::Scaling::None: return kernels::RotaryScaling::None;
        case Rotary::Scaling::Linear: return kernels::RotaryScaling::Linear;
        case Rotary::Scaling::Llama3: return kernels::RotaryScaling::Llama3;
        case Rotary::Scaling::Yarn: return kernels::RotaryScaling::Yarn;
        }
        return kernels::RotaryScaling::None;
    };
    return {rotary.base, scaling(), rotary.factor, rotary.low, rotary.high, double(rotary.original)};
}

inline kernels::Router routerOf(const ModelShape& shape)
{
    const auto kind = [&] {
        switch (shape.routerScore) {
        case RouterScore::Softmax: return kernels::RouterKind::Softmax;
        case RouterScore::Sigmoid: return kernels::RouterKind::Sigmoid;
        }
        return kernels::RouterKind::Softmax;
    };
    return {shape.experts, shape.expertsPerToken,  shape.routerGroups,      shape.routerGroupsPerToken,
            kind(),        shape.routerNormalised, float(shape.routerScale)};
}

/// Layers with a mixture of experts.
inline int expertLayersOf(const ModelShape& shape)
{
    return shape.experts > 0 ? std::max(shape.layers - shape.denseLayers, 0) : 0;
}

} // namespace pipewright::test
