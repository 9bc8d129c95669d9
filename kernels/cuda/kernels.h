// SPDX-License-Identifier: GPL-3.0-or-later
// The maths of a stage on an NVIDIA GPU: the functions of kernels/*.h, with the same arguments in device memory
// and the stream they are issued on in front. Nothing allocates or waits; every sum is made in a fixed order,
// so a run gives the same bits every time, though not the host's. Launch errors stay with the CUDA runtime,
// whose caller asks once per block.
#pragma once

#include "kernels/attention.h"
#include "kernels/layernorm.h"
#include "kernels/optimizers.h"
#include "kernels/tensors.h"

#include <cstdint>
#include <cuda_runtime_api.h>
#include <span>

namespace pipewright::kernels::cuda {

void copy(cudaStream_t stream, std::span<const float> from, std::span<float> to);
void fill(cudaStream_t stream, std::span<float> values, float value);
void add(cudaStream_t stream, std::span<float> values, std::span<const float> addend);

void geluForward(cudaStream_t stream, std::span<const float> input, std::span<float> output);
void geluInputGrad(cudaStream_t stream, std::span<const float> input, std::span<const float> outputGrad,
                   std::span<float> inputGrad);

void layerNormForward(cudaStream_t stream, int rows, int columns, std::span<const float> input,
                      std::span<const float> gamma, std::span<const float> beta, std::span<float> output);
void layerNormInputGrad(cudaStream_t stream, int rows, int columns, std::span<const float> input,
                        std::span<const float> gamma, std::span<const float> outputGrad, std::span<float> inputGrad);
void layerNormWeightGrad(cudaStream_t stream, int rows, int columns, std::span<const float> input,
                         std::span<const float> outputGrad, std::span<float> gammaGrad, std::span<float> betaGrad);

void embeddingForward(cudaStream_t stream, int length, int hidden, std::span<const std::int32_t> tokens,
                      std::span<const float> table, std::span<const float> positions, std::span<float> output);
void embeddingWeightGrad(cudaStream_t stream, int length, int hidden, std::span<const std::int32_t> tokens,
                         std::span<const float> outputGrad, std::span<float> tableGrad, std::span<float> positionsGrad);

/// The loss is written to loss[0] by one block that adds rows in order; `rowLoss` is scratch of `rows` elements.
void crossEntropyForward(cudaStream_t stream, int rows, int classes, std::span<float> logitsToProbabilities,
                         std::span<const std::int32_t> targets, float scale, std::span<float> loss,
                         std::span<float> rowLoss);
void crossEntropyInputGrad(cudaStream_t stream, int rows, int classes, std::span<const float> probabilities,
                           std::span<const std::int32_t> targets, float scale, std::span<float> logitsGrad);

void sgdMomentumStep(cudaStream_t stream, const SgdSettings& settings, std::span<float> parameters,
                     std::span<const float> gradients, std::span<float> momentum);
void adamWStep(cudaStream_t stream, const AdamWSettings& settings, int step, std::span<float> parameters,
               std::span<const float> gradients, std::span<float> firstMoment, std::span<float> secondMoment);

void rmsPropStep(cudaStream_t stream, const RmsPropSettings& settings, std::span<float> parameters,
                 std::span<const float> gradients, std::span<float> squares, std::span<float> last);
void predictMomentum(cudaStream_t stream, float distance, std::span<const float> momentum, std::span<float> parameters);
void predictRmsProp(cudaStream_t stream, float distance, float epsilon, std::span<const float> squares,
                    std::span<const float> last, std::span<float> parameters);
void predictAdam(cudaStream_t stream, const AdamWSettings& settings, int step, float distance,
                 std::span<const float> firstMoment, std::span<const float> secondMoment, std::span<float> parameters);

/// Attention without a matrix of scores: instead of the host's probabilities, `logSum` keeps one number per query
/// and head, from which the backward pass makes them again (Dao et al., arXiv 2205.14135). headSize at most 128, and a
/// sequence of at most mostPieces pieces, since where they lie is an argument of the kernels.
inline constexpr int mostPieces = 128;
void attentionForward(cudaStream_t stream, AttentionShape shape, std::span<const float> query,
                      std::span<const float> key, std::span<const float> value, std::span<float> logSum,
                      std::span<float> output, const EarlierPieces& earlier = {});
/// `dots` is scratch of tokens · heads elements.
void attentionInputGrad(cudaStream_t stream, AttentionShape shape, std::span<const float> query,
                        std::span<const float> key, std::span<const float> value, std::span<const float> logSum,
                        std::span<const float> output, std::span<const float> outputGrad,
                        std::span<float> queryKeyValueGrad, std::span<float> dots, const EarlierPieces& earlier = {},
                        std::span<float> sequenceGradient = {});

/// One operation of kernels/tensors.h. False: it is not known.
bool tensor(cudaStream_t stream, const TensorCall& call);

/// One thread that looks at the GPU's clock: the stream is busy for so long, its multiprocessor nearly free.
void spin(cudaStream_t stream, std::int64_t nanoseconds);
/// The time when the stream comes here, and being busy until so long after it.
void stamp(cudaStream_t stream, std::int64_t* place);
void spinFrom(cudaStream_t stream, const std::int64_t* place, std::int64_t nanoseconds);

} // namespace pipewright::kernels::cuda
