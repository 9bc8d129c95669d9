// SPDX-License-Identifier: GPL-3.0-or-later
// An edit of a design as a value. Every source of edits (a drag, a key, a field, a suggestion) makes a request, and one
// function applies it: for a preview, on another thread, or for the final edit. Each kind of request is a function of
// core/schedule, core/program or core/predict with its arguments.
#pragma once

#include "core/predict/predict.h"
#include "core/schedule/pattern.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace pipewright {

/// The blocks of a device in another order, named by their present positions.
struct ReorderDevice {
    int device = -1;
    std::vector<std::uint32_t> positions;
    std::string name; ///< of the edit, for the undo stack: positions do not show the intent
    bool operator==(const ReorderDevice&) const = default;
};
/// Moves a block by `places` (negative: earlier) in its lane, with the rest of its microbatch (core/schedule/ripple.h).
struct RippleBlock {
    Block block;
    int places = 0;
    bool operator==(const RippleBlock&) const = default;
};
/// Gives devices the order of blocks that were copied from one device (core/schedule/pattern.h).
struct PastePattern {
    Pattern pattern;
    std::vector<int> devices;
    bool operator==(const PastePattern&) const = default;
};
struct MoveStage {
    int stage = -1;
    int device = -1;
    int replica = 0;
    bool operator==(const MoveStage&) const = default;
};
struct PlaceBlock {
    Block block;
    int index = 0; ///< before the block that is there now
    bool operator==(const PlaceBlock&) const = default;
};
struct UnplaceBlocks {
    std::vector<Block> blocks;
    bool operator==(const UnplaceBlocks&) const = default;
};
struct PinBlock {
    Block block;
    Nanoseconds earliestStart = 0; ///< 0 removes the pin
    bool operator==(const PinBlock&) const = default;
};
/// Splits every B among the blocks into I and W.
struct SplitBackwards {
    std::vector<Block> blocks;
    bool operator==(const SplitBackwards&) const = default;
};
/// Merges the backward of every I or W among the blocks into B.
struct MergeBackwards {
    std::vector<Block> blocks;
    bool operator==(const MergeBackwards&) const = default;
};
/// Places every unplaced block in the style of the placed ones (core/predict/completion.h).
struct CompleteSchedule {
    bool operator==(const CompleteSchedule&) const = default;
};
/// Moves the transfer at place `from` of a device's list of transfers to place `to` (of the list without it).
struct MoveTransfer {
    int device = -1;
    int from = -1;
    int to = -1;
    bool operator==(const MoveTransfer&) const = default;
};
/// Moves a collective of a group's members before transfers that leave the group, or after them.
struct MoveCollective {
    Transfer collective;
    std::vector<Transfer> passed; ///< the transfers that it moves past
    bool later = false;           ///< or earlier
    bool operator==(const MoveCollective&) const = default;
};
/// Gathers what `reader` reads first before another block of its device, or holds it (program/gatheredits.h): before
/// the block `before`, or by `places` of its device from where it stands.
struct MoveGather {
    Block reader;
    std::optional<Block> before{};
    int places = 0;
    bool operator==(const MoveGather&) const = default;
};
/// Removes the stated order of a transfer, or of a gather, which then has its inferred place.
struct FreeTransfer {
    Transfer transfer;
    bool operator==(const FreeTransfer&) const = default;
};
/// Sets the order of an overlapped pair's parts; empty: the shortest one.
struct OrderParts {
    Overlap pair;
    PartSequence sequence;
    bool operator==(const OrderParts&) const = default;
};
/// Allows I and W of the first stage to be separated.
struct AllowFirstStageSplit {
    bool operator==(const AllowFirstStageSplit&) const = default;
};
/// Sets the sharding plan of the group that holds a stage (core/design/stageplans.h); a plan that states nothing:
/// synthesised.
struct SetStagePlan {
    int stage = -1;
    sharding::StatedPlan plan;
    bool operator==(const SetStagePlan&) const = default;
};
/// Sets what the copies of the pipeline share out of their states (PipelineShape::zero).
struct SetZero {
    Zero zero;
    bool operator==(const SetZero&) const = default;
};
/// Another design in place of the present one: another family, other costs, the result of a search.
struct ReplaceDesign {
    std::shared_ptr<const Design> design;
    std::string name;
    bool operator==(const ReplaceDesign&) const = default;
};

using EditRequest =
    std::variant<ReorderDevice, RippleBlock, PastePattern, MoveStage, PlaceBlock, UnplaceBlocks, PinBlock,
                 SplitBackwards, MergeBackwards, CompleteSchedule, MoveTransfer, MoveCollective, MoveGather,
                 FreeTransfer, OrderParts, AllowFirstStageSplit, SetStagePlan, SetZero, ReplaceDesign>;

struct EditedDesign {
    std::shared_ptr<const Design> design; ///< the given one when the edit is illegal or changes nothing
    Diagnostics diagnostics;              ///< hasErrors(): the edit is illegal
    std::string style;                    ///< CompleteSchedule: as Completion::style
};

/// `present`: the prediction of `design`, or null; MoveTransfer changes nothing without one. Both are only read, so any
/// thread may call this. Cost: that of the request's function plus O(blocks) for the copy, and with stated transfer
/// orders also compile().
EditedDesign apply(const EditRequest& request, const std::shared_ptr<const Design>& design, const Prediction* present);
/// Applies the requests in sequence as one edit: all, or none when one is illegal. Predicts in between.
EditedDesign apply(std::span<const EditRequest> requests, const std::shared_ptr<const Design>& design,
                   const Prediction* present);

/// A request that makes a refused request legal when it is applied first. Found by trying, so it always helps.
std::optional<EditRequest> remedyFor(const EditRequest& refused, const std::shared_ptr<const Design>& design,
                                     const Prediction* present);

} // namespace pipewright
