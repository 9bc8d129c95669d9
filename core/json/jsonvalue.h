// SPDX-License-Identifier: GPL-3.0-or-later
// A JSON document that is built and printed, such as a command's answer, or read where nothing in it is certain, such
// as what another process says. It is a tree of plain values, so a file that uses one need not parse the JSON library,
// which only fromText() and dump() use. Braces read as JSON does: a list whose elements are all {"name", value} is an
// object, any other list an array. Members keep the order in which they were added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace pipewright {

class JsonValue {
public:
    /// What dump() does with invalid UTF-8: throw, or write a replacement character.
    enum class InvalidText { Refuse, Replace };

    JsonValue(std::nullptr_t = {}) {}
    JsonValue(const char* text) : m_value(std::string(text)) {}
    JsonValue(std::string text) : m_value(std::move(text)) {}
    JsonValue(std::string_view text) : m_value(std::string(text)) {}
    JsonValue(std::initializer_list<JsonValue> elements);
    template<class Number>
    requires std::is_arithmetic_v<Number> JsonValue(Number number)
    {
        if constexpr (std::is_same_v<Number, bool>)
            m_value = number;
        else if constexpr (std::is_floating_point_v<Number>)
            m_value = static_cast<double>(number);
        else if constexpr (std::is_signed_v<Number>)
            m_value = static_cast<std::int64_t>(number);
        else
            m_value = static_cast<std::uint64_t>(number);
    }
    template<class Element>
    JsonValue(const std::vector<Element>& elements) : JsonValue(array())
    {
        for (const auto& element : elements)
            push_back(JsonValue(element));
    }

    /// Null where the text is no JSON, has a key twice in an object, or more than 64 levels.
    static JsonValue fromText(std::string_view text);

    static JsonValue array();  ///< without elements
    static JsonValue object(); ///< without members

    /// Turns null into an array first. Throws std::logic_error for other types.
    void push_back(JsonValue element);
    /// The member of an object, added as null when it is new. Makes an object of null first.
    JsonValue& operator[](std::string_view name);
    void erase(std::string_view name);
    /// Takes over all members of another object; those of the same name are replaced in place.
    void update(const JsonValue& other);

    /// On one line, without spaces. A number that is not finite is printed as null.
    std::string dump(InvalidText invalid = InvalidText::Refuse) const;

    using Array = std::vector<JsonValue>;
    using Object = std::vector<std::pair<std::string, JsonValue>>;

    /// A member; null where there is none, and for what is not an object.
    const JsonValue& member(std::string_view name) const;
    bool contains(std::string_view name) const;
    const Array& elements() const; ///< of an array; of anything else none
    const Object& members() const; ///< of an object; of anything else none
    bool isObject() const { return std::holds_alternative<Object>(m_value); }
    // Nothing for values of another type.
    std::optional<bool> boolean() const { return as<bool>(); }
    std::optional<double> number() const;
    std::optional<std::int64_t> integer() const;          ///< nothing for fractions too, and beyond 64 bits
    std::optional<std::uint64_t> unsignedInteger() const; ///< likewise, and nothing below 0
    std::optional<std::string> text() const { return as<std::string>(); }

    using Value = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object>;
    const Value& value() const { return m_value; }

private:
    Object& asObject();
    template<class Plain>
    std::optional<Plain> as() const
    {
        const auto* value = std::get_if<Plain>(&m_value);
        return value ? std::optional(*value) : std::nullopt;
    }

    Value m_value;
};

} // namespace pipewright
