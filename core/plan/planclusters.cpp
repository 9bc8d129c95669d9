// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/planclusters.h"

#include "core/base/diagnostic.h"
#include "core/presets/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace pipewright {

namespace {

PlanClusters madeOnce(std::function<Cluster(int, std::int64_t)> make)
{
    struct Known {
        std::mutex mutex;
        std::map<std::pair<int, std::int64_t>, std::shared_ptr<const Cluster>> clusters;
    };
    return [known = std::make_shared<Known>(), make = std::move(make)](int devices, std::int64_t members) {
        const std::lock_guard lock(known->mutex);
        std::shared_ptr<const Cluster>& cluster = known->clusters[{devices, members}];
        if (!cluster)
            cluster = std::make_shared<const Cluster>(make(devices, members));
        return cluster;
    };
}

} // namespace

PlanClusters planClusters(const std::string& presetOrFile)
{
    const auto library = std::make_shared<const PresetLibrary>();
    PlanClusters clusters = madeOnce([library, presetOrFile](int devices, std::int64_t members) {
        return library->cluster(presetOrFile, devices, members);
    });
    (void)clusters(1, 1); // an unknown name is no fault of a plan
    return clusters;
}

PlanClusters planClusters(const Cluster& cluster, std::int64_t has)
{
    const std::string hint = "choose a preset or a file as the cluster";
    if (cluster.devices.empty())
        throw Error("--cluster", "the design states no devices", hint);
    for (const DeviceSpec& device : cluster.devices)
        if (device.group || device != cluster.devices.front())
            throw Error("--cluster", "the design's devices differ, and plans are made for devices that are alike",
                        hint);
    if (!cluster.linkOfPair.empty())
        throw Error("--cluster", "the design states links between single devices, which plans would not have", hint);
    const Nodes& nodes = cluster.nodes;
    const std::int64_t most = nodes.devices > 0 ? std::int64_t{nodes.devices} * nodes.count : has;
    return madeOnce([cluster, most, hint](int devices, std::int64_t members) {
        if (devices * members > most)
            throw Error(
                "--cluster",
                fmt::format("the design's cluster has {} devices, and {} are asked for", most, devices * members),
                hint);
        Cluster made = cluster;
        made.gpus.clear();
        made.devices.assign(static_cast<std::size_t>(devices), cluster.devices.front());
        return made;
    });
}

PlanClusters withSlowNode(PlanClusters clusters, double slower)
{
    if (!(slower > 0 && slower < 1))
        throw Error("slow_node", fmt::format("a node that is {:.3g} % slower", 100 * slower),
                    "above 0 % and below 100 %, such as slow_node=10%");
    return madeOnce([clusters = std::move(clusters), slower](int devices, std::int64_t members) {
        Cluster made = *clusters(devices, members);
        if (made.nodes.devices == 0)
            throw Error("slow_node", fmt::format("{} states no nodes", made.name),
                        "choose a cluster of nodes, such as h100-nodes");
        const std::int64_t onNode = (made.nodes.devices + members - 1) / members;
        for (std::int64_t d = 0; d < std::min<std::int64_t>(onNode, devices); ++d) {
            DeviceSpec& device = made.devices[static_cast<std::size_t>(d)];
            if (device.group)
                throw Error("slow_node",
                            fmt::format("{} is a group, and which of it is slower is not said", device.name),
                            "choose a cluster of single devices");
            for (const ProductType products : allProductTypes)
                device.peakOf(products) *= 1 - slower;
            device.memoryBandwidth *= 1 - slower;
            device.name += fmt::format(", {:.3g} % slower", 100 * slower);
        }
        made.name += fmt::format(", a node {:.3g} % slower", 100 * slower);
        return made;
    });
}

} // namespace pipewright
