// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/json/prettyjson.h"

#include "core/json/jsontext.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t widest = 118; // longer objects are broken into lines

std::string plain(const Json& value)
{
    return jsonText(value);
}

bool isFlat(const Json& value)
{
    return std::none_of(value.begin(), value.end(),
                        [](const Json& child) { return child.is_structured() && !child.empty(); });
}

void appendOnOneLine(const Json& value, std::string& text)
{
    const bool object = value.is_object();
    text += object ? '{' : '[';
    bool first = true;
    for (auto item = value.begin(); item != value.end(); ++item) {
        if (!first)
            text += ", ";
        first = false;
        if (object)
            text.append(plain(item.key())).append(": ");
        text += plain(*item);
    }
    text += object ? '}' : ']';
}

void append(const Json& value, std::size_t indent, std::string& text)
{
    if (!value.is_structured()) {
        text += plain(value);
        return;
    }
    if (isFlat(value)) {
        const std::size_t before = text.size();
        appendOnOneLine(value, text);
        if (value.is_array() || text.size() - before + indent <= widest)
            return;
        text.resize(before);
    }
    const bool object = value.is_object();
    text += object ? "{\n" : "[\n";
    for (auto item = value.begin(); item != value.end(); ++item) {
        if (item != value.begin())
            text += ",\n";
        text.append(indent + 2, ' ');
        if (object)
            text.append(plain(item.key())).append(": ");
        append(*item, indent + 2, text);
    }
    text += '\n';
    text.append(indent, ' ');
    text += object ? '}' : ']';
}

} // namespace

std::string prettyJson(const nlohmann::ordered_json& value)
{
    std::string text;
    append(value, 0, text);
    text += '\n';
    return text;
}

nlohmann::ordered_json plainNumber(double value)
{
    constexpr double exact = 9'007'199'254'740'992.0; // 2^53
    if (value >= 0 && value < exact && value == std::floor(value))
        return static_cast<std::int64_t>(value);
    return value;
}

} // namespace pipewright
