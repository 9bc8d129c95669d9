// SPDX-License-Identifier: GPL-3.0-or-later
// Design files as text, for tests that edit them into faulty ones.
#pragma once

#include "core/base/diagnostic.h"
#include "core/files/designfile.h"

#include <string>

namespace pipewright::test {

inline std::string replaced(std::string text, const std::string& from, const std::string& to)
{
    const std::size_t at = text.find(from);
    if (at == std::string::npos)
        return "the text to replace is not there: " + from;
    return text.replace(at, from.size(), to);
}

inline std::string faultOf(const std::string& text)
{
    try {
        designFromJson(text, "design.json");
    } catch (const Error& error) {
        return error.what();
    }
    return "read without a fault";
}

} // namespace pipewright::test
