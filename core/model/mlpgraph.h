// SPDX-License-Identifier: GPL-3.0-or-later
// Graphs of plain chains of linear layers.
#pragma once

#include "core/model/tensorgraph.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright {

struct MlpShape {
    std::int64_t batch = 1;
    std::vector<std::int64_t> widths; ///< of the input, then of every layer's output
    std::string activation;           ///< an operation between layers, such as "gelu"; empty: none
    bool bias = false;
};

/// linear, activation, …, sum. Throws Error (where begins with "mlp.").
TensorGraph mlpGraph(const MlpShape& shape);

} // namespace pipewright
