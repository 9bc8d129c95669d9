// SPDX-License-Identifier: GPL-3.0-or-later
// The one layout of every JSON file written here: two spaces, keys in the order given, lists of plain values and short
// objects on one line, so that a device's blocks are one line and a changed block is a one-line difference. O(text).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace pipewright {

/// Ends with a newline. Invalid UTF-8 in texts is replaced rather than refused.
std::string prettyJson(const nlohmann::ordered_json& value);

/// A double as JSON: whole numbers without a fraction, so 4.5e11 is written 450000000000.
nlohmann::ordered_json plainNumber(double value);

} // namespace pipewright
