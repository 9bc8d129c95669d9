// SPDX-License-Identifier: GPL-3.0-or-later
// The maths of pretended GPUs: the host's own, when the stream comes to it.
#pragma once

#include "executor/cuda/pretendedstreams.h"
#include "kernels/operations.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

namespace pretended {

using Values = std::span<float>;
using Read = std::span<const float>;

inline const pipewright::kernels::Operations& host()
{
    return pipewright::kernels::hostOperations();
}

/// The call as the kernels get it: where the earlier pieces lie is kept, since the caller's list may end with the call.
struct Attention {
    explicit Attention(const PipewrightCudaAttention& plain)
        : shape{plain.sequences, plain.length, plain.heads, plain.headSize, plain.pieces},
          saved(plain.earlier, plain.earlier + plain.earlierCount), key(n(plain.key)), value(n(plain.value))
    {
    }
    pipewright::kernels::EarlierPieces earlier() const { return {saved, key, value}; }
    std::size_t elements() const { return shape.tokens() * n(shape.hidden()); }
    std::size_t perHead() const { return shape.tokens() * n(shape.heads); }

    pipewright::kernels::AttentionShape shape;
    std::vector<const float*> saved;
    std::size_t key, value;
};

inline void addMaths(PipewrightCudaTable& t)
{
    t.createMaths = [](std::int32_t, void* on, const char*, std::int32_t, void* room, void** maths) {
        for (const std::size_t at : {std::size_t{0}, n(PIPEWRIGHT_MATHS_ROOM - 1)}) // it is all there
            static_cast<char*>(room)[at] = 0x7f;
        return *maths = on, 0;
    };
    t.destroyMaths = [](void*) { return 0; };
    t.copyWithin = [](void* m, const void* from, void* to, std::int64_t bytes) {
        return pushKernel(stream(m), "copy", [=] { std::memcpy(to, from, n(bytes)); }), 0;
    };
    t.fill = [](void* m, float* values, std::int64_t count, float value) {
        return pushKernel(stream(m), "fill", [=] { host().fill(Values(values, n(count)), value); }), 0;
    };
    t.add = [](void* m, float* values, const float* addend, std::int64_t count) {
        return pushKernel(stream(m), "add", [=] { host().add(Values(values, n(count)), Read(addend, n(count))); }), 0;
    };
    t.linearForward = [](void* m, std::int32_t rows, std::int32_t inputs, std::int32_t outputs, const float* input,
                         const float* weight, const float* bias, float* output, std::int32_t adds) {
        pushKernel(stream(m), "linearForward", [=] {
            host().linearForward({rows, inputs, outputs}, Read(input, n(rows * inputs)),
                                 Read(weight, n(inputs * outputs)), Read(bias, bias ? n(outputs) : 0),
                                 Values(output, n(rows * outputs)),
                                 adds ? pipewright::kernels::Store::Add : pipewright::kernels::Store::Replace);
        });
        return 0;
    };
    t.linearInputGrad = [](void* m, std::int32_t rows, std::int32_t inputs, std::int32_t outputs, const float* dy,
                           const float* weight, float* dx) {
        pushKernel(stream(m), "linearInputGrad", [=] {
            host().linearInputGrad({rows, inputs, outputs}, Read(dy, n(rows * outputs)),
                                   Read(weight, n(inputs * outputs)), Values(dx, n(rows * inputs)));
        });
        return 0;
    };
    t.linearWeightGrad = [](void* m, std::int32_t rows, std::int32_t inputs, std::int32_t outputs, const float* x,
                            const float* dy, float* dw, float* db) {
        pushKernel(stream(m), "linearWeightGrad", [=] {
            host().linearWeightGrad({rows, inputs, outputs}, Read(x, n(rows * inputs)), Read(dy, n(rows * outputs)),
                                    Values(dw, n(inputs * outputs)), Values(db, db ? n(outputs) : 0));
        });
        return 0;
    };
    t.geluForward = [](void* m, const float* x, float* y, std::int64_t count) {
        return pushKernel(stream(m), "gelu", [=] { host().geluForward(Read(x, n(count)), Values(y, n(count))); }), 0;
    };
    t.geluInputGrad = [](void* m, const float* x, const float* dy, float* dx, std::int64_t count) {
        pushKernel(stream(m), "geluInputGrad",
                   [=] { host().geluInputGrad(Read(x, n(count)), Read(dy, n(count)), Values(dx, n(count))); });
        return 0;
    };
    t.layerNormForward = [](void* m, std::int32_t rows, std::int32_t columns, const float* x, const float* gamma,
                            const float* beta, float* y) {
        pushKernel(stream(m), "layerNorm", [=] {
            host().layerNormForward(rows, columns, Read(x, n(rows * columns)), Read(gamma, n(columns)),
                                    Read(beta, n(columns)), Values(y, n(rows * columns)));
        });
        return 0;
    };
    t.layerNormInputGrad = [](void* m, std::int32_t rows, std::int32_t columns, const float* x, const float* gamma,
                              const float* dy, float* dx) {
        pushKernel(stream(m), "layerNormInputGrad", [=] {
            host().layerNormInputGrad(rows, columns, Read(x, n(rows * columns)), Read(gamma, n(columns)),
                                      Read(dy, n(rows * columns)), Values(dx, n(rows * columns)));
        });
        return 0;
    };
    t.layerNormWeightGrad = [](void* m, std::int32_t rows, std::int32_t columns, const float* x, const float* dy,
                               float* dGamma, float* dBeta) {
        pushKernel(stream(m), "layerNormWeightGrad", [=] {
            host().layerNormWeightGrad(rows, columns, Read(x, n(rows * columns)), Read(dy, n(rows * columns)),
                                       Values(dGamma, n(columns)), Values(dBeta, n(columns)));
        });
        return 0;
    };
    t.embeddingForward = [](void* m, std::int64_t count, std::int32_t length, std::int32_t hidden,
                            const std::int32_t* tokens, const float* table, const float* positions, float* y) {
        pushKernel(stream(m), "embedding", [=] {
            const std::size_t words = n(*std::max_element(tokens, tokens + count)) + 1;
            host().embeddingForward(length, hidden, std::span(tokens, n(count)), Read(table, words * n(hidden)),
                                    Read(positions, n(length * hidden)), Values(y, n(count) * n(hidden)));
        });
        return 0;
    };
    t.embeddingWeightGrad = [](void* m, std::int64_t count, std::int32_t length, std::int32_t hidden,
                               const std::int32_t* tokens, const float* dy, float* table, std::int64_t tableCount,
                               float* positions) {
        pushKernel(stream(m), "embeddingWeightGrad", [=] {
            host().embeddingWeightGrad(length, hidden, std::span(tokens, n(count)), Read(dy, n(count) * n(hidden)),
                                       Values(table, n(tableCount)), Values(positions, n(length * hidden)));
        });
        return 0;
    };
    t.crossEntropyForward = [](void* m, std::int32_t rows, std::int32_t classes, float* values,
                               const std::int32_t* targets, float scale, float* loss) {
        pushKernel(stream(m), "crossEntropy", [=] {
            host().crossEntropyForward(rows, classes, Values(values, n(rows * classes)), std::span(targets, n(rows)),
                                       scale, Values(loss, 1));
        });
        return 0;
    };
    t.crossEntropyInputGrad = [](void* m, std::int32_t rows, std::int32_t classes, const float* p,
                                 const std::int32_t* targets, float scale, float* grad) {
        pushKernel(stream(m), "crossEntropyInputGrad", [=] {
            host().crossEntropyInputGrad(rows, classes, Read(p, n(rows * classes)), std::span(targets, n(rows)), scale,
                                         Values(grad, n(rows * classes)));
        });
        return 0;
    };
    // As on a GPU, `saved` and `scratch` have one number per query and head: the probabilities are made anew.
    t.attentionForward = [](void* m, const PipewrightCudaAttention* plain, const float* q, const float* k,
                            const float* v, float* saved, float* y) {
        pushKernel(stream(m), "attention", [=, is = Attention(*plain)] {
            const std::size_t all = is.elements();
            std::vector<float> probabilities(is.shape.scores());
            host().attentionForward(is.shape, Read(q, all), Read(k, all), Read(v, all), probabilities, Values(y, all),
                                    is.earlier());
            std::fill_n(saved, is.perHead(), 1.0f);
        });
        return 0;
    };
    t.attentionInputGrad = [](void* m, const PipewrightCudaAttention* plain, const float* q, const float* k,
                              const float* v, const float* saved, const float* y, const float* dy, float* grad,
                              float* scratch, float* owed) {
        pushKernel(stream(m), "attentionInputGrad", [=, is = Attention(*plain)] {
            const std::size_t all = is.elements();
            std::vector<float> probabilities(is.shape.scores()), scores(is.shape.scores()), again(all);
            host().attentionForward(is.shape, Read(q, all), Read(k, all), Read(v, all), probabilities, again,
                                    is.earlier());
            // What the forward pass left must still be there.
            if (!std::all_of(saved, saved + is.perHead(), [](float x) { return x == 1; }))
                probabilities.assign(probabilities.size(), 0.0f);
            host().attentionInputGrad(is.shape, Read(q, all), Read(k, all), Read(v, all), probabilities, Read(y, all),
                                      Read(dy, all), Values(grad, 3 * all), scores, is.earlier(),
                                      Values(owed, is.shape.sequenceGradient()));
            std::fill_n(scratch, is.perHead(), 0.0f);
        });
        return 0;
    };
    t.sgdMomentumStep = [](void* m, float rate, float momentum, float decay, float* p, const float* g, float* v,
                           std::int64_t count) {
        pushKernel(stream(m), "sgd", [=] {
            host().sgdMomentumStep({rate, momentum, decay}, Values(p, n(count)), Read(g, n(count)),
                                   Values(v, n(count)));
        });
        return 0;
    };
    t.adamWStep = [](void* m, float rate, float beta1, float beta2, float epsilon, float decay, std::int32_t step,
                     float* p, const float* g, float* first, float* second, std::int64_t count) {
        pushKernel(stream(m), "adamW", [=] {
            host().adamWStep({rate, beta1, beta2, epsilon, decay}, step, Values(p, n(count)), Read(g, n(count)),
                             Values(first, n(count)), Values(second, n(count)));
        });
        return 0;
    };
    t.rmsPropStep = [](void* m, float rate, float smoothing, float epsilon, float* p, const float* g, float* squares,
                       float* last, std::int64_t count) {
        pushKernel(stream(m), "rmsProp", [=] {
            host().rmsPropStep({rate, smoothing, epsilon}, Values(p, n(count)), Read(g, n(count)),
                               Values(squares, n(count)), Values(last, n(count)));
        });
        return 0;
    };
    t.predictMomentum = [](void* m, float distance, const float* v, float* p, std::int64_t count) {
        pushKernel(stream(m), "predict",
                   [=] { host().predictMomentum(distance, Read(v, n(count)), Values(p, n(count))); });
        return 0;
    };
    t.predictRmsProp = [](void* m, float distance, float epsilon, const float* squares, const float* last, float* p,
                          std::int64_t count) {
        pushKernel(stream(m), "predict", [=] {
            host().predictRmsProp(distance, epsilon, Read(squares, n(count)), Read(last, n(count)),
                                  Values(p, n(count)));
        });
        return 0;
    };
    t.predictAdam = [](void* m, float beta1, float beta2, float epsilon, std::int32_t step, float distance,
                       const float* first, const float* second, float* p, std::int64_t count) {
        pushKernel(stream(m), "predict", [=] {
            host().predictAdam({.beta1 = beta1, .beta2 = beta2, .epsilon = epsilon}, step, distance,
                               Read(first, n(count)), Read(second, n(count)), Values(p, n(count)));
        });
        return 0;
    };
    t.tensor = [](void* m, const PipewrightTensorCall* call) {
        return pushKernel(stream(m), "tensor", [call = *call] { pipewright::kernels::tensor(call); }), 0;
    };
}

} // namespace pretended
