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

/// The one layout of every file of ours: two spaces, keys in the order given, lists of plain values and short objects
/// on one line, so that a device's blocks are one line and a changed block is a one-line difference. Ends with a
/// newline. O(text).
std::string prettyJson(const nlohmann::ordered_json& value);

/// A double as JSON: whole numbers without a fraction, so 4.5e11 is written 450000000000.
nlohmann::ordered_json plainNumber(double value);

} // namespace pipewright
