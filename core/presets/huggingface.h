// SPDX-License-Identifier: GPL-3.0-or-later
// Hugging Face config.json: the dimensions of a model under the key names of its architecture ("model_type"). Only what
// the formulas of core/model can express is taken; a field that they cannot express is a fault at its line. What a
// configuration does not say (tokens per sequence, sequences per microbatch) is stated in `source`.
#pragma once

#include "core/json/locatedjson.h"
#include "core/presets/modelfile.h"

#include <string>

namespace pipewright {

bool isHuggingFaceConfig(const nlohmann::ordered_json& value);

/// Throws Error: an unknown architecture, and which fields of a decoder it lacks.
ModelFile readHuggingFaceConfig(const LocatedJson& document, const std::string& name);

} // namespace pipewright
