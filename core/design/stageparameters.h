// SPDX-License-Identifier: GPL-3.0-or-later
// How many parameters a stage has on one device, and in how many bytes: with what copies share out (schedule/zero.h)
// and what exists in the products' type alone (ModelShape::narrowParameters).
#pragma once

#include "core/model/workload.h"
#include "core/schedule/zero.h"

#include <span>

namespace pipewright {

/// A tied head's copy counts on its embedding's stage too; SharedParameter says where they are one.
std::int64_t parametersOf(std::span<const Layer> layers);
/// Those with gradients and optimizer state.
std::int64_t trainedParametersOf(std::span<const Layer> layers);
std::int64_t expertParametersOf(std::span<const Layer> layers);

/// Of so many parameters of a stage, and among them `experts` of experts, those that one device has when the copies
/// that the model's degrees count share them out. Copies of an expert are fewer.
std::int64_t sharedOut(const Parallelism& parallel, const Zero& zero, std::int64_t all, std::int64_t experts);
/// Parameters of a stage whose optimizer state one device keeps.
std::int64_t updatedParametersOf(const Parallelism& parallel, const Zero& zero, std::span<const Layer> layers);

/// Per parameter: of those that are held in fp32 (FSDP's mixed precision) copies in the model's type are gathered.
int gatheredBytes(const StateBytesPerParameter& state, DataType type);

/// Parameters of a stage that exist in the products' type alone.
struct NarrowParameters {
    std::int64_t all = 0, experts = 0; ///< of these, experts'
};
NarrowParameters narrowParametersOf(const ModelShape& shape, std::span<const Layer> layers);

/// Of so many parameters, `narrow` of them in the products' type and the others of so many bytes each.
Bytes parameterBytes(const ModelShape& shape, std::int64_t count, std::int64_t narrow, int each);

} // namespace pipewright
