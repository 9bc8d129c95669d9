// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of a stage's passes where its layers send tokens to experts on other devices (workload/parallelism.h), as
// DualPipe interleaves them (DeepSeek-V3, arXiv 2412.19437, section 3.2.1): forwards attention, dispatch, experts and
// combine, layer after layer; backwards combine, experts, dispatch and attention, from the last layer on, with weight
// gradients that nothing waits for. The all-to-alls communicate; all else computes, what other members of a group
// exchange included, for that holds up the computing.
#pragma once

#include "core/design/costs.h"
#include "core/design/membertimes.h"

#include <span>

namespace pipewright {

/// What a layer takes: its attention, what sends tokens to experts and back, and all the rest.
struct LayerSeconds {
    MemberTimes::Seconds attention, tokens, rest;
    bool sendsTokens() const { return tokens.forward + tokens.inputGrad > 0; }
};

/// Of the passes F, B, I and W, in proportion to their times. No parts where no layer sends tokens. O(layers).
void setExpertParts(std::span<const LayerSeconds> layers, StageCosts& stage);

} // namespace pipewright
