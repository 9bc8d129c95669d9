// SPDX-License-Identifier: GPL-3.0-or-later
// From times that operations took on a device to its rates, and their file.
#pragma once

#include "core/rates/operationrates.h"

#include <span>
#include <string>

namespace pipewright {

struct MeasuredTime {
    RatedShape shape;
    double seconds = 0; ///< of the whole operation
};

/// What an operation of this shape does once: FLOPs of products and attention (causal masks half), else bytes.
double amountOf(const RatedShape& shape);

struct MeasuredOn {
    std::string title, origin; ///< "2 threads of …", "measured by pipewright devices --measure --operations"
    std::string source, when;  ///< of every table; the date
    double flopsPeak = 0, bytesPeak = 0; ///< what shares are shares of
};

/// A table for each operation, layout and types, in the order of RatedShape. Of a shape that is there twice the first
/// counts. Precondition: times and peaks are above 0.
OperationRates ratesOf(std::span<const MeasuredTime> times, const MeasuredOn& on);

/// As parseRates() reads it, a shape to a line.
std::string ratesText(const OperationRates& rates);

/// "product TN fp32, 512 × 128 × 2048".
std::string textOf(const RatedShape& shape);

} // namespace pipewright
