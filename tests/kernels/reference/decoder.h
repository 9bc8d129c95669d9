// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of today's decoders in double precision, as reference.h does for those of GPT: results are returned,
// never accumulated, and gradients are tested by finite differences.
#pragma once

#include "kernels/activation.h"
#include "kernels/experts.h"
#include "kernels/groupedattention.h"
#include "kernels/reference/reference.h"
#include "kernels/rotary.h"

namespace pipewright::reference {

using kernels::ActivationKind;
using kernels::GroupedAttentionShape;

Values rmsNormForward(int rows, int columns, double epsilon, const Values& input, const Values& gamma);
Values rmsNormInputGrad(int rows, int columns, double epsilon, const Values& input, const Values& gamma,
                        const Values& outputGrad);
Values rmsNormWeightGrad(int rows, int columns, double epsilon, const Values& input, const Values& outputGrad);

/// Computes what Rotate describes, on `values` instead of the call's own.
Values rotate(const kernels::Rotate& call, const Values& values);

struct GroupedAttention {
    Values logSums, output;
};
/// Grouped attention of whole sequences.
/// `sinks` one per head, or none.
GroupedAttention groupedAttentionForward(const GroupedAttentionShape& shape, const Values& query, const Values& key,
                                         const Values& value, const Values& sinks = {});
struct GroupedAttentionGrads {
    Values query, key, value, sinks;
};
GroupedAttentionGrads groupedAttentionInputGrad(const GroupedAttentionShape& shape, const Values& query,
                                                const Values& key, const Values& value, const Values& outputGrad,
                                                const Values& sinks = {});

Values activationForward(ActivationKind kind, const Values& input);
Values activationInputGrad(ActivationKind kind, const Values& input, const Values& outputGrad);
/// The activation of a gated MLP; the clamped one is only defined with a factor.
Values gatedForward(ActivationKind kind, const Values& gate, const Values& factor);

/// Logits bounded by a cap; and the gradient before the cap, from the capped logits and their gradient.
Values softCap(double cap, const Values& values);
Values softCapGrad(double cap, const Values& capped, const Values& grad);

/// One token's chosen experts, best first, and their weights.
struct Routing {
    std::vector<int> choice;
    Values weight;
};
Routing routeToken(const kernels::Router& router, const Values& correction, const Values& logits);

} // namespace pipewright::reference
