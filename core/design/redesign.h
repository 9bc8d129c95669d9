// SPDX-License-Identifier: GPL-3.0-or-later
// A design with one change: another order of the same work, another family, another partition into stages, another
// cluster. Everything else stays. Formula costs are computed anew; given or measured costs are kept for unchanged
// stages and divided by layer for changed ones. Every function throws Error with the reason when the change is
// impossible.
#pragma once

#include "core/design/design.h"
#include "core/design/recutcosts.h"
#include "core/families/family.h"

#include <optional>
#include <vector>

namespace pipewright {

/// The same work with every microbatch in so many pieces of its sequence: times and activations are shared out
/// evenly, and the model's bytes are those of a piece. The schedule stays as it was.
Design withSequencePieces(const Design& base, int pieces);

/// The same with a separate output head if it was tied to the embedding: two stages that are updated at different times
/// cannot share a matrix.
Design withOwnHead(const Design& base);

/// The same with another optimizer: the bytes of its state, and the time of updates. Times that are not from a formula
/// are scaled with the bytes that an update touches.
Design withOptimizer(const Design& base, Optimizer optimizer);

/// Another schedule of the same model on the same cluster. A schedule that updates amid the run brings its optimizer;
/// one that does not, after one that did, trains with AdamW as all such designs do. Costs that are not from a formula
/// follow the layers, each device at its own pace (recutCosts(), or shareOutCosts() without a model); links stay with
/// their pair of devices. `layersPerStage`: the partition; empty: an even one. `uneven`: unset, what unevennessOf()
/// finds in the base.
Design withSchedule(const Design& base, Schedule schedule, std::vector<int> layersPerStage = {},
                    std::optional<Unevenness> uneven = {});

/// Carries over what `from` does to save memory: recomputation and offload of the stages at the same relative place,
/// and what copies share out of their states. A schedule that updates amid the run cannot recompute.
void carryMemoryChoices(const Schedule& from, Schedule& to);

/// The same design with more devices like its last, or fewer; its schedule is not touched.
Design withDevices(const Design& base, int devices);

/// Throws Error when the times of one model do not apply to the other. The source of a model and its optimizer are not
/// compared.
void checkSameModel(const std::optional<Workload>& wanted, const std::optional<Workload>& measured);

/// The design with the costs of another schedule of the same model, as withSchedule() carries them over.
Design withCostsFrom(const Design& base, const Design& measured, std::optional<Unevenness> uneven = {});

/// The user's options of a family; unset: the family's default.
struct FamilyChoice {
    std::optional<int> chunks;
    std::optional<double> memoryLimit; ///< x devices microbatches of activations, for families that search
    bool operator==(const FamilyChoice&) const = default;
};

/// The same model, cluster and microbatch count under another family, with carryMemoryChoices(). `stop` ends a family's
/// search early with its best result so far.
Design withFamily(const Design& base, const Family& family, const FamilyChoice& choice = {},
                  std::function<bool()> stop = {});

/// The same with these stages recomputing (empty: none): R blocks are placed right before the backwards where none
/// stand yet, and the bytes of F and R are adapted. The time of R comes from the formula, else it is a share of the
/// forward's. Without a model the bytes of selective recomputation are unknown. Throws Error.
Design withRecompute(const Design& base, const std::vector<Recompute>& ofStage);

/// How many copies of a stage can share out its states: replicas, and those that the model's degrees count.
int copiesSharing(const Design& design);

/// Throws Error at `where` for a design that shares out states among one copy.
void requireCopies(const Design& design, const char* where);

/// The same design whose copies share out their states so. Throws Error when there is one copy alone.
Design withZero(const Design& base, const Zero& zero);

/// Where times are not from a formula they do not say which layers the backward recomputes: the design without that, to
/// be changed and to recompute again. Nothing where there is none to take out.
std::optional<Design> withoutInsideRecompute(const Design& base);

/// The same design with activations of these stages offloaded (PipelineShape::offload; empty: none). Throws Error when
/// the costs do not have the link to host memory, and for updates during the step and sequence pieces.
Design withOffload(const Design& base, std::vector<bool> ofStage);

/// The same with other degrees of parallelism. Their costs are known only by formula.
Design withParallelism(const Design& base, const Parallelism& parallel);

/// The same with numbers of other types, and their bytes of state unless the design states others. Throws Error without
/// a model, and where times were given or measured with numbers of one type.
Design withPrecision(const Design& base, const Precision& precision);

/// The same with what another framework keeps besides, and its bytes of state unless the design states others. Throws
/// Error without a model.
Design withFramework(const Design& base, const FrameworkMemory& framework);

/// Another model with the same number of stages, cut evenly when its number of layers differs: costs that are not from
/// a formula are scaled with each stage's work, of updates with the bytes that they touch. For runs of a large design
/// on a small machine. Throws Error without a model, and for measured times of another data type.
Design withModel(const Design& base, const ModelShape& shape);

/// Another cut of the model's layers into as many stages as there are. Needs a model.
Design withPartition(const Design& base, std::vector<int> layersPerStage);

/// The cut with the border between stage `border` and the next moved by `layers` (positive: to later layers), as far as
/// possible: every stage keeps a layer. It never fails, so that a drag can use it.
std::vector<int> withBorderMoved(std::vector<int> layersPerStage, std::size_t border, int layers);

/// Other rates, memories and links of the same number of devices. Times that were given or measured stay;
/// links are taken over where they differ from the base's.
Design withCluster(const Design& base, Cluster cluster);

} // namespace pipewright
