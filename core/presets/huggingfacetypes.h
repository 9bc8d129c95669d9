// SPDX-License-Identifier: GPL-3.0-or-later
// The model types of Hugging Face configurations whose layers are known here, each with the keys that are read and the
// values that the transformers library takes for keys which a file leaves out. A file that the library writes states
// only what differs from them. tests/torch/configurations.py compares them with the installed library.
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace pipewright {

/// The release of the library that the defaults are those of.
inline constexpr std::string_view libraryOfDefaults = "transformers 5.24.0";

struct HuggingFaceType {
    std::string_view type;      ///< "model_type": "qwen3_moe"
    std::string_view bareClass; ///< class of the model without a head, as in "architectures"
    /// A JSON object: every key that is read for this type, with its default. null: computed from others, or nothing.
    std::string_view defaults;
    /// Other names of keys, and the names that they have above.
    std::span<const std::pair<std::string_view, std::string_view>> renamed = {};
    /// Keys of published files that the library's class for this type does not read.
    std::span<const std::string_view> ignored = {};

    // What the type always has.
    bool queryKeyValueBias = false, queryKeyNorm = false, postNorm = false;
    std::string_view expertCount = {}, expertWidth = {}; ///< keys of a mixture of experts
    int fullAttentionEvery = 0;                          ///< of layers with a window, where a file has no layer_types
};

std::span<const HuggingFaceType> huggingFaceTypes();
const HuggingFaceType* findHuggingFaceType(std::string_view type); ///< null: not known here

} // namespace pipewright
