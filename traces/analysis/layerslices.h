// SPDX-License-Identifier: GPL-3.0-or-later
// What layerranges.h reads of a recording: the ranges that may be layers, with the pass that their name says, the
// operators of the autograd engine, each with the moment of the forward operator that it belongs to, and how layers of
// one forward pass follow one another.
#pragma once

#include "traces/store/activitystore.h"

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class LayerPass { Forward, Backward, InputGrad, WeightGrad };

/// "layer 3 backward" is the Backward of "layer 3"; a name without such a word is a Forward, and `said` is false.
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
        int depth = 0;            ///< how many ranges of layers it lies in
        bool forwardWork = false; ///< an operator in it has a backward
    };
    /// An operator of the engine, by start.
    struct Node : Slice {
        static constexpr Nanoseconds unknown = -1;
        Nanoseconds forward = unknown; ///< when the forward operator began that it belongs to
        bool accumulates = false;      ///< adds a gradient to a parameter's
        double weightShare = 0;        ///< estimate: of its time for weight gradients
    };
    int rank = 0;
    std::vector<Range> ranges; ///< by start; none lies in a node, as what is recomputed there is backward
    std::vector<Node> nodes;
    std::vector<Slice> operators; ///< of the framework, by start
    bool arrows = false;          ///< some node knows its forward operator
};

/// `expression`: of the names of ranges; empty: all that are no marks of tools. Of the lowest rank that has one.
LayerSlices layerSlices(const StoredActivities& trace, const std::string& expression);

/// A forward pass: its layers' ranges in order; it ends where a backward begins.
struct LayerRun {
    std::vector<std::size_t> ranges;
};
/// Those of most runs, with the layers in one order; `others`: runs that have other layers. Chooses the depth of ranges
/// at which a pass has several. Empty when there is none.
struct LayerRuns {
    std::vector<LayerRun> runs;
    std::vector<std::string> layers; ///< numbered where several are called the same
    int others = 0;
};
LayerRuns layerRuns(const LayerSlices& slices, bool namedByUser);

} // namespace pipewright
