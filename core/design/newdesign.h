// SPDX-License-Identifier: GPL-3.0-or-later
// Makes a complete design from a model, a cluster and a family, as chosen in the designer's New dialog. redesign.h
// changes one of them later.
#pragma once

#include "core/design/design.h"
#include "core/families/family.h"
#include "core/model/workload.h"

#include <string>

namespace pipewright {

struct NewDesign : FamilyOptions {
    Workload workload;
    Cluster cluster; ///< its devices are the pipeline's, and the family's
    std::string family = "zb-h1";
};

/// Throws Error with the reason when it is impossible.
Design designFromModel(const NewDesign& choice);

/// Short description for the title: "llama-8b · 4 stages · ZB-H1".
std::string titleOf(const Design& design);

} // namespace pipewright
