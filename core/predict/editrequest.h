// SPDX-License-Identifier: GPL-3.0-or-later
// An edit of a design as one value. Whatever asks for an edit (a drag, a key, a field, a suggestion) makes a request,
// and one function applies it: for the preview, on another thread, or for good. Each kind of request is a function of
// core/schedule, core/program or core/predict with its arguments.
#pragma once

#include "core/predict/predict.h"

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
    std::string name; ///< of the edit, for people: positions do not say what was meant
    bool operator==(const ReorderDevice&) const = default;
};
/// So many places earlier (negative) or later in its lane, the rest of its microbatch along (core/schedule/ripple.h).
struct RippleBlock {
    Block block;
    int places = 0;
    bool operator==(const RippleBlock&) const = default;
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
/// Every B among the blocks, into I and W.
struct SplitBackwards {
    std::vector<Block> blocks;
    bool operator==(const SplitBackwards&) const = default;
};
/// The backward of every I or W among the blocks, into B.
struct MergeBackwards {
    std::vector<Block> blocks;
    bool operator==(const MergeBackwards&) const = default;
};
/// Every unplaced block, in the style of the placed ones (core/predict/completion.h).
struct CompleteSchedule {
    bool operator==(const CompleteSchedule&) const = default;
};
/// The transfer at one place of a device's list of communication to another place (of the list without it).
struct MoveTransfer {
    int device = -1;
    int from = -1;
    int to = -1;
    bool operator==(const MoveTransfer&) const = default;
};
/// A collective of a group's members to before transfers that leave the group, or behind them.
struct MoveCollective {
    Transfer collective;
    std::vector<Transfer> passed; ///< on its way there
    bool later = false;           ///< or earlier
    bool operator==(const MoveCollective&) const = default;
};
/// Forgets what is stated about a transfer, which then goes where its data puts it.
struct FreeTransfer {
    Transfer transfer;
    bool operator==(const FreeTransfer&) const = default;
};
/// The parts of an overlapped pair in this order; empty: in the shortest one.
struct OrderParts {
    Overlap pair;
    PartSequence sequence;
    bool operator==(const OrderParts&) const = default;
};
/// The halves of the first stage's backwards may part from now on.
struct AllowFirstStageSplit {
    bool operator==(const AllowFirstStageSplit&) const = default;
};
/// How the group that holds a stage shares it out (core/design/stageplans.h); one that states nothing: as it is found.
struct SetStagePlan {
    int stage = -1;
    sharding::StatedPlan plan;
    bool operator==(const SetStagePlan&) const = default;
};
/// Whether the replicas share the optimizer's state of every stage out (PipelineShape::shardedOptimizer).
struct ShardOptimizer {
    bool sharded = true;
    bool operator==(const ShardOptimizer&) const = default;
};
/// Another design in place of the present one: another family, other costs, the result of a search.
struct ReplaceDesign {
    std::shared_ptr<const Design> design;
    std::string name;
    bool operator==(const ReplaceDesign&) const = default;
};

using EditRequest =
    std::variant<ReorderDevice, RippleBlock, MoveStage, PlaceBlock, UnplaceBlocks, PinBlock, SplitBackwards,
                 MergeBackwards, CompleteSchedule, MoveTransfer, MoveCollective, FreeTransfer, OrderParts,
                 AllowFirstStageSplit, SetStagePlan, ShardOptimizer, ReplaceDesign>;

struct EditedDesign {
    std::shared_ptr<const Design> design; ///< the given one when the edit is illegal or changes nothing
    Diagnostics diagnostics;              ///< hasErrors(): the edit is illegal
    std::string style;                    ///< CompleteSchedule: as Completion::style
};

/// `present`: the prediction of `design`, null where there is none; MoveTransfer changes nothing without one. Neither
/// is written to, so any thread may ask. As long as the function of the request's kind takes, and O(blocks) for the
/// copy; where an order of transfers is stated, also compile().
EditedDesign apply(const EditRequest& request, const std::shared_ptr<const Design>& design, const Prediction* present);
/// The requests one after another as one edit: all of them, or none when one is illegal. Predicts in between.
EditedDesign apply(std::span<const EditRequest> requests, const std::shared_ptr<const Design>& design,
                   const Prediction* present);

/// What makes a refused request legal when it is made first, found by trying: nothing is offered that does not help.
std::optional<EditRequest> remedyFor(const EditRequest& refused, const std::shared_ptr<const Design>& design,
                                     const Prediction* present);

} // namespace pipewright
