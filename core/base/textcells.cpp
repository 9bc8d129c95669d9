// SPDX-License-Identifier: GPL-3.0-or-later
// Splits a text into lines and cells without copying. O(text).
#include "core/base/textcells.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

constexpr std::size_t shownAtMost = 32;
constexpr std::string_view byteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view blanks = " \t\r";

std::string_view withoutQuotes(std::string_view text)
{
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"'
        && text.substr(1, text.size() - 2).find('"') == std::string_view::npos)
        return withoutBlanks(text.substr(1, text.size() - 2), blanks);
    return text;
}

template<class SplitLine>
std::vector<TextLine> splitLines(std::string_view text, SplitLine splitLine)
{
    if (text.starts_with(byteOrderMark))
        text.remove_prefix(byteOrderMark.size());
    std::vector<TextLine> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        TextLine& line = lines.emplace_back();
        line.number = static_cast<int>(lines.size());
        splitLine(text.substr(0, end), line.cells);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

} // namespace

std::string_view withoutBlanks(std::string_view text, std::string_view around)
{
    const std::size_t begin = text.find_first_not_of(around);
    return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(around) - begin + 1);
}

std::vector<TextLine> splitCommas(std::string_view text)
{
    return splitLines(text, [](std::string_view line, std::vector<TextCell>& cells) {
        if (withoutBlanks(line, blanks).empty())
            return;
        cells.reserve(std::count(line.begin(), line.end(), ',') + 1);
        for (;;) {
            const std::size_t end = line.find(',');
            cells.push_back(
                {withoutQuotes(withoutBlanks(line.substr(0, end), blanks)), static_cast<int>(cells.size()) + 1});
            if (end == std::string_view::npos)
                return;
            line.remove_prefix(end + 1);
        }
    });
}

std::vector<TextLine> splitWords(std::string_view text)
{
    const auto separates = [](char c) { return blanks.find(c) != blanks.npos || c == ','; };
    return splitLines(text, [&](std::string_view line, std::vector<TextCell>& cells) {
        for (auto at = line.begin(); at != line.end();) {
            const auto begin = std::find_if_not(at, line.end(), separates);
            at = std::find_if(begin, line.end(), separates);
            if (begin != at)
                cells.push_back({{begin, at}, static_cast<int>(cells.size()) + 1});
        }
    });
}

void CellFaults::add(int line, const TextCell& cell, std::string what, std::string hint)
{
    add(line, fmt::format("cell {}, {}: {}", cell.number, inQuotes(cell.text), what), std::move(hint));
}

void CellFaults::add(int line, std::string what, std::string hint, Severity severity)
{
    if (severity == Severity::Error)
        ++m_errors;
    if (m_diagnostics.size() < shownAtMost)
        m_diagnostics.push_back(
            {severity, line > 0 ? fmt::format("{}:{}", m_source, line) : m_source, std::move(what), std::move(hint)});
    else
        ++m_left;
}

void CellFaults::raise()
{
    if (m_errors > 0)
        throw Error(take());
}

Diagnostics CellFaults::take()
{
    if (m_left > 0)
        m_diagnostics.push_back({Severity::Note, m_source, fmt::format("{} more like these", m_left), {}});
    return std::move(m_diagnostics);
}

int takeNumber(std::string_view& text, int largest)
{
    std::size_t length = 0;
    std::int64_t value = 0;
    for (; length < text.size() && text[length] >= '0' && text[length] <= '9'; ++length)
        value = std::min<std::int64_t>(value * 10 + (text[length] - '0'), std::int64_t{largest} + 1);
    if (length == 0 || (length > 1 && text.front() == '0'))
        return -1;
    text.remove_prefix(length);
    return value > largest ? -2 : static_cast<int>(value);
}

} // namespace pipewright
