// SPDX-License-Identifier: GPL-3.0-or-later
// Memory seen as values of another type.
#pragma once

#include <span>

namespace pipewright {

template<class To, class From>
std::span<To> viewed(std::span<From> values)
{
    return {reinterpret_cast<To*>(values.data()), values.size_bytes() / sizeof(To)};
}

} // namespace pipewright
