// SPDX-License-Identifier: GPL-3.0-or-later
// How long a device of a backend takes for single operations of given shapes (core/rates), with the kernels that train
// on it: on all devices at once, as in a run, medians of repeated timings, of which those of the median device count.
#pragma once

#include "core/rates/measuredrates.h"
#include "executor/runtime/backend.h"

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace pipewright {

struct OperationMeasureOptions {
    Nanoseconds atLeast = 5'000'000; ///< short operations are repeated within a timing until it takes so long
    int repetitions = 5;             ///< timings, after one to warm up; fewer where time runs short
    double seconds = 240;            ///< in all; the largest shapes that do not fit are left out
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(double fraction, const std::string& what)> progress{};
};

struct OperationMeasurement {
    std::vector<MeasuredTime> times;
    struct LeftOut {
        RatedShape shape;
        std::string why;
    };
    std::vector<LeftOut> leftOut;
};

/// Elementwise kernels are a norm, a sum and a gated activation of so many bytes, of which the mean counts; the loss is
/// a softmax with cross entropy over rows of 1,024 classes, permutation a copy. Measures the smallest shapes first.
/// Throws Error when it was cancelled, or a device fails.
OperationMeasurement measureOperations(Backend& backend, std::span<const RatedShape> shapes,
                                       const OperationMeasureOptions& options = {});

} // namespace pipewright
