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

// The plugin exports these declarations, so gpucheck checks the kernels that runs use.
#pragma GCC visibility push(default)

namespace pipewright::kernels::cuda {

/// Where calls are issued, and data that some of them need besides their operands.
struct Context {
    cudaStream_t stream = nullptr;
    Precision precision = Precision::Float32;
    Products* products = nullptr; ///< of the linear layers
    FusedAttention* fused = nullptr;
    /// Scratch for values per row: a cross entropy needs one per row, a layer norm's weight gradient two for each row
    /// of a chunk.
    std::span<float> rowScratch = {};
    StoredOperands stored = 0; ///< of the call
};

// Attention stores no matrix of scores: `saved` keeps one number per query and head, from which the backward pass
// recomputes the probabilities (Dao et al., arXiv 2205.14135). Queries and values of a head are at most `widestHead`
// wide, and a sequence has at most `mostPieces` pieces, since their addresses are kernel arguments. There are at most
// `mostExperts` experts, since a block keeps their probabilities in shared memory.
inline constexpr int widestHead = 256, mostPieces = 128, mostExperts = 1024;
#define PIPEWRIGHT_RUN(name) void run(const Context& context, const name& call);
PIPEWRIGHT_CALLS(PIPEWRIGHT_RUN)
#undef PIPEWRIGHT_RUN

/// Which operations on tensors accept bf16 operands. Operand numbers: in[i] is i, `out` is 5.
bool hasStored(TensorOperation operation);

/// Keeps the stream busy with one thread that polls the GPU's clock; its multiprocessor stays nearly free.
void spin(cudaStream_t stream, std::int64_t nanoseconds);
/// stamp() stores the time when the stream reaches it; spinFrom() keeps a stream busy until `nanoseconds` after that.
void stamp(cudaStream_t stream, std::int64_t* place);
void spinFrom(cudaStream_t stream, const std::int64_t* place, std::int64_t nanoseconds);

/// The launch error since the last call, for programs that link the plugin: their own CUDA runtime does not see it.
cudaError_t takeLaunchError();

} // namespace pipewright::kernels::cuda

#pragma GCC visibility pop
