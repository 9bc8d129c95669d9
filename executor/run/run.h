// SPDX-License-Identifier: GPL-3.0-or-later
// A whole run in one call: compile the design, plan memory, create the trace, do the steps, check the last step's
// gradients against the sequential reference, and return the numbers that `run --json` prints.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"
#include "core/predict/scaledmodel.h"
#include "executor/run/synthetic.h"
#include "executor/run/trainabledesign.h"
#include "executor/runtime/actor.h"
#include "executor/runtime/heldmemory.h"
#include "executor/runtime/recordercost.h"

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pipewright {

struct RunProgress {
    double fraction = 0; ///< of the whole run, the gradient check included
    int step = 0;        ///< steps done
    double loss = 0;     ///< of the last one; NaN when the maths has none
    Nanoseconds stepTime = 0;
    Nanoseconds remaining = 0; ///< estimate, from the median step so far
};

/// Bound of a tensor's gradient error: the norm of its difference from the sequential reference's, divided by the
/// latter's norm. Sums of a few thousand fp32 products in another order differ by about 1e-6; products of bf16 factors,
/// of 8 bits each, by about 1e-2.
inline constexpr double fp32GradientBound = 1e-4, bf16GradientBound = 3e-2;

struct RunOptions {
    enum class Maths {
        Automatic, ///< training if the design's model can be trained here, otherwise timed
        Training,
        Timed,     ///< blocks that only take the time and hold the bytes of the design's costs
        Synthetic, ///< as Timed, but they keep their core busy and touch their memory; times and bytes are scaled
    };
    enum class Clock {
        Real,
        Virtual, ///< timed maths only: logical time, equal to the prediction, in milliseconds
    };

    int steps = 1;
    Maths maths = Maths::Automatic;
    SyntheticScale scale = {}; ///< of synthetic and of timed maths
    Clock clock = Clock::Real;
    std::string backend = "host"; ///< what createBackend makes, for checks and messages: host, mpi or cuda
    bool gpus = false;            ///< the devices are GPUs, which support fewer kinds of layers than the host
    std::string data;             ///< training text: a file or a folder; empty: a small built-in text
    std::uint64_t seed = 1;
    bool checkGradients = true;
    double gradientBound = fp32GradientBound; ///< for the gradient check
    RuntimeOptions runtime = {}; ///< its clock, durations and buses follow from the design and the options above
    std::function<void(const RunProgress&)> progress = {};                   ///< after each step, on the calling thread
    std::function<void(const Diagnostics&)> tell = {};                       ///< urgent messages, on any thread
    std::function<std::unique_ptr<Backend>(int devices)> createBackend = {}; ///< empty: the host's
    std::string trace;                                                       ///< file to create; empty: none
    bool overwriteTrace = false;
    std::string weights; ///< published weights to begin with: a safetensors file, or a folder of them; empty: random
    std::string saveWeights; ///< file for the trained weights, in the same layout; empty: none
    std::string dump;        ///< parameters, gradients, batches and losses in a safetensors file; empty: none
};

struct GradientCheck {
    bool bitEqual = false;
    double maxRelativeError = 0; ///< largest over tensors: norm of the difference / norm of the reference
    double within = 0;           ///< the bound that was asked for
    std::string worst{};         ///< the tensor with that error: "layer 3/qkv.weight"; empty when bit-equal
    /// True where weights are updated within the step: the last step's parameters were compared with a sequential
    /// emulation of the same weight rule. False: its gradients were compared with the sequential run.
    bool lagged = false;
    std::string reference{}; ///< another reference than these: "whole-module"
    std::string skipped{};   ///< why nothing was compared; empty otherwise

    /// For models with experts on devices that add up in another order than the reference. The reference follows the
    /// run's choices of experts (one per token and layer). `otherwise` counts those that it would have made
    /// differently. `unexplained` counts those between experts whose scores differ by more than rounding; `first` names
    /// the first, and the check then fails.
    struct Routing {
        std::int64_t tokens = 0, otherwise = 0, unexplained = 0;
        std::string first{};
    };
    Routing routing{};

    bool holds() const { return maxRelativeError <= within && routing.unexplained == 0; }
};

class Runtime;

struct RunResult {
    std::string backend, maths;
    int devices = 0;
    int copies = 1; ///< of the pipeline, each on as many processes as the design has devices
    std::vector<Nanoseconds> stepTimes;
    std::vector<double> losses;         ///< NaN when the maths has none
    std::vector<Nanoseconds> coreWaits; ///< per step: a device thread's wait for a processor core; -1: not known
    std::vector<Bytes> peakBytes, predictedPeakBytes, arenaBytes; ///< per device
    std::vector<Bytes> hostBytes, predictedHostBytes; ///< per device: peak in the host's memory, where it offloads
    std::vector<int> groups;                          ///< per device, where devices are members of groups
    std::vector<HeldMemory> memory;                   ///< per device: the prediction made before anything was allocated
    std::vector<Bytes> heldBytes; ///< per device: allocated bytes. A note says where they differ from memory's total
    std::int64_t droppedRecords = 0;
    RecorderCost recorder{};                ///< of all steps and processes
    std::optional<GradientCheck> gradients; ///< of the last step; always set by a complete run
    std::string trace;
    std::string traceFault; ///< why the trace lacks a part of the run, or all of it; empty: complete
    bool cancelled = false;
    bool isRankZero = true; ///< of several processes, the one that has the whole result
    std::vector<Nanoseconds> clockOffsets, clockUncertainties; ///< several processes: per device, to process 0's clock
    std::optional<ScaleReport> scale;                          ///< if the model was made smaller for this run
    Diagnostics notes;                                         ///< what the user should know about how it was run

    /// Takes the memory that the run's devices held, and what was predicted for them.
    void takeMemory(const Program& program, const Runtime& runtime, Backend& from);
    /// The fraction of the devices' time in which their threads waited for a processor core, without the first step if
    /// there are more; unset: not known.
    std::optional<double> coreWaitShare() const;
    std::string toJson() const; ///< one object, keys as in `run --json`; no loss is null
};

/// Throws Error when the design cannot run, and when a run cannot be finished; what was recorded until then stays
/// readable in the trace. Losing the trace does not end the run: `traceFault` reports it.
RunResult run(const Design& design, const RunOptions& options);

/// RunResult::memory of such a run, per device, without running, writing or allocating anything. Throws Error as run()
/// does before its first step.
std::vector<HeldMemory> heldMemory(const Design& design, const RunOptions& options);

} // namespace pipewright
