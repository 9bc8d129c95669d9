// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/json/jsontext.h"

#include <nlohmann/json.hpp>

namespace pipewright {

namespace {

constexpr auto replaced = nlohmann::json::error_handler_t::replace;

} // namespace

nlohmann::json tryJsonFromText(std::string_view text)
{
    return nlohmann::json::parse(text, nullptr, false);
}

std::string jsonText(const nlohmann::json& value, int indent)
{
    return value.dump(indent, ' ', false, replaced);
}

std::string jsonText(const nlohmann::ordered_json& value, int indent)
{
    return value.dump(indent, ' ', false, replaced);
}

std::string asciiJsonText(std::string_view text)
{
    return nlohmann::json(text).dump(-1, ' ', true, replaced);
}

} // namespace pipewright
