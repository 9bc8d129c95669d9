// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/searchmodel.h"

#include "core/design/stagestate.h"

#include <cmath>

namespace pipewright {

void SearchModel::addMemory(const Design& design, const MemoryLimit& limit, Patience& patience)
{
    const Costs& costs = design.costs;
    const bool byFactor = limit.factor.has_value();
    ByDevice<Bytes> persistent(devices), savedOnDevice(devices);
    const std::vector<HeldBesides> besides = heldBesides(design.schedule, costs);
    for (int d = 0; d < devices; ++d)
        persistent[d] = besides[static_cast<std::size_t>(d)].bytes;
    Bytes known = 0;
    for (int d = 0; d < devices; ++d)
        for (const int s : stagesOfDevice[d]) {
            const StageCosts& c = costs.stages[s];
            persistent[d] += stageState(design.schedule, costs, design.dataflow, s, 0).bytes();
            savedOnDevice[d] += c.savedUntilInputGrad + c.savedUntilWeightGrad;
            known += c.savedUntilInputGrad + c.savedUntilWeightGrad;
        }
    for (SearchTask& task : tasks) {
        patience.spend(1);
        const StageCosts& c = costs.stages[task.stage];
        const auto scaled = [&](Bytes bytes) { return costs.scaled(bytes, task.microbatch); };
        const bool units = byFactor && known == 0;
        const Bytes untilInput = units ? 0 : scaled(c.savedUntilInputGrad),
                    untilWeight = units ? 1 : scaled(c.savedUntilWeightGrad);
        const Bytes fromInput = units ? 0 : scaled(c.savedFromInputGrad);
        // F's input is kept until all layers are recomputed, by R or inside the backward; R's results are kept until I
        // and until W.
        const Recompute recompute = design.schedule.recomputeOf(task.stage);
        const bool keepsInput = recompute.readsInput();
        const Bytes input = keepsInput && task.stage > 0 ? scaled(costs.stages[task.stage - 1].output) : 0;
        const Bytes againInput = scaled(c.recomputedUntilInputGrad), againWeight = scaled(c.recomputedUntilWeightGrad);
        const Bytes inputOfBackward = recompute.insideBackward() ? input : 0;
        const auto passing = [&](Bytes bytes) { return byFactor ? 0 : scaled(bytes); };
        // What comes from and goes to the neighbouring stages, activations or gradients of the same size.
        const Bytes before = task.stage > 0 ? passing(costs.stages[task.stage - 1].output) : 0,
                    behind = task.stage + 1 < stages ? passing(c.output) : 0;
        task.passing = passing(c.workspace(task.op));
        switch (task.op) {
        case Op::F:
            task.taken = untilInput + untilWeight + input;
            task.passing += (keepsInput ? 0 : before) + behind;
            break;
        case Op::R:
            task.taken = againInput + againWeight;
            task.freed = recompute.byBlock() ? input : 0;
            break;
        case Op::I:
            // In the zero-bubble papers' memory count I's allocation and release are one step.
            task.taken = byFactor ? std::max<Bytes>(0, fromInput - untilInput) : fromInput;
            task.freed =
                (byFactor ? std::max<Bytes>(0, untilInput - fromInput) : untilInput) + againInput + inputOfBackward;
            task.passing += before + behind;
            break;
        case Op::W: task.freed = untilWeight + againWeight + fromInput; break;
        case Op::B:
            task.freed = untilInput + untilWeight + againInput + againWeight + inputOfBackward;
            task.passing += passing(c.madeForWeightGrad(task.op)) + before + behind;
            break;
        case Op::U: break; // not part of a search
        }
    }
    exactBytes = !byFactor;
    capacity = ByDevice<Bytes>(devices, noCapacity);
    limitOfDevice = ByDevice<Bytes>(devices);
    for (const DeviceIndex d : capacity.indices()) {
        if (byFactor) {
            const auto unit =
                static_cast<double>(known == 0 ? static_cast<Bytes>(stagesOfDevice[d].size()) : savedOnDevice[d]);
            // 1.15 x 20 is 23, although 1.15 is a little less in binary.
            capacity[d] = limitOfDevice[d] =
                static_cast<Bytes>(std::floor(std::min(*limit.factor * devices * unit * (1 + 1e-12), 4e18)));
        } else if (const Bytes bytes = limit.bytes.value_or(
                       d < std::ssize(design.cluster.devices) ? design.cluster.devices[d].memory : 0);
                   limit.bytes || bytes > 0) {
            limitOfDevice[d] = bytes;
            capacity[d] = bytes - persistent[d];
        }
    }
}

} // namespace pipewright
