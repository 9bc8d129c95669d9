// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/json/jsonvalue.h"

#include "core/json/locatedjson.h"

#include <algorithm>
#include <stdexcept>

namespace pipewright {

namespace {

bool isMember(const JsonValue& element)
{
    const auto* pair = std::get_if<JsonValue::Array>(&element.value());
    return pair && pair->size() == 2 && std::holds_alternative<std::string>(pair->front().value());
}

auto find(auto& members, std::string_view name)
{
    return std::find_if(members.begin(), members.end(), [&](const auto& member) { return member.first == name; });
}

// Printing is left to the library, so that numbers and texts look the same in all JSON output.
struct ToLibrary {
    using Library = nlohmann::ordered_json;

    Library operator()(const JsonValue::Array& elements) const
    {
        Library array = Library::array();
        for (const JsonValue& element : elements)
            array.push_back(std::visit(*this, element.value()));
        return array;
    }
    Library operator()(const JsonValue::Object& members) const
    {
        Library object = Library::object();
        for (const auto& [name, member] : members)
            object[name] = std::visit(*this, member.value());
        return object;
    }
    Library operator()(const auto& plain) const { return Library(plain); }
};

/// Recursive: the text had few levels.
JsonValue fromLibrary(const nlohmann::ordered_json& value)
{
    using Type = nlohmann::ordered_json::value_t;
    switch (value.type()) {
    case Type::boolean: return value.get<bool>();
    case Type::number_integer: return value.get<std::int64_t>();
    case Type::number_unsigned: return value.get<std::uint64_t>();
    case Type::number_float: return value.get<double>();
    case Type::string: return value.get<std::string>();
    case Type::array: {
        JsonValue array = JsonValue::array();
        for (const auto& element : value)
            array.push_back(fromLibrary(element));
        return array;
    }
    case Type::object: {
        JsonValue object = JsonValue::object();
        for (const auto& [name, member] : value.items())
            object[name] = fromLibrary(member);
        return object;
    }
    case Type::null:
    case Type::binary:
    case Type::discarded: break;
    }
    return {};
}

} // namespace

JsonValue::JsonValue(std::initializer_list<JsonValue> elements)
{
    if (!std::all_of(elements.begin(), elements.end(), isMember)) {
        m_value = Array(elements);
        return;
    }
    Object members;
    for (const JsonValue& element : elements) {
        const Array& pair = std::get<Array>(element.m_value);
        if (const std::string& name = std::get<std::string>(pair[0].m_value); find(members, name) == members.end())
            members.emplace_back(name, pair[1]);
    }
    m_value = std::move(members);
}

JsonValue JsonValue::fromText(std::string_view text)
{
    try {
        return fromLibrary(parseLocatedJson(text, {}).value);
    } catch (const Error&) {
        return {};
    }
}

JsonValue JsonValue::array()
{
    JsonValue value;
    value.m_value = Array();
    return value;
}

JsonValue JsonValue::object()
{
    JsonValue value;
    value.m_value = Object();
    return value;
}

void JsonValue::push_back(JsonValue element)
{
    if (std::holds_alternative<std::nullptr_t>(m_value))
        m_value = Array();
    auto* elements = std::get_if<Array>(&m_value);
    if (!elements)
        throw std::logic_error("an element was added to a JSON value that is not an array");
    elements->push_back(std::move(element));
}

JsonValue::Object& JsonValue::asObject()
{
    if (std::holds_alternative<std::nullptr_t>(m_value))
        m_value = Object();
    auto* object = std::get_if<Object>(&m_value);
    if (!object)
        throw std::logic_error("a member was asked of a JSON value that is not an object");
    return *object;
}

JsonValue& JsonValue::operator[](std::string_view name)
{
    Object& all = asObject();
    if (const auto at = find(all, name); at != all.end())
        return at->second;
    return all.emplace_back(std::string(name), JsonValue()).second;
}

void JsonValue::erase(std::string_view name)
{
    Object& all = asObject();
    if (const auto at = find(all, name); at != all.end())
        all.erase(at);
}

void JsonValue::update(const JsonValue& other)
{
    for (const auto& [name, member] : std::get<Object>(other.m_value))
        (*this)[name] = member;
}

const JsonValue& JsonValue::member(std::string_view name) const
{
    static const JsonValue null;
    const Object& all = members();
    const auto at = find(all, name);
    return at == all.end() ? null : at->second;
}

bool JsonValue::contains(std::string_view name) const
{
    return find(members(), name) != members().end();
}

const JsonValue::Array& JsonValue::elements() const
{
    static const Array none;
    const auto* array = std::get_if<Array>(&m_value);
    return array ? *array : none;
}

const JsonValue::Object& JsonValue::members() const
{
    static const Object none;
    const auto* object = std::get_if<Object>(&m_value);
    return object ? *object : none;
}

std::optional<double> JsonValue::number() const
{
    return std::visit(
        [](const auto& value) -> std::optional<double> {
            using Plain = std::decay_t<decltype(value)>;
            if constexpr (std::is_arithmetic_v<Plain> && !std::is_same_v<Plain, bool>)
                return static_cast<double>(value);
            else
                return std::nullopt;
        },
        m_value);
}

std::optional<std::int64_t> JsonValue::integer() const
{
    const auto large = as<std::uint64_t>();
    return large && std::in_range<std::int64_t>(*large) ? static_cast<std::int64_t>(*large) : as<std::int64_t>();
}

std::optional<std::uint64_t> JsonValue::unsignedInteger() const
{
    const auto whole = as<std::int64_t>();
    return whole && *whole >= 0 ? static_cast<std::uint64_t>(*whole) : as<std::uint64_t>();
}

std::string JsonValue::dump(InvalidText invalid) const
{
    using Handler = nlohmann::ordered_json::error_handler_t;
    const Handler handler = invalid == InvalidText::Replace ? Handler::replace : Handler::strict;
    return std::visit(ToLibrary{}, m_value).dump(-1, ' ', false, handler);
}

} // namespace pipewright
