// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/flatorder.h"

#include "core/schedule/ordergraph.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace pipewright {

namespace {

/// Of a device's blocks: of each run of blocks of one stage, the one that runs and the one after it are there. What is
/// gathered for a run stays where the run before last was of the same stage.
void countGathers(const std::vector<Block>& lane, std::vector<std::int64_t>& gathers)
{
    int last = -1, before = -1;
    for (const Block& block : lane) {
        if (block.stage == last)
            continue;
        if (block.stage != before)
            ++gathers[static_cast<std::size_t>(block.stage)];
        before = last;
        last = block.stage;
    }
}

} // namespace

FlatOrder flatOrderOf(const Family& family, int devices, int chunks, int microbatches)
{
    FamilyParameters parameters;
    parameters.devices = devices;
    parameters.microbatches = microbatches;
    if (family.chunksSelectable)
        parameters.chunks = chunks;
    const Schedule schedule = makeSchedule(family.name, parameters);
    FlatOrder order;
    order.devices = devices;
    order.stages = schedule.stages();
    order.pieces = schedule.sequencePieces;
    order.deviceOfStage = {schedule.deviceOfStage};
    order.deviceOfStage.insert(order.deviceOfStage.end(), schedule.replicaPlacements.begin(),
                               schedule.replicaPlacements.end());
    if (std::max(order.kinds(), static_cast<std::size_t>(devices) * FlatOrder::meanwhiles)
        > std::numeric_limits<std::uint16_t>::max())
        throw Error("--pin", fmt::format("{} stages on {} devices", order.stages, devices), "use fewer");
    Diagnostics diagnostics;
    const OrderGraph graph(schedule, {}, false, diagnostics);
    if (hasErrors(diagnostics))
        throw Error(std::move(diagnostics));
    const OrderRun run = runOrder(graph);
    if (!run.stuck.empty())
        throw Error(Diagnostics(run.stuck));
    const auto count = static_cast<std::uint32_t>(run.sequence.size());
    std::vector<std::uint32_t> taskOf(count);
    order.tasks.reserve(count);
    order.firstGradient.assign(static_cast<std::size_t>(devices), count);
    std::vector<std::uint32_t> allRead(static_cast<std::size_t>(devices), 0), gradientsFrom = allRead,
                                                                              gradientsTo(allRead.size(), count);
    const auto owners = static_cast<std::size_t>(order.replicas() * order.stages); // stages of replicas
    std::vector<std::uint8_t> seen(owners, 0);
    std::vector<std::uint32_t> gradientFrom(owners, count), gradientTo(owners, 0);
    for (std::uint32_t t = 0; t < count; ++t) {
        const BlockIndex index = run.sequence[t];
        const Block& block = graph.blocks[index];
        const auto device = static_cast<std::size_t>(graph.deviceOfBlock[index]);
        taskOf[index] = t;
        const BlockIndex input = graph.chainInput[index];
        order.tasks.push_back({input == noBlock ? count : taskOf[input],
                               static_cast<std::uint16_t>(device * FlatOrder::meanwhiles),
                               static_cast<std::uint16_t>(order.kindOf(block.op, block.stage, block.replica))});
        if (graph.unitSize(index) > 1)
            order.pairs.push_back(t);
        const auto owner = static_cast<std::size_t>(block.replica * order.stages + block.stage);
        if (makesWeightGrad(block.op)) {
            order.firstGradient[device] = std::min(order.firstGradient[device], t);
            gradientFrom[owner] = std::min(gradientFrom[owner], t);
            gradientTo[owner] = t;
        }
        if (seen[owner] == 0) {
            seen[owner] = 1;
            allRead[device] = t;
        }
    }
    for (std::size_t owner = 0; owner < owners; ++owner) {
        const std::size_t stages = static_cast<std::size_t>(order.stages);
        const auto device = static_cast<std::size_t>(order.deviceOfStage[owner / stages][owner % stages]);
        gradientsFrom[device] = std::max(gradientsFrom[device], gradientFrom[owner]);
        gradientsTo[device] = std::min(gradientsTo[device], gradientTo[owner]);
    }
    for (std::uint32_t t = 0; t < count; ++t) {
        FlatOrder::Task& task = order.tasks[t];
        const std::size_t device = task.device();
        unsigned meanwhile = 0;
        if (t >= allRead[device])
            meanwhile |= FlatOrder::AllRead;
        if (makesWeightGrad(allOps[task.kind % opCount]))
            meanwhile |= FlatOrder::MakesGradients;
        if (t >= gradientsFrom[device] && t <= gradientsTo[device])
            meanwhile |= FlatOrder::AllHaveGradients;
        task.slot = static_cast<std::uint16_t>(task.slot + meanwhile);
    }
    order.mostLive.assign(allRead.size(), 0);
    std::vector<std::int32_t> live(allRead.size(), 0);
    for (const FlatOrder::Task& task : order.tasks) {
        const Op op = allOps[task.kind % opCount];
        live[task.device()] += op == Op::F ? 1 : makesInputGrad(op) ? -1 : 0;
        order.mostLive[task.device()] = std::max(order.mostLive[task.device()], live[task.device()]);
    }
    order.gathers.assign(static_cast<std::size_t>(order.stages), 0);
    for (const std::vector<Block>& lane : schedule.order)
        countGathers(lane, order.gathers);
    return order;
}

Bytes FlatRun::peak(std::size_t device, unsigned meanwhile) const
{
    Bytes most = 0;
    for (unsigned slot = 0; slot < FlatOrder::meanwhiles; ++slot)
        if ((slot & meanwhile) == meanwhile)
            most = std::max(most, peaks[device * FlatOrder::meanwhiles + slot]);
    return most;
}

FlatRun runFlat(const FlatOrder& order, const KindCosts& costs, std::vector<Nanoseconds>& ends)
{
    const std::size_t count = order.tasks.size(), devices = static_cast<std::size_t>(order.devices);
    ends.resize(count + 1);
    ends[count] = 0; // of what has no input
    FlatRun run;
    run.lastEnd.assign(devices, 0);
    run.peaks.assign(devices * FlatOrder::meanwhiles, 0);
    std::vector<Bytes> live(devices, 0);
    std::vector<Nanoseconds> lastOfKind(costs.time.size(), 0);
    auto pair = order.pairs.begin();
    const auto ready = [&](const FlatOrder::Task& task) {
        return std::max(run.lastEnd[task.device()], ends[task.input] + costs.delay[task.kind]);
    };
    const auto hold = [&](const FlatOrder::Task& task) {
        Bytes& now = live[task.device()];
        now += costs.kept[task.kind];
        run.peaks[task.slot] = std::max(run.peaks[task.slot], now + costs.workspace[task.kind]);
        now -= costs.freed[task.kind];
    };
    for (std::size_t t = 0; t < count; ++t) {
        const FlatOrder::Task& task = order.tasks[t];
        Nanoseconds end = 0;
        if (pair != order.pairs.end() && *pair == t) {
            const FlatOrder::Task& other = order.tasks[t + 1];
            const Nanoseconds both = costs.time[task.kind] + costs.time[other.kind],
                              exchanges = costs.exchange[task.kind] + costs.exchange[other.kind];
            end = std::max(ready(task), ready(other))
                  + std::max({both - exchanges, exchanges, costs.time[task.kind], costs.time[other.kind]});
            hold(task);
            ends[t] = end;
            lastOfKind[task.kind] = end;
            ++pair;
            ++t;
            ends[t] = run.lastEnd[other.device()] = end;
            lastOfKind[other.kind] = end;
            hold(other);
            continue;
        }
        end = ready(task) + costs.time[task.kind];
        ends[t] = run.lastEnd[task.device()] = end;
        lastOfKind[task.kind] = end;
        hold(task);
    }
    for (const std::uint32_t first : order.firstGradient)
        run.firstGradient.push_back(ends[first]);
    run.lastGradient.assign(static_cast<std::size_t>(order.stages), 0);
    for (int replica = 0; replica < order.replicas(); ++replica)
        for (int stage = 0; stage < order.stages; ++stage)
            for (const Op op : {Op::B, Op::W})
                run.lastGradient[static_cast<std::size_t>(stage)] = std::max(
                    run.lastGradient[static_cast<std::size_t>(stage)], lastOfKind[order.kindOf(op, stage, replica)]);
    return run;
}

} // namespace pipewright
