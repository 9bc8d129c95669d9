// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/operations.h"

#include "kernels/crossentropy.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/featurebag.h"
#include "kernels/gelu.h"
#include "kernels/layernorm.h"

namespace pipewright::kernels {

namespace {

using Values = std::span<float>;
using Read = std::span<const float>;
using Tokens = std::span<const std::int32_t>;

class HostOperations final : public Operations {
public:
    void copy(Read from, Values to) const override { kernels::copy(from, to); }
    void copy(Tokens from, std::span<std::int32_t> to) const override { kernels::copy(from, to); }
    void fill(Values values, float value) const override { kernels::fill(values, value); }
    void add(Values values, Read addend) const override { kernels::add(values, addend); }

    void linearForward(LinearShape shape, Read input, Read weight, Read bias, Values output, Store store) const override
    {
        kernels::linearForward(shape, input, weight, bias, output, store);
    }
    void linearInputGrad(LinearShape shape, Read outputGrad, Read weight, Values inputGrad) const override
    {
        kernels::linearInputGrad(shape, outputGrad, weight, inputGrad);
    }
    void linearWeightGrad(LinearShape shape, Read input, Read outputGrad, Values weightGrad,
                          Values biasGrad) const override
    {
        kernels::linearWeightGrad(shape, input, outputGrad, weightGrad, biasGrad);
    }

    void geluForward(Read input, Values output) const override { kernels::geluForward(input, output); }
    void geluInputGrad(Read input, Read outputGrad, Values inputGrad) const override
    {
        kernels::geluInputGrad(input, outputGrad, inputGrad);
    }

    void layerNormForward(int rows, int columns, Read input, Read gamma, Read beta, Values output) const override
    {
        kernels::layerNormForward(rows, columns, input, gamma, beta, output);
    }
    void layerNormInputGrad(int rows, int columns, Read input, Read gamma, Read outputGrad,
                            Values inputGrad) const override
    {
        kernels::layerNormInputGrad(rows, columns, input, gamma, outputGrad, inputGrad);
    }
    void layerNormWeightGrad(int rows, int columns, Read input, Read outputGrad, Values gammaGrad,
                             Values betaGrad) const override
    {
        kernels::layerNormWeightGrad(rows, columns, input, outputGrad, gammaGrad, betaGrad);
    }

    void embeddingForward(int length, int hidden, Tokens tokens, Read table, Read positions,
                          Values output) const override
    {
        kernels::embeddingForward(length, hidden, tokens, table, positions, output);
    }
    void embeddingWeightGrad(int length, int hidden, Tokens tokens, Read outputGrad, Values tableGrad,
                             Values positionsGrad) const override
    {
        kernels::embeddingWeightGrad(length, hidden, tokens, outputGrad, tableGrad, positionsGrad);
    }

    void featureBagForward(int length, int hidden, Tokens features, Read table, Values output) const override
    {
        kernels::featureBagForward(length, hidden, features, table, output);
    }
    void featureBagWeightGrad(int length, int hidden, Tokens features, Read outputGrad, Values tableGrad) const override
    {
        kernels::featureBagWeightGrad(length, hidden, features, outputGrad, tableGrad);
    }

    void crossEntropyForward(int rows, int classes, Values logits, Tokens targets, float scale,
                             Values loss) const override
    {
        kernels::crossEntropyForward(rows, classes, logits, targets, scale, loss);
    }
    void crossEntropyInputGrad(int rows, int classes, Read probabilities, Tokens targets, float scale,
                               Values logitsGrad) const override
    {
        kernels::crossEntropyInputGrad(rows, classes, probabilities, targets, scale, logitsGrad);
    }

    std::size_t attentionSaved(const AttentionShape& shape) const override { return shape.scores(); }
    void attentionForward(const AttentionShape& shape, Read query, Read key, Read value, Values saved, Values output,
                          const EarlierPieces& earlier) const override
    {
        kernels::attentionForward(shape, query, key, value, saved, output, earlier);
    }
    void attentionInputGrad(const AttentionShape& shape, Read query, Read key, Read value, Read saved, Read,
                            Read outputGrad, Values queryKeyValueGrad, Values scratch, const EarlierPieces& earlier,
                            Values sequenceGradient) const override
    {
        kernels::attentionInputGrad(shape, query, key, value, saved, outputGrad, queryKeyValueGrad, scratch, earlier,
                                    sequenceGradient);
    }

    void sgdMomentumStep(const SgdSettings& settings, Values parameters, Read gradients, Values momentum) const override
    {
        kernels::sgdMomentumStep(settings, parameters, gradients, momentum);
    }
    void adamWStep(const AdamWSettings& settings, int step, Values parameters, Read gradients, Values firstMoment,
                   Values secondMoment) const override
    {
        kernels::adamWStep(settings, step, parameters, gradients, firstMoment, secondMoment);
    }
    void rmsPropStep(const RmsPropSettings& settings, Values parameters, Read gradients, Values squares,
                     Values last) const override
    {
        kernels::rmsPropStep(settings, parameters, gradients, squares, last);
    }
    void predictMomentum(float distance, Read momentum, Values parameters) const override
    {
        kernels::predictMomentum(distance, momentum, parameters);
    }
    void predictRmsProp(float distance, float epsilon, Read squares, Read last, Values parameters) const override
    {
        kernels::predictRmsProp(distance, epsilon, squares, last, parameters);
    }
    void predictAdam(const AdamWSettings& settings, int step, float distance, Read firstMoment, Read secondMoment,
                     Values parameters) const override
    {
        kernels::predictAdam(settings, step, distance, firstMoment, secondMoment, parameters);
    }
    void tensor(const TensorCall& call) const override { kernels::tensor(call); }
};

} // namespace

const Operations& hostOperations()
{
    static const HostOperations operations;
    return operations;
}

std::unique_ptr<Operations> createHostOperations()
{
    return std::make_unique<HostOperations>();
}

} // namespace pipewright::kernels
