// SPDX-License-Identifier: GPL-3.0-or-later
// The warm-up of a device: the forwards that it runs before its first backward. Changing their number moves every later
// forward by as many backwards, so the pattern after the warm-up stays. O(blocks).
#pragma once

#include "core/schedule/block.h"

#include <cstdint>
#include <vector>

namespace pipewright {

/// Forwards before the first backward; 0 when the order begins with one.
int warmUp(const std::vector<Block>& order);
/// The most that a warm-up of this order can have: all its forwards.
int longestWarmUp(const std::vector<Block>& order);
/// The order with another warm-up, by present positions. `forwards` is clamped to [0, longestWarmUp()].
std::vector<std::uint32_t> withWarmUp(const std::vector<Block>& order, int forwards);

} // namespace pipewright
