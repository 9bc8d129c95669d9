// SPDX-License-Identifier: GPL-3.0-or-later
// Whether an interpreter has a PyTorch that can run designs, and its version and backends.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace pipewright {

struct TorchState {
    std::string reason; ///< why it cannot; empty when it can
    std::string torch, python;
    std::vector<std::string> backends; ///< "gloo", "nccl"
    int gpus = 0;
};

/// Imports PyTorch in a process of its own, which takes seconds.
TorchState torchState(const std::string& python, std::chrono::seconds atMost = std::chrono::seconds(60));

} // namespace pipewright
