// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of layers as rates know them (core/rates): by operation, layout, types and sizes, each in the pass
// that runs it. What a design looks up is what has to be measured for it.
#pragma once

#include "core/design/design.h"
#include "core/model/workload.h"
#include "core/rates/operationrates.h"
#include "core/schedule/operations.h"

#include <vector>

namespace pipewright {

struct RatedWork {
    RatedShape shape;
    double amount = 0; ///< FLOPs, or bytes, of all times together
    int times = 1;     ///< kernels that share it
    Op pass = Op::F;   ///< F, I or W
};

/// The types of the numbers that a model's operations work with.
struct NumberTypes {
    DataType own = DataType::Fp32;
    ProductType products = ProductType::Own;
    int gradientBytes = 4; ///< of one number in the sums that weight gradients are added to
};
NumberTypes typesOf(const Workload& workload);

std::vector<RatedWork> ratedWork(const Layer& layer, const NumberTypes& types);

/// The shapes of all layers of a design, each once, in the order of RatedShape. Empty without a model, and of tables of
/// layers, which do not say what they compute. O(layers).
std::vector<RatedShape> ratedShapesOf(const Design& design);

/// For a device of which no design is known: products, attention and copies over the sizes of usual layers, so that
/// what lies between is no further than a factor of four from one of them in each dimension.
std::vector<RatedShape> ratedGrid(DataType type, int gradientBytes);

} // namespace pipewright
