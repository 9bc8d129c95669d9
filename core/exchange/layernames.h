// SPDX-License-Identifier: GPL-3.0-or-later
// The module names of a training framework for the layers of a workload: partitions are exchanged as lists of module
// names per stage.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/design.h"

#include <string>
#include <vector>

namespace pipewright {

enum class ModuleNaming {
    Torchtitan,  ///< tok_embeddings, layers.0 …, norm, lm_head
    HuggingFace, ///< model.embed_tokens, model.layers.0 …, model.norm, lm_head
};

/// Per stage, the names of its modules. Empty without a model, with a note in `diagnostics`.
std::vector<std::vector<std::string>> moduleNames(const Design& design, ModuleNaming naming, Diagnostics& diagnostics);

} // namespace pipewright
