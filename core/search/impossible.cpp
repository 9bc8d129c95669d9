// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/bounds.h"

#include "core/predict/memorypeak.h"
#include "core/predict/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

/// The design with its largest microbatch alone. Any order of it needs the least memory that any order of all does.
Design oneMicrobatch(const Design& design)
{
    Design one = design;
    one.schedule.microbatches = 1;
    one.schedule.pins.clear();
    one.schedule.overlaps.clear();
    one.schedule.firstStageMaySplit = true;
    one.buildingBlock.reset();
    if (!design.costs.microbatches.empty())
        one.costs.microbatches = {*std::max_element(design.costs.microbatches.begin(), design.costs.microbatches.end(),
                                                    [](const auto& a, const auto& b) { return a.bytes < b.bytes; })};
    for (std::vector<Block>& lane : one.schedule.order)
        lane.clear();
    const bool split = design.schedule.backward == BackwardStyle::Split;
    const auto place = [&](Op op, int s) {
        one.schedule.order[static_cast<std::size_t>(one.schedule.deviceOfStage[static_cast<std::size_t>(s)])].push_back({op, s, 0, 0});
    };
    for (int s = 0; s < one.schedule.stages(); ++s)
        place(Op::F, s);
    for (int s = one.schedule.stages(); s-- > 0;) {
        place(split ? Op::I : Op::B, s);
        if (split)
            place(Op::W, s);
    }
    return one;
}

/// Locked blocks keep their order, so a device whose blocks are all locked has the memory that it has.
void checkLocks(const SearchModel& model, Diagnostics& diagnostics)
{
    std::vector<std::vector<std::int32_t>> lane(static_cast<std::size_t>(model.devices));
    std::vector<std::size_t> count(lane.size(), 0);
    std::vector<std::int32_t> next(model.tasks.size(), -1), first(lane.size(), -1);
    std::vector<std::uint8_t> locked(model.tasks.size(), 0);
    for (std::size_t t = 0; t < model.tasks.size(); ++t) {
        ++count[static_cast<std::size_t>(model.tasks[t].device)];
        if (const std::int32_t before = model.tasks[t].lockedAfter; before >= 0) {
            next[static_cast<std::size_t>(before)] = static_cast<std::int32_t>(t);
            locked[t] = locked[static_cast<std::size_t>(before)] = 1;
        }
    }
    for (std::size_t t = 0; t < model.tasks.size(); ++t)
        if (locked[t] != 0 && model.tasks[t].lockedAfter < 0)
            first[static_cast<std::size_t>(model.tasks[t].device)] = static_cast<std::int32_t>(t);
    for (std::size_t d = 0; d < lane.size(); ++d) {
        for (std::int32_t t = first[d]; t >= 0; t = next[static_cast<std::size_t>(t)])
            lane[d].push_back(t);
        if (lane[d].size() == count[d] && lanePeak(model, lane[d]) > model.capacity[d])
            diagnostics.push_back({Severity::Error, fmt::format("device {}", d),
                                   fmt::format("all its blocks are locked, and in their order they need {}, {} more than the limit",
                                               formatSize(lanePeak(model, lane[d])), formatSize(lanePeak(model, lane[d]) - model.capacity[d])),
                                   "unlock blocks of this device, or allow more memory"});
    }
}

} // namespace

Diagnostics whyImpossible(const Design& design, const SearchModel& model, const MemoryLimit& limit)
{
    Diagnostics diagnostics;
    if (limit.factor) {
        for (std::size_t d = 0; d < model.capacity.size(); ++d) {
            // The last stage's forward holds the activations of all stages of the device.
            Bytes least = 0, unit = 0;
            for (const int s : model.stagesOfDevice[d]) {
                Bytes most = 0;
                for (int m = 0; m < model.microbatches; ++m)
                    most = std::max(most, model.tasks[static_cast<std::size_t>(model.forward(s, m))].taken);
                least += most;
            }
            unit = static_cast<Bytes>(static_cast<double>(model.capacity[d]) / *limit.factor);
            if (least <= model.capacity[d])
                continue;
            const double needed = unit > 0 ? static_cast<double>(least) / static_cast<double>(unit) : 1.0 / model.devices;
            diagnostics.push_back({Severity::Error, fmt::format("device {}", d),
                                   fmt::format("one microbatch alone keeps the activations of {} stage{} until its gradient returns, and "
                                               "{:.4g}x does not hold them",
                                               model.stagesOfDevice[d].size(), model.stagesOfDevice[d].size() == 1 ? "" : "s", *limit.factor),
                                   fmt::format("use at least {:.4f}x", std::ceil(needed * 1e4) / 1e4)});
        }
    } else {
        const Design one = oneMicrobatch(design);
        const Prediction prediction = predict(one);
        for (std::size_t d = 0; d < model.limitOfDevice.size(); ++d) {
            const Bytes limitHere = model.limitOfDevice[d];
            if (model.capacity[d] == SearchModel::noCapacity)
                continue;
            const MemoryPeak peak = memoryPeak(prediction.program, prediction.timeline, static_cast<int>(d));
            if (peak.peak <= limitHere)
                continue;
            diagnostics.push_back({Severity::Error, fmt::format("device {}", d),
                                   fmt::format("it needs at least {} for one microbatch, {} more than the limit of {}: {}",
                                               formatSize(peak.peak), formatSize(peak.peak - limitHere), formatSize(limitHere),
                                               describeParts(peak)),
                                   peak.persistent > limitHere
                                       ? "what is there all the time does not fit: give this device fewer layers, or more memory"
                                       : fmt::format("use a limit of at least {}, or smaller microbatches", exactSize(peak.peak))});
        }
    }
    if (diagnostics.empty())
        checkLocks(model, diagnostics);
    return diagnostics;
}

} // namespace pipewright
