// SPDX-License-Identifier: GPL-3.0-or-later
// The layers of a model as they were measured, one by one (executor/torch/torchprofile.h) or in a recorded run
// (traces/analysis/layerranges.h), with how far each varied and which numbers are estimates; and the two files that
// `profile` writes of them, both for --model.
#pragma once

#include "core/workload/modelshape.h"

#include <string>
#include <vector>

namespace pipewright {

struct ProfiledLayer {
    double spread = 0; ///< half the middle half's width, relative to the median
    Bytes peak = -1;   ///< highest beside what was there before; -1: not known
    int rounds = 0;
};

struct LayerProfile {
    ModelShape shape;                  ///< a table of layers
    std::vector<ProfiledLayer> layers; ///< as in the table
    std::string device;
    std::string tool;                   ///< "PyTorch 2.15"
    std::vector<std::string> estimated; ///< columns of the table whose numbers are no measurements
    std::vector<std::string> unknown;   ///< columns that are 0 as nothing is known
    std::vector<std::string> notes;

    /// What a model file says of itself. `of`: the module or the recording.
    std::string origin(const std::string& of) const;
};

/// A model file that `--model` takes.
std::string modelFileText(const LayerProfile& profile, const std::string& origin);
/// The same as a table of layers; spread, peak, rounds, and what was estimated or is not known, are further columns.
std::string layerTableText(const LayerProfile& profile);

} // namespace pipewright
