// SPDX-License-Identifier: GPL-3.0-or-later
// The measured layers of a model, one by one (executor/torch/torchprofile.h) or from a recorded run
// (traces/analysis/layerranges.h), with the spread of each and the list of estimated numbers; and the two files that
// `profile` writes of them, which --model accepts.
#pragma once

#include "core/model/modelshape.h"

#include <string>
#include <vector>

namespace pipewright {

struct ProfiledLayer {
    double spread = 0; ///< half the interquartile range, relative to the median
    Bytes peak = -1;   ///< highest memory above that before the layer; -1: not known
    int rounds = 0;
};

struct LayerProfile {
    ModelShape shape;                  ///< a table of layers
    std::vector<ProfiledLayer> layers; ///< as in the table
    std::string device;
    std::string tool;                   ///< "PyTorch 2.15"
    std::vector<std::string> estimated; ///< columns of the table whose numbers are not measured
    std::vector<std::string> unknown;   ///< columns that are 0 because the value is not known
    std::vector<std::string> notes;

    /// The "origin" of a model file. `of`: the module or the recording.
    std::string origin(const std::string& of) const;
};

/// A model file that `--model` takes.
std::string modelFileText(const LayerProfile& profile, const std::string& origin);
/// The same as a table of layers; spread, peak, rounds, and what was estimated or is not known, are further columns.
std::string layerTableText(const LayerProfile& profile);

} // namespace pipewright
