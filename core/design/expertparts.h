// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of a stage's passes when its layers send tokens to experts on other devices (core/model/parallelism.h), as
// DualPipe interleaves them (DeepSeek-V3, arXiv 2412.19437, section 3.2.1): in the forward attention, dispatch, experts
// and combine, layer by layer; in the backward combine, experts, dispatch and attention, from the last layer, with
// weight gradients that no part waits for. The all-to-alls are communication parts. Everything else is a compute part,
// including the other exchanges within a group, because these block the compute.
#pragma once

#include "core/base/recompute.h"
#include "core/design/costs.h"
#include "core/design/membertimes.h"

#include <span>

namespace pipewright {

/// The times of a layer: its attention, the exchange of tokens with experts, and the rest.
struct LayerSeconds {
    MemberTimes::Seconds attention, tokens, rest;
    double coreAgain = 0;              ///< of the attention core alone
    Recompute again = Recompute::None; ///< what the backward recomputes of the layer
    bool sendsTokens() const { return tokens.forward + tokens.inputGrad > 0; }
};

/// Sets the parts of F, B, I and W, in proportion to their times. No parts when no layer sends tokens. O(layers).
void setExpertParts(std::span<const LayerSeconds> layers, StageCosts& stage);

} // namespace pipewright
