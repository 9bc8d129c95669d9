// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/formats/exportedtext.h"

#include "core/schedule/validate.h"

#include <fmt/format.h>

namespace pipewright {

void requireValid(const Design& design)
{
    for (std::size_t device = 0; device < design.schedule.order.size(); ++device)
        for (const Block& block : design.schedule.order[device])
            if (block.replica != 0 || block.op > Op::W)
                throw Error(fmt::format("device {} ({})", device, toString(block)),
                            block.replica != 0 ? "the other tools know one replica of the model"
                                               : fmt::format("the other tools have no {} in their schedules", describe(block.op)),
                            "export a schedule of forwards and backwards of one replica");
    Diagnostics diagnostics = validate(design.schedule, design.dataflow.skips);
    if (hasErrors(diagnostics))
        throw Error(std::move(diagnostics));
}

Diagnostics warnAboutUnexported(const Design& design)
{
    Diagnostics diagnostics;
    if (!design.schedule.pins.empty())
        diagnostics.push_back({Severity::Warning, "schedule.pins", "pinned start times are left out",
                               "the other tool starts every block as early as it can"});
    if (!design.dataflow.skips.empty())
        diagnostics.push_back({Severity::Warning, "dataflow.skips", "skip connections are left out",
                               "the other tool hands values only from one stage to the next"});
    if (!design.dataflow.shared.empty())
        diagnostics.push_back({Severity::Warning, "dataflow.shared",
                               "the reduction of gradients of shared parameters is left out",
                               "add it to the training loop, after the step's last microbatch"});
    return diagnostics;
}

} // namespace pipewright
