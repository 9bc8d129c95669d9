// SPDX-License-Identifier: GPL-3.0-or-later
// JSON that remembers where it came from: a document plus the line of each of its values, so that what is
// wrong with a value's meaning is reported as file:line, like what is wrong with its syntax. Lines are
// kept for the members of objects and for elements that begin a new line; everything else is on its
// container's line. O(text), 64 levels deep at most.
#pragma once

#include "core/base/diagnostic.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <unordered_map>

namespace pipewright {

struct LocatedJson {
    nlohmann::json value;
    std::string source;                         ///< names the text in diagnostics: "design.json"
    std::unordered_map<std::string, int> lines; ///< JSON pointer -> line, from 1

    /// Of the value at a JSON pointer ("/schedule/order/2"), or of the nearest container that is known.
    int lineOf(std::string_view pointer) const;
    std::string placeOf(std::string_view pointer) const; ///< "design.json:12"
};

/// Throws Error: a syntax error, a key that stands twice in one object, too many levels.
LocatedJson parseLocatedJson(std::string_view text, std::string source);

} // namespace pipewright
