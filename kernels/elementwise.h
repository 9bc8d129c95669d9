// SPDX-License-Identifier: GPL-3.0-or-later
// Element-by-element operations over whole tensors: what a stage needs to move and sum values.
#pragma once

#include <cstdint>
#include <span>

namespace pipewright::kernels {

void copy(std::span<const float> from, std::span<float> to);
void copy(std::span<const std::int32_t> from, std::span<std::int32_t> to);
void fill(std::span<float> values, float value);

/// values += addend: the sum of a residual connection, of two gradients, of a reduction (root + other).
void add(std::span<float> values, std::span<const float> addend);

} // namespace pipewright::kernels
