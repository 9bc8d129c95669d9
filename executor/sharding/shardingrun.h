// SPDX-License-Identifier: GPL-3.0-or-later
// Runs a synthesised program on a backend's devices (host or GPUs) as the only stage of a pipeline that a group holds
// (grouptraining.h): real tensors in uneven pieces, forward and then backward in reverse, each instruction's gradient
// by the dual of its communication. Where a device's speed is emulated, its parts and collectives only take their time
// and compute nothing.
#pragma once

#include "core/sharding/shardingprogram.h"
#include "executor/runtime/backend.h"
#include "executor/sharding/hosttensor.h"

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

namespace pipewright::sharding {

class MemberObserver;

/// A value for every input and parameter, the same for the same seed: normal numbers; for tokens and classes whole
/// numbers.
using LeafValues = std::map<int, HostTensor>;
LeafValues randomLeaves(const TensorGraph& graph, std::uint64_t seed);

struct SingleRun {
    std::map<int, HostTensor> gradients; ///< of every parameter
    double loss = 0;
};
/// On one device of the host, node by node. Throws Error with whyNotRunnable().
SingleRun runSingle(const TensorGraph& graph, const LeafValues& leaves);

struct ShardingRunOptions {
    int steps = 1;
    bool emulateSpeed = false;                ///< times alone: no loss, no gradients
    bool warmUp = false;                      ///< one more step before the timed ones
    Backend* backend = nullptr;               ///< its devices, at least as many as the program has; null: the host's
    std::vector<MemberObserver*> observers{}; ///< one for each device, or none: told what the device makes
};

struct ShardingRun {
    double loss = std::numeric_limits<double>::quiet_NaN();
    std::map<int, HostTensor> gradients; ///< of every parameter, put together
    std::vector<double> stepSeconds;
};

/// `theory` is for the program's ratios and says how tensors are cut. Throws Error with whyNotRunnable(), and when a
/// device fails.
ShardingRun runProgram(const Theory& theory, const ShardingProgram& program, const LeafValues& leaves,
                       const ShardingRunOptions& options = {});

/// Largest difference of any gradient from the single device's, relative to the largest element of that
/// parameter's gradient, or to a thousandth of the largest of all where that is more.
double gradientError(const ShardingRun& run, const SingleRun& single);

} // namespace pipewright::sharding
