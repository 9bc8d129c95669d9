// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/json/jsonvalue.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>

namespace pipewright {

namespace {

bool isMember(const JsonValue& element)
{
    const auto* pair = std::get_if<JsonValue::Array>(&element.value());
    return pair && pair->size() == 2 && std::holds_alternative<std::string>(pair->front().value());
}

auto find(JsonValue::Object& members, std::string_view name)
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

} // namespace

JsonValue::JsonValue() = default;
JsonValue::JsonValue(std::nullptr_t) {}
JsonValue::JsonValue(const char* text) : m_value(std::string(text)) {}
JsonValue::JsonValue(std::string text) : m_value(std::move(text)) {}
JsonValue::JsonValue(std::string_view text) : m_value(std::string(text)) {}
JsonValue::JsonValue(const JsonValue&) = default;
JsonValue::JsonValue(JsonValue&&) noexcept = default;
JsonValue& JsonValue::operator=(const JsonValue&) = default;
JsonValue& JsonValue::operator=(JsonValue&&) noexcept = default;
JsonValue::~JsonValue() = default;

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

JsonValue::Object& JsonValue::members()
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
    Object& all = members();
    if (const auto at = find(all, name); at != all.end())
        return at->second;
    return all.emplace_back(std::string(name), JsonValue()).second;
}

void JsonValue::erase(std::string_view name)
{
    Object& all = members();
    if (const auto at = find(all, name); at != all.end())
        all.erase(at);
}

void JsonValue::update(const JsonValue& other)
{
    for (const auto& [name, member] : std::get<Object>(other.m_value))
        (*this)[name] = member;
}

std::string JsonValue::dump(InvalidText invalid) const
{
    using Handler = nlohmann::ordered_json::error_handler_t;
    const Handler handler = invalid == InvalidText::Replace ? Handler::replace : Handler::strict;
    return std::visit(ToLibrary{}, m_value).dump(-1, ' ', false, handler);
}

} // namespace pipewright
