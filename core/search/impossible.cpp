// SPDX-License-Identifier: GPL-3.0-or-later
// Infeasibility of a memory limit: one microbatch alone exceeds it, or the fixed order of locked blocks keeps too many
// microbatches live at once. Reports the smallest conflicting set per device. O(blocks), and one compilation where the
// limit is in bytes.
#include "core/search/bounds.h"

#include "core/predict/peakbreakdown.h"
#include "core/predict/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipewright {

static_assert(passCount == 5, "the chain of passes of a microbatch is said here");

namespace {

/// The design with only its largest microbatch: every order of the whole design needs at least its memory.
Design oneMicrobatch(const Design& design)
{
    Design one = design;
    one.schedule.microbatches = 1;
    one.schedule.pins.clear();
    one.schedule.overlaps.clear();
    one.schedule.partOrders.clear();
    one.schedule.firstStageMaySplit = true;
    one.buildingBlock.reset();
    if (!design.costs.microbatches.empty())
        one.costs.microbatches = {*std::max_element(design.costs.microbatches.begin(), design.costs.microbatches.end(),
                                                    [](const auto& a, const auto& b) { return a.bytes < b.bytes; })};
    for (std::vector<Block>& lane : one.schedule.order)
        lane.clear();
    const bool split = design.schedule.backward == BackwardStyle::Split;
    const auto place = [&](Op op, int s) {
        one.schedule.order[one.schedule.deviceOfStage[s]].push_back({op, s, 0, 0});
    };
    for (int s = 0; s < one.schedule.stages(); ++s)
        place(Op::F, s);
    for (int s = one.schedule.stages(); s-- > 0;) {
        if (one.schedule.recomputeOf(s) != Recompute::None)
            place(Op::R, s);
        place(split ? Op::I : Op::B, s);
        if (split)
            place(Op::W, s);
    }
    return one;
}

/// Bytes that a microbatch keeps in a stage between two of its locked blocks, whatever runs in between.
struct KeptBetweenLocks {
    std::size_t from, to; ///< positions among the device's locked blocks, both inclusive
    Bytes bytes;
    std::int32_t task; ///< the block that allocates it
};

std::vector<KeptBetweenLocks> keptBetween(const SearchModel& model, const std::vector<std::int32_t>& chain)
{
    std::vector<KeptBetweenLocks> kept;
    std::vector<std::int32_t> lastOfCell(model.tasks.size(), -1); // by F: index into `kept` of the open interval
    for (std::size_t i = 0; i < chain.size(); ++i) {
        const SearchTask& task = model.tasks[chain[i]];
        const std::int32_t forward = model.forward(task.stage, task.microbatch);
        const SearchTask &f = model.tasks[forward], &b = model.tasks[forward + 1];
        const Bytes owed = f.taken + b.taken - b.freed;
        if (std::int32_t& open = lastOfCell[forward]; open >= 0) {
            KeptBetweenLocks& before = kept[open];
            before.to = task.op == Op::I ? i - 1 : i; // the bytes after I are counted at W
            // I may run at any time between F and W.
            if (task.op == Op::W && model.tasks[before.task].op == Op::F)
                before.bytes = std::min(before.bytes, owed);
        }
        if (task.op == Op::F || task.op == Op::I) {
            lastOfCell[forward] = static_cast<std::int32_t>(kept.size());
            kept.push_back({i, i, task.op == Op::F ? f.taken : owed, chain[i]});
        }
    }
    return kept;
}

/// Locked blocks keep their order, so intervals that overlap by position are live together. Reports the fewest
/// microbatches that exceed the limit at the fullest point.
void checkLocks(const SearchModel& model, Diagnostics& diagnostics)
{
    std::vector<std::int32_t> next(model.tasks.size(), -1), first(static_cast<std::size_t>(model.devices), -1);
    for (std::size_t t = 0; t < model.tasks.size(); ++t)
        if (const std::int32_t before = model.tasks[t].lockedAfter; before >= 0)
            next[before] = static_cast<std::int32_t>(t);
    for (std::size_t t = 0; t < model.tasks.size(); ++t)
        if (next[t] >= 0 && model.tasks[t].lockedAfter < 0)
            first[model.tasks[t].device] = static_cast<std::int32_t>(t);
    for (std::size_t d = 0; d < first.size(); ++d) {
        std::vector<std::int32_t> chain;
        for (std::int32_t t = first[d]; t >= 0; t = next[t])
            chain.push_back(t);
        const std::vector<KeptBetweenLocks> kept = keptBetween(model, chain);
        Bytes most = 0, live = 0;
        std::size_t when = 0;
        std::vector<Bytes> change(chain.size() + 1, 0);
        for (const KeptBetweenLocks& k : kept) {
            change[k.from] += k.bytes;
            change[k.to + 1] -= k.bytes;
        }
        for (std::size_t i = 0; i < chain.size(); ++i)
            if ((live += change[i]) > most) {
                most = live;
                when = i;
            }
        if (most <= model.capacity[d])
            continue;
        std::vector<KeptBetweenLocks> together;
        std::copy_if(kept.begin(), kept.end(), std::back_inserter(together),
                     [&](const KeptBetweenLocks& k) { return k.from <= when && when <= k.to; });
        std::stable_sort(together.begin(), together.end(),
                         [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
        Bytes needed = 0;
        std::string names;
        for (const KeptBetweenLocks& k : together) {
            const SearchTask& task = model.tasks[k.task];
            names += (names.empty() ? "" : ", ") + toString(Block{task.op, task.stage, task.microbatch, 0});
            if ((needed += k.bytes) > model.capacity[d])
                break;
        }
        diagnostics.push_back(
            {Severity::Error, fmt::format("device {}", d),
             fmt::format("the locks keep what {} leave{} at one time, {} together, {} more than the limit", names,
                         names.find(',') == std::string::npos ? "s" : "", formatSize(needed),
                         formatSize(needed - model.capacity[d])),
             "unlock the stage's blocks of one of these microbatches, or allow more memory"});
    }
}

/// Peak activations of one microbatch alone on a device, in the papers' count.
Bytes ofOneMicrobatch(const SearchModel& model, std::size_t device, Patience& patience)
{
    Bytes most = 0;
    const std::vector<int>& stages = model.stagesOfDevice[device];
    for (int m = 0; m < model.microbatches; ++m) {
        std::vector<std::int32_t> lane;
        for (const int s : stages)
            lane.push_back(model.forward(s, m));
        for (auto s = stages.rbegin(); s != stages.rend(); ++s) {
            lane.push_back(model.backward(*s, m));
            if (const std::int32_t w = model.weightGrad(*s, m); w >= 0)
                lane.push_back(w);
        }
        most = std::max(most, lanePeak(model, lane));
        patience.spend(lane.size());
    }
    return most;
}

} // namespace

Diagnostics whyImpossible(const Design& design, const SearchModel& model, const MemoryLimit& limit, Patience patience)
{
    Diagnostics diagnostics;
    if (limit.factor) {
        for (const DeviceIndex d : model.capacity.indices()) {
            const Bytes least = ofOneMicrobatch(model, d, patience);
            const auto unit = static_cast<Bytes>(static_cast<double>(model.capacity[d]) / *limit.factor);
            if (least <= model.capacity[d])
                continue;
            const double needed =
                unit > 0 ? static_cast<double>(least) / static_cast<double>(unit) : 1.0 / model.devices;
            diagnostics.push_back(
                {Severity::Error, fmt::format("device {}", int{d}),
                 fmt::format("one microbatch alone keeps the activations of {} stage{} until its gradient is done, and "
                             "{:.4g}x does not hold them",
                             model.stagesOfDevice[d].size(), model.stagesOfDevice[d].size() == 1 ? "" : "s",
                             *limit.factor),
                 fmt::format("use at least {:.4f}x", std::ceil(needed * 1e4) / 1e4)});
        }
    } else {
        const Design one = oneMicrobatch(design);
        const Prediction prediction = predict(one);
        for (const DeviceIndex d : model.limitOfDevice.indices()) {
            const Bytes limitHere = model.limitOfDevice[d];
            if (model.capacity[d] == SearchModel::noCapacity)
                continue;
            const MemoryPeak peak = memoryPeak(prediction.program, prediction.timeline, d);
            if (peak.peak <= limitHere)
                continue;
            diagnostics.push_back(
                {Severity::Error, fmt::format("device {}", int{d}),
                 fmt::format("it needs at least {} for one microbatch, {} more than the limit of {}: {}",
                             formatSize(peak.peak), formatSize(peak.peak - limitHere), formatSize(limitHere),
                             describeParts(peak)),
                 peak.persistent > limitHere
                     ? "persistent memory alone does not fit: give this device fewer layers, or more memory"
                     : fmt::format("use a limit of at least {}, or smaller microbatches", exactSize(peak.peak))});
        }
    }
    if (diagnostics.empty())
        checkLocks(model, diagnostics);
    return diagnostics;
}

} // namespace pipewright
