// SPDX-License-Identifier: GPL-3.0-or-later
// Between fp32 and bf16, which is the upper half of an fp32 number: memory holds bf16 values as 16-bit patterns, and
// they are widened to be computed with. To narrow is to round to the nearest, of two equally near to the even one.
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

/// values = what bf16 can hold of them. They are narrowed into `to` as well, where it is not empty.
struct RoundToBf16 {
    std::span<float> values;
    std::span<std::uint16_t> to = {};
};

} // namespace pipewright::kernels
