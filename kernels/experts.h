// SPDX-License-Identifier: GPL-3.0-or-later
// A mixture of experts without a capacity: every token visits as many experts as it chooses, none is dropped (arXiv
// 2211.15841). Copies of tokens are grouped by expert: expert e has rows [begin[e], begin[e + 1]) of all tokens ·
// perToken copies, in the order of the tokens. The sizes of tensors do not depend on the choice.
#pragma once

#include "kernels/matmul.h"

#include <cstdint>
#include <span>

namespace pipewright::kernels {

enum class RouterKind : std::int32_t {
    Softmax, ///< of a token's logits over all experts
    Sigmoid, ///< of each logit
};

struct Router {
    int experts = 0, perToken = 0;
    int groups = 1, groupsPerToken = 1; ///< groups of consecutive experts
    RouterKind kind = RouterKind::Softmax;
    bool normalised = true; ///< weights of a token sum to `scale`
    float scale = 1;
};

/// logits[tokens][experts] become probabilities in place. An expert's score is its probability plus `correction`
/// (empty: none). A token chooses the experts with the highest scores, the first among equals; with groups, only from
/// the groups whose two best scores have the largest sum (DeepSeek-V3, arXiv 2412.19437, section 2.1.2). choice, row
/// and weight are [tokens][perToken]: the expert, the row of the copy, and the probability · scale, divided by the sum
/// of the chosen probabilities where normalised.
struct RouteTokens {
    Router router;
    std::span<const float> correction;
    std::span<float> logitsToProbabilities;
    std::span<std::int32_t> choice, row;
    std::span<float> weight;
    std::span<std::int32_t> begin;            ///< experts + 1
    std::span<const std::int32_t> given = {}; ///< choices to use instead of choosing; empty: none
};

/// On the host: whether a token could choose these experts if each of its scores had an error of at most `tolerance`.
/// That is so when it chooses them after `tolerance` is added to their scores and subtracted from all others.
bool couldChoose(const Router& router, std::span<const float> correction, std::span<const float> probabilities,
                 std::span<const std::int32_t> choice, float tolerance);

/// The logits' gradient through the weights, from outputGrad[tokens][width] and the experts' outputs [copies][width].
struct RouteTokensGrad {
    Router router;
    int width;
    std::span<const float> probabilities;
    std::span<const std::int32_t> choice, row;
    std::span<const float> outputGrad, expertOutput;
    std::span<float> logitsGrad;
    // The load-balancing term (Fedus et al., arXiv 2101.03961, equation 4): its derivative with respect to each
    // probability of expert e is `balance` times the expert's copies, begin[e + 1] - begin[e]. With softmax only.
    float balance = 0;
    std::span<const std::int32_t> begin = {};
};

/// counts[e] += the copies that visit expert e.
struct CountCopies {
    std::span<const std::int32_t> begin; ///< experts + 1
    std::span<float> counts;
};

/// values[e] += rate · sign(mean of counts - counts[e]): how DeepSeek-V3 corrects its choice of experts between steps
/// (arXiv 2412.19437, section 2.1.2).
struct BalanceStep {
    float rate;
    std::span<const float> counts;
    std::span<float> values;
};

/// output[row[token][k]] = input[token], times weight[token][k] where there are weights.
struct CopyToExperts {
    int perToken, width;
    std::span<const std::int32_t> row;
    std::span<const float> weight, input;
    std::span<float> output;
};

/// output[token] = the sum over k of input[row[token][k]], times weight[token][k] where there are weights; or added.
struct SumOfExperts {
    int perToken, width;
    std::span<const std::int32_t> row;
    std::span<const float> weight, input;
    std::span<float> output;
    Store store;
};

/// Linear layers of all experts: the weight[outputs][inputs] of expert e begins `stride` · e floats after the first.
struct ExpertsShape {
    int experts, inputs, outputs;
    std::int64_t stride;
};
/// With biases, that of expert e begins `biasStride` · e floats after the first.
struct ExpertsForward {
    ExpertsShape shape;
    std::span<const std::int32_t> begin;
    std::span<const float> input, weight;
    std::span<float> output;
    std::span<const float> bias = {};
    std::int64_t biasStride = 0;
    Bf16Factors bf16 = {};
};
struct ExpertsInputGrad {
    ExpertsShape shape;
    std::span<const std::int32_t> begin;
    std::span<const float> outputGrad, weight;
    std::span<float> inputGrad;
    Store store;
    Bf16Factors bf16 = {};
};
/// Adds to the gradients of the weights and, if there are any, of the biases.
struct ExpertsWeightGrad {
    ExpertsShape shape;
    std::span<const std::int32_t> begin;
    std::span<const float> input, outputGrad;
    std::span<float> weightGrad;
    std::span<float> biasGrad = {}; ///< += sums of outputGrad, which is then read as fp32
    std::int64_t biasStride = 0;
    Bf16Factors bf16 = {};
};

} // namespace pipewright::kernels
