// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/cudaattention.h"

#include "core/base/diagnostic.h"

#include <fmt/format.h>

namespace pipewright {

CudaAttention cudaAttentionNamed(std::string_view name)
{
    for (const CudaAttention attention : cudaAttentions)
        if (nameOf(attention) == name)
            return attention;
    throw Error("--attention", fmt::format("\"{}\" computes no attention", name), "use one of auto, own, cudnn");
}

} // namespace pipewright
