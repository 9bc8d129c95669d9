// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/formats/exportedtext.h"

#include "core/schedule/validate.h"

#include <fmt/format.h>

namespace pipewright {

void requireValid(const Design& design)
{
    for (std::size_t device = 0; device < design.schedule.order.size(); ++device)
        for (const Block& block : design.schedule.order[device])
            if (block.op > Op::W)
                throw Error(fmt::format("device {} ({})", device, toString(block)),
                            fmt::format("the other tools have no {} in their schedules", describe(block.op)),
                            "export a schedule of forwards and backwards");
    Diagnostics diagnostics = validate(design.schedule, design.dataflow.skips);
    if (hasErrors(diagnostics))
        throw Error(std::move(diagnostics));
}

void requireOneReplica(const Design& design, std::string_view tool)
{
    if (design.schedule.replicas() > 1)
        throw Error("schedule.replica_placements", fmt::format("{} has no word for the {} replicas of this schedule", tool, design.schedule.replicas()),
                    "export a schedule of one replica, or pytorch-csv for the order alone");
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
    if (design.schedule.sequencePieces > 1)
        diagnostics.push_back({Severity::Warning, "schedule.sequence_pieces",
                               fmt::format("the {} pieces of a sequence are written as microbatches of their own", design.schedule.sequencePieces),
                               "the other tool's stages must keep the keys and values of earlier pieces"});
    return diagnostics;
}

} // namespace pipewright
