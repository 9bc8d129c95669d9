// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/presets/clusterjson.h"

#include "core/base/textfile.h"
#include "core/json/jsontext.h"
#include "core/json/locatedjson.h"
#include "core/presets/presets.h"
#include "core/rates/ratesfile.h"

#include <fmt/format.h>

#include <filesystem>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

const std::initializer_list<NamedValue<Collective>> collectiveNames{
    {"all_gather", Collective::AllGather},         {"grouped_broadcast", Collective::GroupedBroadcast},
    {"all_reduce", Collective::AllReduce},         {"reduce_scatter", Collective::ReduceScatter},
    {"grouped_reduce", Collective::GroupedReduce}, {"all_to_all", Collective::AllToAll}};

std::shared_ptr<const OperationRates> readRatesNamed(ObjectReader& reader, const std::string& name,
                                                     std::span<const DeviceSpec> known, const std::string& directory)
{
    const bool ofFile = name.ends_with(".json"); // beside the file that names it, or wherever its path says
    const std::string found =
        ofFile ? std::filesystem::absolute(std::filesystem::path(reader.document().source).parent_path() / name)
                     .lexically_normal()
                     .string()
               : name;
    for (const DeviceSpec& device : known)
        if (device.rates && device.rates->name == found)
            return device.rates;
    try {
        if (!ofFile)
            return PresetLibrary(directory.empty() ? findResourceDirectory() : directory).rates(name);
        OperationRates rates = parseRates(readTextFile(found), found);
        rates.name = found;
        return std::make_shared<const OperationRates>(std::move(rates));
    } catch (const Error& error) {
        const Diagnostic& first = error.diagnostics().front();
        reader.fault("rates", fmt::format("{}: {}", first.where, first.what),
                     first.hint + "; or leave \"rates\" out, so that \"efficiency\" counts");
    }
    return nullptr;
}

} // namespace

nlohmann::ordered_json deviceToJson(const DeviceSpec& device)
{
    Json json;
    json["name"] = device.name;
    if (device.group) {
        json["group"] = clusterToJson(*device.group);
        return json;
    }
    json["memory"] = exactSize(device.memory);
    json["peak_flops"] = plainNumber(device.peakFlops);
    if (device.peakFp8 > 0)
        json["peak_fp8_flops"] = plainNumber(device.peakFp8);
    if (device.peakNvfp4 > 0)
        json["peak_nvfp4_flops"] = plainNumber(device.peakNvfp4);
    json["memory_bandwidth"] = plainNumber(device.memoryBandwidth);
    json["efficiency"] = plainNumber(device.efficiency);
    if (device.halfRateWidth > 0)
        json["half_rate_width"] = plainNumber(device.halfRateWidth);
    if (device.rates)
        json["rates"] = device.rates->name;
    return json;
}

DeviceSpec readDevice(ObjectReader& reader, std::span<const DeviceSpec> known, const std::string& directory)
{
    DeviceSpec device;
    reader.read("name", device.name, Presence::Required);
    if (const Json* group = reader.object("group")) {
        Cluster members = readCluster(reader.document(), *group, reader.pointerTo("group"), reader.diagnostics());
        if (members.devices.empty())
            reader.fault("group", "a group without devices", "list the devices that stand for this one");
        for (const DeviceSpec& member : members.devices)
            if (member.group)
                reader.fault("group", "a group within a group", "list all devices in one group");
            else if (member.halfRateWidth > 0)
                reader.fault("group", "programs of a group do not know what narrow matrices cost",
                             "leave half_rate_width out, and lower the efficiency");
        const std::string name = device.name;
        device = asOneDevice(std::move(members));
        device.name = name;
        return device;
    }
    reader.readSize("memory", device.memory);
    reader.readRate("peak_flops", device.peakFlops);
    reader.readRate("peak_fp8_flops", device.peakFp8);
    reader.readRate("peak_nvfp4_flops", device.peakNvfp4);
    reader.readRate("memory_bandwidth", device.memoryBandwidth);
    reader.readRate("efficiency", device.efficiency);
    reader.readRate("half_rate_width", device.halfRateWidth);
    if (std::string name; reader.read("rates", name))
        device.rates = readRatesNamed(reader, name, known, directory);
    return device;
}

nlohmann::ordered_json linkToJson(const LinkSpec& link)
{
    Json json;
    json["name"] = link.name;
    json["latency"] = exactDuration(link.latency);
    json["bandwidth"] = plainNumber(link.bandwidth);
    if (!link.bus.empty())
        json["bus"] = link.bus;
    return json;
}

LinkSpec readLink(ObjectReader& reader)
{
    LinkSpec link;
    reader.read("name", link.name);
    reader.readDuration("latency", link.latency);
    reader.readRate("bandwidth", link.bandwidth);
    reader.read("bus", link.bus);
    return link;
}

void readHostLink(ObjectReader& reader, Cluster& cluster)
{
    const Json* link = reader.object("host_link");
    if (link == nullptr)
        return;
    ObjectReader linkReader(reader.document(), *link, reader.pointerTo("host_link"), reader.diagnostics());
    cluster.hostLink = readLink(linkReader);
    if (!cluster.hostLink->bus.empty())
        linkReader.fault("bus", "a device has a wire of its own to the host's memory, each way", "leave it out");
    linkReader.finish();
}

nlohmann::ordered_json clusterToJson(const Cluster& cluster)
{
    Json json;
    json["name"] = cluster.name;
    json["devices"] = Json::array();
    for (const DeviceSpec& device : cluster.devices)
        json["devices"].push_back(deviceToJson(device));
    json["link"] = linkToJson(cluster.link);
    for (const auto& [pair, link] : cluster.linkOfPair) {
        Json entry{{"from", pair.first}, {"to", pair.second}};
        entry.update(linkToJson(link));
        json["links"].push_back(std::move(entry));
    }
    if (cluster.hostLink)
        json["host_link"] = linkToJson(*cluster.hostLink);
    for (const auto& [kind, spec] : cluster.collectives)
        json["collectives"][nameIn(collectiveNames, kind)] = {{"latency", exactDuration(spec.latency)},
                                                              {"bandwidth", plainNumber(spec.bandwidth)}};
    if (const Nodes& nodes = cluster.nodes; nodes.devices > 0) {
        json["nodes"] = {{"devices", nodes.devices},
                         {"count", nodes.count},
                         {"cards", nodes.cards},
                         {"network", linkToJson(nodes.network)}};
        if (nodes.perSwitch > 0)
            json["nodes"]["per_switch"] = nodes.perSwitch;
        if (nodes.oversubscription != 1)
            json["nodes"]["oversubscription"] = plainNumber(nodes.oversubscription);
    }
    if (!cluster.groupedCollectives)
        json["grouped_collectives"] = false;
    for (const GpuShare& share : cluster.gpus) {
        Json entry{{"gpu", share.gpu}};
        if (share.multiprocessors > 0)
            entry["multiprocessors"] = share.multiprocessors;
        json["gpus"].push_back(std::move(entry));
    }
    return json;
}

void readNodes(ObjectReader& reader, Cluster& cluster)
{
    const Json* value = reader.object("nodes");
    if (value == nullptr)
        return;
    constexpr int most = 65'536;
    Nodes& nodes = cluster.nodes;
    ObjectReader entry(reader.document(), *value, reader.pointerTo("nodes"), reader.diagnostics());
    entry.read("devices", nodes.devices, 1, most, Presence::Required);
    entry.read("count", nodes.count, 1, most, Presence::Required);
    entry.read("cards", nodes.cards, 1, most, Presence::Required);
    entry.read("per_switch", nodes.perSwitch, 1, most);
    entry.readRate("oversubscription", nodes.oversubscription);
    if (nodes.oversubscription < 1)
        entry.fault("oversubscription", "less than 1", "2: half of the nodes' bandwidth leaves the switch");
    if (const Json* network = entry.object("network", Presence::Required)) {
        ObjectReader link(reader.document(), *network, entry.pointerTo("network"), reader.diagnostics());
        nodes.network = readLink(link);
        link.finish();
    }
    entry.finish();
}

void readCollectives(ObjectReader& reader, Cluster& cluster)
{
    if (const Json* collectives = reader.object("collectives")) {
        ObjectReader list(reader.document(), *collectives, reader.pointerTo("collectives"), reader.diagnostics());
        for (const NamedValue<Collective>& known : collectiveNames)
            if (const Json* value = list.object(known.name)) {
                ObjectReader entry(reader.document(), *value, list.pointerTo(known.name), reader.diagnostics());
                CollectiveSpec& spec = cluster.collectives[known.value];
                entry.readDuration("latency", spec.latency);
                entry.readRate("bandwidth", spec.bandwidth, Presence::Required);
                entry.finish();
            }
        list.finish();
    }
    reader.read("grouped_collectives", cluster.groupedCollectives);
}

Cluster readCluster(const LocatedJson& document, const Json& value, const std::string& pointer,
                    Diagnostics& diagnostics)
{
    Cluster cluster;
    ObjectReader reader(document, value, pointer, diagnostics);
    reader.read("name", cluster.name);
    if (const Json* devices = reader.array("devices", Presence::Required)) {
        for (std::size_t i = 0; i < devices->size(); ++i) {
            ObjectReader device(document, (*devices)[i], fmt::format("{}/devices/{}", pointer, i), diagnostics);
            cluster.devices.push_back(readDevice(device, cluster.devices));
            device.finish();
        }
    }
    if (const Json* link = reader.object("link")) {
        ObjectReader linkReader(document, *link, reader.pointerTo("link"), diagnostics);
        cluster.link = readLink(linkReader);
        linkReader.finish();
    }
    if (const Json* links = reader.array("links")) {
        for (std::size_t i = 0; i < links->size(); ++i) {
            ObjectReader entry(document, (*links)[i], fmt::format("{}/links/{}", pointer, i), diagnostics);
            std::pair<int, int> pair{0, 0};
            entry.read("from", pair.first, 0, 1 << 20, Presence::Required);
            entry.read("to", pair.second, 0, 1 << 20, Presence::Required);
            const LinkSpec link = readLink(entry);
            if (!cluster.linkOfPair.emplace(pair, link).second)
                entry.fault({}, fmt::format("the link from {} to {} is listed twice", pair.first, pair.second),
                            "keep one of them");
            entry.finish();
        }
    }
    readHostLink(reader, cluster);
    readNodes(reader, cluster);
    readCollectives(reader, cluster);
    if (const Json* gpus = reader.array("gpus")) {
        for (std::size_t i = 0; i < gpus->size(); ++i) {
            ObjectReader entry(document, (*gpus)[i], fmt::format("{}/gpus/{}", pointer, i), diagnostics);
            GpuShare& share = cluster.gpus.emplace_back();
            entry.read("gpu", share.gpu, 0, highestGpu, Presence::Required);
            entry.read("multiprocessors", share.multiprocessors, 1, mostMultiprocessors);
            entry.finish();
        }
        if (!gpus->empty() && gpus->size() != cluster.devices.size())
            reader.fault(
                "gpus",
                fmt::format("says where {} devices run, and the cluster has {}", gpus->size(), cluster.devices.size()),
                "give one entry per device, or leave the list out");
    }
    reader.finish();
    return cluster;
}

} // namespace pipewright
