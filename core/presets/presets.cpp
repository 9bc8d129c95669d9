// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/presets/presets.h"

#include "core/base/formattedtext.h"
#include "core/base/limits.h"
#include "core/base/textfile.h"
#include "core/json/locatedjson.h"
#include "core/model/transformer.h"
#include "core/presets/clusterfile.h"
#include "core/presets/clusterjson.h"
#include "core/presets/modeljson.h"
#include "core/rates/ratesfile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace pipewright {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string_view folderOf(PresetKind kind)
{
    switch (kind) {
    case PresetKind::Model: return "models";
    case PresetKind::Device: return "devices";
    case PresetKind::Rates: return "rates";
    case PresetKind::Cluster: break;
    }
    return "clusters";
}

std::vector<std::string> namesIn(const fs::path& folder)
{
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
        if (entry->path().extension() == ".json")
            names.push_back(entry->path().stem().string());
    std::sort(names.begin(), names.end());
    return names;
}

/// Throws Error where there is none of this name, with the known ones.
std::string pathOf(const std::string& directory, PresetKind kind, std::string_view name)
{
    const fs::path folder = fs::path(directory) / folderOf(kind);
    const std::vector<std::string> names = namesIn(folder);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
        const std::vector<std::string_view> known(names.begin(), names.end());
        const std::string_view nearest = nearestName(name, known);
        const std::string_view all = folderOf(kind);
        throw Error(fmt::format("{}", all), fmt::format("no preset is named \"{}\"", name.substr(0, 64)),
                    nearest.empty() ? fmt::format("known: {}", joined(names, ", "))
                                    : fmt::format("did you mean \"{}\"?", nearest));
    }
    return (folder / fmt::format("{}.json", name)).string();
}

LocatedJson readPreset(const std::string& directory, PresetKind kind, std::string_view name)
{
    const std::string path = pathOf(directory, kind, name);
    return parseLocatedJson(readTextFile(path), path);
}

void throwIfAny(Diagnostics diagnostics)
{
    if (!diagnostics.empty())
        throw Error(std::move(diagnostics));
}

// The keys that every preset may have; read so that finish() knows them.
void readDescription(ObjectReader& reader, Preset& preset)
{
    reader.read("title", preset.title);
    reader.read("origin", preset.origin);
}

} // namespace

std::string findResourceDirectory()
{
    std::vector<fs::path> candidates;
    if (const char* given = std::getenv("PIPEWRIGHT_RESOURCES"); given && *given) {
        candidates.emplace_back(given); // an explicit setting has no fallback
    } else {
        std::error_code error;
        if (const fs::path program = fs::read_symlink("/proc/self/exe", error); !error)
            candidates.push_back((program.parent_path() / "../share/pipewright").lexically_normal());
        candidates.emplace_back(PIPEWRIGHT_RESOURCE_DIR);
    }
    std::string tried;
    for (const fs::path& candidate : candidates) {
        std::error_code error;
        if (fs::is_directory(candidate / "models", error))
            return candidate.string();
        tried += (tried.empty() ? "" : ", ") + candidate.string();
    }
    throw Error("presets", "the resource folder was not found; tried " + tried,
                "set PIPEWRIGHT_RESOURCES to the folder that holds models, devices and clusters");
}

PresetLibrary::PresetLibrary(std::string directory) : m_directory(std::move(directory)) {}

std::vector<Preset> PresetLibrary::list(PresetKind kind) const
{
    std::vector<Preset> presets;
    for (const std::string& name : namesIn(fs::path(m_directory) / folderOf(kind))) {
        try {
            const LocatedJson document = readPreset(m_directory, kind, name);
            Diagnostics ignored;
            ObjectReader reader(document, document.value, "", ignored);
            Preset preset{name, name, {}};
            reader.read("name", preset.title); // devices carry their title as their name
            readDescription(reader, preset);
            presets.push_back(std::move(preset));
        } catch (const Error&) {
            continue; // reported when it is loaded by name
        }
    }
    return presets;
}

ModelShape PresetLibrary::model(std::string_view name) const
{
    const LocatedJson document = readPreset(m_directory, PresetKind::Model, name);
    Diagnostics diagnostics;
    ObjectReader reader(document, document.value, "", diagnostics);
    Preset description;
    readDescription(reader, description);
    ModelShape shape = readShape(reader);
    reader.finish();
    throwIfAny(std::move(diagnostics));
    throwIfAny(checkShape(shape));
    return shape;
}

Workload PresetLibrary::workload(std::string_view modelName, Optimizer optimizer) const
{
    return makeWorkload(model(modelName), optimizer, fmt::format("preset {}", modelName));
}

DeviceSpec PresetLibrary::device(std::string_view name) const
{
    const LocatedJson document = readPreset(m_directory, PresetKind::Device, name);
    Diagnostics diagnostics;
    ObjectReader reader(document, document.value, "", diagnostics);
    Preset description;
    readDescription(reader, description);
    DeviceSpec device = readDevice(reader, {}, m_directory);
    reader.finish();
    throwIfAny(std::move(diagnostics));
    return device;
}

std::shared_ptr<const OperationRates> PresetLibrary::rates(std::string_view name) const
{
    const std::string path = pathOf(m_directory, PresetKind::Rates, name);
    OperationRates rates = parseRates(readTextFile(path), path);
    rates.name = name;
    return std::make_shared<const OperationRates>(std::move(rates));
}

DeviceSpec PresetLibrary::groupOf(std::string_view name, std::string_view within) const
{
    if (name == within)
        throw Error("clusters", fmt::format("the preset \"{}\" is a group of itself", name), "name another cluster");
    Cluster members = cluster(name);
    for (const DeviceSpec& member : members.devices)
        if (member.group)
            throw Error("clusters", fmt::format("the preset \"{}\" is made of groups itself", name),
                        "a group's devices are single ones");
    return asOneDevice(std::move(members));
}

PresetLibrary::Listed PresetLibrary::listed(std::string_view name) const
{
    if (namesClusterFile(name))
        return {readClusterFile(std::string(name), 0)};
    const LocatedJson document = readPreset(m_directory, PresetKind::Cluster, name);
    Diagnostics diagnostics;
    ObjectReader reader(document, document.value, "", diagnostics);
    Preset description;
    readDescription(reader, description);
    Listed found;
    Cluster& cluster = found.cluster;
    reader.read("name", cluster.name, Presence::Required);
    reader.read("repeats", found.repeats);
    if (const Json* groups = reader.array("devices", Presence::Required)) {
        for (std::size_t i = 0; i < groups->size(); ++i) {
            ObjectReader group(document, (*groups)[i], fmt::format("/devices/{}", i), diagnostics);
            std::string deviceName, clusterName;
            int count = 1;
            const bool shared = (*groups)[i].is_object() && (*groups)[i].contains("cluster");
            if (shared) // another preset whose devices form a group
                group.read("cluster", clusterName, Presence::Required);
            else
                group.read("device", deviceName, Presence::Required);
            group.read("count", count, 1, maxDevices);
            group.finish();
            if (!diagnostics.empty())
                break;
            cluster.devices.insert(cluster.devices.end(), count,
                                   shared ? groupOf(clusterName, name) : device(deviceName));
        }
        if (groups->empty())
            reader.fault("devices", "a cluster without devices", "list at least one");
    }
    if (const Json* link = reader.object("link", Presence::Required)) {
        ObjectReader linkReader(document, *link, "/link", diagnostics);
        cluster.link = readLink(linkReader);
        linkReader.finish();
    }
    readHostLink(reader, cluster);
    readNodes(reader, cluster);
    readCollectives(reader, cluster);
    reader.finish();
    throwIfAny(std::move(diagnostics));
    return found;
}

std::optional<std::int64_t> PresetLibrary::Listed::capacity() const
{
    if (repeats)
        return std::nullopt;
    const Nodes& nodes = cluster.nodes;
    return nodes.devices > 0 ? std::int64_t{nodes.devices} * nodes.count : std::ssize(cluster.devices);
}

std::optional<std::int64_t> PresetLibrary::capacity(std::string_view name) const
{
    return listed(name).capacity();
}

Cluster PresetLibrary::cluster(std::string_view name, int devices, std::int64_t members) const
{
    if (devices < 0 || devices > maxDevices)
        throw Error("devices", fmt::format("{} devices", devices), fmt::format("between 1 and {}", maxDevices));
    const bool file = namesClusterFile(name);
    if (file && members == 1)
        return readClusterFile(std::string(name), devices); // says how many it has
    const Listed listed = this->listed(name);
    const std::optional<std::int64_t> has = listed.capacity();
    if (has && listed.cluster.nodes.devices == 0 && devices * members > *has)
        throw Error("--cluster",
                    members == 1 ? fmt::format("{} has {} devices, and {} are needed", name, *has, devices)
                                 : fmt::format("{} has {} devices, and {} are needed: {} for each of {}", name, *has,
                                               devices * members, members, devices),
                    file ? "measure more devices, or take fewer: a measured machine has those that it has"
                         : "take fewer, or a cluster of several nodes, whose links between nodes are slower");
    if (devices == 0)
        return listed.cluster;
    if (file)
        return readClusterFile(std::string(name), devices);
    Cluster cluster = listed.cluster;
    cluster.devices.clear();
    for (int i = 0; i < devices; ++i)
        cluster.devices.push_back(listed.cluster.devices[i % listed.cluster.devices.size()]);
    return cluster;
}

} // namespace pipewright
