// SPDX-License-Identifier: GPL-3.0-or-later
// Costs of one design for another schedule of the same model: the measured one is cut as the wanted one is, and its
// times are taken. O(layers + blocks).
#include "core/design/redesign.h"
#include "core/schedule/weightplan.h"

#include <fmt/format.h>

#include <utility>

namespace pipewright {

void checkSameModel(const std::optional<Workload>& wanted, const std::optional<Workload>& measured)
{
    const auto named = [](const std::optional<Workload>& workload) {
        return workload ? fmt::format("{} ({} layers of width {}, sequences of {}, {} per microbatch, {}-byte numbers)",
                                      workload->shape.name, workload->shape.layers, workload->shape.hidden,
                                      workload->shape.sequence, workload->shape.microbatchSize,
                                      bytesOf(workload->shape.dataType))
                        : std::string("no model");
    };
    if (wanted.has_value() == measured.has_value() && (!wanted || wanted->shape == measured->shape))
        return;
    throw Error(
        "--costs-from", fmt::format("its costs are of {}, and the design is of {}", named(measured), named(wanted)),
        "take the costs of a run of this very model, or make the design of that one; other sizes by the ratio of "
        "their work: --scale sequence=N,microbatch_size=N");
}

Design withCostsFrom(const Design& base, const Design& measured, std::optional<Unevenness> uneven)
{
    const Design cut = withSequencePieces(measured, base.schedule.sequencePieces);
    checkSameModel(base.workload, (hasUpdates(base.schedule) ? withOwnHead(cut) : cut).workload);
    Design design = base;
    design.costs =
        withSchedule(withDevices(measured, base.schedule.devices()), base.schedule, base.layersPerStage, uneven).costs;
    for (std::size_t s = 0; s < base.costs.stages.size(); ++s) { // the bytes are this design's: its optimizer counts
        const StageCosts carried = std::exchange(design.costs.stages[s], base.costs.stages[s]);
        design.costs.stages[s].origin = carried.origin;
        design.costs.stages[s].spread = carried.spread;
        design.costs.stages[s].parts = carried.parts;
        for (const Op op : allOps)
            design.costs.stages[s].*timeField(op) = carried.*timeField(op);
    }
    return design;
}

} // namespace pipewright
