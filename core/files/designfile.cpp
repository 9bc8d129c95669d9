// SPDX-License-Identifier: GPL-3.0-or-later
// Design -> JSON, and designs as files. Values at their default are left out.
#include "core/files/designfile.h"

#include "core/base/inputfile.h"
#include "core/base/textfile.h"
#include "core/files/locateddesign.h"
#include "core/json/jsontext.h"
#include "core/model/transformer.h"
#include "core/presets/clusterjson.h"
#include "core/presets/modeljson.h"
#include "core/schedule/statedgather.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

Json modelToJson(const Workload& workload)
{
    Json json = shapeToJson(workload.shape);
    json["optimizer"] = nameInModel(workload.optimizer);
    if (!(workload.state == stateBytes(workload.shape.dataType, workload.optimizer, workload.shape.framework)))
        json["state_bytes_per_parameter"] = {{"parameter", workload.state.parameter},
                                             {"gradient", workload.state.gradient},
                                             {"optimizer", workload.state.optimizer}};
    json["source"] = workload.source;
    return json;
}

// Passes by operation and stage; lengths only where one differs from the usual.
Json blockToJson(const RepeatedBlock& repeated)
{
    const BuildingBlock& block = repeated.block;
    Json json;
    if (!block.name.empty())
        json["name"] = block.name;
    json["interval"] = block.interval;
    json["microbatches"] = repeated.microbatches;
    json["placement"] = block.deviceOfStage;
    json["backward"] = block.backward == BackwardStyle::Full ? "full" : "split";
    if (!repeated.reorder)
        json["reorder"] = false;
    Json lengths;
    for (const PassKey& key : passKeys) {
        std::vector<int> starts(block.deviceOfStage.size(), 0), length(block.deviceOfStage.size(), key.length);
        bool found = false, unusual = false;
        for (const BuildingBlock::Pass& pass : block.passes) {
            if (pass.op != key.op)
                continue;
            starts.at(static_cast<std::size_t>(pass.stage)) = pass.start;
            length.at(static_cast<std::size_t>(pass.stage)) = pass.length;
            found = true;
            unusual = unusual || pass.length != key.length;
        }
        if (found)
            json[key.key] = starts;
        if (unusual)
            lengths[key.key] = length;
    }
    if (!lengths.empty())
        json["lengths"] = std::move(lengths);
    return json;
}

/// One string per block; an overlapped pair is one string, joined by "&".
Json lineToJson(const std::vector<Block>& line, const std::vector<Overlap>& overlaps)
{
    Json blocks = Json::array();
    for (std::size_t i = 0; i < line.size(); ++i) {
        std::string text = toString(line[i]);
        if (i + 1 < line.size() && std::binary_search(overlaps.begin(), overlaps.end(), Overlap{line[i], line[i + 1]}))
            text += "&" + toString(line[++i]);
        blocks.push_back(std::move(text));
    }
    return blocks;
}

Json weightsToJson(const WeightPolicy& weights)
{
    Json json;
    json["rule"] = nameOf(weights.rule);
    json["optimizer"] = nameOf(weights.optimizer);
    if (weights.verticalSync)
        json["vertical_sync"] = true;
    if (weights.steps != PredictionSteps::Paper)
        json["prediction_steps"] = nameOf(weights.steps);
    if (weights.rounding != StepRounding::HalfEven)
        json["rounding"] = nameOf(weights.rounding);
    if (weights.specTrain != 1)
        json["spectrain"] = weights.specTrain;
    return json;
}

/// Keys that equal the unrolled building block's are left out; `unrolled` is null without a building block that
/// unrolls.
Json zeroToJson(const Zero& zero)
{
    const Zero usual;
    Json json{{"level", zero.level}, {"over", nameOf(zero.over)}};
    if (zero.reshard.every)
        json["reshard"] = "always";
    if (!zero.reshard.stages.empty())
        json["reshard_stages"] = zero.reshard.stages;
    if (zero.prefetch != usual.prefetch)
        json["prefetch"] = zero.prefetch;
    if (zero.reduce != usual.reduce)
        json["reduce"] = nameOf(zero.reduce);
    return json;
}

Json scheduleToJson(const Schedule& schedule, const Schedule* unrolled)
{
    Json json;
    if (unrolled == nullptr || schedule.family != unrolled->family)
        json["family"] = schedule.family;
    if (unrolled == nullptr || schedule.microbatches != unrolled->microbatches)
        json["microbatches"] = schedule.microbatches;
    if (unrolled == nullptr || schedule.deviceOfStage != unrolled->deviceOfStage)
        json["placement"] = schedule.deviceOfStage;
    if (!schedule.replicaPlacements.empty())
        json["replica_placements"] = schedule.replicaPlacements;
    if (!schedule.dataParallelDevices.empty())
        json["in_turn"] = schedule.dataParallelDevices;
    if (schedule.zero != Zero{})
        json["zero"] = zeroToJson(schedule.zero);
    if (schedule.shardedStates)
        json["sharded_states"] = true;
    if (!(schedule.weightPolicy == WeightPolicy{}))
        json["weights"] = weightsToJson(schedule.weightPolicy);
    if (schedule.sequencePieces != 1)
        json["sequence_pieces"] = schedule.sequencePieces;
    for (const Recompute recompute : schedule.recompute)
        json["recompute"].push_back(nameOf(recompute));
    if (!schedule.offload.empty())
        json["offload"] = schedule.offload;
    if (unrolled == nullptr || schedule.backward != unrolled->backward)
        json["backward"] = schedule.backward == BackwardStyle::Full ? "full" : "split";
    if (schedule.firstStageMaySplit != (unrolled != nullptr && unrolled->firstStageMaySplit))
        json["first_stage_may_split"] = schedule.firstStageMaySplit;
    if (unrolled == nullptr || schedule.order != unrolled->order || !schedule.overlaps.empty()) {
        json["order"] = Json::array();
        for (const std::vector<Block>& line : schedule.order)
            json["order"].push_back(lineToJson(line, schedule.overlaps));
    }
    for (const Pin& pin : schedule.pins)
        json["pins"].push_back({{"block", toString(pin.block)}, {"earliest_start", exactDuration(pin.earliestStart)}});
    for (const PartOrder& order : schedule.partOrders) {
        std::string sequence;
        for (const bool second : order.sequence)
            sequence += second ? '2' : '1';
        json["part_orders"].push_back(
            {{"pair", toString(order.pair.first) + "&" + toString(order.pair.second)}, {"order", sequence}});
    }
    for (const TransferPrecedence& pair : schedule.transferOrder)
        json["transfer_order"].push_back({{"transfer", textOf(pair.first)}, {"before", textOf(pair.second)}});
    for (const StatedGather& gather : schedule.gathers)
        if (gather.before)
            json["gathers"].push_back({{"gather", gatherName(gather.reader)}, {"before", toString(*gather.before)}});
        else
            json["gathers"].push_back({{"gather", gatherName(gather.reader)}, {"held", true}});
    return json;
}

/// Nothing without a building block, or for one that cannot be unrolled, which is not stored.
std::optional<Schedule> unrolledBlock(const Design& design)
{
    try {
        if (design.buildingBlock)
            return unroll(*design.buildingBlock);
    } catch (const Error&) {
    }
    return std::nullopt;
}

void addLinkCosts(const LinkCosts& link, Json& json)
{
    json["latency"] = exactDuration(link.latency);
    json["bytes_per_second"] = plainNumber(link.bytesPerSecond);
    if (!link.bus.empty())
        json["bus"] = link.bus;
    if (link.origin != CostOrigin::AsSource)
        json["origin"] = nameOf(link.origin);
}

void addOrigins(const std::array<CostOrigin, opCount>& origins, Json& json)
{
    for (const Op op : allOps)
        if (const CostOrigin origin = origins[indexOf(op)]; origin != CostOrigin::AsSource)
            json["origin"][std::string(timeKey(op))] = nameOf(origin);
}

Json partToJson(const BlockPart& part)
{
    Json json;
    if (!part.name.empty())
        json["name"] = part.name;
    json["time"] = exactDuration(part.time);
    if (part.stream != PartStream::Compute)
        json["stream"] = nameOf(part.stream);
    if (!part.awaited)
        json["awaited"] = false;
    return json;
}

Json stageCostsToJson(const StageCosts& stage)
{
    Json json;
    forEachTime(stage, [&](Op op, std::optional<Nanoseconds> leftOut) {
        const bool parts = !stage.parts[indexOf(op)].empty(); // a time that is the sum of its parts is left out
        if (const Nanoseconds time = stage.*timeField(op); !parts && time != leftOut)
            json[std::string(timeKey(op))] = exactDuration(time);
    });
    forEachExchangeTime(stage, [&json](std::string_view key, Nanoseconds time) {
        if (time != 0)
            json[std::string(key)] = exactDuration(time);
    });
    for (const Op op : allOps)
        for (const BlockPart& part : stage.parts[indexOf(op)])
            json["parts"][std::string(timeKey(op))].push_back(partToJson(part));
    forEachByteField(stage, [&json](std::string_view key, Bytes bytes) {
        if (bytes != 0)
            json[std::string(key)] = exactSize(bytes);
    });
    addOrigins(stage.origin, json);
    for (const Op op : allOps)
        if (const double spread = stage.spread[indexOf(op)]; spread != 0)
            json["spread"][std::string(timeKey(op))] = plainNumber(spread);
    return json;
}

Json costsToJson(const Costs& costs)
{
    Json json;
    json["source"] = costs.source;
    addLinkCosts(costs.link, json["link"]);
    for (const auto& [pair, link] : costs.linkOfPair) {
        Json entry{{"from", pair.first}, {"to", pair.second}};
        addLinkCosts(link, entry);
        json["links"].push_back(std::move(entry));
    }
    if (costs.nodeLinks.any()) {
        Json& nodes = json["nodes"];
        nodes["of_devices"] = costs.nodeLinks.nodeOfDevice;
        for (const NodeLinks::Node& node : costs.nodeLinks.nodes) {
            Json entry{{"under_switch", node.underSwitch}};
            addLinkCosts(node.network, entry["network"]);
            addLinkCosts(node.beyondSwitch, entry["beyond_switch"]);
            nodes["links"].push_back(std::move(entry));
        }
    }
    if (costs.hostLink)
        addLinkCosts(*costs.hostLink, json["host_link"]);
    for (const HostGaps& gaps : costs.hostGaps) {
        Json entry = Json::object();
        for (const Op op : allOps)
            if (gaps.before[indexOf(op)] != 0)
                entry[std::string(timeKey(op))] = exactDuration(gaps.before[indexOf(op)]);
        addOrigins(gaps.origin, entry);
        json["host_gaps"].push_back(std::move(entry));
    }
    switch (costs.communication) {
    case Communication::Overlapped: break;
    case Communication::OneStream: json["communication"] = std::string(nameOf(costs.communication)); break;
    case Communication::Blocking: json["blocking_transfers"] = true; break; // as before there were other kinds
    }
    if (costs.overlapFactor != 1)
        json["overlap_factor"] = plainNumber(costs.overlapFactor);
    for (const MicrobatchScale& scale : costs.microbatches)
        json["microbatches"].push_back({{"time", plainNumber(scale.time)}, {"bytes", plainNumber(scale.bytes)}});
    if (costs.reduce != 0)
        json["reduce"] = exactDuration(costs.reduce);
    json["stages"] = Json::array();
    for (const StageCosts& stage : costs.stages)
        json["stages"].push_back(stageCostsToJson(stage));
    return json;
}

Json dataflowToJson(const Dataflow& dataflow)
{
    Json json;
    for (const SkipConnection& skip : dataflow.skips)
        json["skips"].push_back(
            {{"from_stage", skip.fromStage}, {"to_stage", skip.toStage}, {"bytes", exactSize(skip.bytes)}});
    for (const SharedParameter& shared : dataflow.shared) {
        json["shared"].push_back(
            {{"root_stage", shared.rootStage}, {"other_stage", shared.otherStage}, {"bytes", exactSize(shared.bytes)}});
        if (shared.values > 0)
            json["shared"].back()["values"] = exactSize(shared.values);
        if (shared.copied)
            json["shared"].back()["copied"] = true;
    }
    return json;
}

/// Writes equal plans of several stages as one entry.
Json plansToJson(const std::vector<sharding::StatedPlan>& plans)
{
    Json list = Json::array();
    std::vector<bool> written(plans.size(), false);
    for (std::size_t s = 0; s < plans.size(); ++s) {
        if (written[s] || plans[s] == sharding::StatedPlan{})
            continue;
        Json entry;
        for (std::size_t t = s; t < plans.size(); ++t)
            if (plans[t] == plans[s]) {
                entry["stages"].push_back(t);
                written[t] = true;
            }
        entry["strategy"] = nameOf(plans[s].strategy);
        for (const double share : plans[s].ratios)
            entry["ratios"].push_back(plainNumber(share));
        if (!plans[s].program.empty())
            entry["program"] = plans[s].program;
        list.push_back(std::move(entry));
    }
    return list;
}

// The number after `word` in a place such as "device 12, position 3"; -1 when it does not begin so.
int numberAtFront(std::string_view place, std::string_view word)
{
    if (!place.starts_with(word))
        return -1;
    place.remove_prefix(word.size());
    int number = -1;
    const auto result = std::from_chars(place.data(), place.data() + place.size(), number);
    return result.ec == std::errc() ? number : -1;
}

} // namespace

std::string designToJson(const Design& design)
{
    Json json;
    json["pipewright"] = designVersion;
    json["name"] = design.name;
    if (design.workload)
        json["model"] = modelToJson(*design.workload);
    if (!design.layersPerStage.empty())
        json["layers_per_stage"] = design.layersPerStage;
    if (!(design.cluster == Cluster{}))
        json["cluster"] = clusterToJson(design.cluster);
    const std::optional<Schedule> unrolled = unrolledBlock(design);
    if (unrolled)
        json["building_block"] = blockToJson(*design.buildingBlock);
    if (Json schedule = scheduleToJson(design.schedule, unrolled ? &*unrolled : nullptr); !schedule.empty())
        json["schedule"] = std::move(schedule);
    json["costs"] = costsToJson(design.costs);
    if (!(design.dataflow == Dataflow{}))
        json["dataflow"] = dataflowToJson(design.dataflow);
    if (Json plans = plansToJson(design.plans); !plans.empty())
        json["sharding"] = std::move(plans);
    return prettyJson(json);
}

int LocatedDesign::lineOf(std::string_view where) const
{
    if (const int device = numberAtFront(where, "device ");
        device >= 0 && device < static_cast<int>(lineOfDevice.size()))
        return lineOfDevice[device];
    if (where.starts_with("stage"))
        return lineOfPlacement;
    if (where.starts_with("cost"))
        return lineOfCosts;
    if (where.starts_with("model"))
        return lineOfModel;
    if (constexpr std::string_view schedule = "schedule."; where.starts_with(schedule)) {
        const std::string_view key = where.substr(schedule.size());
        const auto known = lineOfKey.find(key.substr(0, key.find('.')));
        return known == lineOfKey.end() ? lineOfSchedule : known->second;
    }
    if (where.starts_with("device") || where.starts_with("schedule") || where.starts_with("pin") || where.empty())
        return lineOfSchedule;
    return 0;
}

Diagnostics LocatedDesign::locate(Diagnostics diagnostics) const
{
    for (Diagnostic& diagnostic : diagnostics) {
        const int line = lineOf(diagnostic.where);
        if (!diagnostic.where.empty())
            diagnostic.what = diagnostic.where + ": " + diagnostic.what;
        diagnostic.where = line > 0 ? source + ":" + std::to_string(line) : source;
    }
    return diagnostics;
}

LocatedDesign readLocatedDesign(const std::string& path)
{
    if (isDatabase(path))
        throw Error(path, "is a recorded trace, not a design",
                    "give the design first; traces are read by `pipewright explain TRACE`, and beside their design by "
                    "`pipewright compare DESIGN TRACE`");
    return locatedDesignFromJson(readTextFile(path), path);
}

Design readDesign(const std::string& path)
{
    return readLocatedDesign(path).design;
}

void writeDesign(const Design& design, const std::string& path, bool overwrite)
{
    writeFileAtomically(path, designToJson(design), overwrite);
}

} // namespace pipewright
