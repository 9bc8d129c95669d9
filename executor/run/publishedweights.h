// SPDX-License-Identifier: GPL-3.0-or-later
// Reads and writes parameters in the layout of published models (publishedparts.h).
#pragma once

#include "core/model/modelshape.h"
#include "executor/run/safetensors.h"
#include "executor/run/safetensorsfile.h"
#include "executor/stage/parameterlayout.h"

#include <span>
#include <string>
#include <vector>

namespace pipewright {

/// Fills a stage's parameters. Throws Error for a tensor that is missing or has another shape; the message has both
/// shapes.
void readPublished(const SafetensorsFile& file, const ModelShape& shape, const ParameterLayout& layout,
                   std::span<float> parameters);

/// Tensors of the file that no parameter of the model uses.
std::vector<std::string> unusedTensors(const SafetensorsFile& file, const ModelShape& shape,
                                       const ParameterLayout& wholeModel);

/// Adds all parameters of a model under their published names, without a tied head. `wholeModel` is the model's layout
/// as one stage.
void addPublished(Safetensors& file, const ModelShape& shape, const ParameterLayout& wholeModel,
                  std::span<const float> parameters);

} // namespace pipewright
