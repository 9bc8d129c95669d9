// SPDX-License-Identifier: GPL-3.0-or-later
// A whole run in one call: compile the design, plan memory, create the trace, do the steps, check the last
// one's gradients against the sequential reference, and hand back the numbers that `run --json` prints.
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

/// How far a tensor's gradient may be from the sequential reference's, by their norms. Sums of a few thousand fp32
/// products in another order differ by some 1e-6; products of bf16 factors, of 8 bits each, by some 1e-2.
inline constexpr double fp32GradientBound = 1e-4, bf16GradientBound = 3e-2;

struct RunOptions {
    enum class Maths {
        Automatic, ///< training when the design's model can be trained here, otherwise timed
        Training,
        Timed,     ///< blocks that only take the time and hold the bytes of the design's costs
        Synthetic, ///< the same, but keeping their core busy and touching their memory, times and bytes to scale
    };
    enum class Clock {
        Real,
        Virtual, ///< timed maths only: logical time, equal to the prediction, in milliseconds
    };

    int steps = 1;
    Maths maths = Maths::Automatic;
    SyntheticScale scale = {}; ///< of synthetic and of timed maths
    Clock clock = Clock::Real;
    std::string backend = "host"; ///< what createBackend makes: host, mpi or cuda, for what is said of it
    bool gpus = false;            ///< the devices are GPUs, which have fewer kinds of layers than the host
    std::string data;             ///< training text: a file or a folder; empty: a small built-in text
    std::uint64_t seed = 1;
    bool checkGradients = true;
    double gradientBound = fp32GradientBound; ///< what a gradient check holds them to
    RuntimeOptions runtime = {}; ///< its clock, durations and buses follow from the design and the options above
    std::function<void(const RunProgress&)> progress = {}; ///< after each step, on the calling thread
    std::function<void(const Diagnostics&)> tell = {};     ///< what cannot wait for the run's end, on any thread
    std::function<std::unique_ptr<Backend>(int devices)> createBackend = {}; ///< empty: the host's
    std::string trace;                                                       ///< file to create; empty: none
    bool overwriteTrace = false;
    std::string weights; ///< published weights to begin with: a safetensors file, or a folder of them; empty: random
    std::string saveWeights; ///< where the trained ones are written in the same layout; empty: nowhere
    std::string dump;        ///< parameters, gradients, batches and losses in a safetensors file; empty: none
};

struct GradientCheck {
    bool bitEqual = false;
    double maxRelativeError = 0; ///< the largest over tensors of the difference's norm by the reference's
    double within = 0;           ///< the bound that was asked of it
    std::string worst{};         ///< the tensor of that error: "layer 3/qkv.weight"; empty when bit-equal
    /// Where weights are updated amid the step: the last step's parameters, with a sequential emulation of the same
    /// weight rule; else its gradients, with the sequential run.
    bool lagged = false;
    std::string reference{}; ///< what else it was compared with: "whole-module"
    std::string skipped{};   ///< why nothing was compared; empty otherwise

    /// Of models with experts on devices that add up in another order than the reference: choices of a token in a
    /// layer, which the reference followed. Those that are not its own are between experts whose scores differ by no
    /// more than rounding; of any other the first is named, and the check does not hold.
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
    std::vector<Nanoseconds> stepTimes;
    std::vector<double> losses;         ///< NaN when the maths has none
    std::vector<Nanoseconds> coreWaits; ///< per step, of a device's thread for a processor core; -1: not known
    std::vector<Bytes> peakBytes, predictedPeakBytes, arenaBytes; ///< per device
    std::vector<Bytes> hostBytes, predictedHostBytes; ///< per device: its peak in the host's memory, where it offloads
    std::vector<int> groups;                          ///< per device, where devices are members of groups
    std::vector<HeldMemory> memory; ///< per device: what it was to hold, from before anything was allocated
    std::vector<Bytes> heldBytes; ///< per device: what was allocated of it. A note says where it is not memory's total
    std::int64_t droppedRecords = 0;
    RecorderCost recorder{};                ///< of all steps and processes
    std::optional<GradientCheck> gradients; ///< of the last step; of a whole run never without
    std::string trace;
    std::string traceFault; ///< why the trace lacks a part of the run, or all of it; empty: it has all
    bool cancelled = false;
    bool speaks = true; ///< several processes: this is the one that knows the whole result
    std::vector<Nanoseconds> clockOffsets, clockUncertainties; ///< several processes: per device, to process 0's clock
    std::optional<ScaleReport> scale;                          ///< where the model was made smaller for this run
    Diagnostics notes;                                         ///< what a person should know about how it was run

    /// What the run's devices held, beside what was said of them.
    void takeMemory(const Program& program, const Runtime& runtime, Backend& from);
    /// The share of the devices' time that their threads waited for a processor core, over all steps but the first
    /// where there are others; unset: not known.
    std::optional<double> coreWaitShare() const;
    std::string toJson() const; ///< one object, keys as in `run --json`; no loss is null
};

/// Throws Error when the design cannot run, and when a run cannot be finished; what was recorded until then stays
/// readable in the trace. A trace that is lost on the way ends no run: `traceFault` says it.
RunResult run(const Design& design, const RunOptions& options);

/// RunResult::memory of such a run, per device: nothing is run, written or allocated. Throws Error as run() does before
/// its first step.
std::vector<HeldMemory> heldMemory(const Design& design, const RunOptions& options);

} // namespace pipewright
