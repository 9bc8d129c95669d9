// SPDX-License-Identifier: GPL-3.0-or-later
// What PyTorch's ranks are told: the design's own order of blocks, sends and receives per rank, which layers each stage
// holds, and the person's module. One JSON file that every rank reads; executor/torch/pipewright/run.py is the reader.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "executor/run/run.h"

#include <atomic>
#include <functional>
#include <string>

namespace pipewright {

struct TorchOptions {
    int steps = 1;
    std::string module;           ///< FILE.py:build; empty with `syntheticStages`
    bool syntheticStages = false; ///< stages that take the times of the design's costs
    int ranks = 0;                ///< 0: one per device
    std::string python = "python3";
    std::string device = "auto"; ///< auto, host or cuda
    std::uint64_t seed = 1;
    bool checkGradients = true;
    Nanoseconds deadline = 60'000'000'000; ///< without a sign of life from any rank
    std::string trace;                     ///< file to create
    bool overwriteTrace = false;
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(const RunProgress&)> progress = {}; ///< after each step
};

/// Throws Error with what PyTorch cannot run of the design: two copies of the model, updates amid the step, pieces of
/// sequences, skip connections, stages on several devices; the place is the block. `notes` gets what differs.
std::string torchJob(const Design& design, const TorchOptions& options, Diagnostics& notes);

/// For the person's own torchrun or srun: the job is in a file, and every rank records into a folder.
std::string torchCommandText(const TorchOptions& options, int ranks, const std::string& job, const std::string& folder);

} // namespace pipewright
