// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/presets/clusterfile.h"

#include "core/base/textfile.h"
#include "core/json/jsontext.h"
#include "core/json/locatedjson.h"
#include "core/presets/clusterjson.h"
#include "core/presets/modeljson.h"

#include <fmt/format.h>

namespace pipewright {

bool namesClusterFile(std::string_view presetOrFile)
{
    return presetOrFile.ends_with(".json");
}

std::string clusterFileText(const Cluster& cluster, const std::string& title, const std::string& origin)
{
    return jsonText(nlohmann::ordered_json{{"title", title}, {"origin", origin}, {"cluster", clusterToJson(cluster)}},
                    2)
           + "\n";
}

Cluster readClusterFile(const std::string& path, int devices)
{
    const LocatedJson document = parseLocatedJson(readTextFile(path), path);
    Diagnostics faults;
    ObjectReader reader(document, document.value, "", faults);
    std::string title, origin;
    reader.read("title", title);
    reader.read("origin", origin);
    Cluster cluster;
    if (const nlohmann::ordered_json* value = reader.object("cluster", Presence::Required))
        cluster = readCluster(document, *value, reader.pointerTo("cluster"), faults);
    reader.finish();
    if (!faults.empty())
        throw Error(std::move(faults));
    const int known = static_cast<int>(cluster.devices.size());
    if (known == 0)
        throw Error(path, "a cluster without devices", "list at least one");
    if (devices > known)
        throw Error(path, fmt::format("it has {} devices, and {} are wanted", known, devices),
                    "measure more devices, or take fewer: a measured machine has those that it has");
    if (devices > 0 && devices < known) {
        cluster.devices.resize(devices);
        std::erase_if(cluster.linkOfPair, [devices](const auto& entry) {
            return entry.first.first >= devices || entry.first.second >= devices;
        });
        if (!cluster.gpus.empty())
            cluster.gpus.resize(devices);
    }
    return cluster;
}

} // namespace pipewright
