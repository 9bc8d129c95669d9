// SPDX-License-Identifier: GPL-3.0-or-later
// Starts a run from published weights, and writes trained weights in the same layout.
#pragma once

#include "core/base/diagnostic.h"
#include "core/model/workload.h"
#include "executor/training/trainedwork.h"

#include <string>
#include <vector>

namespace pipewright {

/// `path`: a safetensors file or a folder of them. A note names tensors that the model does not use. Throws Error as
/// publishedweights.h says, here or when the run is prepared.
TrainedWork::Start startFromWeights(const Workload& workload, const std::string& path, Diagnostics& notes);

/// Before the run: throws Error when there is no published layout for the model, or the file may not be written.
void checkWeightsOutput(const Workload& workload, const std::string& path, bool overwrite);
/// After it; `parameters` are those of every stage, in its layout.
void saveWeights(const std::vector<std::vector<float>>& parameters, const Workload& workload, const std::string& path,
                 bool overwrite);

} // namespace pipewright
