// SPDX-License-Identifier: GPL-3.0-or-later
// Strict reading of one JSON object, field by field. Every fault becomes a diagnostic with file and line in the shared
// list, and reading goes on with the field left as it was, so that one pass reports them all. finish() reports unknown
// keys, with the nearest known key as the hint.
#pragma once

#include "core/base/diagnostic.h"
#include "core/base/units.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

struct LocatedJson;

enum class Presence { Required, Optional };

template<class Value>
struct NamedValue {
    std::string_view name;
    Value value;
};

/// Empty for a value that the table lacks.
template<class Value>
std::string nameIn(const std::initializer_list<NamedValue<Value>>& names, Value value)
{
    for (const NamedValue<Value>& name : names)
        if (name.value == value)
            return std::string(name.name);
    return {};
}

class ObjectReader {
public:
    /// The value at `pointer` is a fault when it is not an object; every field then counts as missing without being
    /// reported.
    ObjectReader(const LocatedJson& document, const nlohmann::ordered_json& value, std::string pointer,
                 Diagnostics& diagnostics);

    /// Whether there is one; a text may be empty.
    bool read(std::string_view key, std::string& field, Presence presence = Presence::Optional);
    bool read(std::string_view key, bool& field, Presence presence = Presence::Optional);
    void read(std::string_view key, int& field, std::int64_t low, std::int64_t high,
              Presence presence = Presence::Optional);
    void read(std::string_view key, std::int64_t& field, std::int64_t low, std::int64_t high,
              Presence presence = Presence::Optional);
    void readRate(std::string_view key, double& field,
                  Presence presence = Presence::Optional); ///< finite, not negative
    void readDuration(std::string_view key, Nanoseconds& field, Presence presence = Presence::Optional);
    void readSize(std::string_view key, Bytes& field, Presence presence = Presence::Optional);
    template<class Value>
    void readName(std::string_view key, Value& field, std::initializer_list<NamedValue<Value>> names,
                  Presence presence = Presence::Optional)
    {
        readName(key, field, std::span(names.begin(), names.size()), presence);
    }
    /// Any value of an enumeration by nameOf(), which returns an empty name after the last one.
    template<class Value>
    void readName(std::string_view key, Value& field)
    {
        std::vector<NamedValue<Value>> names;
        for (int i = 0; !nameOf(static_cast<Value>(i)).empty(); ++i)
            names.push_back({nameOf(static_cast<Value>(i)), static_cast<Value>(i)});
        readName(key, field, std::span<const NamedValue<Value>>(names), Presence::Optional);
    }
    template<class Value>
    void readName(std::string_view key, Value& field, std::span<const NamedValue<Value>> names, Presence presence)
    {
        std::vector<std::string_view> known;
        for (const NamedValue<Value>& name : names)
            known.push_back(name.name);
        if (const int index = indexOfName(key, known, presence); index >= 0)
            field = names[index].value;
    }

    /// The member, or nullptr when it is absent (reported when required) or not of that kind (reported).
    const nlohmann::ordered_json* object(std::string_view key, Presence presence = Presence::Optional);
    const nlohmann::ordered_json* array(std::string_view key, Presence presence = Presence::Optional);

    std::string pointerTo(std::string_view key) const;
    /// Adds an Error at the member's line; `key` empty: at the object's own.
    void fault(std::string_view key, std::string what, std::string hint);
    void finish();

    const LocatedJson& document() const { return m_document; }
    Diagnostics& diagnostics() { return m_diagnostics; }

private:
    using Is = bool (nlohmann::ordered_json::*)() const noexcept;
    using Parse = std::int64_t (*)(std::string_view text, std::string_view where);

    const nlohmann::ordered_json* find(std::string_view key, Presence presence);
    /// Of that type; another one is a fault.
    const nlohmann::ordered_json* find(std::string_view key, Presence presence, Is is, std::string_view expected);
    void readUnit(std::string_view key, std::int64_t& field, Presence presence, Parse parse, std::string_view expected);
    int indexOfName(std::string_view key, std::span<const std::string_view> known, Presence presence);

    const LocatedJson& m_document;
    const nlohmann::ordered_json& m_value;
    std::string m_pointer;
    Diagnostics& m_diagnostics;
    std::vector<std::string_view> m_known;
};

/// Members of an object by their names, the order in which faults and notes of them are said.
std::vector<std::pair<std::string, const nlohmann::ordered_json*>> sortedMembers(const nlohmann::ordered_json& object);

/// The name in `known` nearest to `text` by edit distance; empty when none is near.
std::string_view nearestName(std::string_view text, std::span<const std::string_view> known);

/// At most 32 diagnostics are kept, so that a file of another kind does not fill the screen.
void addBounded(Diagnostics& diagnostics, Diagnostic diagnostic);

} // namespace pipewright
