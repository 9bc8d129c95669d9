// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/json/jsontext.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

constexpr auto replaced = Json::error_handler_t::replace;
constexpr std::size_t widest = 118; // longer objects are broken into lines

bool isFlat(const Json& value)
{
    return std::none_of(value.begin(), value.end(),
                        [](const Json& child) { return child.is_structured() && !child.empty(); });
}

void append(const Json& value, std::size_t indent, std::string& text)
{
    if (!value.is_structured() || value.empty()) {
        text += jsonText(value);
        return;
    }
    const bool object = value.is_object();
    const auto appendChildren = [&](const std::string& between, std::size_t within) {
        for (auto item = value.begin(); item != value.end(); ++item) {
            if (item != value.begin())
                text += between;
            if (object)
                text.append(jsonText(Json(item.key()))).append(": ");
            append(*item, within, text);
        }
    };
    const std::size_t before = text.size();
    text += object ? '{' : '[';
    if (isFlat(value)) {
        appendChildren(", ", indent);
        text += object ? '}' : ']';
        if (!object || text.size() - before + indent <= widest)
            return;
        text.resize(before + 1);
    }
    const std::string line = '\n' + std::string(indent + 2, ' ');
    text += line;
    appendChildren("," + line, indent + 2);
    text.append("\n").append(indent, ' ') += object ? '}' : ']';
}

} // namespace

nlohmann::json tryJsonFromText(std::string_view text)
{
    return nlohmann::json::parse(text, nullptr, false);
}

std::string jsonText(const nlohmann::json& value, int indent)
{
    return value.dump(indent, ' ', false, replaced);
}

std::string jsonText(const Json& value, int indent)
{
    return value.dump(indent, ' ', false, replaced);
}

std::string asciiJsonText(std::string_view text)
{
    return Json(text).dump(-1, ' ', true, replaced);
}

std::string prettyJson(const Json& value)
{
    std::string text;
    append(value, 0, text);
    text += '\n';
    return text;
}

Json plainNumber(double value)
{
    constexpr double exact = 9'007'199'254'740'992.0; // 2^53
    if (value >= 0 && value < exact && value == std::floor(value))
        return static_cast<std::int64_t>(value);
    return value;
}

} // namespace pipewright
