// SPDX-License-Identifier: GPL-3.0-or-later
// Who computes attention on GPUs, of what lies in memory as bf16: cuDNN's fused kernels, or this program's own. Either
// can do the gradients of what the other did.
#pragma once

#include "executor/cuda/table.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace pipewright {

enum class CudaAttention {
    Automatic, ///< cuDNN where it is found and does it, and where its workspace is small beside the GPU's memory
    Own,
    Cudnn, ///< whatever its workspace is; what it does not do is an error
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

/// The most of a GPU's memory that is given to cuDNN's workspace unasked: its gradients want much for long sequences,
/// and own kernels want none.
inline constexpr int attentionShareOfMemory = 16; ///< a sixteenth

} // namespace pipewright
