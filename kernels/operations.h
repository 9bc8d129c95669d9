// SPDX-License-Identifier: GPL-3.0-or-later
// Everything a stage is made of, on some device: the functions of kernels/*.h behind one interface, so that layers
// and optimizers are written once. The arguments lie in the memory of that device. On a GPU a call only issues: it
// is done when what was issued before it is done. One object is used by one thread at a time; the host's by all.
#pragma once

#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/optimizers.h"
#include "kernels/tensors.h"

#include <cstdint>
#include <memory>
#include <span>

namespace pipewright::kernels {

class Operations {
public:
    virtual ~Operations() = default;

    virtual void copy(std::span<const float> from, std::span<float> to) const = 0;
    virtual void copy(std::span<const std::int32_t> from, std::span<std::int32_t> to) const = 0;
    virtual void fill(std::span<float> values, float value) const = 0;
    virtual void add(std::span<float> values, std::span<const float> addend) const = 0;

    virtual void linearForward(LinearShape shape, std::span<const float> input, std::span<const float> weight,
                               std::span<const float> bias, std::span<float> output, Store store) const = 0;
    virtual void linearInputGrad(LinearShape shape, std::span<const float> outputGrad, std::span<const float> weight,
                                 std::span<float> inputGrad) const = 0;
    virtual void linearWeightGrad(LinearShape shape, std::span<const float> input, std::span<const float> outputGrad,
                                  std::span<float> weightGrad, std::span<float> biasGrad) const = 0;

    virtual void geluForward(std::span<const float> input, std::span<float> output) const = 0;
    virtual void geluInputGrad(std::span<const float> input, std::span<const float> outputGrad,
                               std::span<float> inputGrad) const = 0;

    virtual void layerNormForward(int rows, int columns, std::span<const float> input, std::span<const float> gamma,
                                  std::span<const float> beta, std::span<float> output) const = 0;
    virtual void layerNormInputGrad(int rows, int columns, std::span<const float> input, std::span<const float> gamma,
                                    std::span<const float> outputGrad, std::span<float> inputGrad) const = 0;
    virtual void layerNormWeightGrad(int rows, int columns, std::span<const float> input,
                                     std::span<const float> outputGrad, std::span<float> gammaGrad,
                                     std::span<float> betaGrad) const = 0;

    virtual void embeddingForward(int length, int hidden, std::span<const std::int32_t> tokens,
                                  std::span<const float> table, std::span<const float> positions,
                                  std::span<float> output) const = 0;
    virtual void embeddingWeightGrad(int length, int hidden, std::span<const std::int32_t> tokens,
                                     std::span<const float> outputGrad, std::span<float> tableGrad,
                                     std::span<float> positionsGrad) const = 0;

    virtual void featureBagForward(int length, int hidden, std::span<const std::int32_t> features,
                                   std::span<const float> table, std::span<float> output) const = 0;
    virtual void featureBagWeightGrad(int length, int hidden, std::span<const std::int32_t> features,
                                      std::span<const float> outputGrad, std::span<float> tableGrad) const = 0;

    virtual void crossEntropyForward(int rows, int classes, std::span<float> logitsToProbabilities,
                                     std::span<const std::int32_t> targets, float scale,
                                     std::span<float> loss) const = 0;
    virtual void crossEntropyInputGrad(int rows, int classes, std::span<const float> probabilities,
                                       std::span<const std::int32_t> targets, float scale,
                                       std::span<float> logitsGrad) const = 0;

    /// Elements of `saved` and `scratch` below. `saved` is between the two passes the device's own: the host keeps
    /// probabilities there, a GPU one number per query and head.
    virtual std::size_t attentionSaved(const AttentionShape& shape) const = 0;
    virtual void attentionForward(const AttentionShape& shape, std::span<const float> query, std::span<const float> key,
                                  std::span<const float> value, std::span<float> saved, std::span<float> output,
                                  const EarlierPieces& earlier) const = 0;
    virtual void attentionInputGrad(const AttentionShape& shape, std::span<const float> query,
                                    std::span<const float> key, std::span<const float> value,
                                    std::span<const float> saved, std::span<const float> output,
                                    std::span<const float> outputGrad, std::span<float> queryKeyValueGrad,
                                    std::span<float> scratch, const EarlierPieces& earlier,
                                    std::span<float> sequenceGradient) const = 0;

    virtual void sgdMomentumStep(const SgdSettings& settings, std::span<float> parameters,
                                 std::span<const float> gradients, std::span<float> momentum) const = 0;
    virtual void adamWStep(const AdamWSettings& settings, int step, std::span<float> parameters,
                           std::span<const float> gradients, std::span<float> firstMoment,
                           std::span<float> secondMoment) const = 0;
    virtual void rmsPropStep(const RmsPropSettings& settings, std::span<float> parameters,
                             std::span<const float> gradients, std::span<float> squares,
                             std::span<float> last) const = 0;
    virtual void predictMomentum(float distance, std::span<const float> momentum,
                                 std::span<float> parameters) const = 0;
    virtual void predictRmsProp(float distance, float epsilon, std::span<const float> squares,
                                std::span<const float> last, std::span<float> parameters) const = 0;
    virtual void predictAdam(const AdamWSettings& settings, int step, float distance,
                             std::span<const float> firstMoment, std::span<const float> secondMoment,
                             std::span<float> parameters) const = 0;

    /// The small operations of shared stages; only ones that tensors.h names.
    virtual void tensor(const TensorCall& call) const = 0;
};

/// At once, on the calling thread.
const Operations& hostOperations();
std::unique_ptr<Operations> createHostOperations();

} // namespace pipewright::kernels
