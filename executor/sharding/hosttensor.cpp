// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/hosttensor.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pipewright::sharding {

std::size_t product(Shape::const_iterator from, Shape::const_iterator to)
{
    std::size_t result = 1;
    for (; from != to; ++from)
        result *= static_cast<std::size_t>(*from);
    return result;
}

HostTensor::HostTensor(Shape dimensions) : shape(std::move(dimensions))
{
    data.assign(product(shape.begin(), shape.end()), 0.0f);
}

std::size_t HostTensor::before(int dim) const
{
    return product(shape.begin(), shape.begin() + dim);
}

std::size_t HostTensor::after(int dim) const
{
    return product(shape.begin() + dim + 1, shape.end());
}

HostTensor cut(const HostTensor& whole, int dim, std::int64_t first, std::int64_t length)
{
    Shape shape = whole.shape;
    const auto stride = static_cast<std::size_t>(shape[dim]) * whole.after(dim);
    shape[dim] = length;
    HostTensor piece(std::move(shape));
    const std::size_t run = static_cast<std::size_t>(length) * whole.after(dim);
    const std::size_t offset = static_cast<std::size_t>(first) * whole.after(dim);
    for (std::size_t outer = 0; outer < whole.before(dim); ++outer)
        std::copy_n(whole.data.data() + outer * stride + offset, run, piece.data.data() + outer * run);
    return piece;
}

void paste(HostTensor& whole, const HostTensor& piece, int dim, std::int64_t first)
{
    const auto stride = static_cast<std::size_t>(whole.shape[dim]) * whole.after(dim);
    const std::size_t run = static_cast<std::size_t>(piece.shape[dim]) * whole.after(dim);
    const std::size_t offset = static_cast<std::size_t>(first) * whole.after(dim);
    for (std::size_t outer = 0; outer < whole.before(dim); ++outer)
        std::copy_n(piece.data.data() + outer * run, run, whole.data.data() + outer * stride + offset);
}

HostTensor joined(std::span<const HostTensor* const> pieces, int dim)
{
    Shape shape = pieces.front()->shape;
    shape[dim] = 0;
    for (const HostTensor* piece : pieces)
        shape[dim] += piece->shape[dim];
    HostTensor whole(std::move(shape));
    std::int64_t first = 0;
    for (const HostTensor* piece : pieces) {
        paste(whole, *piece, dim, first);
        first += piece->shape[dim];
    }
    return whole;
}

void accumulate(HostTensor& to, const HostTensor& from)
{
    for (std::size_t i = 0; i < to.data.size(); ++i)
        to.data[i] += from.data[i];
}

double difference(const HostTensor& a, const HostTensor& b)
{
    if (a.shape != b.shape)
        return std::numeric_limits<double>::infinity();
    double largest = 0, apart = 0;
    for (std::size_t i = 0; i < a.data.size(); ++i) {
        const double gap = std::abs(static_cast<double>(a.data[i]) - static_cast<double>(b.data[i]));
        if (std::isnan(gap))
            return std::numeric_limits<double>::infinity();
        apart = std::max(apart, gap);
        largest = std::max(largest, std::abs(static_cast<double>(b.data[i])));
    }
    return apart / std::max(largest, 1e-6);
}

} // namespace pipewright::sharding
