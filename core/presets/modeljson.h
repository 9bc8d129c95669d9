// SPDX-License-Identifier: GPL-3.0-or-later
// Models as JSON objects, the same in presets and in design files.
#pragma once

#include "core/json/objectreader.h"
#include "core/model/modelshape.h"
#include "core/model/workload.h"

#include <nlohmann/json_fwd.hpp>

namespace pipewright {

/// Writes the basic dimensions and fields that differ from their default.
nlohmann::ordered_json shapeToJson(const ModelShape& shape);
/// Reads the fields of a shape; key_value_heads is heads and head_size is hidden / heads when absent. The
/// caller reads further keys of its own and calls finish().
ModelShape readShape(ObjectReader& reader);

std::string_view nameInModel(Optimizer optimizer); ///< "adamw", "sgd-momentum"
void readOptimizer(ObjectReader& reader, std::string_view key, Optimizer& optimizer);

} // namespace pipewright
