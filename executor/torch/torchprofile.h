// SPDX-License-Identifier: GPL-3.0-or-later
// A model from a person's own module: its layers measured one by one by PyTorch on one device. The result is a table of
// layers, as any model file.
#pragma once

#include "core/workload/modelshape.h"

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace pipewright {

struct TorchProfileOptions {
    std::string module; ///< FILE.py:build, which returns layers
    std::string python = "python3";
    std::string device = "auto"; ///< auto, host or cuda
    int microbatches = 1;        ///< batch(0) is cut into so many, and one of them is measured
    double seconds = 0.5;        ///< for each layer, at least
    std::uint64_t seed = 1;
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(int done, int all, const std::string& layer)> progress = {};
};

struct ProfiledLayer {
    double spread = 0; ///< half the middle half's width, relative to the median
    Bytes peak = -1;   ///< highest beside what was there before; -1: the device does not say
    int rounds = 0;
};

struct TorchProfile {
    ModelShape shape;
    std::vector<ProfiledLayer> layers;
    std::string device, torch;
    std::vector<std::string> notes;
    bool cancelled = false;
    std::string origin(const TorchProfileOptions& options) const; ///< what a model file says of itself
};

/// Throws Error: what is wrong with the module, by its layer.
TorchProfile profileWithTorch(const TorchProfileOptions& options);

/// A model file that `--model` takes.
std::string modelFileText(const TorchProfile& profile, const std::string& origin);
/// The same as a table of layers, with the spread and the peak as further columns.
std::string layerTableText(const TorchProfile& profile);

} // namespace pipewright
