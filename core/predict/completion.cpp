// SPDX-License-Identifier: GPL-3.0-or-later
// Tries every family with the design's placement as a model, counts how far the placed blocks depart from it (a longest
// increasing subsequence per device), and inserts the missing blocks where the best model has them; falls back to list
// scheduling (listcompletion.h). O(families x blocks log blocks), plus the searches of the families.
#include "core/predict/completion.h"

#include "core/design/familywork.h"
#include "core/families/family.h"
#include "core/predict/listcompletion.h"
#include "core/predict/predict.h"
#include "core/schedule/ordergraph.h"
#include "core/schedule/recomputeblocks.h"
#include "core/schedule/replicas.h"
#include "core/schedule/validate.h"
#include "core/schedule/weightplan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace pipewright {

namespace {

constexpr std::int64_t searchedBlocks =
    4'000; // more than this, and families that search for long (a few tries are none) take too long to ask
constexpr std::size_t oneInSo = 8; // of the placed blocks, at most one in so many may depart from a family

struct Model {
    Schedule schedule;
    std::string title;
    bool own = false; ///< a person's building block
};

/// Schedules of the design's placement, device count and microbatches.
std::vector<Model> modelsFor(const Design& design)
{
    std::vector<Model> models;
    const Schedule& wanted = design.schedule;
    const auto add = [&](Schedule schedule, std::string title, bool own) {
        if (!hasUpdates(schedule) && schedule.deviceOfStage == wanted.deviceOfStage
            && schedule.replicaPlacements == wanted.replicaPlacements && schedule.microbatches == wanted.microbatches
            && schedule.sequencePieces == wanted.sequencePieces && schedule.devices() == wanted.devices()
            && schedule.backward == wanted.backward) {
            if (!wanted.recompute.empty())
                schedule = withRecompute(schedule, wanted.recompute);
            models.push_back({std::move(schedule), std::move(title), own});
        }
    };
    if (design.buildingBlock) {
        try {
            add(unroll(*design.buildingBlock),
                design.buildingBlock->block.name.empty() ? "building block" : design.buildingBlock->block.name, true);
        } catch (const Error&) {
            // a block under construction is no model
        }
    }
    const std::int64_t blocks = wanted.blocks() + static_cast<std::int64_t>(unplacedBlocks(wanted).size());
    for (const Family& family : families()) {
        if ((!family.chunksSelectable && family.defaultChunks != wanted.chunks())
            || (family.search >= FamilySearch::Placed && blocks > searchedBlocks)
            || (!family.cutsSequences && wanted.sequencePieces > 1))
            continue;
        FamilyParameters parameters;
        parameters.devices = wanted.devices();
        parameters.microbatches = wanted.microbatches / wanted.sequencePieces;
        if (!family.updates)
            parameters.replicas = pipelinesOf(wanted);
        if (family.chunksSelectable)
            parameters.chunks = wanted.chunks();
        if (family.cutsSequences)
            parameters.pieces = wanted.sequencePieces;
        takeWork(parameters, design.costs);
        try {
            add(makeSchedule(family.name, parameters), std::string(family.title), false);
        } catch (const Error&) {
            // this family has preconditions that the design does not meet
        }
    }
    return models;
}

/// How the placed blocks compare with a model: those that are not in it or not in its order, and those at the
/// beginning of the lanes that are exactly as in it.
struct Fit {
    std::size_t placed = 0, departing = 0, prefix = 0;
};

Fit compare(const Schedule& placed, const Schedule& model)
{
    constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();
    const auto stages = static_cast<std::size_t>(model.stages()),
               microbatches = static_cast<std::size_t>(model.microbatches);
    const auto cell = [&](const Block& b) {
        return (indexOf(b.op) * stages + static_cast<std::size_t>(b.stage)) * microbatches
               + static_cast<std::size_t>(b.microbatch);
    };
    std::vector<std::uint32_t> placeOf(passCount * stages * microbatches, nowhere);
    for (const auto& lane : model.order)
        for (std::uint32_t i = 0; i < lane.size(); ++i)
            placeOf[cell(lane[i])] = i;
    Fit fit;
    for (std::size_t d = 0; d < placed.order.size(); ++d) {
        const std::vector<Block>& lane = placed.order[d];
        const std::vector<Block>& all = model.order[d];
        fit.placed += lane.size();
        fit.prefix += static_cast<std::size_t>(std::mismatch(lane.begin(), lane.end(), all.begin(), all.end()).first
                                               - lane.begin());
        // The longest increasing subsequence of places; blocks outside it depart from the model.
        std::vector<std::uint32_t> ends;
        for (const Block& block : lane) {
            const std::uint32_t place = placeOf[cell(block)];
            if (place == nowhere)
                continue;
            const auto at = std::lower_bound(ends.begin(), ends.end(), place);
            if (at == ends.end())
                ends.push_back(place);
            else
                *at = place;
        }
        fit.departing += lane.size() - ends.size();
    }
    return fit;
}

/// The placed lanes with every missing block directly after its predecessor in the model.
Schedule mergedWith(const Schedule& placed, const Schedule& model)
{
    Schedule merged = placed;
    for (std::size_t d = 0; d < placed.order.size(); ++d) {
        std::map<Block, std::vector<Block>> behind; // placed block -> the missing blocks that follow it
        std::vector<Block> front;
        const std::vector<Block>& lane = placed.order[d];
        std::map<Block, bool> isPlaced;
        for (const Block& block : lane)
            isPlaced.emplace(block, true);
        std::vector<Block>* last = &front;
        for (const Block& block : model.order[d]) {
            if (isPlaced.contains(block))
                last = &behind[block];
            else
                last->push_back(block);
        }
        std::vector<Block>& result = merged.order[d];
        result = front;
        for (const Block& block : lane) {
            result.push_back(block);
            if (const auto more = behind.find(block); more != behind.end())
                result.insert(result.end(), more->second.begin(), more->second.end());
        }
    }
    merged.family = "custom";
    dropBrokenOverlaps(merged);
    return merged;
}

/// The highest peak of all devices; the greatest number when it cannot be predicted.
double memoryOf(const Design& design, const Schedule& schedule)
{
    Design candidate = design;
    candidate.schedule = schedule;
    try {
        const Metrics metrics = predict(candidate).metrics;
        double most = 0;
        for (const DeviceMetrics& device : metrics.devices)
            most =
                std::max(most, device.peakBytes > 0 ? static_cast<double>(device.peakBytes) : device.peakActivations);
        return most;
    } catch (const Error&) {
        return std::numeric_limits<double>::max();
    }
}

/// A model's blocks with the user's other settings, which are not part of the order.
Schedule following(const Schedule& model, const Schedule& placed)
{
    Schedule schedule = model;
    schedule.pins = placed.pins;
    schedule.partOrders = placed.partOrders;
    dropBrokenOverlaps(schedule);
    schedule.transferOrder = placed.transferOrder;
    schedule.gathers = placed.gathers;
    return schedule;
}

} // namespace

Completion completeSchedule(const Design& design)
{
    const Schedule& placed = design.schedule;
    Diagnostics wrong;
    (void)OrderGraph(placed, design.dataflow.skips, true, wrong);
    if (hasErrors(wrong))
        return {placed, {}, wrong};
    if (unplacedBlocks(placed).empty())
        return {placed, {}, {}};
    if (hasUpdates(placed))
        return {placed,
                {},
                {{Severity::Error, "schedule",
                  "it updates its weights amid the run, and where the missing blocks stand decides what they read",
                  "place them by hand, or undo"}}};
    struct Candidate {
        Model model;
        Fit fit;
    };
    std::vector<Candidate> candidates;
    for (Model& model : modelsFor(design)) {
        const Fit fit = compare(placed, model.schedule);
        if (fit.departing * oneInSo <= fit.placed)
            candidates.push_back({std::move(model), fit});
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        return a.fit.departing != b.fit.departing ? a.fit.departing < b.fit.departing : a.fit.prefix > b.fit.prefix;
    });
    const auto legal = [&](const Schedule& schedule) { return !hasErrors(validate(schedule, design.dataflow.skips)); };

    // Among models that fit the beginning equally well, the one with the least memory.
    std::optional<Schedule> best;
    std::string title;
    double least = 0;
    for (const Candidate& candidate : candidates) {
        if (candidate.fit.departing > 0 || candidate.fit.prefix < candidates.front().fit.prefix)
            break;
        Schedule schedule = following(candidate.model.schedule, placed);
        const double memory = legal(schedule) ? memoryOf(design, schedule) : std::numeric_limits<double>::max();
        const bool own = candidate.model.own && memory < std::numeric_limits<double>::max();
        if (own || (memory < std::numeric_limits<double>::max() && (!best || memory < least))) {
            best = std::move(schedule);
            title = candidate.model.title;
            least = memory;
        }
        if (own)
            break;
    }
    if (best)
        return {std::move(*best), title, {}};
    for (const Candidate& candidate : candidates) {
        Schedule schedule = mergedWith(placed, candidate.model.schedule);
        if (unplacedBlocks(schedule).empty() && legal(schedule))
            return {std::move(schedule), candidate.model.title, {}};
    }
    EditResult result = completeByList(design);
    return {std::move(result.schedule), {}, std::move(result.diagnostics)};
}

} // namespace pipewright
