// SPDX-License-Identifier: GPL-3.0-or-later
// Infeasibility of a memory limit: one microbatch alone exceeds it, or the fixed order of locked blocks keeps too many
// microbatches live at once. Reports the smallest conflicting set per device. O(blocks).
#include "core/search/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

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
        const SearchModel::Kept bytes = model.kept(task.stage, task.microbatch);
        if (task.op == Op::R)
            continue; // F's bytes are the least on both sides of it
        if (std::int32_t& open = lastOfCell[forward]; open >= 0) {
            KeptBetweenLocks& before = kept[open];
            before.to = task.op == Op::I ? i - 1 : i; // the bytes after I are counted at W
            // I may run at any time between F and W.
            if (task.op == Op::W && model.tasks[before.task].op == Op::F)
                before.bytes = std::min(before.bytes, bytes.afterBackward);
        }
        if (task.op == Op::F || task.op == Op::I) {
            lastOfCell[forward] = static_cast<std::int32_t>(kept.size());
            kept.push_back({i, i, task.op == Op::F ? bytes.untilBackward() : bytes.afterBackward, chain[i]});
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

/// What a device needs at some time in every order, beside what it holds all the time: while a block of one microbatch
/// runs, the microbatch keeps what it saved in the device's earlier stages.
struct LeastPeak {
    Bytes bytes = 0, saved = 0; ///< of these saved, the others while the block runs
    std::int32_t task = -1;
};

LeastPeak leastPeak(const SearchModel& model, DeviceIndex device, Patience& patience)
{
    LeastPeak least;
    for (int m = 0; m < model.microbatches; ++m) {
        Bytes earlier = 0;
        for (const int s : model.stagesOfDevice[device]) {
            const std::int32_t last = std::max(model.backward(s, m), model.weightGrad(s, m));
            Bytes held = 0;
            for (std::int32_t id = model.forward(s, m); id <= last; ++id) {
                const SearchTask& task = model.tasks[id];
                const Bytes saved = held + task.taken + (task.op == Op::W ? 0 : earlier); // W may wait for all others
                if (saved + task.passing > least.bytes)
                    least = {saved + task.passing, saved, id};
                held += task.taken - task.freed;
            }
            earlier += model.kept(s, m).untilBackward();
            patience.spend(static_cast<std::size_t>(last - model.forward(s, m) + 1));
        }
    }
    return least;
}

} // namespace

Diagnostics whyImpossible(const SearchModel& model, const MemoryLimit& limit, Patience patience)
{
    Diagnostics diagnostics;
    for (const DeviceIndex d : model.capacity.indices()) {
        if (model.capacity[d] == SearchModel::noCapacity)
            continue;
        const LeastPeak least = leastPeak(model, d, patience);
        if (least.bytes <= model.capacity[d])
            continue;
        const std::string where = fmt::format("device {}", int{d});
        if (limit.factor) {
            const auto unit = static_cast<Bytes>(static_cast<double>(model.capacity[d]) / *limit.factor);
            const double needed =
                unit > 0 ? static_cast<double>(least.bytes) / static_cast<double>(unit) : 1.0 / model.devices;
            diagnostics.push_back(
                {Severity::Error, where,
                 fmt::format("one microbatch alone keeps the activations of {} stage{} until its gradient is done, and "
                             "{:.4g}x does not hold them",
                             model.stagesOfDevice[d].size(), model.stagesOfDevice[d].size() == 1 ? "" : "s",
                             *limit.factor),
                 fmt::format("use at least {:.4f}x", std::ceil(needed * 1e4) / 1e4)});
            continue;
        }
        const Bytes limitHere = model.limitOfDevice[d], persistent = limitHere - model.capacity[d],
                    needed = persistent + least.bytes;
        const SearchTask& task = model.tasks[std::max(0, least.task)];
        diagnostics.push_back(
            {Severity::Error, where,
             fmt::format("it needs at least {} for one microbatch, {} more than the limit of {}: {} all the time "
                         "(parameters, gradients, optimizer), {} of saved activations and {} more while {} runs",
                         formatSize(needed), formatSize(needed - limitHere), formatSize(limitHere),
                         formatSize(persistent), formatSize(least.saved), formatSize(least.bytes - least.saved),
                         toString(Block{task.op, task.stage, task.microbatch, 0})),
             persistent > limitHere
                 ? "persistent memory alone does not fit: give this device fewer layers, or more memory"
                 : fmt::format("use a limit of at least {}, or smaller microbatches", exactSize(needed))});
    }
    if (diagnostics.empty())
        checkLocks(model, diagnostics);
    return diagnostics;
}

} // namespace pipewright
