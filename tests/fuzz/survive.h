// SPDX-License-Identifier: GPL-3.0-or-later
// What every fuzz target asks of a parser: it returns, or it throws an Error with a reason. What else is thrown
// ends the program, and so the fuzzing.
#pragma once

#include "core/base/diagnostic.h"

#include <cstdlib>

namespace pipewright::fuzz {

/// True when `parse` returned.
template<class Parse>
bool survives(Parse parse)
{
    try {
        parse();
        return true;
    } catch (const Error& error) {
        if (!hasErrors(error.diagnostics()))
            std::abort();
        return false;
    }
}

inline void require(bool condition)
{
    if (!condition)
        std::abort();
}

} // namespace pipewright::fuzz
