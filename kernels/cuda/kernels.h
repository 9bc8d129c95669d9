// SPDX-License-Identifier: GPL-3.0-or-later
// The calls of kernels/calls.h on an NVIDIA GPU, with operands in device memory, issued on a stream. Nothing allocates
// or waits; every sum is made in a fixed order, so a run gives the same bits every time, though not the host's. Launch
// errors stay with the CUDA runtime, whose caller asks once per block.
#pragma once

#include "kernels/calls.h"
#include "kernels/cuda/fusedattention.h"
#include "kernels/cuda/products.h"
#include "kernels/operands.h"

#include <cstdint>
#include <cuda_runtime_api.h>
#include <span>

// What is declared here the plugin exports: gpucheck checks the kernels that runs use.
#pragma GCC visibility push(default)

namespace pipewright::kernels::cuda {

/// Where calls are issued, and what some of them need besides their operands.
struct Context {
    cudaStream_t stream = nullptr;
    Precision precision = Precision::Float32;
    Products* products = nullptr; ///< of the linear layers
    FusedAttention* fused = nullptr;
    /// Scratch for what rows have of their own: a cross entropy needs as many as it has rows, a layer norm's weight
    /// gradient two for as many rows as it is to do at once.
    std::span<float> rowScratch = {};
    StoredOperands stored = 0; ///< of the call
};

// Attention stores no matrix of scores: `saved` keeps one number per query and head, from which the backward pass makes
// the probabilities again (Dao et al., arXiv 2205.14135). Queries and values of a head are at most `widestHead` wide,
// and a sequence has at most `mostPieces` pieces, since where they lie is an argument of the kernels. A token chooses
// among `mostExperts` at most, whose probabilities a block keeps.
inline constexpr int widestHead = 256, mostPieces = 128, mostExperts = 1024;
#define PIPEWRIGHT_RUN(name) void run(const Context& context, const name& call);
PIPEWRIGHT_CALLS(PIPEWRIGHT_RUN)
#undef PIPEWRIGHT_RUN

/// Which operations on tensors take values as they are stored in bf16: in[i] has the number i, `out` the number 5.
bool hasStored(TensorOperation operation);

/// One thread that looks at the GPU's clock: the stream is busy for so long, its multiprocessor nearly free.
void spin(cudaStream_t stream, std::int64_t nanoseconds);
/// The time when the stream comes here, and being busy until so long after it.
void stamp(cudaStream_t stream, std::int64_t* place);
void spinFrom(cudaStream_t stream, const std::int64_t* place, std::int64_t nanoseconds);

/// What a launch ran into since the last time this was asked, for programs that link the plugin: they have a CUDA
/// runtime of their own, which does not know.
cudaError_t takeLaunchError();

} // namespace pipewright::kernels::cuda

#pragma GCC visibility pop
