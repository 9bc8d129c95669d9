// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/cudaoperations.h"

#include "core/base/diagnostic.h"

#include <cmath>

namespace pipewright {

namespace {

using kernels::AttentionShape;
using kernels::EarlierPieces;
using kernels::LinearShape;
using kernels::Store;
using Values = std::span<float>;
using Read = std::span<const float>;
using Tokens = std::span<const std::int32_t>;

template<typename Span>
std::int64_t count(const Span& span)
{
    return static_cast<std::int64_t>(span.size());
}

class CudaOperations final : public kernels::Operations {
public:
    CudaOperations(const CudaStream& stream, const std::string& cublasLt, bool bfloat16, Region room)
        : m_gpu(stream.gpu()), m_table(*m_gpu.table)
    {
        m_gpu.check(m_table.createMaths(m_gpu.index, stream.handle(), cublasLt.empty() ? nullptr : cublasLt.c_str(),
                                        bfloat16, room.data, &m_maths),
                    "prepare its maths");
    }
    ~CudaOperations() override { m_table.destroyMaths(m_maths); }
    CudaOperations(const CudaOperations&) = delete;
    CudaOperations& operator=(const CudaOperations&) = delete;

    void copy(Read from, Values to) const override
    {
        call(m_table.copyWithin, from.data(), to.data(), static_cast<std::int64_t>(from.size_bytes()));
    }
    void copy(Tokens from, std::span<std::int32_t> to) const override
    {
        call(m_table.copyWithin, from.data(), to.data(), static_cast<std::int64_t>(from.size_bytes()));
    }
    void fill(Values values, float value) const override { call(m_table.fill, values.data(), count(values), value); }
    void add(Values values, Read addend) const override
    {
        call(m_table.add, values.data(), addend.data(), count(values));
    }

    void linearForward(LinearShape shape, Read input, Read weight, Read bias, Values output, Store store) const override
    {
        call(m_table.linearForward, shape.rows, shape.inputs, shape.outputs, input.data(), weight.data(),
             bias.empty() ? nullptr : bias.data(), output.data(), store == Store::Add);
    }
    void linearInputGrad(LinearShape shape, Read outputGrad, Read weight, Values inputGrad) const override
    {
        call(m_table.linearInputGrad, shape.rows, shape.inputs, shape.outputs, outputGrad.data(), weight.data(),
             inputGrad.data());
    }
    void linearWeightGrad(LinearShape shape, Read input, Read outputGrad, Values weightGrad,
                          Values biasGrad) const override
    {
        call(m_table.linearWeightGrad, shape.rows, shape.inputs, shape.outputs, input.data(), outputGrad.data(),
             weightGrad.data(), biasGrad.empty() ? nullptr : biasGrad.data());
    }

    void geluForward(Read input, Values output) const override
    {
        call(m_table.geluForward, input.data(), output.data(), count(input));
    }
    void geluInputGrad(Read input, Read outputGrad, Values inputGrad) const override
    {
        call(m_table.geluInputGrad, input.data(), outputGrad.data(), inputGrad.data(), count(input));
    }

    void layerNormForward(int rows, int columns, Read input, Read gamma, Read beta, Values output) const override
    {
        call(m_table.layerNormForward, rows, columns, input.data(), gamma.data(), beta.data(), output.data());
    }
    void layerNormInputGrad(int rows, int columns, Read input, Read gamma, Read outputGrad,
                            Values inputGrad) const override
    {
        call(m_table.layerNormInputGrad, rows, columns, input.data(), gamma.data(), outputGrad.data(),
             inputGrad.data());
    }
    void layerNormWeightGrad(int rows, int columns, Read input, Read outputGrad, Values gammaGrad,
                             Values betaGrad) const override
    {
        call(m_table.layerNormWeightGrad, rows, columns, input.data(), outputGrad.data(), gammaGrad.data(),
             betaGrad.data());
    }

    void embeddingForward(int length, int hidden, Tokens tokens, Read table, Read positions,
                          Values output) const override
    {
        call(m_table.embeddingForward, count(tokens), length, hidden, tokens.data(), table.data(), positions.data(),
             output.data());
    }
    void embeddingWeightGrad(int length, int hidden, Tokens tokens, Read outputGrad, Values tableGrad,
                             Values positionsGrad) const override
    {
        call(m_table.embeddingWeightGrad, count(tokens), length, hidden, tokens.data(), outputGrad.data(),
             tableGrad.data(), count(tableGrad), positionsGrad.data());
    }

    void featureBagForward(int length, int hidden, Tokens features, Read table, Values output) const override
    {
        callBag(kernels::TensorOperation::FeatureBag, length, hidden, features, table, output);
    }
    void featureBagWeightGrad(int length, int hidden, Tokens features, Read outputGrad, Values tableGrad) const override
    {
        callBag(kernels::TensorOperation::FeatureBagGrad, length, hidden, features, outputGrad, tableGrad);
    }

    void crossEntropyForward(int rows, int classes, Values logits, Tokens targets, float scale,
                             Values loss) const override
    {
        call(m_table.crossEntropyForward, rows, classes, logits.data(), targets.data(), scale, loss.data());
    }
    void crossEntropyInputGrad(int rows, int classes, Read probabilities, Tokens targets, float scale,
                               Values logitsGrad) const override
    {
        call(m_table.crossEntropyInputGrad, rows, classes, probabilities.data(), targets.data(), scale,
             logitsGrad.data());
    }

    std::size_t attentionSaved(const AttentionShape& shape) const override
    {
        return shape.tokens() * static_cast<std::size_t>(shape.heads);
    }
    void attentionForward(const AttentionShape& shape, Read query, Read key, Read value, Values saved, Values output,
                          const EarlierPieces& earlier) const override
    {
        const PipewrightCudaAttention plain = plainShape(shape, earlier);
        call(m_table.attentionForward, &plain, query.data(), key.data(), value.data(), saved.data(), output.data());
    }
    void attentionInputGrad(const AttentionShape& shape, Read query, Read key, Read value, Read saved, Read output,
                            Read outputGrad, Values queryKeyValueGrad, Values scratch, const EarlierPieces& earlier,
                            Values sequenceGradient) const override
    {
        const PipewrightCudaAttention plain = plainShape(shape, earlier);
        call(m_table.attentionInputGrad, &plain, query.data(), key.data(), value.data(), saved.data(), output.data(),
             outputGrad.data(), queryKeyValueGrad.data(), scratch.data(), sequenceGradient.data());
    }

    void sgdMomentumStep(const kernels::SgdSettings& settings, Values parameters, Read gradients,
                         Values momentum) const override
    {
        call(m_table.sgdMomentumStep, settings.learningRate, settings.momentum, settings.weightDecay, parameters.data(),
             gradients.data(), momentum.data(), count(parameters));
    }
    void adamWStep(const kernels::AdamWSettings& settings, int step, Values parameters, Read gradients, Values first,
                   Values second) const override
    {
        call(m_table.adamWStep, settings.learningRate, settings.beta1, settings.beta2, settings.epsilon,
             settings.weightDecay, step, parameters.data(), gradients.data(), first.data(), second.data(),
             count(parameters));
    }
    void rmsPropStep(const kernels::RmsPropSettings& settings, Values parameters, Read gradients, Values squares,
                     Values last) const override
    {
        call(m_table.rmsPropStep, settings.learningRate, settings.smoothing, settings.epsilon, parameters.data(),
             gradients.data(), squares.data(), last.data(), count(parameters));
    }
    void predictMomentum(float distance, Read momentum, Values parameters) const override
    {
        call(m_table.predictMomentum, distance, momentum.data(), parameters.data(), count(parameters));
    }
    void predictRmsProp(float distance, float epsilon, Read squares, Read last, Values parameters) const override
    {
        call(m_table.predictRmsProp, distance, epsilon, squares.data(), last.data(), parameters.data(),
             count(parameters));
    }
    void predictAdam(const kernels::AdamWSettings& settings, int step, float distance, Read first, Read second,
                     Values parameters) const override
    {
        call(m_table.predictAdam, settings.beta1, settings.beta2, settings.epsilon, step, distance, first.data(),
             second.data(), parameters.data(), count(parameters));
    }
    void tensor(const kernels::TensorCall& what) const override { call(m_table.tensor, &what); }

private:
    template<typename Function, typename... Arguments>
    void call(Function* function, Arguments... arguments) const
    {
        m_gpu.check(function(m_maths, arguments...), "compute");
    }

    void callBag(kernels::TensorOperation operation, int length, int hidden, Tokens features, Read in, Values out) const
    {
        kernels::TensorCall what{};
        what.operation = static_cast<std::int32_t>(operation);
        what.number = 1 / std::sqrt(static_cast<float>(length));
        what.size[0] = count(features) / length;
        what.size[1] = hidden;
        what.size[2] = length;
        what.in[0] = in.data();
        what.out = out.data();
        what.whole = const_cast<std::int32_t*>(features.data()); // read only
        tensor(what);
    }

    static PipewrightCudaAttention plainShape(const AttentionShape& shape, const EarlierPieces& earlier)
    {
        return {shape.sequences,
                shape.length,
                shape.heads,
                shape.headSize,
                shape.pieces,
                static_cast<std::int32_t>(earlier.saved.size()),
                earlier.saved.data(),
                static_cast<std::int64_t>(earlier.key),
                static_cast<std::int64_t>(earlier.value)};
    }

    CudaGpu m_gpu;
    const PipewrightCudaTable& m_table;
    void* m_maths = nullptr;
};

} // namespace

std::unique_ptr<kernels::Operations> createCudaOperations(const CudaStream& stream, const std::string& cublasLt,
                                                          bool bfloat16, Region room)
{
    return std::make_unique<CudaOperations>(stream, cublasLt, bfloat16, room);
}

} // namespace pipewright
