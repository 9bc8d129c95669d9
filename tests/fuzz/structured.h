// SPDX-License-Identifier: GPL-3.0-or-later
// Mutators that know a grammar: what random bytes seldom hit is a well-formed text with one wrong value in it. Each is
// used half of the time, and libFuzzer's own bytes the other half, with the words of dictionaries/.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace pipewright::fuzz {

using Random = std::minstd_rand;

inline std::size_t below(Random& random, std::size_t count)
{
    return count == 0 ? 0 : random() % count;
}

/// Writes `text` in place of the input, if it fits; else libFuzzer's own mutation.
inline std::size_t replaceBy(const std::string& text, std::uint8_t* data, std::size_t size, std::size_t most)
{
    if (text.empty() || text.size() > most)
        return LLVMFuzzerMutate(data, size, most);
    std::memcpy(data, text.data(), text.size());
    return text.size();
}

/// Of a JSON text: one value is replaced by one from the edge of what is possible or by another one of the text, comes
/// twice, or goes; or a key becomes another one's.
inline std::size_t mutateJson(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    using Json = nlohmann::ordered_json;
    Random random(seed + 1);
    Json document = below(random, 2) == 0
                        ? Json::parse(std::string_view(reinterpret_cast<const char*>(data), size), nullptr, false)
                        : Json(Json::value_t::discarded);
    if (!document.is_structured() || document.empty())
        return LLVMFuzzerMutate(data, size, most);
    std::vector<Json*> holders; // objects and arrays that hold anything
    const auto gather = [&](auto self, Json& value) -> void {
        if (!value.is_structured() || value.empty() || holders.size() > 10'000)
            return;
        holders.push_back(&value);
        for (Json& each : value)
            self(self, each);
    };
    gather(gather, document);
    const auto anyElement = [&](Json& holder) {
        auto element = holder.begin();
        std::advance(element, static_cast<std::ptrdiff_t>(below(random, holder.size())));
        return element;
    };
    Json& holder = *holders[below(random, holders.size())];
    const auto element = anyElement(holder);
    switch (below(random, 6)) {
    case 0:
    case 1: {
        const Json edges[] = {0,
                              1,
                              -1,
                              2,
                              1e308,
                              -1e-308,
                              9223372036854775807,
                              2147483648,
                              4294967295,
                              0.5,
                              "",
                              "1e999ms",
                              "-1B",
                              "9223372036854775807",
                              nullptr,
                              true,
                              false,
                              Json::array(),
                              Json::object(),
                              "\x1b[31m",
                              "0"};
        *element = edges[below(random, std::size(edges))];
        break;
    }
    case 2: {
        const Json other = *anyElement(*holders[below(random, holders.size())]);
        *element = other;
        break;
    }
    case 3:
        if (holder.is_array()) {
            const Json again = *element;
            holder.push_back(again);
        } else {
            const Json& from = *holders[below(random, holders.size())];
            const Json value = *element;
            if (from.is_object())
                holder[std::next(from.begin(), static_cast<std::ptrdiff_t>(below(random, from.size()))).key()] = value;
        }
        break;
    case 4: holder.erase(element); break;
    default:
        if (element->is_number_integer())
            *element = element->get<std::int64_t>() ^ (std::int64_t{1} << below(random, 40));
        else if (element->is_string())
            *element = element->get<std::string>().substr(0, below(random, 8)) + std::to_string(random());
        else
            *element = static_cast<std::int64_t>(random());
    }
    return replaceBy(document.dump(-1, ' ', false, Json::error_handler_t::replace), data, size, most);
}

/// One of the lines, without its first `skipped` bytes, by `mutate`.
template<typename Mutate>
std::size_t mutateOneLine(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed, std::size_t skipped,
                          Mutate mutate)
{
    const std::string text(reinterpret_cast<const char*>(data), size);
    Random random(seed + 2);
    std::size_t begin = size == 0 ? 0 : text.rfind('\n', below(random, size)) + 1;
    const std::size_t end = std::min(text.find('\n', begin), size);
    begin = std::min(begin + skipped, end);
    if (end == begin || below(random, 4) == 0)
        return LLVMFuzzerMutate(data, size, most);
    std::string line = text.substr(begin, end - begin);
    const std::size_t length = line.size();
    line.resize(std::max(length, most - std::min(most, size - length)));
    line.resize(mutate(reinterpret_cast<std::uint8_t*>(line.data()), length, line.size(), seed));
    return replaceBy(text.substr(0, begin) + line + text.substr(end), data, size, most);
}

/// Of 32-bit or 16-bit numbers in a row: one becomes a number from the edge, or another one's value, or goes.
inline std::size_t mutateNumbers(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed,
                                 std::size_t width)
{
    Random random(seed + 3);
    const std::size_t count = size / width;
    if (count < 2 || below(random, 2) == 0)
        return LLVMFuzzerMutate(data, size, most);
    const std::uint32_t edges[] = {0, 1, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff};
    std::uint8_t* const at = data + width * below(random, count);
    switch (below(random, 3)) {
    case 0: std::memcpy(at, &edges[below(random, std::size(edges))], width); return size;
    case 1: std::memmove(at, data + width * below(random, count), width); return size;
    default: std::memmove(at, at + width, static_cast<std::size_t>(data + size - at) - width); return size - width;
    }
}

/// Of lines of cells between commas: a line or a cell comes twice, goes, or takes another's place.
inline std::size_t mutateTable(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    Random random(seed + 1);
    if (size == 0 || below(random, 2) == 0)
        return LLVMFuzzerMutate(data, size, most);
    std::vector<std::vector<std::string>> lines(1, {""});
    for (const char c : std::string_view(reinterpret_cast<const char*>(data), size))
        if (c == '\n')
            lines.push_back({""});
        else if (c == ',')
            lines.back().emplace_back();
        else
            lines.back().back() += c;
    const std::size_t line = below(random, lines.size()), other = below(random, lines.size());
    std::string& cell = lines[line][below(random, lines[line].size())];
    const char* const edges[] = {
        "",    "0",   "-1",   "1e308",  "9223372036854775807ns", "99999999999999999999", "1TiB", "0B", " ", "\"", "nan",
        "inf", "1ms", "-5us", "\x1b[2J"};
    switch (below(random, 6)) {
    case 0: lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(other), std::vector(lines[line])); break;
    case 1: lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(line)); break;
    case 2: std::swap(lines[line], lines[other]); break;
    case 3: cell = std::string(lines[other][below(random, lines[other].size())]); break;
    case 4: lines[line].insert(lines[line].begin(), std::string(cell)); break;
    default: cell = edges[below(random, std::size(edges))];
    }
    std::string text;
    for (std::size_t l = 0; l < lines.size(); ++l)
        for (std::size_t c = 0; c < lines[l].size(); ++c)
            text += (c > 0 ? "," : l > 0 ? "\n" : "") + lines[l][c];
    return replaceBy(text, data, size, most);
}

} // namespace pipewright::fuzz
