// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/modulefacts.h"

#include <nlohmann/json.hpp>

#include <limits>

namespace pipewright {

using Json = nlohmann::json;

std::vector<ModuleFact> factsOfReport(const Json& report)
{
    std::vector<ModuleFact> facts;
    for (const Json& each : report.value("found", Json::array()))
        facts.push_back({each.at("kind"), each.at("what")});
    return facts;
}

Diagnostics notesOf(const std::vector<ModuleFact>& facts)
{
    Diagnostics notes;
    for (const ModuleFact& fact : facts)
        if (fact.kind != "plain")
            notes.push_back({Severity::Note, "module", fact.what, {}});
    return notes;
}

double reportedNumber(const Json& value)
{
    if (value.is_number())
        return value.get<double>();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return value == "inf" ? infinity : value == "-inf" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

} // namespace pipewright
