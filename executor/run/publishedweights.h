// SPDX-License-Identifier: GPL-3.0-or-later
// Reads and writes parameters in the layout of published models (publishedparts.h).
#pragma once

#include "core/workload/modelshape.h"
#include "executor/run/safetensors.h"
#include "executor/run/safetensorsfile.h"
#include "executor/training/parameterlayout.h"

#include <span>
#include <string>
#include <vector>

namespace pipewright {

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
