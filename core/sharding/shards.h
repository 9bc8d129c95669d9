// SPDX-License-Identifier: GPL-3.0-or-later
// Converts ratios to whole numbers of rows. Only this file decides which elements of a cut dimension a device holds.
#pragma once

#include "core/sharding/theory.h"

#include <cstdint>
#include <span>
#include <vector>

namespace pipewright::sharding {

/// Whole lengths that sum to `length`, by largest remainder; ties go to the last device. A length of 1 is not cut:
/// every device has it. Some may be 0. O(devices · remainder).
std::vector<std::int64_t> shardLengths(std::int64_t length, std::span<const double> shares);

/// The same for a tensor's dimension, in whole parts (Theory::parts) of length / parts elements.
std::vector<std::int64_t> shardLengths(const Theory& theory, int tensor, Relation relation);

/// The ratios of those lengths, for costing a program as it will run.
std::vector<double> sharesOf(std::span<const std::int64_t> lengths);

} // namespace pipewright::sharding
