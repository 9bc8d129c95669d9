// SPDX-License-Identifier: GPL-3.0-or-later
// A design together with the lines of its file, so that validate()'s diagnostics name the line of the device's order.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"

#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

struct LocatedDesign {
    Design design;
    std::string source;            ///< "design.json"
    std::vector<int> lineOfDevice; ///< of each device's order, from 1
    int lineOfSchedule = 1, lineOfPlacement = 1, lineOfCosts = 1, lineOfModel = 1;
    std::map<std::string, int, std::less<>> lineOfKey; ///< of the schedule's: "transfer_order"

    /// "device 1, position 3 (B0.0): …" becomes "design.json:12: error: device 1, position 3 (B0.0): …". Places that
    /// begin with device, stage, pin, schedule, schedule.KEY, costs or model are known; others get the file.
    Diagnostics locate(Diagnostics diagnostics) const;
    int lineOf(std::string_view where) const; ///< 0: unknown place
};

/// As designFromJson and readDesign. Throws Error.
LocatedDesign locatedDesignFromJson(std::string_view text, const std::string& where);
LocatedDesign readLocatedDesign(const std::string& path);

/// The passes of a block in files: key, operation, length when none is given.
struct PassKey {
    char key[2];
    Op op;
    int length;
};
inline constexpr auto passKeys = [] {
    std::array<PassKey, passCount - 1> keys{}; // a building block has no R
    std::size_t known = 0;
    for (const Op op : allOps)
        if (isPass(op) && !isRecompute(op))
            keys.at(known++) = {{letter(op), '\0'}, op, isFullBackward(op) ? 2 : 1};
    return keys;
}();

/// The times of a stage's costs in the order of files, each with what it is when a file has none, given those before
/// it; nothing: the file has to have it.
template<class Visit>
void forEachTime(const StageCosts& stage, Visit visit)
{
    for (const Op op : {Op::F, Op::I, Op::W})
        visit(op, std::optional<Nanoseconds>());
    visit(Op::B, std::optional(stage.inputGrad + stage.weightGrad));
    for (const Op op : {Op::U, Op::R})
        visit(op, std::optional<Nanoseconds>(0));
}

/// The times of a stage's costs that are no block's, under their names in files; 0 where a file has none.
template<class Stage, class Visit>
void forEachExchangeTime(Stage& stage, Visit visit)
{
    visit("reduce_gradients", stage.reduceGradients);
    visit("gather", stage.gather);
}

/// The byte fields of a stage's costs under their names in files; one list for writing and reading.
template<class Stage, class Visit>
void forEachByteField(Stage& stage, Visit visit)
{
    visit("saved_until_input_grad", stage.savedUntilInputGrad);
    visit("saved_until_weight_grad", stage.savedUntilWeightGrad);
    visit("saved_from_input_grad", stage.savedFromInputGrad);
    visit("spared_by_backward", stage.sparedByBackward);
    visit("recomputed_until_input_grad", stage.recomputedUntilInputGrad);
    visit("recomputed_until_weight_grad", stage.recomputedUntilWeightGrad);
    visit("sequence_gradient", stage.sequenceGradient);
    visit("output", stage.output);
    visit("workspace_forward", stage.workspaceForward);
    visit("workspace_input_grad", stage.workspaceInputGrad);
    visit("workspace_weight_grad", stage.workspaceWeightGrad);
    visit("workspace_backward", stage.workspaceBackward);
    visit("workspace_recompute", stage.workspaceRecompute);
    visit("parameters", stage.parameters);
    visit("gradients", stage.gradients);
    visit("optimizer_state", stage.optimizerState);
    visit("gathered_parameters", stage.gatheredParameters);
    visit("whole_gradients", stage.wholeGradients);
    visit("framework", stage.framework);
    visit("narrow_weights", stage.narrowWeights);
}

} // namespace pipewright
