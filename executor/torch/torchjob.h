// SPDX-License-Identifier: GPL-3.0-or-later
// What PyTorch's ranks are told: the design's own order of blocks, sends and receives per rank, which layers each stage
// holds, and the person's module. One JSON file that every rank reads; executor/torch/pipewright/run.py is the reader.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "core/json/jsonvalue.h"
#include "executor/run/run.h"

#include <atomic>
#include <functional>
#include <string>

namespace pipewright {

struct TorchOptions {
    int steps = 1;
    std::string module;           ///< FILE.py:build; empty with `syntheticStages`
    bool syntheticStages = false; ///< stages that take the times of the design's costs
    int ranks = 0;                ///< 0: one per device and replica
    int replicas = 1;             ///< copies of the pipeline, joined by the person's replicate(module, mesh)
    std::string python = "python3";
    std::string device = "auto"; ///< auto, host or cuda
    std::uint64_t seed = 1;
    bool checkGradients = true;
    bool profile = false;                  ///< PyTorch's profiler runs along: kernels of GPUs, operators of CPUs
    Nanoseconds deadline = 60'000'000'000; ///< without a sign of life from any rank
    std::string trace;                     ///< file to create
    bool overwriteTrace = false;
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(const RunProgress&)> progress = {}; ///< after each step
    std::function<void(const Diagnostics&)> tell = {};     ///< what cannot wait for the run's end
};

/// With updates amid the step the ranks get their lists of blocks with the version of the weights that each reads
/// (pipewright/versionedrun.py); other orders go through PyTorch's schedule runtime. Throws Error with what cannot run
/// of the design: two copies of the model, pieces of sequences, skip connections, stages on several devices; the place
/// is the block. `notes` gets what differs.
std::string torchJob(const Design& design, const TorchOptions& options, Diagnostics& notes);

/// Throws Error for such a design.
void requirePossible(const Design& design, const TorchOptions& options);
/// The ranks' own lists of blocks, with the weights that each reads, of a schedule that updates amid the step.
JsonValue versionsOf(const Design& design);
/// Whether the design's model stands for the person's module: not for the model that stands in where none was named.
bool isOfModule(const Design& design);

/// For the person's own torchrun or srun: the job is in a file, and every rank records into a folder.
std::string torchCommandText(const TorchOptions& options, int ranks, const std::string& job, const std::string& folder);

} // namespace pipewright
