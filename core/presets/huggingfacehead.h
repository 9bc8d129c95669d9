// SPDX-License-Identifier: GPL-3.0-or-later
// The heads of Hugging Face's classes, by their names: "LlamaForSequenceClassification" under "architectures".
#pragma once

#include "core/model/modelshape.h"
#include "core/presets/huggingfacetypes.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

struct ClassHead {
    Head head = Head::Own;
    int labels = 0;        ///< 0: as many as the configuration says
    bool maybeTied = true; ///< whether the head has a matrix that may be the embedding's
};

/// Empty: not known. An encoder's class without a head has a pooler, which is its own head without a tied matrix.
std::optional<ClassHead> headOfClass(std::string_view name, const HuggingFaceType& type, bool encoder);
std::vector<std::string> knownClasses(const HuggingFaceType& type, bool encoder); ///< names, or how they end: "…Model"

} // namespace pipewright
