// SPDX-License-Identifier: GPL-3.0-or-later
// Lays out columns by narrowing the widest first, then splits the table into parts of page width. O(cells).
#include "app/table.h"
#include "app/terminal.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <numeric>
#include <string_view>

namespace pipewright::app {

namespace {

using Row = std::vector<std::string>;

constexpr std::size_t pageWidth = 100, gap = 2;

std::size_t widthOf(const std::vector<std::size_t>& columns)
{
    return std::accumulate(columns.begin(), columns.end(), std::size_t{0}) + gap * (columns.size() - 1);
}

/// A number stays with its unit: "1.2 ms", "3 %".
bool breaksAt(std::string_view text, std::size_t blank)
{
    if (text[blank] != ' ' || blank == 0 || blank + 1 == text.size())
        return false;
    const auto before = static_cast<unsigned char>(text[blank - 1]);
    const auto after = static_cast<unsigned char>(text[blank + 1]);
    return !(std::isdigit(before) && (std::isalpha(after) || after == '%'));
}

/// Greedy line breaking, at least one word per line.
Row wrapped(std::string_view text, std::size_t width)
{
    Row lines;
    while (text.size() > width) {
        std::size_t end = std::string_view::npos;
        for (std::size_t i = 0; i < text.size() && (i <= width || end == std::string_view::npos); ++i)
            if (breaksAt(text, i))
                end = i;
        if (end == std::string_view::npos)
            break;
        lines.emplace_back(text.substr(0, text.find_last_not_of(' ', end) + 1));
        text.remove_prefix(end + 1);
        text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    }
    lines.emplace_back(text);
    return lines;
}

std::size_t longestLine(const std::string& text, std::size_t width)
{
    std::size_t longest = 0;
    for (const std::string& line : wrapped(text, width))
        longest = std::max(longest, line.size());
    return longest;
}

std::vector<std::size_t> widestCells(const std::vector<Row>& rows)
{
    std::vector<std::size_t> widths;
    for (const Row& row : rows) {
        widths.resize(std::max(widths.size(), row.size()), 0);
        for (std::size_t column = 0; column < row.size(); ++column)
            widths[column] = std::max(widths[column], row[column].size());
    }
    return widths;
}

/// Minimum width of each column when the rows before `breakable` are broken at every blank.
std::vector<std::size_t> narrowest(const std::vector<Row>& rows, std::size_t breakable)
{
    std::vector<std::size_t> widths;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        widths.resize(std::max(widths.size(), rows[r].size()), 0);
        for (std::size_t column = 0; column < rows[r].size(); ++column)
            widths[column] =
                std::max(widths[column], r < breakable ? longestLine(rows[r][column], 0) : rows[r][column].size());
    }
    return widths;
}

/// Narrows the widest column above its floor until the table fits the page.
void narrow(std::vector<std::size_t>& widths, const std::vector<std::size_t>& floor)
{
    while (widthOf(widths) > pageWidth) {
        std::size_t* widest = nullptr;
        for (std::size_t column = 0; column < widths.size(); ++column)
            if (widths[column] > floor[column] && (!widest || widths[column] > *widest))
                widest = &widths[column];
        if (!widest)
            return;
        --*widest;
    }
}

void printRow(const Row& row, const std::vector<std::size_t>& widths)
{
    std::vector<Row> cells;
    std::size_t height = 1;
    for (std::size_t column = 0; column < row.size(); ++column) {
        cells.push_back(wrapped(row[column], widths[column]));
        height = std::max(height, cells.back().size());
    }
    for (std::size_t i = 0; i < height; ++i) {
        std::string line;
        for (std::size_t column = 0; column < row.size(); ++column) {
            const std::string text = i < cells[column].size() ? cells[column][i] : std::string();
            line += column == 0 ? fmt::format("{:<{}}", text, widths[column])
                                : fmt::format("{:{}}{:>{}}", "", gap, text, widths[column]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        printText("{}\n", line);
    }
}

} // namespace

void TextTable::print() const
{
    std::vector<std::size_t> widths = widestCells(m_rows);
    narrow(widths, narrowest(m_rows, 1));
    narrow(widths, narrowest(m_rows, m_rows.size()));
    if (widthOf(widths) > pageWidth && widths.size() > 2) {
        printInParts();
        return;
    }
    for (const Row& row : m_rows)
        printRow(row, widths);
}

void TextTable::printInParts() const
{
    const std::vector<std::size_t> widths = narrowest(m_rows, 1);
    const std::size_t first = narrowest(m_rows, m_rows.size())[0]; // part of every table, so it may be broken
    for (std::size_t begin = 1, end = 1; begin < widths.size(); begin = end) {
        std::size_t width = first + gap + widths[begin];
        for (end = begin + 1; end < widths.size() && width + gap + widths[end] <= pageWidth; ++end)
            width += gap + widths[end];
        TextTable part({});
        part.m_rows.clear();
        for (const Row& row : m_rows) {
            part.m_rows.push_back({row[0]});
            for (std::size_t column = begin; column < std::min(end, row.size()); ++column)
                part.m_rows.back().push_back(row[column]);
        }
        if (begin > 1)
            printText("\n");
        part.print();
    }
}

void TextTable::printWide() const
{
    constexpr std::size_t padded = 40; // wider cells, such as names of kernels, are not padded to
    std::vector<std::size_t> widths = widestCells(m_rows);
    for (std::size_t& width : widths)
        width = std::min(width, padded);
    for (const Row& row : m_rows) {
        std::string line;
        for (std::size_t column = 0; column < row.size(); ++column)
            line += column == 0 ? fmt::format("{:<{}}", row[column], widths[column])
                                : fmt::format("{:{}}{:>{}}", "", gap, row[column], widths[column]);
        line.erase(line.find_last_not_of(' ') + 1);
        printText("{}\n", line);
    }
}

std::string percent(double share)
{
    return fmt::format("{:.2f} %", share * 100);
}
std::string signedPercent(double share)
{
    return fmt::format("{:+.2f} %", share * 100);
}

} // namespace pipewright::app
