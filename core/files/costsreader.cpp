// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/costsreader.h"

#include "core/base/limits.h"
#include "core/files/buildingblockreader.h"
#include "core/files/locateddesign.h"
#include "core/json/locatedjson.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

class CostsReader {
public:
    CostsReader(const LocatedJson& document, Diagnostics& diagnostics)
        : m_document(document), m_diagnostics(diagnostics)
    {
    }

    Costs read(const Json& value, int stages)
    {
        Costs costs;
        ObjectReader reader = object(value, "/costs");
        reader.read("source", costs.source);
        reader.readDuration("reduce", costs.reduce);
        if (const Json* link = reader.object("link")) {
            ObjectReader linkReader = object(*link, "/costs/link");
            costs.link = readLinkCosts(linkReader);
            linkReader.finish();
        }
        if (const Json* links = reader.array("links")) {
            for (std::size_t i = 0; i < links->size(); ++i) {
                ObjectReader entry = object((*links)[i], fmt::format("/costs/links/{}", i));
                std::pair<int, int> pair{0, 0};
                entry.read("from", pair.first, 0, maxDevices - 1, Presence::Required);
                entry.read("to", pair.second, 0, maxDevices - 1, Presence::Required);
                if (!costs.linkOfPair.emplace(pair, readLinkCosts(entry)).second)
                    entry.fault({}, fmt::format("the link from {} to {} is listed twice", pair.first, pair.second),
                                "keep one of them");
                entry.finish();
            }
        }
        readNodes(reader, costs.nodeLinks);
        if (const Json* link = reader.object("host_link")) {
            ObjectReader linkReader = object(*link, "/costs/host_link");
            costs.hostLink = readLinkCosts(linkReader);
            if (!costs.hostLink->bus.empty())
                linkReader.fault("bus", "a device has a wire of its own to the host's memory, each way",
                                 "leave it out");
            linkReader.finish();
        }
        readHostGaps(reader, costs);
        readCommunication(reader, costs);
        reader.readRate("overlap_factor", costs.overlapFactor);
        if (const Json* list = reader.array("microbatches")) {
            if (list->size() > static_cast<std::size_t>(maxMicrobatches))
                reader.fault("microbatches", fmt::format("{} microbatches", list->size()),
                             fmt::format("at most {}", maxMicrobatches));
            for (std::size_t i = 0; i < std::min(list->size(), static_cast<std::size_t>(maxMicrobatches)); ++i) {
                ObjectReader entry = object((*list)[i], fmt::format("/costs/microbatches/{}", i));
                MicrobatchScale& scale = costs.microbatches.emplace_back();
                entry.readRate("time", scale.time);
                entry.readRate("bytes", scale.bytes);
                entry.finish();
            }
        }
        if (const Json* list = reader.array("stages", Presence::Required)) {
            for (std::size_t i = 0; i < list->size(); ++i) {
                ObjectReader stage = object((*list)[i], fmt::format("/costs/stages/{}", i));
                costs.stages.push_back(readStageCosts(stage));
                stage.finish();
            }
            if (static_cast<int>(list->size()) != stages)
                reader.fault(
                    "stages",
                    fmt::format("costs of {} stages are given, but {} stages are placed", list->size(), stages),
                    "give one entry per stage of \"placement\"");
        }
        reader.finish();
        return costs;
    }

private:
    ObjectReader object(const Json& value, std::string pointer)
    {
        return ObjectReader(m_document, value, std::move(pointer), m_diagnostics);
    }

    void readNodes(ObjectReader& reader, NodeLinks& links)
    {
        const Json* json = reader.object("nodes");
        if (json == nullptr)
            return;
        ObjectReader nodes = object(*json, "/costs/nodes");
        if (const Json* list = nodes.array("links", Presence::Required))
            for (std::size_t i = 0; i < std::min(list->size(), static_cast<std::size_t>(maxDevices)); ++i) {
                const std::string pointer = fmt::format("/costs/nodes/links/{}", i);
                ObjectReader entry = object((*list)[i], pointer);
                NodeLinks::Node& node = links.nodes.emplace_back();
                entry.read("under_switch", node.underSwitch, 0, maxDevices - 1);
                for (const auto& [key, link] :
                     {std::pair{"network", &node.network}, {"beyond_switch", &node.beyondSwitch}})
                    if (const Json* value = entry.object(key)) {
                        ObjectReader each = object(*value, pointer + "/" + key);
                        *link = readLinkCosts(each);
                        each.finish();
                    }
                entry.finish();
            }
        if (const Json* list = nodes.array("of_devices", Presence::Required))
            links.nodeOfDevice = readIntegers(m_document, *list, "/costs/nodes/of_devices", 0,
                                              std::max(0, static_cast<int>(links.nodes.size()) - 1), m_diagnostics);
        nodes.finish();
    }

    void readCommunication(ObjectReader& reader, Costs& costs)
    {
        bool blocks = false;
        reader.read("blocking_transfers", blocks);
        costs.communication = blocks ? Communication::Blocking : Communication::Overlapped;
        reader.readName("communication", costs.communication);
        if (blocks && costs.communication != Communication::Blocking)
            reader.fault("communication",
                         fmt::format("it is {}, and \"blocking_transfers\" is true", nameOf(costs.communication)),
                         "keep one of the two");
    }

    void readHostGaps(ObjectReader& reader, Costs& costs)
    {
        const Json* list = reader.array("host_gaps");
        if (list == nullptr)
            return;
        if (list->size() > static_cast<std::size_t>(maxDevices))
            reader.fault("host_gaps", fmt::format("{} devices", list->size()), fmt::format("at most {}", maxDevices));
        for (std::size_t i = 0; i < std::min(list->size(), static_cast<std::size_t>(maxDevices)); ++i) {
            ObjectReader entry = object((*list)[i], fmt::format("/costs/host_gaps/{}", i));
            HostGaps& gaps = costs.hostGaps.emplace_back();
            for (const Op op : allOps)
                entry.readDuration(timeKey(op), gaps.before[indexOf(op)]);
            readOrigins(entry, gaps.origin);
            entry.finish();
        }
    }

    LinkCosts readLinkCosts(ObjectReader& reader)
    {
        LinkCosts link;
        reader.readDuration("latency", link.latency);
        reader.readRate("bytes_per_second", link.bytesPerSecond);
        reader.read("bus", link.bus);
        reader.readName("origin", link.origin);
        return link;
    }

    void readOrigins(ObjectReader& reader, std::array<CostOrigin, opCount>& origins)
    {
        const Json* json = reader.object("origin");
        if (json == nullptr)
            return;
        ObjectReader each = object(*json, reader.pointerTo("origin"));
        for (const Op op : allOps)
            each.readName(timeKey(op), origins[indexOf(op)]);
        each.finish();
    }

    void readParts(ObjectReader& reader, StageCosts& stage)
    {
        const Json* json = reader.object("parts");
        if (json == nullptr)
            return;
        const std::string pointer = reader.pointerTo("parts");
        ObjectReader each = object(*json, pointer);
        for (const Op op : allOps) {
            const Json* list = isPass(op) ? each.array(timeKey(op)) : nullptr;
            if (list == nullptr)
                continue;
            if (list->size() > static_cast<std::size_t>(maxParts))
                each.fault(timeKey(op), fmt::format("{} parts", list->size()), fmt::format("at most {}", maxParts));
            for (std::size_t i = 0; i < std::min(list->size(), static_cast<std::size_t>(maxParts)); ++i) {
                ObjectReader entry = object((*list)[i], fmt::format("{}/{}/{}", pointer, timeKey(op), i));
                BlockPart& part = stage.parts[indexOf(op)].emplace_back();
                entry.read("name", part.name);
                entry.readDuration("time", part.time, Presence::Required);
                entry.readName("stream", part.stream);
                entry.read("awaited", part.awaited);
                entry.finish();
            }
        }
        each.finish();
    }

    StageCosts readStageCosts(ObjectReader& reader)
    {
        StageCosts stage;
        readParts(reader, stage);
        forEachTime(stage, [&](Op op, std::optional<Nanoseconds> leftOut) {
            const std::vector<BlockPart>& parts = stage.parts[indexOf(op)];
            Nanoseconds& time = stage.*timeField(op);
            if (!parts.empty())
                leftOut = sumOf(parts);
            time = leftOut.value_or(time);
            reader.readDuration(timeKey(op), time, leftOut ? Presence::Optional : Presence::Required);
            if (!parts.empty() && time != sumOf(parts))
                reader.fault(timeKey(op),
                             fmt::format("its parts take {} one behind the other", exactDuration(sumOf(parts))),
                             "leave the time out: it is their sum");
        });
        forEachExchangeTime(stage, [&reader](std::string_view key, Nanoseconds& time) {
            reader.readDuration(key, time, Presence::Optional);
        });
        forEachByteField(stage, [&reader](std::string_view key, Bytes& field) { reader.readSize(key, field); });
        readOrigins(reader, stage.origin);
        if (const Json* json = reader.object("spread")) {
            ObjectReader each = object(*json, reader.pointerTo("spread"));
            for (const Op op : allOps)
                each.readRate(timeKey(op), stage.spread[indexOf(op)]);
            each.finish();
        }
        return stage;
    }

    const LocatedJson& m_document;
    Diagnostics& m_diagnostics;
};

} // namespace

Costs readCosts(const LocatedJson& document, const nlohmann::ordered_json& value, int stages, Diagnostics& diagnostics)
{
    return CostsReader(document, diagnostics).read(value, stages);
}

} // namespace pipewright
