// SPDX-License-Identifier: GPL-3.0-or-later
// A design under one changed premise: another order of the same work, another family, another cut into
// stages, another cluster. What the change does not touch stays; costs follow it as far as is known about
// them: those of a formula are computed anew, given or measured ones are kept where the stages stay and
// shared out by layer where they do not. Every function throws Error with what is impossible.
#pragma once

#include "core/design/design.h"
#include "core/families/family.h"

#include <optional>
#include <vector>

namespace pipewright {

/// Gives families that search the pass times of one device on average, and the time of one transfer.
void takeWork(FamilyParameters& parameters, const Costs& costs);

/// The same work with every microbatch in so many pieces of its sequence: times and activations are shared out
/// evenly, and the model's bytes are those of a piece. The schedule stays as it was.
Design withSequencePieces(const Design& base, int pieces);

/// The same with an output head of its own where it shares the embedding's matrix: two stages that are updated at
/// different times cannot share one.
Design withOwnHead(const Design& base);

/// Another schedule of the same model on the same cluster. Costs that no formula gave go where the layers go, each
/// device at its own pace (recutCosts(), or shareOutCosts() without a model); links stay with their pair of devices.
/// `layersPerStage`: the cut, where it shall not be an even one.
Design withSchedule(const Design& base, Schedule schedule, std::vector<int> layersPerStage = {});

/// The same design with more devices like its last, or fewer; its schedule is not touched.
Design withDevices(const Design& base, int devices);

/// Throws Error when times of the one model say nothing of the other; where a model comes from, or what updates
/// its weights, does not count.
void checkSameModel(const std::optional<Workload>& wanted, const std::optional<Workload>& measured);

/// The design with the costs of another schedule of the same model, as withSchedule() carries them over.
Design withCostsFrom(const Design& base, const Design& measured);

/// What a family lets a person choose; unset: its own default.
struct FamilyChoice {
    std::optional<int> chunks;
    std::optional<double> memoryLimit; ///< x devices microbatches of activations, for families that search
    bool operator==(const FamilyChoice&) const = default;
};

/// The same model, cluster and microbatch count under another family; stages that recompute stay in proportion, unless
/// the family updates amid the run. `stop` ends a family's search early, with the
/// best it has so far.
Design withFamily(const Design& base, const Family& family, const FamilyChoice& choice = {},
                  std::function<bool()> stop = {});

/// The same with these stages recomputing (empty: none): R blocks are placed right before the backwards where none
/// stand yet, and what F keeps and R writes follows. How long R takes is the formula's, else the forward's share.
/// Without a model it is unknown what selective recomputation keeps. Throws Error.
Design withRecompute(const Design& base, const std::vector<Recompute>& ofStage);

/// The same design with these stages offloading what their forwards keep (PipelineShape::offload; empty: none). Throws
/// Error where the costs do not know the link to the host's memory, and for updates amid the step and sequence pieces.
Design withOffload(const Design& base, std::vector<bool> ofStage);

/// The same with other degrees of parallelism. Only a formula knows what those cost.
Design withParallelism(const Design& base, const Parallelism& parallel);

/// Another model of as many stages, cut evenly where it has another number of layers: costs that no formula gave grow
/// or shrink with each stage's work. For runs of a large design on a small machine. Throws Error without a model.
Design withModel(const Design& base, const ModelShape& shape);

/// Another cut of the model's layers into as many stages as there are. Needs a model.
Design withPartition(const Design& base, std::vector<int> layersPerStage);

/// The cut with the border between stage `border` and the next moved by `layers` (positive: to later layers), as
/// far as it goes: every stage keeps a layer. For drags, which know no error.
std::vector<int> withBorderMoved(std::vector<int> layersPerStage, std::size_t border, int layers);

/// Other rates, memories and links of the same number of devices. Times that were given or measured stay;
/// links are taken over where they differ from the base's.
Design withCluster(const Design& base, Cluster cluster);

} // namespace pipewright
