// SPDX-License-Identifier: GPL-3.0-or-later
// Element-by-element operations over whole tensors: what a stage needs to move and sum values.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pipewright::kernels {

/// Copies within the memory of one device; source and destination do not overlap.
struct Copy {
    const void* from;
    void* to;
    std::size_t bytes;
};

template<typename Element>
Copy copyOf(std::span<const Element> from, std::span<Element> to)
{
    assert(from.size() == to.size());
    return {from.data(), to.data(), from.size_bytes()};
}

struct Fill {
    std::span<float> values;
    float value;
};

/// values += addend: the sum of a residual connection, of two gradients, of a reduction (root + other).
struct Add {
    std::span<float> values;
    std::span<const float> addend;
};

/// values = bytes / 127.5 - 1: pixels of pictures as values between -1 and 1.
struct FromBytes {
    std::span<const std::int32_t> bytes;
    std::span<float> values;
};

} // namespace pipewright::kernels
