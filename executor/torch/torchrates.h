// SPDX-License-Identifier: GPL-3.0-or-later
// How long single operations of given shapes (core/rates) take in PyTorch, on one GPU or on the CPU.
#pragma once

#include "core/rates/measuredrates.h"

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace pipewright {

struct TorchRatesOptions {
    std::string python = "python3";
    std::string device = "auto"; ///< auto, host or cuda
    double seconds = 240;        ///< in all; the largest shapes that do not fit are left out
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(double fraction, const std::string& what)> progress{};
};

struct TorchRates {
    std::string device, tool; ///< "NVIDIA H100 80GB HBM3", "PyTorch 2.14"
    std::vector<MeasuredTime> times;
    struct LeftOut {
        RatedShape shape;
        std::string why;
    };
    std::vector<LeftOut> leftOut;
};

/// Throws Error: no PyTorch, no such device, cancelled.
TorchRates measureInTorch(std::span<const RatedShape> shapes, const TorchRatesOptions& options);

} // namespace pipewright
