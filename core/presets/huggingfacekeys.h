// SPDX-License-Identifier: GPL-3.0-or-later
// The keys of a Hugging Face configuration. Each is read here, known to change nothing, or named in a note: what is
// read is a list for each model type (huggingfacetypes.h), so that a key which nobody thought of is never passed over
// in silence. O(keys).
#pragma once

#include "core/base/diagnostic.h"
#include "core/json/locatedjson.h"
#include "core/presets/huggingfacetypes.h"

namespace pipewright {

/// The configuration with the keys that are read, under their present names, and the library's defaults for those that
/// are missing. Adds notes: keys that are left out, sizes that the file does not state.
LocatedJson completedConfig(const LocatedJson& document, const HuggingFaceType& type, Diagnostics& notes);

} // namespace pipewright
