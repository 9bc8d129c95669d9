// SPDX-License-Identifier: GPL-3.0-or-later
// Devices, links and clusters as JSON objects, the same in presets and in design files.
#pragma once

#include "core/cluster/cluster.h"
#include "core/json/objectreader.h"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>

namespace pipewright {

nlohmann::ordered_json deviceToJson(const DeviceSpec& device);
/// A device by its numbers, or by "group", a cluster of devices that act as this one. Groups do not nest. Its "rates"
/// are named, not written: they are of a preset, hundreds of lines that are the same in every design, and that get
/// better. They stand in `directory`, or in the resource folder if it is empty; a name that ends with .json is the path
/// of a file, from the folder of the document. `known` are devices that were read before, whose rates are not read
/// again.
DeviceSpec readDevice(ObjectReader& reader, std::span<const DeviceSpec> known = {}, const std::string& directory = {});
/// "host_link".
void readHostLink(ObjectReader& reader, Cluster& cluster);
/// "nodes".
void readNodes(ObjectReader& reader, Cluster& cluster);
/// "collectives" and "grouped_collectives".
void readCollectives(ObjectReader& reader, Cluster& cluster);

nlohmann::ordered_json linkToJson(const LinkSpec& link);
LinkSpec readLink(ObjectReader& reader);

/// Limits of a cluster's "gpus": the highest GPU index and the most multiprocessors of a slice.
inline constexpr int highestGpu = 1 << 10, mostMultiprocessors = 1 << 10;

nlohmann::ordered_json clusterToJson(const Cluster& cluster);
/// `value` is the object at `pointer`; everything including unknown keys is checked.
Cluster readCluster(const LocatedJson& document, const nlohmann::ordered_json& value, const std::string& pointer,
                    Diagnostics& diagnostics);

} // namespace pipewright
