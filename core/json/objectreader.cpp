// SPDX-License-Identifier: GPL-3.0-or-later
// Checks one field after another and collects faults; unknown keys get the known name of least edit distance as a hint.
// O(keys × known names).
#include "core/json/objectreader.h"

#include "core/base/formattedtext.h"
#include "core/json/jsontext.h"
#include "core/json/locatedjson.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t mostDiagnostics = 32;

std::string_view describeType(const Json& value)
{
    switch (value.type()) {
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "a list";
    case Json::value_t::string: return "a text";
    case Json::value_t::boolean: return "true or false";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float: return "a number";
    default: return "null";
    }
}

// Levenshtein distance, O(|a| × |b|).
std::size_t distance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t(0));
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row.back();
}

} // namespace

std::string_view nearestName(std::string_view text, std::span<const std::string_view> known)
{
    constexpr std::size_t longest = 64; // no known name is longer, and the distance is quadratic
    std::string_view best;
    if (text.size() > longest)
        return best;
    std::size_t bestDistance = 1 + std::max<std::size_t>(2, text.size() / 3);
    for (const std::string_view name : known)
        if (const std::size_t d = distance(text, name); d < bestDistance) {
            bestDistance = d;
            best = name;
        }
    return best;
}

std::vector<std::pair<std::string, const Json*>> sortedMembers(const Json& object)
{
    std::vector<std::pair<std::string, const Json*>> members;
    for (const auto& [key, value] : object.items())
        members.emplace_back(key, &value);
    std::sort(members.begin(), members.end());
    return members;
}

void addBounded(Diagnostics& diagnostics, Diagnostic diagnostic)
{
    if (diagnostics.size() < mostDiagnostics)
        diagnostics.push_back(std::move(diagnostic));
}

ObjectReader::ObjectReader(const LocatedJson& document, const Json& value, std::string pointer,
                           Diagnostics& diagnostics)
    : m_document(document), m_value(value), m_pointer(std::move(pointer)), m_diagnostics(diagnostics)
{
    if (!value.is_object())
        fault({}, fmt::format("expected an object, found {}", describeType(value)), "write { … }");
}

const Json* ObjectReader::find(std::string_view key, Presence presence)
{
    m_known.push_back(key);
    if (!m_value.is_object())
        return nullptr;
    if (const auto found = m_value.find(key); found != m_value.end())
        return &*found;
    if (presence == Presence::Required)
        fault({}, fmt::format("the key \"{}\" is missing", key), fmt::format("add \"{}\": …", key));
    return nullptr;
}

const Json* ObjectReader::find(std::string_view key, Presence presence, Is is, std::string_view expected)
{
    const Json* value = find(key, presence);
    if (!value || (value->*is)())
        return value;
    fault(key, fmt::format("\"{}\" is {}", key, describeType(*value)), fmt::format("expected {}", expected));
    return nullptr;
}

bool ObjectReader::read(std::string_view key, std::string& field, Presence presence)
{
    const Json* value = find(key, presence, &Json::is_string, "a text in quotes");
    if (value)
        field = value->get_ref<const std::string&>();
    return value != nullptr;
}

bool ObjectReader::read(std::string_view key, bool& field, Presence presence)
{
    const Json* value = find(key, presence, &Json::is_boolean, "true or false");
    if (value != nullptr)
        field = value->get<bool>();
    return value != nullptr;
}

void ObjectReader::read(std::string_view key, std::int64_t& field, std::int64_t low, std::int64_t high,
                        Presence presence)
{
    const Json* value = find(key, presence, &Json::is_number_integer, "a whole number");
    if (!value)
        return;
    const bool fits = !value->is_number_unsigned() || std::in_range<std::int64_t>(value->get<std::uint64_t>());
    const auto number = value->get<std::int64_t>();
    if (!fits || number < low || number > high)
        fault(key, fmt::format("\"{}\" is {}, out of range", key, value->dump()),
              fmt::format("between {} and {}", low, high));
    else
        field = number;
}

void ObjectReader::read(std::string_view key, int& field, std::int64_t low, std::int64_t high, Presence presence)
{
    std::int64_t wide = field;
    read(key, wide, std::max<std::int64_t>(low, std::numeric_limits<int>::min()),
         std::min<std::int64_t>(high, std::numeric_limits<int>::max()), presence);
    field = static_cast<int>(wide);
}

void ObjectReader::readRate(std::string_view key, double& field, Presence presence)
{
    const Json* value = find(key, presence, &Json::is_number, "a number");
    if (!value)
        return;
    const double number = value->get<double>();
    if (!std::isfinite(number) || number < 0)
        fault(key, fmt::format("\"{}\" is {}", key, value->dump()), "use a number that is not negative");
    else
        field = number;
}

void ObjectReader::readUnit(std::string_view key, std::int64_t& field, Presence presence, Parse parse,
                            std::string_view expected)
{
    const Json* value = find(key, presence, &Json::is_string, expected);
    try {
        if (value)
            field = parse(value->get_ref<const std::string&>(), key);
    } catch (const Error& error) {
        fault(key, fmt::format("\"{}\": {}", key, error.diagnostics().front().what), error.diagnostics().front().hint);
    }
}

void ObjectReader::readDuration(std::string_view key, Nanoseconds& field, Presence presence)
{
    readUnit(key, field, presence, parseDuration, "a duration with its unit in quotes, \"18.5ms\"");
}

void ObjectReader::readSize(std::string_view key, Bytes& field, Presence presence)
{
    readUnit(key, field, presence, parseSize, "a size with its unit in quotes, \"80GiB\"");
}

int ObjectReader::indexOfName(std::string_view key, std::span<const std::string_view> known, Presence presence)
{
    const std::string expected = "one of " + joined(known, ", ");
    const Json* value = find(key, presence, &Json::is_string, expected);
    if (!value)
        return -1;
    const std::string& name = value->get_ref<const std::string&>();
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
        fault(key, fmt::format("\"{}\" cannot be {}", key, jsonText(Json(name.substr(0, 64)))), expected);
        return -1;
    }
    return static_cast<int>(found - known.begin());
}

const Json* ObjectReader::object(std::string_view key, Presence presence)
{
    return find(key, presence, &Json::is_object, "an object { … }");
}

const Json* ObjectReader::array(std::string_view key, Presence presence)
{
    return find(key, presence, &Json::is_array, "a list [ … ]");
}

std::string ObjectReader::pointerTo(std::string_view key) const
{
    return key.empty() ? m_pointer : fmt::format("{}/{}", m_pointer, key);
}

void ObjectReader::fault(std::string_view key, std::string what, std::string hint)
{
    addBounded(m_diagnostics, {Severity::Error, m_document.placeOf(pointerTo(key)), std::move(what), std::move(hint)});
}

void ObjectReader::finish()
{
    if (!m_value.is_object())
        return;
    for (const auto& [key, value] : sortedMembers(m_value)) {
        if (m_diagnostics.size() >= mostDiagnostics)
            return; // what follows would not be kept, and names take time to compare
        if (std::find(m_known.begin(), m_known.end(), key) != m_known.end())
            continue;
        const std::string_view nearest = nearestName(key, m_known);
        // A key with a slash has an escaped pointer; the object's line is used then.
        fault(key, fmt::format("unknown key {}", jsonText(Json(key.substr(0, 64)))),
              nearest.empty() ? "known here: " + joined(m_known, ", ") : fmt::format("did you mean \"{}\"?", nearest));
    }
}

} // namespace pipewright
