// SPDX-License-Identifier: GPL-3.0-or-later
// Where a parameter is in the files of published models (Hugging Face): GPT-2's layout for decoders with a position
// table; Llama's for decoders with rotary positions, with the names of Mixtral, Qwen, DeepSeek, Gemma and GPT-OSS for
// the tensors that only they have; BERT's and ViT's for encoders. Some of our matrices are several tensors there, and
// some the other way around; all these rules are here.
#pragma once

#include "core/model/modelshape.h"
#include "executor/stage/parameterlayout.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright {

/// A matrix of values that one of our parameters and one of their tensors have in common.
struct PublishedPart {
    /// Position and strides of the matrix, counted in values.
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
    Walk ours, theirs; ///< from the beginning of our parameter, and of their tensor
    float above = 0;   ///< our values minus theirs: Gemma stores norm weights minus 1
};

/// The parts of a parameter, named as in "layer 3/qkv.weight". Throws Error for a model without a published layout: a
/// classifier, a mixture of GPT-2 and Llama, a vision transformer whose patches are not squares of three colours.
std::vector<PublishedPart> publishedParts(const ModelShape& shape, const Parameter& parameter);

} // namespace pipewright
