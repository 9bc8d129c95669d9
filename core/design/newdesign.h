// SPDX-License-Identifier: GPL-3.0-or-later
// What the designer asks for when a schedule is to be made: model, cluster and family in, complete design
// out. redesign.h changes one of them later.
#pragma once

#include "core/design/design.h"
#include "core/families/family.h"
#include "core/workload/workload.h"

#include <string>

namespace pipewright {

struct NewDesign : FamilyOptions {
    Workload workload;
    Cluster cluster; ///< its devices are the pipeline's, and the family's
    std::string family = "zb-h1";
};

/// Throws Error with what is impossible about it.
Design designFromModel(const NewDesign& choice);

/// Short description for the title: "llama-8b · 4 stages · ZB-H1".
std::string titleOf(const Design& design);

} // namespace pipewright
