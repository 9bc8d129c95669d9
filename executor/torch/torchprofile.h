// SPDX-License-Identifier: GPL-3.0-or-later
// A model from the user's own module: PyTorch measures its layers one by one on one device.
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
    int microbatches = 1;        ///< batch(0) is cut into so many; one is measured
    double seconds = 0.5;        ///< at least, for each layer
    std::uint64_t seed = 1;
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(int done, int all, const std::string& layer)> progress = {};
};

struct TorchProfile : LayerProfile {
    bool cancelled = false; ///< then the layers are those measured before
};

/// Throws Error with what is wrong with the module and in which layer.
TorchProfile profileWithTorch(const TorchProfileOptions& options);

} // namespace pipewright
