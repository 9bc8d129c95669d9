// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/calls.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace pipewright::kernels {

void run(const Copy& call)
{
    if (call.bytes > 0)
        std::memcpy(call.to, call.from, call.bytes);
}

void run(const Fill& call)
{
    const auto [values, value] = call;
    std::fill(values.begin(), values.end(), value);
}

void run(const Add& call)
{
    const auto [values, addend] = call;
    assert(values.size() == addend.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] += addend[i];
}

void run(const FromBytes& call)
{
    const auto [bytes, values] = call;
    assert(bytes.size() == values.size());
    for (std::size_t i = 0; i < bytes.size(); ++i)
        values[i] = float(bytes[i]) / 127.5f - 1.0f;
}

} // namespace pipewright::kernels
