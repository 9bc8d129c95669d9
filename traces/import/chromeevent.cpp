// SPDX-License-Identifier: GPL-3.0-or-later
// Parses one event with simdjson on demand. O(text).
#include "traces/import/chromeevent.h"

#include "traces/import/jsonevents.h"

#include <simdjson.h>

#include <array>

namespace pipewright {

namespace ondemand = simdjson::ondemand;

namespace {

std::string_view trimmed(std::string_view text)
{
    while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
}

/// The content of a string, or the text of a number or word; empty for lists and objects.
std::string_view scalar(ondemand::value value)
{
    switch (value.type()) {
    case ondemand::json_type::string: return value.get_string();
    case ondemand::json_type::number:
    case ondemand::json_type::boolean: return trimmed(value.raw_json_token());
    default: return {};
    }
}

struct Member {
    std::string_view key;
    std::string_view ChromeEvent::*field;
};

constexpr std::array<Member, 11> members{{{"ph", &ChromeEvent::phase},
                                          {"name", &ChromeEvent::name},
                                          {"cat", &ChromeEvent::category},
                                          {"ts", &ChromeEvent::time},
                                          {"dur", &ChromeEvent::duration},
                                          {"pid", &ChromeEvent::process},
                                          {"tid", &ChromeEvent::thread},
                                          {"id", &ChromeEvent::id},
                                          {"bp", &ChromeEvent::bindingPoint},
                                          {"id2", &ChromeEvent::id},
                                          {"bind_id", nullptr}}};

constexpr std::array<Member, 21> arguments{{{"correlation", &ChromeEvent::correlation},
                                            {"device", &ChromeEvent::device},
                                            {"stream", &ChromeEvent::stream},
                                            {"bytes", &ChromeEvent::bytes},
                                            {"graph node id", &ChromeEvent::graphNode},
                                            {"Collective name", &ChromeEvent::collective},
                                            {"Process Group Name", &ChromeEvent::group},
                                            {"Group size", &ChromeEvent::groupSize},
                                            {"In msg nelems", &ChromeEvent::elements},
                                            {"dtype", &ChromeEvent::type},
                                            {"Src Rank", &ChromeEvent::sourceRank},
                                            {"Dst Rank", &ChromeEvent::targetRank},
                                            {"name", &ChromeEvent::newName},
                                            {"labels", &ChromeEvent::newName},
                                            {"sort_index", &ChromeEvent::sortIndex},
                                            {"Device Type", &ChromeEvent::deviceType},
                                            {"Device Id", &ChromeEvent::deviceId},
                                            {"Total Allocated", &ChromeEvent::totalAllocated},
                                            {"Total Reserved", &ChromeEvent::totalReserved},
                                            {"rank", &ChromeEvent::rank},
                                            {"predicted", &ChromeEvent::predicted}}};

template<std::size_t count>
const Member* find(const std::array<Member, count>& table, const ondemand::raw_json_string& key)
{
    for (const Member& member : table)
        if (key.unsafe_is_equal(member.key))
            return &member;
    return nullptr;
}

/// Replaces control characters by spaces and invalid UTF-8 by question marks.
void clean(std::string& text)
{
    for (std::size_t i = 0; i < text.size();) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c < 0x80) {
            if (c < 0x20 || c == 0x7f)
                text[i] = ' ';
            ++i;
            continue;
        }
        const std::size_t length = c >= 0xc2 && c < 0xe0   ? 2
                                   : c >= 0xe0 && c < 0xf0 ? 3
                                   : c >= 0xf0 && c < 0xf5 ? 4
                                                           : 0;
        const std::string_view rest = std::string_view(text).substr(i, length);
        if (length == 0 || rest.size() < length || !simdjson::validate_utf8(rest.data(), rest.size()))
            text[i++] = '?';
        else
            i += length;
    }
}

} // namespace

struct ChromeEventParser::Private {
    void readArguments(ondemand::object object, ChromeEvent& event)
    {
        const bool counts = event.phase == "C";
        for (auto field : object) {
            const ondemand::raw_json_string key = field.key();
            if (counts) {
                double number = 0;
                const std::string_view name = field.unescaped_key();
                if (field.value().get(number) == simdjson::SUCCESS)
                    event.values.emplace_back(name, number);
            } else if (const Member* member = find(arguments, key)) {
                event.*(member->field) = scalar(field.value());
            }
        }
    }

    void read(ondemand::object object, ChromeEvent& event)
    {
        bool argumentsFirst = false;
        for (auto field : object) {
            const ondemand::raw_json_string key = field.key();
            if (key.unsafe_is_equal("args")) {
                ondemand::value value = field.value();
                if (value.type() != ondemand::json_type::object)
                    continue;
                // What the arguments mean depends on the phase, which usually comes first.
                if (event.phase.empty())
                    argumentsFirst = true;
                else
                    readArguments(value.get_object(), event);
            } else if (const Member* member = find(members, key); member && member->field) {
                event.*(member->field) = scalar(field.value());
            }
        }
        if (argumentsFirst) {
            object.reset();
            readArguments(object.find_field_unordered("args").get_object(), event);
        }
    }

    static void reset(ChromeEvent& event)
    {
        auto values = std::move(event.values);
        values.clear();
        event = ChromeEvent();
        event.values = std::move(values);
    }

    bool tryToRead(std::string_view text, std::size_t capacity, ChromeEvent& event)
    {
        reset(event);
        try {
            ondemand::document document = m_parser.iterate(text.data(), text.size(), capacity);
            read(document.get_object(), event);
            return true;
        } catch (const simdjson::simdjson_error&) {
            return false;
        }
    }

    ondemand::parser m_parser;
    std::string m_cleaned;
};

ChromeEventParser::ChromeEventParser() : d(std::make_unique<Private>()) {}
ChromeEventParser::~ChromeEventParser() = default;

bool ChromeEventParser::parse(std::string_view text, ChromeEvent& event)
{
    static_assert(JsonEvents::padding >= simdjson::SIMDJSON_PADDING);
    if (d->tryToRead(text, text.size() + JsonEvents::padding, event))
        return true;
    d->m_cleaned.assign(text);
    clean(d->m_cleaned);
    const std::size_t size = d->m_cleaned.size();
    d->m_cleaned.resize(size + JsonEvents::padding, ' ');
    if (!d->tryToRead({d->m_cleaned.data(), size}, d->m_cleaned.size(), event))
        return false;
    event.repaired = true;
    return true;
}

bool ChromeEventParser::parseList(std::string_view text, const std::vector<ChromeEvent*>& events)
{
    try {
        ondemand::document list = d->m_parser.iterate(text.data(), text.size(), text.size() + JsonEvents::padding);
        std::size_t read = 0;
        for (auto element : list.get_array()) {
            if (read == events.size())
                return false;
            Private::reset(*events[read]);
            d->read(element.get_object(), *events[read++]);
        }
        return read == events.size();
    } catch (const simdjson::simdjson_error&) {
        return false;
    }
}

} // namespace pipewright
