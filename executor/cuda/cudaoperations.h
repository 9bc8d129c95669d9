// SPDX-License-Identifier: GPL-3.0-or-later
// The maths of a stage on a GPU: kernels::Operations through the plugin's table. A call is issued and returns.
#pragma once

#include "core/base/diagnostic.h"
#include "executor/cuda/cudaattention.h"
#include "executor/cuda/cudalink.h"

#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace pipewright {

/// Notes where maths on a backend's devices needed extra steps, and which kernels computed attention. Each note is
/// reported once.
class MathsNotes {
public:
    void add(const std::string& about, const std::string& note);
    Diagnostics take();

private:
    using Note = std::pair<std::string, std::string>;
    std::mutex m_mutex;
    std::set<Note> m_all, m_new;
};

struct CudaMaths {
    std::string cublasLt;            ///< the library's file; empty: own kernels do the matrix products
    bool roundsFactors = false;      ///< of products of fp32 values, to bf16
    bool computesWithStored = false; ///< the GPU multiplies stored bf16 values: compute capability 8.0 or later
    std::string cudnn{};             ///< the library's file; empty: own kernels do the attention
    CudaAttention attention = CudaAttention::Automatic;
};

/// `workspace`: at least PIPEWRIGHT_MATHS_WORKSPACE bytes of the GPU. It and `notes` must outlive the result. Throws
/// Error when it cannot be made.
std::unique_ptr<kernels::Operations> createCudaOperations(const CudaStream& stream, const CudaMaths& maths,
                                                          Region workspace, MathsNotes& notes);

} // namespace pipewright
