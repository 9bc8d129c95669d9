// SPDX-License-Identifier: GPL-3.0-or-later
// The published schedules. A family is a name, its preconditions and a function that writes the order; adding one means
// adding a file to this folder and a line to the table in families.cpp.
#pragma once

#include "core/base/diagnostic.h"
#include "core/base/units.h"
#include "core/schedule/schedule.h"

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace pipewright {

/// Pass times of one stage.
struct StageTimes {
    Nanoseconds forward = 0, inputGrad = 0, weightGrad = 0;
    bool operator==(const StageTimes&) const = default;
};

/// Bytes of one microbatch that a stage holds.
struct StageSaved {
    Bytes forward = 0;   ///< what F keeps, until I
    Bytes inputGrad = 0; ///< what stays from I until W; more than F kept where I makes more than it frees
    bool operator==(const StageSaved&) const = default;
};

inline constexpr int defaultSequencePieces = 4;

/// N workers' microbatches on N stages, in one of the layouts of arXiv 2403.08837.
enum class WorkerLayout : std::uint8_t {
    Pipeline, ///< stage j on device j, for all workers
    Workers,  ///< worker i on device i, with all stages
    Single,   ///< all on one device
    Triangle, ///< a device holds one stage's activations of one microbatch: N (N + 1) / 2 devices, N * N if not cyclic
    Sharded,  ///< as Workers, but a stage's state is on one device at a time and moves to the next that runs the stage
};
inline constexpr int workerLayoutCount = 5;
std::string_view nameOf(WorkerLayout layout); ///< "pipeline", "workers", "single", "triangle", "sharded"
std::optional<WorkerLayout> workerLayoutNamed(std::string_view name);

/// What a person chooses about a family.
struct FamilyOptions {
    int devices = 4;
    int microbatches = 8;
    /// Copies of the pipeline, each on its share of the devices and with its share of the microbatches.
    int replicas = 1;
    Zero zero;                 ///< what these copies share out, and those that the model counts
    std::optional<int> chunks; ///< stages per device; the family's own default when unset
    std::optional<int> group;  ///< interleaving: microbatches per group, default = devices
    /// Pieces of each microbatch's sequence, for families that cut it; defaultSequencePieces when unset.
    std::optional<int> pieces;
    std::optional<double> memoryLimit; ///< in units of (devices × one microbatch's activations)
    /// In its place, when not empty: the bytes of activations that each device of a pipeline may hold.
    std::vector<Bytes> memoryBudget{};
    /// For families that update during the run: settings of the weight rule (the family determines which rule), the
    /// optimizer, and microbatches per update where these can be chosen.
    WeightPolicy weights{};
    std::optional<Optimizer> optimizer; ///< the family's usual one when unset
    std::optional<int> accumulate;
    /// Data parallel training: the layout, and the number of workers when it does not follow from the devices.
    WorkerLayout layout = WorkerLayout::Pipeline;
    std::optional<int> workers;
};

struct FamilyParameters : FamilyOptions {
    /// Pass times of one device's worth of layers and the transfer time; only families that search use them.
    Nanoseconds forward = 1'000'000, inputGrad = 1'000'000, weightGrad = 1'000'000, transfer = 0;
    std::vector<StageTimes> stageTimes{}; ///< times of every stage, in place of the three above, when not empty
    /// Bytes that one F keeps, and the part of them that stays from I until W. Only their ratio counts, and only for
    /// families that search under a memory limit. 0: the zero-bubble papers' model, see families/searchinputs.h.
    Bytes saved = 0, savedForWeightGrad = 0;
    std::vector<StageSaved> stageSaved{}; ///< bytes of every stage, in place of the two above, when not empty
    /// Polled by v-auto, which tries thousands of orders: true ends it with the best so far.
    std::function<bool()> stop{};
};

/// How a family finds its order, by growing effort. All but None use times and the memory limit.
enum class FamilySearch : std::uint8_t {
    None,   ///< by a fixed rule
    Few,    ///< a few tries of a heuristic, or none where a written order fits (zb-v)
    Placed, ///< block by block, over many settings of a heuristic (zb-auto)
    Tried,  ///< thousands of orders (v-auto); asks FamilyParameters::stop
};

struct Family {
    std::string_view name;        ///< as on the command line: "zb-h1"
    std::string_view title;       ///< as in the papers: "ZB-H1"
    std::string_view description; ///< one sentence
    int defaultChunks = 1;
    bool chunksSelectable = false;
    BackwardStyle backward;
    /// Family-specific preconditions, if any. The common ones (positive counts, size limits) are checked before.
    Diagnostics (*check)(const FamilyParameters&) = [](const FamilyParameters&) { return Diagnostics(); };
    /// Called only with parameters that passed the checks.
    Schedule (*make)(const FamilyParameters&);
    // Properties of some families, set by name in the table.
    FamilySearch search = FamilySearch::None;
    bool interleaves = false;                          ///< takes FamilyParameters::group
    bool combines = false;                             ///< its pairs of blocks gain by hidden exchanges alone
    bool cutsSequences = false;                        ///< takes FamilyParameters::pieces
    bool accumulates = false;                          ///< takes FamilyParameters::accumulate
    bool dataParallel = false;                         ///< takes FamilyParameters::layout and workers
    bool cyclic = false;                               ///< its workers start one after the other
    bool updates = false;                              ///< has U blocks, and takes FamilyParameters::weights
    Optimizer usualOptimizer = Optimizer::SgdMomentum; ///< unless another one is given
    bool anyOptimizer = true;                          ///< its weight rule works with every optimizer
};

std::span<const Family> families();
const Family* findFamily(std::string_view name); ///< nullptr when unknown

/// Checks the parameters and makes the schedule. Throws Error naming the option at fault, or listing the known families
/// when `name` is none of them.
Schedule makeSchedule(std::string_view name, const FamilyParameters& parameters);

} // namespace pipewright
