// SPDX-License-Identifier: GPL-3.0-or-later
// Models as JSON objects, the same in presets and in design files.
#pragma once

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

std::string_view nameInModel(Optimizer optimizer); ///< "adamw", "sgd-momentum"
void readOptimizer(ObjectReader& reader, std::string_view key, Optimizer& optimizer);

} // namespace pipewright
