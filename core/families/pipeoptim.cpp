// SPDX-License-Identifier: GPL-3.0-or-later
// PipeOptim (arXiv 2312.00839): asynchronous 1F1B whose forwards read weights predicted by the optimizer's own
// direction, p - r - 1 updates ahead on device r; backwards read the newest weights. The rule is in
// schedule/pipeoptimrule.cpp.
#include "core/families/asynchronous.h"

namespace pipewright {

Family pipeOptim()
{
    return {.name = "pipeoptim",
            .title = "PipeOptim",
            .description = "Asynchronous 1F1B; forwards read weights predicted by the optimizer's direction.",
            .backward = BackwardStyle::Full,
            .check =
                [](const FamilyParameters& p) {
                    return checkAsynchronous(p, WeightRule::PipeOptim, p.accumulate.value_or(1));
                },
            .make =
                [](const FamilyParameters& p) {
                    return makeAsynchronous(p, WeightRule::PipeOptim, p.accumulate.value_or(1));
                },
            .accumulates = true,
            .updates = true};
}

} // namespace pipewright
