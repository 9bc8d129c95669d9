// SPDX-License-Identifier: GPL-3.0-or-later
// A design together with the lines of its file, so that validate()'s diagnostics name the line of the device's order.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"

#include <functional>
#include <iterator>
#include <map>
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
    const char* key;
    Op op;
    int length;
};
inline constexpr PassKey passKeys[] = {{"F", Op::F, 1}, {"B", Op::B, 2}, {"I", Op::I, 1}, {"W", Op::W, 1}};
static_assert(std::size(passKeys) == passCount - 1, "one key for each pass of a building block, which has no R");

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
}

} // namespace pipewright
