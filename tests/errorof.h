// SPDX-License-Identifier: GPL-3.0-or-later
// For tests of what is refused: the words of the Error that a call throws.
#pragma once

#include "core/base/diagnostic.h"

#include <string>

namespace pipewright::test {

/// "" when it throws none.
template<typename Call>
std::string errorOf(Call&& call)
{
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

} // namespace pipewright::test
