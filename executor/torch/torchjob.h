// SPDX-License-Identifier: GPL-3.0-or-later
// The job of PyTorch's ranks: the design's order of blocks, sends and receives per rank, which layers each stage holds,
// and the user's module. One JSON file that every rank reads (executor/torch/pipewright/run.py).
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
    bool syntheticStages = false; ///< stages that take the times from the design's costs
    int ranks = 0;                ///< 0: one per device and replica
    int replicas = 1;             ///< copies of the pipeline, joined by the user's replicate(module, mesh); where the
                                  ///< design counts copies, these are meant (torchcopies.h)
    std::string python = "python3";
    std::string device = "auto"; ///< auto, host or cuda
    std::uint64_t seed = 1;
    bool checkGradients = true;
    bool profile = false;                  ///< also runs PyTorch's profiler: kernels of GPUs, operators of CPUs
    Nanoseconds deadline = 60'000'000'000; ///< without a report from any rank
    std::string trace;                     ///< file to create
    bool overwriteTrace = false;
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(const RunProgress&)> progress = {}; ///< after each step
    std::function<void(const Diagnostics&)> tell = {}; ///< called with diagnostics that cannot wait for the run's end
};

/// What the ranks do otherwise than the design says.
Diagnostics notesForTorch(const Design& design, const TorchOptions& options);

/// With updates within the step the ranks get their lists of blocks with the weight version that each reads
/// (pipewright/versionedrun.py); other orders go through PyTorch's schedule runtime. Throws Error for what cannot run:
/// two copies of the model, pieces of sequences, skip connections, stages on several devices; its place is the block.
/// `notes` gets the differences from the design.
std::string torchJob(const Design& design, const TorchOptions& options, Diagnostics& notes);

/// Throws Error for a design that PyTorch cannot run.
void requirePossible(const Design& design, const TorchOptions& options);
/// For a schedule with updates within the step: each rank's list of blocks, with the weight version that each reads.
JsonValue versionsOf(const Design& design);

/// A word as a POSIX shell takes it: in quotes where it has to be.
std::string shellWord(const std::string& text);

/// The command for the user's own torchrun or srun: the job is in a file, and every rank records into a folder.
std::string torchCommandText(const TorchOptions& options, int ranks, const std::string& job, const std::string& folder);

} // namespace pipewright
