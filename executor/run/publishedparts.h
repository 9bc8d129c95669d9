// SPDX-License-Identifier: GPL-3.0-or-later
// Where a parameter is in the files of published models (Hugging Face): GPT-2's layout for decoders with a position
// table, Llama's for those with rotary positions, with the names that Mixtral, Qwen, DeepSeek, Gemma and GPT-OSS give
// to what they have of their own, BERT's and ViT's for encoders. What we hold as one matrix they hold as several, and
// some the other way around; this is the one table of it.
#pragma once

#include "core/workload/modelshape.h"
#include "executor/training/parameterlayout.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright {

/// Values of one of our parameters that are values of one of theirs, row by row and column by column.
struct PublishedPart {
    /// Where such a matrix lies, in values.
    struct Walk {
        std::int64_t first = 0, rowStep = 0, columnStep = 0;
        std::size_t at(std::int64_t row, std::int64_t column) const
        {
            return static_cast<std::size_t>(first + row * rowStep + column * columnStep);
        }
    };
    std::string name;                ///< "model.layers.3.self_attn.q_proj.weight"
    std::vector<std::int64_t> shape; ///< of their whole tensor
    std::int64_t rows = 0, columns = 0;
    Walk ours, theirs; ///< from the beginning of the parameter, and of their tensor
    float above = 0;   ///< by which ours are larger: Gemma's norms have their distance from 1
};

/// Of the parameter "layer 3/qkv.weight" of a model. Throws Error for a model that is not published in such a layout: a
/// classifier, a decoder between GPT-2 and Llama, a vision transformer whose patches are no squares of three colours.
std::vector<PublishedPart> publishedParts(const ModelShape& shape, const Parameter& parameter);

} // namespace pipewright
