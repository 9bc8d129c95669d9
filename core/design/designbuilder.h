// SPDX-License-Identifier: GPL-3.0-or-later
// Makes a design from a family's name and a few numbers: the command `new` writes it, and `predict` without a file
// evaluates it. Given times replace those of the model; without either a pass takes 1 ms and a transfer no time.
// Without a model and without bytes, a small model that the built-in backends can train is used, so that every design
// made here can also be run.
#pragma once

#include "core/cluster/nodes.h"
#include "core/design/design.h"
#include "core/design/recutcosts.h"
#include "core/families/family.h"

#include <optional>
#include <string>
#include <vector>

namespace pipewright {

struct DesignRequest : FamilyOptions {
    std::string family;
    /// The names of the options that the user gave: those that change nothing are refused (optionrules.h).
    std::vector<std::string> given;

    /// One device's worth of layers, or of one chunk when `perChunk`; a transfer is always one hop.
    std::optional<Nanoseconds> forward, inputGrad, weightGrad, transfer;
    bool perChunk = false;
    std::optional<double>
        overlapFactor; ///< of overlapped pairs, in place of their parts; unset: 1 for pairs without parts

    /// The bytes that one F of a whole device saves, and how much of it stays from I until W (default: all of it).
    /// Given bytes replace the model: the design then has none.
    std::optional<Bytes> saved, savedForWeightGrad;

    std::optional<std::string> model;           ///< a preset's name, or a file (presets/modelfile.h)
    std::optional<std::string> device, cluster; ///< presets: one kind of device, or all with their links
    std::optional<int> sequence, microbatchSize;
    std::optional<Parallelism> parallel;             ///< instead of the model's own
    std::optional<FrameworkMemory> framework;        ///< likewise
    std::optional<Precision> precision;              ///< likewise
    NodeChange nodes;                                ///< of a cluster that is made of nodes
    std::optional<double> efficiency, halfRateWidth; ///< of the cluster's devices, in place of the presets'
    /// Which stages make their activations again; unset: those of `costsFrom`, or none.
    std::optional<RecomputeChoice> recompute;
    /// In place of zero.reshard, which needs the number of stages.
    std::optional<ReshardChoice> reshard;
    /// Transformer layers per stage, or all layers when embedding and head are counted too; even when empty.
    std::vector<int> layersPerStage;

    std::string name; ///< default: made of family, devices and microbatches

    /// Another schedule of the model that provides the costs (redesign.h): model, cluster and times are taken from it.
    std::optional<Design> costsFrom;
    bool keepOffload = true; ///< the stages that offload there do so here
    /// To what uneven stage times there are put down; unset: as unevennessOf() finds.
    std::optional<Unevenness> uneven;
};

/// Throws Error naming the option at fault.
Design makeDesign(const DesignRequest& request);

/// Whether its model is the built-in one, which stands in where none was named and says nothing of the user's own.
bool hasStandInModel(const Design& design);

} // namespace pipewright
