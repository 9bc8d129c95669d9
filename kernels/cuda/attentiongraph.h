// SPDX-License-Identifier: GPL-3.0-or-later
// A pass of attention as a graph for cuDNN's frontend: scores, scale, mask and softmax as operations, which the library
// fuses into one kernel. Only for files that are compiled with the frontend.
#pragma once

#include "kernels/cuda/fusedattention.h"

#include <cudnn_frontend.h>
#include <memory>
#include <string>

namespace pipewright::kernels::cuda {

/// The operands of a pass; their numbers identify the addresses given to a plan.
enum class FusedOperand : std::int64_t {
    Query = 1,
    Key,
    Value,
    Output,
    LogSums,
    OutputGrad,
    QueryGrad,
    KeyGrad,
    ValueGrad,
};

/// The GPU for which a plan is made: that of a handle, or one given by its properties that need not be present.
struct FusedTarget {
    cudnnHandle_t handle = nullptr;
    std::shared_ptr<const cudnn_frontend::DeviceProperties> properties = nullptr;
    int capability = 0; ///< 90; 0: ask the present GPU
};

struct FusedPlan {
    std::shared_ptr<cudnn_frontend::graph::Graph> graph; ///< null: cuDNN does not support the pass
    std::string whyNot;
    std::int64_t workspace = 0; ///< bytes
};
/// Compiles, which can take some seconds.
FusedPlan planOf(const FusedPass& pass, const FusedTarget& target);

} // namespace pipewright::kernels::cuda
