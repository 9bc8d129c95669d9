// SPDX-License-Identifier: GPL-3.0-or-later
// A pass of attention as cuDNN's frontend describes it: scores, scale, mask and softmax as a graph of operations, which
// the library knows as one kernel. Only for files that are compiled with the frontend.
#pragma once

#include "kernels/cuda/fusedattention.h"

#include <cudnn_frontend.h>
#include <memory>
#include <string>

namespace pipewright::kernels::cuda {

/// The operands of a pass by number, as a plan takes their addresses.
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

/// For which GPU: the one of a handle; or one that is not here, of these properties.
struct FusedTarget {
    cudnnHandle_t handle = nullptr;
    std::shared_ptr<const cudnn_frontend::DeviceProperties> properties = nullptr;
    int capability = 0; ///< 90; 0: ask the present GPU
};

struct FusedPlan {
    std::shared_ptr<cudnn_frontend::graph::Graph> graph; ///< null: it is not done
    std::string whyNot;
    std::int64_t workspace = 0; ///< bytes
};
/// Compiles for up to some seconds.
FusedPlan planOf(const FusedPass& pass, const FusedTarget& target);

} // namespace pipewright::kernels::cuda
