// SPDX-License-Identifier: GPL-3.0-or-later
// What the designer asks for when a schedule is to be made: model, cluster and family in, complete design
// out. Changing one of them later is redesign.h's business.
#pragma once

#include "core/design/design.h"
#include "core/families/family.h"
#include "core/workload/workload.h"

#include <optional>
#include <string>

namespace pipewright {

struct NewDesign {
    Workload workload;
    Cluster cluster; ///< its devices are the pipeline's
    std::string family = "zb-h1";
    int microbatches = 8;
    std::optional<int> chunks, group, pieces;
    std::optional<double> memoryLimit;
    WorkerLayout layout = WorkerLayout::Pipeline; ///< of data parallel families
    std::optional<int> workers;                   ///< likewise, where the devices do not say it
};

/// Throws Error with what is impossible about it.
Design makeDesign(const NewDesign& choice);

/// Short description for the title: "llama-8b · 4 stages · ZB-H1".
std::string titleOf(const Design& design);

} // namespace pipewright
