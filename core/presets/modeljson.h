// SPDX-License-Identifier: GPL-3.0-or-later
// Models, devices, links and clusters as JSON objects, the same in presets and in design files.
#pragma once

#include "core/cluster/cluster.h"
#include "core/json/objectreader.h"
#include "core/workload/modelshape.h"
#include "core/workload/workload.h"

#include <nlohmann/json.hpp>

namespace pipewright {

/// Writes the basic dimensions and fields that differ from their default.
nlohmann::ordered_json shapeToJson(const ModelShape& shape);
/// Reads the fields of a shape; key_value_heads is heads and head_size is hidden / heads when absent. The
/// caller reads further keys of its own and calls finish().
ModelShape readShape(ObjectReader& reader);

/// A field of a model that was made smaller for a run on this machine.
struct ScaledField {
    std::string key, before, after; ///< "layers", "80", "8"
};
struct ScaledShape {
    ModelShape shape;
    std::vector<ScaledField> fields; ///< those that changed
};
/// `scale`: keys of a model file and their values, "layers=8,vocabulary=32000,data_type=fp32,dropout=off". Throws Error
/// with checkShape()'s diagnostics, and for keys and values that a model file does not have.
ScaledShape scaledShape(const ModelShape& shape, const std::string& scale);

nlohmann::ordered_json deviceToJson(const DeviceSpec& device);
/// A device by its numbers, or by "group", a cluster of devices that act as this one. Groups do not nest.
DeviceSpec readDevice(ObjectReader& reader);
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
Cluster readCluster(const LocatedJson& document, const nlohmann::json& value, const std::string& pointer,
                    Diagnostics& diagnostics);

std::string_view nameInModel(Optimizer optimizer); ///< "adamw", "sgd-momentum"
void readOptimizer(ObjectReader& reader, std::string_view key, Optimizer& optimizer);

} // namespace pipewright
