// SPDX-License-Identifier: GPL-3.0-or-later
// From ratios to whole numbers of rows, and what a piece is: the one place that decides which elements of a
// cut dimension a device holds.
#pragma once

#include "core/sharding/theory.h"

#include <cstdint>
#include <span>
#include <vector>

namespace pipewright::sharding {

/// Whole lengths that add up to `length`: each share rounded down, then one more for the device with the
/// largest deficit, the last of several, until all are given out. A length of 1 is not cut: everyone has it.
/// Some may be 0. O(devices · remainder).
std::vector<std::int64_t> shardLengths(std::int64_t length, std::span<const double> shares);

/// Of a tensor's dimension: whole parts (Theory::parts) are given out, each of length / parts elements.
std::vector<std::int64_t> shardLengths(const Theory& theory, int tensor, Relation relation);

/// The ratios that those lengths are, for costing a program as it will run.
std::vector<double> sharesOf(std::span<const std::int64_t> lengths);

} // namespace pipewright::sharding
