// SPDX-License-Identifier: GPL-3.0-or-later
// Which kernels compute attention of bf16 tensors on GPUs: cuDNN's fused kernels, or this program's own. Either can run
// the backward pass of the other's forward pass.
#pragma once

#include "executor/cuda/table.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace pipewright {

enum class CudaAttention {
    Automatic, ///< cuDNN if found, it supports the shape, and its workspace is small compared to the GPU's memory
    Own,
    Cudnn, ///< with any workspace; a shape that it does not support is an error
};
inline constexpr std::array cudaAttentions{CudaAttention::Automatic, CudaAttention::Own, CudaAttention::Cudnn};

constexpr std::string_view nameOf(CudaAttention attention) ///< as in --attention; empty for a number that is none
{
    switch (attention) {
    case CudaAttention::Automatic: return "auto";
    case CudaAttention::Own: return "own";
    case CudaAttention::Cudnn: return "cudnn";
    }
    return {};
}
static_assert(nameOf(static_cast<CudaAttention>(cudaAttentions.size())).empty(), "cudaAttentions lists them all");

constexpr std::int32_t inTable(CudaAttention attention)
{
    switch (attention) {
    case CudaAttention::Automatic: return PIPEWRIGHT_ATTENTION_AUTO;
    case CudaAttention::Own: return PIPEWRIGHT_ATTENTION_OWN;
    case CudaAttention::Cudnn: return PIPEWRIGHT_ATTENTION_CUDNN;
    }
    return PIPEWRIGHT_ATTENTION_OWN;
}

/// The inverse of nameOf. Throws Error.
CudaAttention cudaAttentionNamed(std::string_view name);

/// Largest share of a GPU's memory that Automatic gives to cuDNN's workspace: its backward pass needs much for long
/// sequences, own kernels need none.
inline constexpr int attentionShareOfMemory = 16; ///< a sixteenth

} // namespace pipewright
