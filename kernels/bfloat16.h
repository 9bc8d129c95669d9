// SPDX-License-Identifier: GPL-3.0-or-later
// Conversion between fp32 and bf16, which is the upper half of an fp32 number. Memory holds bf16 values as 16-bit
// patterns; they are widened for computation. Narrowing rounds to the nearest value, ties to even.
#pragma once

#include "kernels/matmul.h"

#include <cstdint>
#include <span>

namespace pipewright::kernels {

/// to = from, or is added to what is there.
struct Widen {
    std::span<const std::uint16_t> from;
    std::span<float> to;
    Store store = Store::Replace;
};

struct Narrow {
    std::span<const float> from;
    std::span<std::uint16_t> to;
};

/// Rounds `values` to what bf16 can hold. If `to` is not empty, they are also written there as bf16.
struct RoundToBf16 {
    std::span<float> values;
    std::span<std::uint16_t> to = {};
};

} // namespace pipewright::kernels
