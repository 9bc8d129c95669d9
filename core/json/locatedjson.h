// SPDX-License-Identifier: GPL-3.0-or-later
// JSON with positions: a document plus the line of each of its values, so that faults of meaning are reported as
// file:line, like syntax errors. Lines are kept for the members of objects and for elements that begin a new line;
// everything else is on its container's line. O(text), 64 levels deep at most.
#pragma once

#include "core/base/diagnostic.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <unordered_map>

namespace pipewright {

struct LocatedJson {
    nlohmann::ordered_json value;
    std::string source;                         ///< names the text in diagnostics: "design.json"
    std::unordered_map<std::string, int> lines; ///< JSON pointer -> line, from 1

    /// The line of the value at a JSON pointer ("/schedule/order/2"), or of its nearest known container.
    int lineOf(std::string_view pointer) const;
    std::string placeOf(std::string_view pointer) const; ///< "design.json:12"
};

/// Throws Error: a syntax error, a duplicate key, too many levels.
LocatedJson parseLocatedJson(std::string_view text, std::string source);

} // namespace pipewright
