// SPDX-License-Identifier: GPL-3.0-or-later
// A model from a person's own module: its layers measured one by one by PyTorch on one device.
#pragma once

#include "core/presets/layerprofile.h"

#include <atomic>
#include <functional>
#include <string>

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

struct TorchProfile : LayerProfile {
    bool cancelled = false; ///< then its layers are those that were measured before
};

/// Throws Error: what is wrong with the module, by its layer.
TorchProfile profileWithTorch(const TorchProfileOptions& options);

} // namespace pipewright
