// SPDX-License-Identifier: GPL-3.0-or-later
// Parameters in the layout of published models (Hugging Face): GPT-2's for models with a position table, Llama's for
// decoders with rotary positions, with the names that Mixtral, Qwen and DeepSeek give to experts and latents. What we
// hold as one matrix they hold as several, and some the other way around; this is the one table of it.
#pragma once

#include "core/workload/modelshape.h"
#include "executor/run/safetensors.h"
#include "executor/run/safetensorsfile.h"
#include "executor/training/parameterlayout.h"

#include <span>
#include <string>
#include <vector>

namespace pipewright {

/// Rows of one of our parameters that are rows of one of theirs.
struct PublishedPart {
    std::string name; ///< "model.layers.3.self_attn.q_proj.weight"
    std::int64_t ourFirst = 0, theirFirst = 0, rows = 0;
    std::int64_t theirRows = 0; ///< of their whole tensor
    bool transposed = false;    ///< theirs has our rows as columns (GPT-2)
    bool isVector = false;      ///< theirs has one dimension
    float above = 0;            ///< by which ours are larger: Gemma's norms have their distance from 1
};

/// Of the parameter "layer 3/qkv.weight" of a model. Throws Error for a model that nobody publishes in such a layout: a
/// classifier, or a decoder between GPT-2 and Llama.
std::vector<PublishedPart> publishedParts(const ModelShape& shape, const Parameter& parameter);

/// Fills a stage's parameters. Throws Error: a tensor that is missing, or of another shape, with both shapes.
void readPublished(const SafetensorsFile& file, const ModelShape& shape, const ParameterLayout& layout,
                   std::span<float> parameters);

/// Tensors of the file that no parameter of the model takes.
std::vector<std::string> unusedTensors(const SafetensorsFile& file, const ModelShape& shape,
                                       const ParameterLayout& wholeModel);

/// Adds all parameters of a model, `wholeModel` its layout in one stage, under their published names; a tied head is
/// left out.
void addPublished(Safetensors& file, const ModelShape& shape, const ParameterLayout& wholeModel,
                  std::span<const float> parameters);

} // namespace pipewright
