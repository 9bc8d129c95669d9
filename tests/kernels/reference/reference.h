// SPDX-License-Identifier: GPL-3.0-or-later
// Every operation of kernels/ again, in double precision and as simple as possible: the reference for tests of the fast
// versions of every backend. Shapes and meanings are those of the headers of kernels/; results are returned, never
// accumulated. Its own gradients are tested by finite differences. Never call it where speed matters.
#pragma once

#include "kernels/attention.h"
#include "kernels/layernorm.h"
#include "kernels/matmul.h"
#include "kernels/optimizers.h"

#include <cstdint>
#include <span>
#include <vector>

namespace pipewright::reference {

using kernels::AttentionShape;
using kernels::LinearShape;
using Values = std::vector<double>;
using Tokens = std::span<const std::int32_t>;

struct WeightGrads { ///< of a weight and its bias, of gamma and beta, of a table and its positions
    Values weight, bias;
};

Values linearForward(LinearShape shape, const Values& input, const Values& weight, const Values& bias);
Values linearInputGrad(LinearShape shape, const Values& outputGrad, const Values& weight);
WeightGrads linearWeightGrad(LinearShape shape, const Values& input, const Values& outputGrad);

Values layerNormForward(int rows, int columns, const Values& input, const Values& gamma, const Values& beta,
                        double epsilon = kernels::layerNormEpsilon);
Values layerNormInputGrad(int rows, int columns, const Values& input, const Values& gamma, const Values& outputGrad,
                          double epsilon = kernels::layerNormEpsilon);
WeightGrads layerNormWeightGrad(int rows, int columns, const Values& input, const Values& outputGrad,
                                double epsilon = kernels::layerNormEpsilon);

struct Attention {
    Values probabilities, output;
};
Attention attentionForward(AttentionShape shape, const Values& query, const Values& key, const Values& value);
/// Rows of query, key and value gradients side by side.
Values attentionInputGrad(AttentionShape shape, const Values& query, const Values& key, const Values& value,
                          const Values& probabilities, const Values& outputGrad);

/// Values between -1 and 1 from bytes.
Values fromBytes(Tokens bytes);

Values geluForward(const Values& input);
Values geluInputGrad(const Values& input, const Values& outputGrad);

Values embeddingForward(int length, int hidden, Tokens tokens, const Values& table, const Values& positions);
WeightGrads embeddingWeightGrad(int length, int hidden, int vocabulary, Tokens tokens, const Values& outputGrad);

Values featureBagForward(int length, int hidden, Tokens features, const Values& table);
/// The gradient of a table of `rows` features.
Values featureBagWeightGrad(int length, int hidden, int rows, Tokens features, const Values& outputGrad);

struct CrossEntropy {
    Values probabilities;
    double loss = 0; ///< scale · sum over rows
};
CrossEntropy crossEntropyForward(int rows, int classes, const Values& logits, Tokens targets, double scale);
Values crossEntropyInputGrad(int rows, int classes, const Values& probabilities, Tokens targets, double scale);

void sgdMomentumStep(const kernels::SgdSettings& settings, Values& parameters, const Values& gradients,
                     Values& momentum);
void adamWStep(const kernels::AdamWSettings& settings, int step, Values& parameters, const Values& gradients,
               Values& firstMoment, Values& secondMoment);
void rmsPropStep(const kernels::RmsPropSettings& settings, Values& parameters, const Values& gradients, Values& squares,
                 Values& last);
/// Parameters predicted `distance` ahead: learning rate times number of steps.
Values predictMomentum(double distance, const Values& parameters, const Values& momentum);
Values predictRmsProp(double distance, double epsilon, const Values& parameters, const Values& squares,
                      const Values& last);
Values predictAdam(const kernels::AdamWSettings& settings, int step, double distance, const Values& parameters,
                   const Values& firstMoment, const Values& secondMoment);

} // namespace pipewright::reference
