// SPDX-License-Identifier: GPL-3.0-or-later
// The rows of operations that a group's nodes have in another form than the layers of stages, or alone: additions and
// products of two values, tables that are cut by rows, functions and sums of whole models from files, and mixtures of
// experts with slots. They are written like the stages' (executor/stage/stepwriter.h).
#pragma once

#include "executor/sharding/loneplan.h"
#include "executor/stage/stepwriter.h"

#include <initializer_list>
#include <span>
#include <string_view>

namespace pipewright::sharding {

/// Null: groups run the stages' row, if there is one.
const OperationSteps* findLoneSteps(std::string_view operation);

std::span<const OperationSteps> slotSteps(); ///< of mixtures of experts

/// The plan that the rows of this header are given.
inline const LonePlan& loneOf(const StepWriter& writer)
{
    return static_cast<const LonePlan&>(writer.plan);
}

/// A call of kernels/tensors.h on tensors of a node alone.
pipewright::Step tensorStep(kernels::TensorOperation operation, std::initializer_list<std::int64_t> sizes,
                            std::initializer_list<Place> in, const Place& out, float number = 0);

} // namespace pipewright::sharding
