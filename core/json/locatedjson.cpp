// SPDX-License-Identifier: GPL-3.0-or-later
// A SAX parse over an iterator that counts lines; a value's line is stored only where it differs from its container's.
// O(text).
#include "core/json/locatedjson.h"

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t deepest = 64;

// The parser's position, shared by all copies of the iterator.
struct Progress {
    int line = 1;
    char last = '\0';
};

// Iterates over the text for the parser and counts lines.
class CountingIterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    CountingIterator(const char* at, Progress* progress) : m_at(at), m_progress(progress) {}
    reference operator*() const { return *m_at; }
    CountingIterator& operator++()
    {
        m_progress->last = *m_at;
        m_progress->line += *m_at == '\n';
        ++m_at;
        return *this;
    }
    CountingIterator operator++(int)
    {
        CountingIterator before = *this;
        ++*this;
        return before;
    }
    bool operator==(const CountingIterator& other) const { return m_at == other.m_at; }
    bool operator!=(const CountingIterator& other) const { return m_at != other.m_at; }

private:
    const char* m_at;
    Progress* m_progress;
};

void appendEscaped(std::string& pointer, std::string_view key)
{
    for (const char c : key) {
        if (c == '~')
            pointer += "~0";
        else if (c == '/')
            pointer += "~1";
        else
            pointer += c;
    }
}

// Builds the document and records lines as the parser reports values.
class Builder : public nlohmann::json_sax<Json> {
public:
    Builder(LocatedJson& result, const Progress& progress) : m_result(result), m_progress(progress) {}

    bool null() override { return add(nullptr, m_progress.line); }
    bool boolean(bool value) override { return add(value, m_progress.line); }
    bool number_integer(number_integer_t value) override { return add(value, lineOfNumber()); }
    bool number_unsigned(number_unsigned_t value) override { return add(value, lineOfNumber()); }
    bool number_float(number_float_t value, const string_t&) override { return add(value, lineOfNumber()); }
    bool string(string_t& value) override { return add(std::move(value), m_progress.line); }
    bool binary(binary_t&) override { return false; } // not in text
    bool start_object(std::size_t) override { return begin(Json::object()); }
    bool end_object() override { return end(); }
    bool start_array(std::size_t) override { return begin(Json::array()); }
    bool end_array() override { return end(); }

    bool key(string_t& name) override
    {
        Level& level = m_levels.back();
        m_pointer.resize(level.pointerSize);
        m_pointer += '/';
        appendEscaped(m_pointer, name);
        if (m_result.lines.contains(m_pointer)) // not asked of the object, which would look through all its members
            throw Error(place(m_progress.line), "the key \"" + name + "\" stands twice here", "keep one of them");
        level.key = std::move(name);
        return true;
    }

    bool parse_error(std::size_t, const std::string&, const Json::exception& exception) override
    {
        // "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error …": keep the reason after the
        // last position, the place is added here. A newline just read ends the line.
        std::string reason = exception.what();
        if (const std::size_t at = reason.find("syntax error"); at != std::string::npos)
            reason = reason.substr(at);
        else if (const std::size_t bracket = reason.find("] "); bracket != std::string::npos)
            reason = reason.substr(bracket + 2);
        std::string printable;
        for (const char c : reason.substr(0, 200))
            printable += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        throw Error(place(lineOfNumber()), "not valid JSON: " + printable, "see the character before the place named");
    }

private:
    struct Level {
        Json* container;
        std::size_t pointerSize; // length of the container's own pointer
        int line;
        std::string key;
    };

    // A number ends with the character after it, which has been read by the time it is reported.
    int lineOfNumber() const { return m_progress.line - (m_progress.last == '\n' ? 1 : 0); }
    std::string place(int line) const { return m_result.source + ":" + std::to_string(line); }

    Json* insert(Json&& value, int line, bool isContainer)
    {
        if (m_levels.empty()) {
            m_result.value = std::move(value);
            m_result.lines[""] = line;
            return &m_result.value;
        }
        Level& level = m_levels.back();
        if (level.container->is_object()) {
            m_result.lines[m_pointer] = line; // as key() left it
            auto& members = level.container->get_ref<Json::object_t&>();
            return &members.emplace_back(std::move(level.key), std::move(value)).second;
        }
        m_pointer.resize(level.pointerSize);
        // Elements on their container's line need no entry of their own.
        if (isContainer || line != level.line) {
            m_pointer += '/';
            m_pointer += std::to_string(level.container->size());
            if (line != level.line)
                m_result.lines[m_pointer] = line;
        }
        level.container->push_back(std::move(value));
        return &level.container->back();
    }

    template<class Value>
    bool add(Value&& value, int line)
    {
        insert(Json(std::forward<Value>(value)), line, false);
        return true;
    }

    bool begin(Json&& empty)
    {
        if (m_levels.size() == deepest)
            throw Error(place(m_progress.line), "nested more than 64 levels deep", "this is no file of ours");
        Json* container = insert(std::move(empty), m_progress.line, true);
        m_levels.push_back({container, m_pointer.size(), m_progress.line, {}});
        return true;
    }

    bool end()
    {
        m_levels.pop_back();
        return true;
    }

    LocatedJson& m_result;
    const Progress& m_progress;
    std::vector<Level> m_levels; // pointers stay valid: a parent grows only after its child is complete
    std::string m_pointer;       // of the value inserted last
};

} // namespace

int LocatedJson::lineOf(std::string_view pointer) const
{
    for (;;) {
        if (const auto found = lines.find(std::string(pointer)); found != lines.end())
            return found->second;
        const std::size_t slash = pointer.rfind('/');
        if (slash == std::string_view::npos)
            return 1;
        pointer = pointer.substr(0, slash);
    }
}

std::string LocatedJson::placeOf(std::string_view pointer) const
{
    return source + ":" + std::to_string(lineOf(pointer));
}

LocatedJson parseLocatedJson(std::string_view text, std::string source)
{
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
        throw Error(source, "the file is empty");
    LocatedJson result;
    result.source = std::move(source);
    Progress progress;
    Builder builder(result, progress);
    Json::sax_parse(CountingIterator(text.data(), &progress), CountingIterator(text.data() + text.size(), &progress),
                    &builder);
    return result;
}

} // namespace pipewright
