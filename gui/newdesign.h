// SPDX-License-Identifier: GPL-3.0-or-later
// What the designer asks for when a schedule is to be made, put together by the core: model, cluster and
// family in, complete design out. Used by the New dialog, by switching families, and by the estimates
// beside the family list, so that all three agree to the bit.
#pragma once

#include "core/program/design.h"
#include "core/schedule/families/family.h"
#include "core/workload/workload.h"

#include <string>

namespace pipewright {

struct NewDesign {
    Workload workload;
    Cluster cluster; ///< its devices are the pipeline's
    std::string family = "zb-h1";
    int microbatches = 8;
    std::optional<int> chunks, group;
    std::optional<double> memoryLimit;
};

/// Throws Error with what is impossible about it.
Design makeDesign(const NewDesign& choice);

/// The same model, cluster and microbatch count under another family. Costs are kept where the stages stay
/// the same; otherwise those of a formula are made anew, given or measured ones are shared out by layer, and
/// without a model the present ones are split evenly.
/// Throws Error when the family cannot be made with these parameters.
Design withFamily(const Design& base, const Family& family);

/// Short description for the title: "llama-8b · 4 stages · ZB-H1".
std::string titleOf(const Design& design);

} // namespace pipewright
