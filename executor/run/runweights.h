// SPDX-License-Identifier: GPL-3.0-or-later
// A run that begins with published weights, and one whose trained weights are written so that others can read them.
#pragma once

#include "core/base/diagnostic.h"
#include "core/workload/workload.h"
#include "executor/training/trainingwork.h"

#include <string>
#include <vector>

namespace pipewright {

/// `path`: a safetensors file or a folder of them. Tensors that the model does not take become a note. Throws Error,
/// or has preparing the run throw, for what publishedweights.h says.
TrainingWork::Start startFromWeights(const Workload& workload, const std::string& path, Diagnostics& notes);

/// Before the run: throws Error when there is no published layout for the model, or the file may not be written.
void checkWeightsOutput(const Workload& workload, const std::string& path, bool overwrite);
/// After it; `parameters` are those of every stage, in its layout.
void saveWeights(const std::vector<std::vector<float>>& parameters, const Workload& workload, const std::string& path,
                 bool overwrite);

} // namespace pipewright
