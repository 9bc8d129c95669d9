// SPDX-License-Identifier: GPL-3.0-or-later
// A dense tensor in host memory, with functions to cut, join and add pieces. Whole numbers (tokens, classes) are kept
// as floats, which hold them exactly up to 16 million.
#pragma once

#include "core/model/tensorgraph.h"

#include <cstdint>
#include <span>
#include <vector>

namespace pipewright::sharding {

/// Elements of the dimensions [from, to).
std::size_t product(Shape::const_iterator from, Shape::const_iterator to);

struct HostTensor {
    Shape shape;
    std::vector<float> data; ///< row-major; empty when a dimension is 0

    HostTensor() = default;
    explicit HostTensor(Shape dimensions); ///< zeros
    std::size_t elements() const { return data.size(); }
    /// Product of the dimensions before, and after, one.
    std::size_t before(int dim) const;
    std::size_t after(int dim) const;
};

/// Elements [first, first + length) along a dimension.
HostTensor cut(const HostTensor& whole, int dim, std::int64_t first, std::int64_t length);
/// Writes a piece to where it was cut from.
void paste(HostTensor& whole, const HostTensor& piece, int dim, std::int64_t first);
/// Pieces of which the lengths along `dim` may differ, and be 0.
HostTensor joined(std::span<const HostTensor* const> pieces, int dim);
/// to += from; shapes are equal.
void accumulate(HostTensor& to, const HostTensor& from);
/// Largest |a − b|, relative to the largest |b|; infinity when the shapes differ.
double difference(const HostTensor& a, const HostTensor& b);

} // namespace pipewright::sharding
