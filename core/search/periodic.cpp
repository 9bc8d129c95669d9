// SPDX-License-Identifier: GPL-3.0-or-later
// Periodic extension: from the cut on every device repeats the blocks of `period` microbatches, and the microbatches of
// each pass are renumbered in ascending order. O(tasks).
#include "core/search/periodic.h"

#include "core/search/placement.h"

#include <algorithm>

namespace pipewright {

int fewMicrobatches(int microbatches, int devices)
{
    const int least = 3 * devices, few = least + (microbatches - least) % 12;
    return microbatches >= 2 * least && few < microbatches ? few : 0;
}

Design withMicrobatches(const Design& design, int microbatches)
{
    Design other = design;
    other.buildingBlock.reset();
    other.schedule.family = "custom";
    other.schedule.microbatches = microbatches;
    other.schedule.pins.clear();
    if (!other.costs.microbatches.empty())
        other.costs.microbatches.assign(microbatches, design.costs.microbatches.front());
    placeInTurn(other.schedule);
    return other;
}

namespace {

/// A pass of a stage: taskKinds x stage + the kind.
std::size_t passOf(const SearchModel& model, std::int32_t task)
{
    const SearchTask& t = model.tasks[task];
    return static_cast<std::size_t>(taskKinds * t.stage + kindOf(t.op));
}

} // namespace

std::optional<Lanes> repeated(const SearchModel& few, const Lanes& lanes, const std::vector<Nanoseconds>& starts,
                              const SearchModel& many, Nanoseconds cut, int period)
{
    const int copies = (many.microbatches - few.microbatches) / period;
    if ((many.microbatches - few.microbatches) % period != 0)
        return std::nullopt;
    const std::size_t passes = taskKinds * few.stages;
    std::vector<int> next(passes, 0); // microbatches are renumbered in ascending order
    Lanes result(lanes.size());
    for (std::size_t d = 0; d < lanes.size(); ++d) {
        const std::vector<std::int32_t>& lane = lanes[d];
        const std::size_t from =
            std::find_if(lane.begin(), lane.end(), [&](std::int32_t t) { return starts[t] >= cut; }) - lane.begin();
        const std::size_t length =
            lane.size() / static_cast<std::size_t>(few.microbatches) * static_cast<std::size_t>(period);
        if (from + length > lane.size())
            return std::nullopt;
        std::vector<int> count(passes, 0);
        for (std::size_t i = from; i < from + length; ++i)
            if (++count[passOf(few, lane[i])] > period)
                return std::nullopt;
        const auto add = [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                const std::size_t pass = passOf(few, lane[i]);
                const int stage = static_cast<int>(pass) / taskKinds, kind = static_cast<int>(pass) % taskKinds;
                result[d].push_back(many.taskOf(kind, stage, next[pass]++));
            }
        };
        add(0, from + length);
        for (int copy = 0; copy < copies; ++copy)
            add(from, from + length);
        add(from + length, lane.size());
    }
    return result;
}

} // namespace pipewright
