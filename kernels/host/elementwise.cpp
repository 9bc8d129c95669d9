// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/elementwise.h"

#include <algorithm>
#include <cassert>

namespace pipewright::kernels {

void copy(std::span<const float> from, std::span<float> to)
{
    assert(from.size() == to.size());
    std::copy(from.begin(), from.end(), to.begin());
}

void copy(std::span<const std::int32_t> from, std::span<std::int32_t> to)
{
    assert(from.size() == to.size());
    std::copy(from.begin(), from.end(), to.begin());
}

void fill(std::span<float> values, float value)
{
    std::fill(values.begin(), values.end(), value);
}

void add(std::span<float> values, std::span<const float> addend)
{
    assert(values.size() == addend.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] += addend[i];
}

} // namespace pipewright::kernels
