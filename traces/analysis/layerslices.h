// SPDX-License-Identifier: GPL-3.0-or-later
// Extracts from a recording what layerranges.h needs: the ranges that may be layers, with the pass that their name
// tells, the operators of the autograd engine, each with the start of its forward operator, and the order of layers
// within a forward pass.
#pragma once

#include "traces/store/activitystore.h"

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class LayerPass { Forward, Backward, InputGrad, WeightGrad };

/// "layer 3 backward" is the Backward of "layer 3". A name without a word for a pass is a Forward, with `said` false.
struct LayerName {
    std::string layer;
    LayerPass pass = LayerPass::Forward;
    bool said = false;
};
LayerName layerName(std::string_view range);

struct LayerSlices {
    struct Slice {
        Nanoseconds start = 0, end = 0;
        std::uint32_t lane = 0, name = 0;
    };
    struct Range : Slice {
        LayerName is;
        int depth = 0;            ///< number of ranges of layers around it
        bool forwardWork = false; ///< an operator within it has a backward
    };
    /// An operator of the autograd engine.
    struct Node : Slice {
        static constexpr Nanoseconds unknown = -1;
        Nanoseconds forward = unknown; ///< start of its forward operator
        bool accumulates = false;      ///< accumulates a parameter's gradient
        double weightShare = 0;        ///< estimated share of its time for weight gradients
    };
    int rank = 0;
    std::vector<Range> ranges; ///< by start; without those within nodes: recomputing is backward work
    std::vector<Node> nodes;
    std::vector<Slice> operators; ///< of the framework, by start
    bool arrows = false;          ///< some node knows its forward operator
};

/// `expression`: for the names of ranges; empty: all ranges except those of tools. Uses the lowest rank that has one.
LayerSlices layerSlices(const StoredActivities& trace, const std::string& expression);

/// A forward pass: its layers' ranges in order, up to the next backward.
struct LayerRun {
    std::vector<std::size_t> ranges;
};
/// The most frequent sequence of layers and its runs; `others`: number of runs with other layers. Chooses the nesting
/// depth at which a pass has several ranges. Empty when there is none.
struct LayerRuns {
    std::vector<LayerRun> runs;
    std::vector<std::string> layers; ///< equal names are numbered
    int others = 0;
};
LayerRuns layerRuns(const LayerSlices& slices, bool namedByUser);

} // namespace pipewright
