// SPDX-License-Identifier: GPL-3.0-or-later
// JSON to and from text. The library's parser and writer are large templates, which take one to three seconds to
// compile: they are compiled here once, and other files call these functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace pipewright {

/// `is_discarded()` where the text is no JSON.
nlohmann::json tryJsonFromText(std::string_view text);

/// On one line, or with so many spaces of `indent` per level. What is no UTF-8 is replaced by U+FFFD.
std::string jsonText(const nlohmann::json& value, int indent = -1);
std::string jsonText(const nlohmann::ordered_json& value, int indent = -1);
/// A string in quotes, with every character beyond ASCII escaped.
std::string asciiJsonText(std::string_view text);

} // namespace pipewright
