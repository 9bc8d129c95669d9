// SPDX-License-Identifier: GPL-3.0-or-later
// The maths of a stage: kernels/cuda behind the C table. A handle is a stream with the matrix products of that stream;
// what they work in is the caller's.
#include "executor/cuda/plugin/plugin.h"

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/products.h"

#include <algorithm>
#include <memory>
#include <new>

namespace pipewright::plugin {

namespace {

namespace gpu = kernels::cuda;
using gpu::Precision;
using Read = std::span<const float>;
using Values = std::span<float>;
using Tokens = std::span<const std::int32_t>;

class Maths {
public:
    Maths(int32_t device, cudaStream_t stream, void* room, const char* cublasLt, bool bfloat16)
        : device(device), stream(stream), precision(bfloat16 ? Precision::BFloat16 : Precision::Float32),
          products(cublasLt ? cublasLt : "", room, PIPEWRIGHT_PRODUCT_ROOM), room(room)
    {
    }
    Values rowLosses(int rows) const
    {
        return {reinterpret_cast<float*>(static_cast<std::byte*>(room) + PIPEWRIGHT_PRODUCT_ROOM), std::size_t(rows)};
    }

    int32_t device;
    cudaStream_t stream;
    Precision precision;
    gpu::Products products;
    void* room;
};

/// The thread that computes is not the one that made the maths, and a kernel is launched on the thread's present GPU.
Maths& of(void* handle)
{
    Maths& maths = *static_cast<Maths*>(handle);
    makeCurrent(maths.device);
    return maths;
}

/// Launch errors are the runtime's to remember.
int issued()
{
    return check(cudaPeekAtLastError());
}

std::size_t size(std::int64_t count)
{
    return static_cast<std::size_t>(count);
}

int createMaths(int32_t device, void* on, const char* cublasLt, int32_t bfloat16, void* room, void** maths)
{
    *maths = nullptr;
    if (const int code = check(cudaSetDevice(device)); code != 0)
        return code;
    auto made = std::make_unique<Maths>(device, stream(on), room, cublasLt, bfloat16 != 0);
    if (cublasLt && !made->products.whyNot().empty())
        return fault(made->products.whyNot());
    *maths = made.release();
    return 0;
}

int destroyMaths(void* maths)
{
    delete static_cast<Maths*>(maths);
    return 0;
}

int copyWithin(void* maths, const void* from, void* to, int64_t bytes)
{
    return check(cudaMemcpyAsync(to, from, size(bytes), cudaMemcpyDeviceToDevice, of(maths).stream));
}

int fill(void* maths, float* values, int64_t count, float value)
{
    gpu::fill(of(maths).stream, Values(values, size(count)), value);
    return issued();
}

int add(void* maths, float* values, const float* addend, int64_t count)
{
    gpu::add(of(maths).stream, Values(values, size(count)), Read(addend, size(count)));
    return issued();
}

struct Linear {
    kernels::LinearShape shape;
    std::size_t input, output, weight, bias;
    Linear(int rows, int inputs, int outputs)
        : shape{rows, inputs, outputs}, input(std::size_t(rows) * inputs), output(std::size_t(rows) * outputs),
          weight(std::size_t(inputs) * outputs), bias(std::size_t(outputs))
    {
    }
};

int linearForward(void* maths, int32_t rows, int32_t inputs, int32_t outputs, const float* input, const float* weight,
                  const float* bias, float* output, int32_t adds)
{
    const Linear is(rows, inputs, outputs);
    of(maths).products.linearForward(of(maths).stream, of(maths).precision, is.shape, Read(input, is.input),
                                     Read(weight, is.weight), Read(bias, bias ? is.bias : 0), Values(output, is.output),
                                     adds ? kernels::Store::Add : kernels::Store::Replace);
    return issued();
}

int linearInputGrad(void* maths, int32_t rows, int32_t inputs, int32_t outputs, const float* outputGrad,
                    const float* weight, float* inputGrad)
{
    const Linear is(rows, inputs, outputs);
    of(maths).products.linearInputGrad(of(maths).stream, of(maths).precision, is.shape, Read(outputGrad, is.output),
                                       Read(weight, is.weight), Values(inputGrad, is.input));
    return issued();
}

int linearWeightGrad(void* maths, int32_t rows, int32_t inputs, int32_t outputs, const float* input,
                     const float* outputGrad, float* weightGrad, float* biasGrad)
{
    const Linear is(rows, inputs, outputs);
    of(maths).products.linearWeightGrad(of(maths).stream, of(maths).precision, is.shape, Read(input, is.input),
                                        Read(outputGrad, is.output), Values(weightGrad, is.weight),
                                        Values(biasGrad, biasGrad ? is.bias : 0));
    return issued();
}

int geluForward(void* maths, const float* input, float* output, int64_t count)
{
    gpu::geluForward(of(maths).stream, Read(input, size(count)), Values(output, size(count)));
    return issued();
}

int geluInputGrad(void* maths, const float* input, const float* outputGrad, float* inputGrad, int64_t count)
{
    gpu::geluInputGrad(of(maths).stream, Read(input, size(count)), Read(outputGrad, size(count)),
                       Values(inputGrad, size(count)));
    return issued();
}

int layerNormForward(void* maths, int32_t rows, int32_t columns, const float* input, const float* gamma,
                     const float* beta, float* output)
{
    const std::size_t all = std::size_t(rows) * columns, width = std::size_t(columns);
    gpu::layerNormForward(of(maths).stream, rows, columns, Read(input, all), Read(gamma, width), Read(beta, width),
                          Values(output, all));
    return issued();
}

int layerNormInputGrad(void* maths, int32_t rows, int32_t columns, const float* input, const float* gamma,
                       const float* outputGrad, float* inputGrad)
{
    const std::size_t all = std::size_t(rows) * columns;
    gpu::layerNormInputGrad(of(maths).stream, rows, columns, Read(input, all), Read(gamma, std::size_t(columns)),
                            Read(outputGrad, all), Values(inputGrad, all));
    return issued();
}

int layerNormWeightGrad(void* maths, int32_t rows, int32_t columns, const float* input, const float* outputGrad,
                        float* gammaGrad, float* betaGrad)
{
    const std::size_t all = std::size_t(rows) * columns, width = std::size_t(columns);
    gpu::layerNormWeightGrad(of(maths).stream, rows, columns, Read(input, all), Read(outputGrad, all),
                             Values(gammaGrad, width), Values(betaGrad, width));
    return issued();
}

int embeddingForward(void* maths, int64_t tokenCount, int32_t length, int32_t hidden, const int32_t* tokens,
                     const float* table, const float* positions, float* output)
{
    // The kernel takes the table as it is: how many rows it has is the model's business.
    gpu::embeddingForward(of(maths).stream, length, hidden, Tokens(tokens, size(tokenCount)),
                          Read(table, std::size_t(hidden)), Read(positions, std::size_t(length) * hidden),
                          Values(output, size(tokenCount) * hidden));
    return issued();
}

int embeddingWeightGrad(void* maths, int64_t tokenCount, int32_t length, int32_t hidden, const int32_t* tokens,
                        const float* outputGrad, float* tableGrad, int64_t tableCount, float* positionsGrad)
{
    gpu::embeddingWeightGrad(of(maths).stream, length, hidden, Tokens(tokens, size(tokenCount)),
                             Read(outputGrad, size(tokenCount) * hidden), Values(tableGrad, size(tableCount)),
                             Values(positionsGrad, std::size_t(length) * hidden));
    return issued();
}

int crossEntropyForward(void* maths, int32_t rows, int32_t classes, float* logitsToProbabilities,
                        const int32_t* targets, float scale, float* loss)
{
    if (rows > PIPEWRIGHT_MATHS_ROWS)
        return fault("a microbatch has " + std::to_string(rows) + " tokens, and "
                     + std::to_string(int{PIPEWRIGHT_MATHS_ROWS}) + " is the most: use smaller microbatches");
    gpu::crossEntropyForward(of(maths).stream, rows, classes,
                             Values(logitsToProbabilities, std::size_t(rows) * classes),
                             Tokens(targets, std::size_t(rows)), scale, Values(loss, 1), of(maths).rowLosses(rows));
    return issued();
}

int crossEntropyInputGrad(void* maths, int32_t rows, int32_t classes, const float* probabilities,
                          const int32_t* targets, float scale, float* logitsGrad)
{
    const std::size_t all = std::size_t(rows) * classes;
    gpu::crossEntropyInputGrad(of(maths).stream, rows, classes, Read(probabilities, all),
                               Tokens(targets, std::size_t(rows)), scale, Values(logitsGrad, all));
    return issued();
}

struct Attention {
    kernels::AttentionShape shape;
    kernels::EarlierPieces earlier;
    std::size_t all, perHead;
    explicit Attention(const PipewrightCudaAttention& plain)
        : shape{plain.sequences, plain.length, plain.heads, plain.headSize, plain.pieces},
          earlier{{plain.earlier, std::size_t(plain.earlierCount)}, std::size_t(plain.key), std::size_t(plain.value)},
          all(shape.tokens() * shape.hidden()), perHead(shape.tokens() * shape.heads)
    {
    }
};

int whyNoAttention(const PipewrightCudaAttention& shape)
{
    if (shape.headSize > 128)
        return fault("heads of " + std::to_string(shape.headSize) + " are wider than 128");
    if (shape.pieces > gpu::mostPieces)
        return fault("sequences of " + std::to_string(shape.pieces) + " pieces, and " + std::to_string(gpu::mostPieces)
                     + " is the most: cut them into fewer");
    return 0;
}

int attentionForward(void* maths, const PipewrightCudaAttention* plain, const float* query, const float* key,
                     const float* value, float* saved, float* output)
{
    if (const int code = whyNoAttention(*plain); code != 0)
        return code;
    const Attention is(*plain);
    gpu::attentionForward(of(maths).stream, is.shape, Read(query, is.all), Read(key, is.all), Read(value, is.all),
                          Values(saved, is.perHead), Values(output, is.all), is.earlier);
    return issued();
}

int attentionInputGrad(void* maths, const PipewrightCudaAttention* plain, const float* query, const float* key,
                       const float* value, const float* saved, const float* output, const float* outputGrad,
                       float* queryKeyValueGrad, float* scratch, float* sequenceGradient)
{
    if (const int code = whyNoAttention(*plain); code != 0)
        return code;
    const Attention is(*plain);
    gpu::attentionInputGrad(of(maths).stream, is.shape, Read(query, is.all), Read(key, is.all), Read(value, is.all),
                            Read(saved, is.perHead), Read(output, is.all), Read(outputGrad, is.all),
                            Values(queryKeyValueGrad, 3 * is.all), Values(scratch, is.perHead), is.earlier,
                            Values(sequenceGradient, is.shape.sequenceGradient()));
    return issued();
}

int sgdMomentumStep(void* maths, float rate, float momentum, float decay, float* parameters, const float* gradients,
                    float* moments, int64_t count)
{
    gpu::sgdMomentumStep(of(maths).stream, {rate, momentum, decay}, Values(parameters, size(count)),
                         Read(gradients, size(count)), Values(moments, size(count)));
    return issued();
}

int adamWStep(void* maths, float rate, float beta1, float beta2, float epsilon, float decay, int32_t step,
              float* parameters, const float* gradients, float* first, float* second, int64_t count)
{
    gpu::adamWStep(of(maths).stream, {rate, beta1, beta2, epsilon, decay}, step, Values(parameters, size(count)),
                   Read(gradients, size(count)), Values(first, size(count)), Values(second, size(count)));
    return issued();
}

int rmsPropStep(void* maths, float rate, float smoothing, float epsilon, float* parameters, const float* gradients,
                float* squares, float* last, int64_t count)
{
    gpu::rmsPropStep(of(maths).stream, {rate, smoothing, epsilon}, Values(parameters, size(count)),
                     Read(gradients, size(count)), Values(squares, size(count)), Values(last, size(count)));
    return issued();
}

int predictMomentum(void* maths, float distance, const float* momentum, float* parameters, int64_t count)
{
    gpu::predictMomentum(of(maths).stream, distance, Read(momentum, size(count)), Values(parameters, size(count)));
    return issued();
}

int predictRmsProp(void* maths, float distance, float epsilon, const float* squares, const float* last,
                   float* parameters, int64_t count)
{
    gpu::predictRmsProp(of(maths).stream, distance, epsilon, Read(squares, size(count)), Read(last, size(count)),
                        Values(parameters, size(count)));
    return issued();
}

int predictAdam(void* maths, float beta1, float beta2, float epsilon, int32_t step, float distance, const float* first,
                const float* second, float* parameters, int64_t count)
{
    gpu::predictAdam(of(maths).stream, {.beta1 = beta1, .beta2 = beta2, .epsilon = epsilon}, step, distance,
                     Read(first, size(count)), Read(second, size(count)), Values(parameters, size(count)));
    return issued();
}

int tensor(void* maths, const PipewrightTensorCall* call)
{
    if (!gpu::tensor(of(maths).stream, *call))
        return fault("operation " + std::to_string(call->operation) + " on tensors is not known");
    return issued();
}

/// Kernels of a stream's own GPU, whichever thread launches them.
int makeCurrentFor(void* on)
{
    int device = 0;
    if (const int code = check(cudaStreamGetDevice(stream(on), &device)); code != 0)
        return code;
    return makeCurrent(device);
}

int spin(void* on, int64_t nanoseconds)
{
    if (const int code = makeCurrentFor(on); code != 0)
        return code;
    gpu::spin(stream(on), nanoseconds);
    return issued();
}

int stamp(void* on, void* place)
{
    if (const int code = makeCurrentFor(on); code != 0)
        return code;
    gpu::stamp(stream(on), static_cast<std::int64_t*>(place));
    return issued();
}

int spinFrom(void* on, const void* place, int64_t nanoseconds)
{
    if (const int code = makeCurrentFor(on); code != 0)
        return code;
    gpu::spinFrom(stream(on), static_cast<const std::int64_t*>(place), nanoseconds);
    return issued();
}

} // namespace

void addMaths(PipewrightCudaTable& table)
{
    table.createMaths = createMaths;
    table.destroyMaths = destroyMaths;
    table.copyWithin = copyWithin;
    table.fill = fill;
    table.add = add;
    table.linearForward = linearForward;
    table.linearInputGrad = linearInputGrad;
    table.linearWeightGrad = linearWeightGrad;
    table.geluForward = geluForward;
    table.geluInputGrad = geluInputGrad;
    table.layerNormForward = layerNormForward;
    table.layerNormInputGrad = layerNormInputGrad;
    table.layerNormWeightGrad = layerNormWeightGrad;
    table.embeddingForward = embeddingForward;
    table.embeddingWeightGrad = embeddingWeightGrad;
    table.crossEntropyForward = crossEntropyForward;
    table.crossEntropyInputGrad = crossEntropyInputGrad;
    table.attentionForward = attentionForward;
    table.attentionInputGrad = attentionInputGrad;
    table.sgdMomentumStep = sgdMomentumStep;
    table.adamWStep = adamWStep;
    table.rmsPropStep = rmsPropStep;
    table.predictMomentum = predictMomentum;
    table.predictRmsProp = predictRmsProp;
    table.predictAdam = predictAdam;
    table.tensor = tensor;
    table.spin = spin;
    table.stamp = stamp;
    table.spinFrom = spinFrom;
}

} // namespace pipewright::plugin
