// SPDX-License-Identifier: GPL-3.0-or-later
// What the package's programs report of the user's module, and its numbers.
#pragma once

#include "core/base/diagnostic.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace pipewright {

struct ModuleFact {
    std::string kind; ///< shared, tuples, frozen, backward, random; or plain, when there is nothing of these
    std::string what; ///< a line for the user
};

/// What a report of any of the package's programs says of the module; empty if nothing. Throws what nlohmann's JSON
/// throws.
std::vector<ModuleFact> factsOfReport(const nlohmann::json& report);
/// As notes, for programs that do more than look; none for a plain module.
Diagnostics notesOf(const std::vector<ModuleFact>& facts);

/// A number of a report, which writes "nan", "inf" and "-inf" for what JSON has no word for; NaN for anything else.
double reportedNumber(const nlohmann::json& value);

} // namespace pipewright
