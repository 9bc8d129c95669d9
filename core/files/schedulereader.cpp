// SPDX-License-Identifier: GPL-3.0-or-later
// Strictly: one key of the section, one function.
#include "core/files/schedulereader.h"

#include "core/design/blockparts.h"
#include "core/json/jsontext.h"
#include "core/schedule/statedgather.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

void readOrder(Reading& reading, const Json& order, Schedule& schedule)
{
    if (order.size() > static_cast<std::size_t>(maxDevices)) {
        reading.fault("/schedule/order", fmt::format("{} devices", order.size()),
                      fmt::format("at most {}", maxDevices));
        return;
    }
    std::int64_t blocks = 0;
    for (std::size_t device = 0; device < order.size(); ++device) {
        const std::string pointer = fmt::format("/schedule/order/{}", device);
        std::vector<Block>& line = schedule.order.emplace_back();
        if (!order[device].is_array()) {
            reading.fault(pointer, fmt::format("the order of device {} is not a list", device),
                          "write [\"F0.0\", \"B0.0\"]");
            continue;
        }
        blocks += static_cast<std::int64_t>(order[device].size());
        if (blocks > maxBlocks) {
            reading.fault(pointer, fmt::format("more than {} blocks", maxBlocks), "use fewer microbatches or stages");
            return;
        }
        line.reserve(order[device].size());
        for (std::size_t i = 0; i < order[device].size(); ++i) {
            const Json& element = order[device][i];
            const std::string_view text =
                element.is_string() ? std::string_view(element.get_ref<const std::string&>()) : "";
            const std::size_t joint = std::min(text.find('&'), text.size());
            const auto block = parseBlock(text.substr(0, joint));
            const auto partner = joint < text.size() ? parseBlock(text.substr(joint + 1)) : block;
            const auto fault = [&](std::string what, std::string hint) {
                reading.fault(fmt::format("{}/{}", pointer, i),
                              fmt::format("device {}, position {}: {}", device, i, what), std::move(hint));
            };
            if (!block || !partner) {
                fault(fmt::format("{} is not a block", jsonText(element).substr(0, 60)),
                      "write operation, stage, dot, microbatch: \"F0.3\"; two that overlap: \"F0.3&B7.1\"");
                continue;
            }
            for (const Block& found : {*block, *partner})
                if (found.stage >= schedule.stages())
                    fault(fmt::format("{} is of stage {}, but there are {} stages", toString(found), found.stage,
                                      schedule.stages()),
                          "add the stage to \"placement\"");
            line.push_back(*block);
            if (joint < text.size()) {
                line.push_back(*partner);
                schedule.overlaps.push_back({*block, *partner});
            }
        }
    }
    std::sort(schedule.overlaps.begin(), schedule.overlaps.end());
}

void readPins(Reading& reading, const Json& pins, Schedule& schedule)
{
    for (std::size_t i = 0; i < pins.size(); ++i) {
        ObjectReader reader = reading.object(pins[i], fmt::format("/schedule/pins/{}", i));
        std::string text;
        Pin pin;
        const bool isText = reader.read("block", text, Presence::Required);
        reader.readDuration("earliest_start", pin.earliestStart, Presence::Required);
        if (const auto block = parseBlock(text))
            pin.block = *block;
        else if (isText)
            reader.fault("block", "this is not a block", "write operation, stage, dot, microbatch: \"F0.3\"");
        reader.finish();
        schedule.pins.push_back(pin);
    }
}

/// Which block's next part is issued, part by part: {"pair": "F0.3&B7.1", "order": "12212"}.
void readPartOrders(Reading& reading, const Json& orders, Schedule& schedule)
{
    for (std::size_t i = 0; i < std::min(orders.size(), static_cast<std::size_t>(maxBlocks)); ++i) {
        ObjectReader reader = reading.object(orders[i], fmt::format("/schedule/part_orders/{}", i));
        std::string pair, order;
        const bool isText = reader.read("pair", pair, Presence::Required);
        reader.read("order", order, Presence::Required);
        const std::size_t joint = std::min(pair.find('&'), pair.size());
        const auto first = parseBlock(std::string_view(pair).substr(0, joint));
        const auto second = joint < pair.size() ? parseBlock(std::string_view(pair).substr(joint + 1)) : std::nullopt;
        PartSequence sequence;
        for (const char which : order)
            sequence.push_back(which == '2');
        if (isText && !(first && second))
            reader.fault("pair", "this is no overlapped pair", "write its two blocks: \"F0.3&B7.1\"");
        else if (order.find_first_not_of("12") != std::string::npos
                 || order.size() > static_cast<std::size_t>(2 * maxParts))
            reader.fault("order", "this is no order of the pair's parts",
                         "write 1 for the first block's next part and 2 for the second's: \"12212\"");
        else if (first && second && statedPartOrder(schedule, {*first, *second}) != nullptr)
            reader.fault("pair", "its order is stated twice", "keep one of the entries");
        else if (first && second)
            statePartOrder(schedule, {*first, *second}, std::move(sequence));
        reader.finish();
    }
}

void readTransferOrder(Reading& reading, const Json& pairs, Schedule& schedule)
{
    if (pairs.size() > static_cast<std::size_t>(maxBlocks)) {
        reading.fault("/schedule/transfer_order", fmt::format("{} pairs", pairs.size()),
                      fmt::format("at most {}", maxBlocks));
        return;
    }
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        ObjectReader reader = reading.object(pairs[i], fmt::format("/schedule/transfer_order/{}", i));
        const auto readTransfer = [&](std::string_view key, Transfer& transfer) {
            std::string text;
            const bool isText = reader.read(key, text, Presence::Required);
            const auto read = parseTransfer(text);
            if (read)
                transfer = *read;
            else if (isText)
                reader.fault(
                    key, "this is not a transfer",
                    "write the block that makes the value and the device it goes to: \"F0.3 to 1\"; or a block "
                    "and one of its group's collectives: \"B0.3 collective 1\"");
            if (read && (read->producer.stage >= schedule.stages() || read->destination >= schedule.devices()))
                reader.fault(
                    key, fmt::format("the schedule has {} stages on {} devices", schedule.stages(), schedule.devices()),
                    "name a block of it and one of its devices, counted from 0");
        };
        TransferPrecedence pair;
        readTransfer("transfer", pair.first);
        readTransfer("before", pair.second);
        reader.finish();
        schedule.transferOrder.push_back(pair);
    }
}

void readGathers(Reading& reading, const Json& gathers, Schedule& schedule)
{
    if (gathers.size() > static_cast<std::size_t>(maxBlocks)) {
        reading.fault("/schedule/gathers", fmt::format("{} gathers", gathers.size()),
                      fmt::format("at most {}", maxBlocks));
        return;
    }
    for (std::size_t i = 0; i < gathers.size(); ++i) {
        ObjectReader reader = reading.object(gathers[i], fmt::format("/schedule/gathers/{}", i));
        std::string name, before;
        bool held = false;
        const bool named = reader.read("gather", name, Presence::Required);
        const bool placed = reader.read("before", before);
        reader.read("held", held);
        const std::optional<Block> gathered = parseGather(name, schedule);
        const std::optional<Block> block = parseBlock(before);
        if (named && (!gathered || gathered->stage >= schedule.stages()))
            reader.fault("gather", "this is no gather of the schedule",
                         "write the stage and the first block that reads it, as PyTorch would: \"2UNSHARD@F0\"");
        else if (gathered && statedGather(schedule, *gathered) != nullptr)
            reader.fault("gather", "its place is stated twice", "keep one of the entries");
        else if (placed && !block)
            reader.fault("before", "this is not a block", "write the block that it is gathered before: \"F1.3\"");
        else if (placed == held)
            reader.fault("gather", "it needs one of \"before\" and \"held\"",
                         "\"before\": \"F1.3\", or \"held\": true where the device keeps the parameters");
        else if (gathered)
            stateGather(schedule, {*gathered, placed ? block : std::nullopt});
        reader.finish();
    }
}

/// Every stage of a further replica is on a device of the design, so that lookups need no check.
void checkReplicaPlacement(Reading& reading, const Schedule& schedule, std::size_t index)
{
    const std::vector<int>& placement = schedule.replicaPlacements[index];
    const std::string pointer = fmt::format("/schedule/replica_placements/{}", index);
    if (placement.size() != schedule.deviceOfStage.size())
        reading.fault(
            pointer,
            fmt::format("{} stages are placed, \"placement\" has {}", placement.size(), schedule.deviceOfStage.size()),
            "every replica has all stages");
    for (std::size_t stage = 0; stage < placement.size(); ++stage)
        if (placement[stage] >= schedule.devices())
            reading.fault(fmt::format("{}/{}", pointer, stage),
                          fmt::format("stage {} is placed on device {}, but \"order\" has {} devices", stage,
                                      placement[stage], schedule.devices()),
                          "add the device's list to \"order\"");
}

WeightPolicy readWeights(Reading& reading, const Json& value)
{
    WeightPolicy weights;
    ObjectReader reader = reading.object(value, "/schedule/weights");
    reader.readName("rule", weights.rule);
    reader.readName("optimizer", weights.optimizer);
    reader.read("vertical_sync", weights.verticalSync);
    reader.readName("prediction_steps", weights.steps);
    reader.readName("rounding", weights.rounding);
    reader.read("spectrain", weights.specTrain, 1, 2);
    reader.finish();
    return weights;
}

/// The devices that run a stage in turn; all exist, so that lookups need no check.
void readTurns(Reading& reading, const Json& value, Schedule& schedule)
{
    if (value.size() != schedule.deviceOfStage.size()) {
        reading.fault("/schedule/in_turn",
                      fmt::format("{} stages, \"placement\" has {}", value.size(), schedule.deviceOfStage.size()),
                      "list the devices of every stage");
        return;
    }
    for (std::size_t stage = 0; stage < value.size(); ++stage) {
        const std::string pointer = fmt::format("/schedule/in_turn/{}", stage);
        std::vector<int> devices;
        if (value[stage].is_array())
            devices = readIntegers(reading, value[stage], pointer, 0, maxDevices - 1);
        if (devices.empty())
            reading.fault(pointer, "no device works on this stage", "list one or more: [0, 1]");
        for (const int device : devices)
            if (device >= schedule.devices())
                reading.fault(pointer,
                              fmt::format("device {}, but \"order\" has {} devices", device, schedule.devices()),
                              "add the device's list to \"order\"");
        schedule.dataParallelDevices.push_back(devices.empty() ? std::vector<int>{0} : std::move(devices));
    }
}

/// In files of version 1 all recomputation is by R blocks.
Recompute asInVersion(int version, Recompute recompute)
{
    if (version > 1)
        return recompute;
    return recompute == Recompute::Full        ? Recompute::Block
           : recompute == Recompute::Selective ? Recompute::BlockSelective
                                               : recompute;
}

void readRecompute(Reading& reading, const Json& value, int version, Schedule& schedule)
{
    for (std::size_t s = 0; s < value.size(); ++s) {
        const std::string text = value[s].is_string() ? value[s].get<std::string>() : std::string();
        try {
            schedule.recompute.push_back(asInVersion(version, recomputeOfName(text, {})));
        } catch (const Error&) {
            reading.fault(fmt::format("/schedule/recompute/{}", s), "this is no way to recompute",
                          std::string(recomputeHint) + " for every stage");
        }
    }
    if (value.size() != schedule.deviceOfStage.size())
        reading.fault("/schedule/recompute",
                      fmt::format("{} stages, \"placement\" has {}", value.size(), schedule.deviceOfStage.size()),
                      "say for every stage how it recomputes");
}

/// In files of version 1 it was a flag, for the replicas of a schedule.
void readZero(Reading& reading, ObjectReader& schedule, Schedule& result)
{
    bool sharded = false;
    schedule.read("sharded_optimizer", sharded);
    if (sharded)
        result.zero = {.level = 1, .over = Zero::Over::Data};
    const Json* zero = schedule.object("zero");
    if (!zero)
        return;
    ObjectReader reader = reading.object(*zero, "/schedule/zero");
    reader.read("level", result.zero.level, 0, Zero::highestLevel, Presence::Required);
    reader.readName<Zero::Over>("over", result.zero.over,
                                {{nameOf(Zero::Over::Data), Zero::Over::Data},
                                 {nameOf(Zero::Over::DataAndContext), Zero::Over::DataAndContext}});
    reader.readName<Zero::Reduce>(
        "reduce", result.zero.reduce,
        {{nameOf(Zero::Reduce::Last), Zero::Reduce::Last}, {nameOf(Zero::Reduce::Each), Zero::Reduce::Each}});
    reader.read("prefetch", result.zero.prefetch, 0, Zero::mostPrefetch);
    reader.readName<bool>("reshard", result.zero.reshard.every, {{"never", false}, {"always", true}});
    if (const Json* stages = reader.array("reshard_stages"))
        result.zero.reshard.stages =
            readIntegers(reading, *stages, "/schedule/zero/reshard_stages", 0, std::max(0, result.stages() - 1));
    std::sort(result.zero.reshard.stages.begin(), result.zero.reshard.stages.end());
    reader.finish();
}

void readOffload(Reading& reading, const Json& value, Schedule& schedule)
{
    for (std::size_t s = 0; s < value.size(); ++s) {
        if (!value[s].is_boolean())
            reading.fault(fmt::format("/schedule/offload/{}", s), "this does not say whether the stage offloads",
                          "write true or false for every stage");
        schedule.offload.push_back(value[s].is_boolean() && value[s].get<bool>());
    }
    if (value.size() != schedule.deviceOfStage.size())
        reading.fault("/schedule/offload",
                      fmt::format("{} stages, \"placement\" has {}", value.size(), schedule.deviceOfStage.size()),
                      "say true or false for every stage");
}

} // namespace

void readSchedule(Reading& reading, const Json& value, Schedule& schedule, ScheduleFile file)
{
    const bool unrolled = file.unrolled;
    const Presence presence = unrolled ? Presence::Optional : Presence::Required;
    const Schedule ofBlock = unrolled ? schedule : Schedule{};
    ObjectReader reader = reading.object(value, "/schedule");
    reader.read("family", schedule.family);
    reader.read("microbatches", schedule.microbatches, 1, maxMicrobatches, presence);
    if (const Json* placement = reader.array("placement", presence))
        schedule.deviceOfStage = readIntegers(reading, *placement, "/schedule/placement", 0, maxDevices - 1);
    if (const Json* placements = reader.array("replica_placements")) {
        if (placements->size() > static_cast<std::size_t>(maxDevices))
            reader.fault("replica_placements", fmt::format("{} replicas", placements->size()),
                         fmt::format("at most {}", maxDevices));
        else
            for (std::size_t i = 0; i < placements->size(); ++i) {
                const std::string pointer = fmt::format("/schedule/replica_placements/{}", i);
                if ((*placements)[i].is_array())
                    schedule.replicaPlacements.push_back(
                        readIntegers(reading, (*placements)[i], pointer, 0, maxDevices - 1));
                else
                    reading.fault(pointer, "this is not a placement", "write the device of each stage: [3, 2, 1, 0]");
            }
    }
    reader.read("sequence_pieces", schedule.sequencePieces, 1, maxMicrobatches);
    reader.readName<BackwardStyle>("backward", schedule.backward,
                                   {{"full", BackwardStyle::Full}, {"split", BackwardStyle::Split}});
    reader.read("first_stage_may_split", schedule.firstStageMaySplit);
    if (const Json* recompute = reader.array("recompute"))
        readRecompute(reading, *recompute, file.version, schedule);
    if (const Json* offload = reader.array("offload"))
        readOffload(reading, *offload, schedule);
    if (const Json* order = reader.array("order", presence)) {
        schedule.order.clear();
        schedule.overlaps.clear();
        readOrder(reading, *order, schedule);
        for (std::size_t stage = 0; stage < schedule.deviceOfStage.size(); ++stage)
            if (schedule.deviceOfStage[stage] >= schedule.devices())
                reading.fault(fmt::format("/schedule/placement/{}", stage),
                              fmt::format("stage {} is placed on device {}, but \"order\" has {} devices", stage,
                                          schedule.deviceOfStage[stage], schedule.devices()),
                              "add the device's list to \"order\"");
        for (std::size_t i = 0; i < schedule.replicaPlacements.size(); ++i)
            checkReplicaPlacement(reading, schedule, i);
        if (const Json* turns = reader.array("in_turn"))
            readTurns(reading, *turns, schedule);
        reader.read("sharded_states", schedule.shardedStates);
        readZero(reading, reader, schedule);
    } else if (unrolled) {
        const auto mustAgree = [&reader](bool agrees, std::string_view key) {
            if (!agrees)
                reader.fault(key,
                             fmt::format("\"{}\" is not that of the building block, and there is no \"order\"", key),
                             "leave it out, or change the building block");
        };
        mustAgree(schedule.microbatches == ofBlock.microbatches, "microbatches");
        mustAgree(schedule.deviceOfStage == ofBlock.deviceOfStage, "placement");
        mustAgree(schedule.backward == ofBlock.backward, "backward");
        mustAgree(schedule.replicaPlacements.empty(), "replica_placements");
    }
    if (const Json* pins = reader.array("pins"))
        readPins(reading, *pins, schedule);
    if (const Json* orders = reader.array("part_orders"))
        readPartOrders(reading, *orders, schedule);
    if (const Json* pairs = reader.array("transfer_order"))
        readTransferOrder(reading, *pairs, schedule);
    if (const Json* gathers = reader.array("gathers"))
        readGathers(reading, *gathers, schedule);
    if (const Json* weights = reader.object("weights"))
        schedule.weightPolicy = readWeights(reading, *weights);
    reader.finish();
}

} // namespace pipewright
