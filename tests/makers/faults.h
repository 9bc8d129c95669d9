// SPDX-License-Identifier: GPL-3.0-or-later
// The message of an action that should fail.
#pragma once

#include "core/base/diagnostic.h"

#include <functional>
#include <string>

namespace pipewright::test {

/// The text of the Error that it throws; empty when it throws none.
inline std::string faultOf(const std::function<void()>& act)
{
    try {
        act();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

} // namespace pipewright::test
