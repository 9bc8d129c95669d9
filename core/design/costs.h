// SPDX-License-Identifier: GPL-3.0-or-later
// The costs of blocks: time and bytes per stage, and time per link. Costs come from a formula (workload x cluster),
// from the user, or from a measured trace; every consumer reads this one type.
#pragma once

#include "core/base/units.h"
#include "core/design/blockparts.h"
#include "core/design/communication.h"
#include "core/schedule/block.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipewright {

/// Where a number comes from. Estimated: derived from known numbers, such as a measured full backward split into its
/// halves, or a stage's time divided among its layers.
enum class CostOrigin : std::uint8_t { AsSource, Given, Formula, Measured, Estimated };
constexpr std::string_view nameOf(CostOrigin origin) ///< empty behind the last one
{
    switch (origin) {
    case CostOrigin::AsSource: return "as source";
    case CostOrigin::Given: return "given";
    case CostOrigin::Formula: return "formula";
    case CostOrigin::Measured: return "measured";
    case CostOrigin::Estimated: return "estimated";
    }
    return {};
}

/// Costs of one stage for one microbatch. Bytes of activations are split by lifetime:
///   savedUntilInputGrad   written by F, released by I (or B)
///   savedUntilWeightGrad  written by F, released by W (or B)
///   savedFromInputGrad    written by I, released by W; a full B holds it only while it runs, without what it is
///                         spared (sparedByBackward): it goes on with W layer by layer, and has room for one layer's
///                         in its workspace
/// In the zero-bubble papers' terms M_B = the first two, M_W = the last two. When the stage recomputes, R writes what F
/// did not save:
///   recomputedUntilInputGrad    written by R, released by I (or B)
///   recomputedUntilWeightGrad   written by R, released by W (or B)
/// and the input of F stays until R. Where the backward itself recomputes layer by layer, the input of F stays until I
/// (or B); what it makes again is in the workspace, or for W in savedFromInputGrad.
struct StageCosts {
    Nanoseconds forward = 1'000'000;
    Nanoseconds inputGrad = 1'000'000;
    Nanoseconds weightGrad = 1'000'000;
    Nanoseconds backward = 2'000'000; ///< the full B; I + W unless measured
    Nanoseconds update = 0;           ///< optimizer, once per step
    Nanoseconds recompute = 0; ///< of an R block; where the backward recomputes, its share of inputGrad and backward
    /// Of one device with the copies of the pipeline that the model's degrees count (schedule/zero.h): to sum the
    /// gradients over them, where each keeps its share or, when nothing is shared out, all; and to gather parameters.
    Nanoseconds reduceGradients = 0, gather = 0;

    Bytes savedUntilInputGrad = 0;
    Bytes savedUntilWeightGrad = 0;
    Bytes savedFromInputGrad = 0;
    Bytes sparedByBackward = 0;
    Bytes recomputedUntilInputGrad = 0, recomputedUntilWeightGrad = 0;
    Bytes output = 0; ///< what F hands to the next stage; its gradient is as large
    Bytes sequenceGradient =
        0; ///< with sequence pieces: gradients of keys and values, live from the last piece's backward to the first's
    Bytes workspaceForward = 0, workspaceInputGrad = 0, workspaceWeightGrad = 0, workspaceBackward = 0,
          workspaceRecompute = 0;
    Bytes parameters = 0, gradients = 0, optimizerState = 0; ///< live all the time: of shared states the device's share
    /// What a framework holds besides, all the time; stages of one device share it (heldBesides() in stagestate.h).
    Bytes framework = 0;
    Bytes narrowWeights = 0;      ///< held besides in the type that products read; each stage has its own
    Bytes gatheredParameters = 0; ///< all of them, from their gathering to their last reader; 0: not shared out
    Bytes wholeGradients = 0;     ///< all of them, from the first backward to their sum; 0: not shared out

    std::array<CostOrigin, opCount> origin{}; ///< of the times, by operation; AsSource: see Costs::source
    /// By operation: the standard deviation of the times between blocks, relative to the time; 0: not known.
    std::array<double, opCount> spread{};
    /// By operation, for passes: the parts of the block in their order; their times add up to the block's. Empty: one
    /// compute part.
    std::array<std::vector<BlockPart>, opCount> parts{};

    /// Whether its device exchanges parameters and gradients with copies of the pipeline that are only counted.
    bool exchangesStates() const
    {
        return reduceGradients > 0 || gather > 0 || gatheredParameters > 0 || wholeGradients > 0;
    }
    Bytes allGradients() const { return std::max(gradients, wholeGradients); }       ///< shared out or not
    Bytes allParameters() const { return std::max(parameters, gatheredParameters); } ///< likewise
    /// The bytes that a backward with the input gradient (I or B) also writes for the weight gradient.
    Bytes madeForWeightGrad(Op op) const
    {
        return isFullBackward(op) ? std::max<Bytes>(0, savedFromInputGrad - sparedByBackward) : savedFromInputGrad;
    }
    /// What an operation needs while it runs.
    Bytes workspace(Op op) const
    {
        switch (op) {
        case Op::F: return workspaceForward;
        case Op::B: return workspaceBackward;
        case Op::I: return workspaceInputGrad;
        case Op::W: return workspaceWeightGrad;
        case Op::R: return workspaceRecompute;
        case Op::U: return 0;
        }
        return 0;
    }
    /// The passes that recompute, I and B, take so much longer, or shorter for less than 0.
    void lengthenBackward(Nanoseconds by);
    /// The times that follow from others: a full backward takes as long as its halves, a recompute as a forward.
    void fillInTimes();
    /// Call after times have changed: parts keep their shares of the block. O(parts).
    void fitParts();
    /// The parts; without any, the whole block as one.
    std::vector<BlockPart> partsOrWhole(Op op) const;
    bool operator==(const StageCosts&) const = default;
};

/// The field with the time of an operation.
constexpr Nanoseconds StageCosts::*timeField(Op op)
{
    switch (op) {
    case Op::F: return &StageCosts::forward;
    case Op::B: return &StageCosts::backward;
    case Op::I: return &StageCosts::inputGrad;
    case Op::W: return &StageCosts::weightGrad;
    case Op::U: return &StageCosts::update;
    case Op::R: return &StageCosts::recompute;
    }
    return nullptr;
}

/// A transfer of n bytes takes latency + n / bytesPerSecond; 0 bytes per second means "latency only".
struct LinkCosts {
    Nanoseconds latency = 0;
    double bytesPerSecond = 0;
    /// Links with the same bus name share one wire. Their transfers use it one at a time, in the order in which they
    /// become ready, each for the time of its bytes without the latency. Empty: an own wire that is never busy.
    std::string bus{};
    CostOrigin origin = CostOrigin::AsSource;

    Nanoseconds transferTime(Bytes bytes) const { return latency + wireTime(bytes); }
    Nanoseconds wireTime(Bytes bytes) const; ///< without the latency
    bool operator==(const LinkCosts&) const = default;
};

/// The links of devices that stand on several nodes (cluster/nodes.h): which link two of them have follows from where
/// they stand, so it is known of every pair, whatever is exchanged and wherever a stage is moved to.
struct NodeLinks {
    struct Node {
        int underSwitch = 0;
        LinkCosts network{};      ///< from here to another node under the same switch
        LinkCosts beyondSwitch{}; ///< and to one under another
        bool operator==(const Node&) const = default;
    };
    std::vector<Node> nodes;
    std::vector<int> nodeOfDevice; ///< a group of devices that no node holds whole has one to itself

    bool any() const { return !nodes.empty(); }
    /// Null for two on one node, and for devices of which it is not known where they stand.
    const LinkCosts* between(int from, int to) const;
    bool operator==(const NodeLinks&) const = default;
};

/// The host's time before the blocks of one device: kernel launch, autograd, Python, a thread that wakes up. A block
/// begins this much after its device is free and its inputs have arrived. The device is idle meanwhile.
struct HostGaps {
    std::array<Nanoseconds, opCount> before{};
    std::array<CostOrigin, opCount> origin{};
    bool operator==(const HostGaps&) const = default;
};

/// The time and bytes of a microbatch relative to the usual one of StageCosts: it may have a longer text, or be a piece
/// of a sequence with more earlier tokens to attend to.
struct MicrobatchScale {
    double time = 1, bytes = 1;
    bool operator==(const MicrobatchScale&) const = default;
};

struct Costs {
    // Out of line: inlined, each is kilobytes of code in every file that uses one.
    Costs();
    Costs(const Costs& other);
    Costs(Costs&& other) noexcept;
    Costs& operator=(const Costs& other);
    Costs& operator=(Costs&& other) noexcept;
    ~Costs();

    std::vector<StageCosts> stages;
    std::vector<MicrobatchScale> microbatches;           ///< per microbatch; empty: all alike
    LinkCosts link;                                      ///< between any two devices …
    NodeLinks nodeLinks;                                 ///< … unless they stand on different nodes …
    std::map<std::pair<int, int>, LinkCosts> linkOfPair; ///< … or this directed pair is listed
    std::optional<LinkCosts> hostLink; ///< between a device and the host's memory, a wire each way; unset: not known
    std::vector<HostGaps> hostGaps;    ///< per device; of devices behind the last one: none
    Communication communication = Communication::Overlapped;
    double overlapFactor = 1; ///< an overlapped pair without parts takes this times the sum of its two blocks
    /// One reduction of a shared parameter's gradient after the loop; see reduceTime().
    Nanoseconds reduce = 0;
    std::string source = "given"; ///< "given", "formula: …", "measured: run.db"; shown beside numbers

    Nanoseconds duration(Op op, int stage) const; ///< of a usual microbatch
    Nanoseconds duration(Op op, int stage, int microbatch) const;
    std::span<const BlockPart> parts(Op op, int stage) const; ///< of a usual microbatch
    bool hasParts() const;
    Nanoseconds hostGap(Op op, int device) const; ///< before a block, or an update
    bool hasHostGaps() const;
    Bytes scaled(Bytes bytes, int microbatch) const;
    const LinkCosts& linkBetween(int fromDevice, int toDevice) const;
    bool allLinksAlike() const { return !nodeLinks.any() && linkOfPair.empty(); }
    bool hasBus() const; ///< of any link
    void setAllLinks(LinkCosts every);
    /// The slowest link between the first `devices` devices, one behind the other: of a hop whose place is not known.
    const LinkCosts& slowestHop(int devices) const;
    /// Reducing a shared parameter's gradient of `bytes` between two devices: as stated, or on nodes, where pairs
    /// differ and no time is stated, there and back again over their link.
    Nanoseconds reduceTime(int device, int peer, Bytes bytes) const;
    bool isFormula() const { return source.starts_with("formula"); }
    CostOrigin sourceOrigin() const; ///< the origin of times without their own, from `source`
    CostOrigin originOf(Op op, int stage) const;
    /// The typical spread of the stages that have one; 0 when none has.
    double usualSpread(Op op) const;
    bool hasSpread() const;
    bool operator==(const Costs& other) const;
};

/// Splits the times of one device's worth of layers evenly over `chunks` stages (rounded down to whole
/// nanoseconds). `saved` is what one F of a whole device keeps, of which `savedForWeightGrad` stays from
/// I until W.
struct DeviceWorth {
    Nanoseconds forward = 1'000'000, inputGrad = 1'000'000, weightGrad = 1'000'000, transfer = 0;
    Bytes saved = 0, savedForWeightGrad = 0;
    bool perChunk = false; ///< the three pass times are per chunk already; bytes are always per device
    int pieces = 1;        ///< a microbatch is cut into so many; times and bytes are of a whole one
};
Costs uniformCosts(const DeviceWorth& worth, int stages, int chunks);

} // namespace pipewright
