// SPDX-License-Identifier: GPL-3.0-or-later
// Data parallel and cyclic workers (arXiv 2403.08837): every block has a time step in closed form; each device's blocks
// are sorted by it. O(blocks log blocks).
#include "core/families/workers.h"

#include "core/families/asynchronous.h"
#include "core/schedule/weightrules.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace pipewright {

std::int64_t WorkerTimes::forward(int worker, int stage, int step) const
{
    return cyclic ? cyclicTime(Op::F, workers, stage, workers * step + worker)
                  : std::int64_t{2} * workers * step + stage;
}

std::int64_t WorkerTimes::backward(int worker, int stage, int step) const
{
    return cyclic ? cyclicTime(Op::B, workers, stage, workers * step + worker)
                  : std::int64_t{2} * workers * step + 2 * workers - 1 - stage;
}

int devicesOf(WorkerLayout layout, int workers, bool cyclic)
{
    switch (layout) {
    case WorkerLayout::Single: return 1;
    case WorkerLayout::Triangle: return cyclic ? workers * (workers + 1) / 2 : workers * workers;
    case WorkerLayout::Pipeline:
    case WorkerLayout::Workers:
    case WorkerLayout::Sharded: break;
    }
    return workers;
}

int workersOf(const FamilyParameters& p, bool cyclic)
{
    if (p.layout == WorkerLayout::Single)
        return p.workers.value_or(0);
    for (int workers = 1; workers <= p.devices; ++workers)
        if (devicesOf(p.layout, workers, cyclic) == p.devices)
            return workers;
    return 0;
}

Diagnostics checkWorkers(const FamilyParameters& p, bool cyclic)
{
    Diagnostics diagnostics = checkPolicy(policyOf(p, WeightRule::Synchronous));
    const auto bad = [&](std::string option, std::string what, std::string hint) {
        diagnostics.push_back({Severity::Error, std::move(option), std::move(what), std::move(hint)});
    };
    const int workers = workersOf(p, cyclic);
    if (p.layout == WorkerLayout::Single) {
        if (p.devices != 1)
            bad("--devices", fmt::format("{} devices", p.devices), "the single layout has one");
        if (workers < 1 || workers > maxDevices)
            bad("--workers", p.workers ? fmt::format("{} workers", workers) : "is missing",
                "say how many workers share the device");
    } else if (workers == 0) {
        bad("--devices", fmt::format("{} devices", p.devices),
            cyclic ? "the triangle has N (N + 1) / 2 of them: 3, 6, 10, 15, …"
                   : "N workers on N stages have N * N: 4, 9, 16, …");
    } else if (p.workers && *p.workers != workers) {
        bad("--workers", fmt::format("{} workers where {} devices hold {} stages", *p.workers, p.devices, workers),
            "the workers are as many as the stages: every stage is in use by one of them at each time step");
    }
    if (p.layout == WorkerLayout::Sharded && !cyclic)
        bad("--layout",
            "sharded states hop from worker to worker, and all workers of synchronous data parallelism need a stage at "
            "once",
            "use cdp-v1 or cdp-v2, or the workers layout");
    if (hasErrors(diagnostics))
        return diagnostics;
    if (p.microbatches % workers != 0)
        bad("--microbatches", fmt::format("{} microbatches for {} workers", p.microbatches, workers),
            "each worker has one per training step: use a multiple");
    if (std::int64_t{2} * workers * p.microbatches > maxBlocks)
        bad("--microbatches", fmt::format("{} microbatches on {} stages", p.microbatches, workers), "use fewer");
    return diagnostics;
}

namespace {

/// A block and its time step; within a step forwards come first, since all are live during it, and updates last.
struct Timed {
    std::int64_t time;
    int rank;
    Block block;
    auto operator<=>(const Timed&) const = default;
};

/// The devices that take a stage's microbatches in turn.
std::vector<int> turnsOf(WorkerLayout layout, int stage, int workers, bool cyclic)
{
    std::vector<int> devices;
    switch (layout) {
    case WorkerLayout::Pipeline: return {stage};
    case WorkerLayout::Single: return {0};
    case WorkerLayout::Workers:
    case WorkerLayout::Sharded:
        for (int worker = 0; worker < workers; ++worker)
            devices.push_back(worker);
        break;
    case WorkerLayout::Triangle: {
        int first = 0;
        for (int before = 0; before < stage; ++before)
            first += cyclic ? workers - before : workers;
        for (int k = 0; k < (cyclic ? workers - stage : workers); ++k)
            devices.push_back(first + k);
        break;
    }
    }
    return devices;
}

} // namespace

Schedule makeWorkers(const FamilyParameters& p, WeightRule rule)
{
    const bool cyclic = rule != WeightRule::Synchronous;
    const int workers = workersOf(p, cyclic), steps = p.microbatches / workers;
    const WorkerTimes times{workers, cyclic};
    Schedule schedule;
    schedule.weightPolicy = policyOf(p, rule);
    std::vector<std::vector<int>> turns;
    for (int stage = 0; stage < workers; ++stage) {
        turns.push_back(turnsOf(p.layout, stage, workers, cyclic));
        // The last worker's device, where the gradient sum ends; sharded: the next device of the stage's state.
        schedule.deviceOfStage.push_back(p.layout == WorkerLayout::Sharded ? workers - 1 - stage : turns.back().back());
    }
    if (p.layout != WorkerLayout::Pipeline && p.layout != WorkerLayout::Single)
        schedule.dataParallelDevices = turns;
    schedule.shardedStates = p.layout == WorkerLayout::Sharded;
    std::vector<std::vector<Timed>> lanes(p.devices);
    const auto place = [&](std::int64_t time, int rank, const Block& block) {
        lanes[schedule.deviceOf(block)].push_back({time, rank, block});
    };
    for (int step = 0; step < steps; ++step)
        for (int stage = 0; stage < workers; ++stage) {
            for (int worker = 0; worker < workers; ++worker) {
                const int microbatch = step * workers + worker;
                place(times.forward(worker, stage, step), 0, {Op::F, stage, microbatch});
                place(times.backward(worker, stage, step), 1, {Op::B, stage, microbatch});
            }
            place(times.backward(workers - 1, stage, step), 2, {Op::U, stage, step * workers + workers - 1});
        }
    for (auto& lane : lanes) {
        std::sort(lane.begin(), lane.end(), [](const Timed& a, const Timed& b) {
            return std::tie(a.time, a.rank, a.block.microbatch, a.block.stage)
                   < std::tie(b.time, b.rank, b.block.microbatch, b.block.stage);
        });
        std::vector<Block>& blocks = schedule.order.emplace_back();
        for (const Timed& timed : lane)
            blocks.push_back(timed.block);
    }
    // The workers start one after the other and never wait afterwards.
    const int share = p.layout == WorkerLayout::Workers || p.layout == WorkerLayout::Sharded ? workers : 1;
    const Nanoseconds apart = (p.forward + p.inputGrad + p.weightGrad) / share;
    if (cyclic && p.layout != WorkerLayout::Single && apart > 0)
        for (int worker = 1; worker < workers && worker < p.microbatches; ++worker)
            schedule.pins.push_back({{Op::F, 0, worker}, worker * apart});
    return schedule;
}

} // namespace pipewright
