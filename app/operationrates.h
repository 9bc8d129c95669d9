// SPDX-License-Identifier: GPL-3.0-or-later
// `devices --measure --operations`: rates by operation and shape, measured here, into a file beside the cluster's.
#pragma once

#include "app/command.h"
#include "core/design/design.h"
#include "core/rates/measuredrates.h"
#include "executor/runtime/backend.h"

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::app {

/// "mine.rates.json" of "mine.json".
std::string ratesFileOf(const std::string& clusterFile);

/// What is measured, for whom, and how far it is.
struct OperationsAsked {
    const Design* design = nullptr; ///< its shapes; null: a grid of usual ones
    std::string clusterFile;
    bool force = false; ///< replace the file
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(double fraction, const std::string& what)> progress;
};

struct OperationsMeasured {
    std::string file;
    OperationRates rates;
    std::vector<std::pair<RatedShape, std::string>> leftOut; ///< with the reason
    double seconds = 0;                                      ///< that measuring took
};

/// With a backend's own kernels, or in PyTorch on the devices of the design's cluster. Each writes the file, and has
/// the devices of `cluster` name it. Shares are of the peaks of its first device. Throw Error: the file exists, the
/// design has no model, nothing of it can be measured here.
OperationsMeasured measureOperations(const OperationsAsked& asked, Backend& backend, const std::string& title,
                                     Cluster& cluster);
OperationsMeasured measureOperationsInTorch(const OperationsAsked& asked, const std::string& python, Cluster& cluster);

void print(const OperationsMeasured& measured);
Json toJson(const OperationsMeasured& measured);

} // namespace pipewright::app
