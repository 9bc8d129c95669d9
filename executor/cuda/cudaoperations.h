// SPDX-License-Identifier: GPL-3.0-or-later
// The maths of a stage on a GPU: kernels::Operations through the plugin's table. A call is issued and returns.
#pragma once

#include "executor/cuda/cudalink.h"

namespace pipewright {

/// `cublasLt`: the library's file; empty: own kernels do the matrix products. `workspace`: PIPEWRIGHT_MATHS_WORKSPACE
/// bytes of the GPU, which outlive it. Throws Error when it cannot be made.
std::unique_ptr<kernels::Operations> createCudaOperations(const CudaStream& stream, const std::string& cublasLt,
                                                          bool bfloat16, Region workspace);

} // namespace pipewright
