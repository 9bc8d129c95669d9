// SPDX-License-Identifier: GPL-3.0-or-later
// A text table: columns as wide as their widest cell, the first left-aligned, numbers right-aligned. A table wider than
// a page wraps its headings at blanks, then its cells. If that is not enough, further columns continue in another table
// below, with the first column repeated.
#pragma once

#include <string>
#include <vector>

namespace pipewright::app {

class TextTable {
public:
    explicit TextTable(std::vector<std::string> header) : m_rows{std::move(header)} {}
    void addRow(std::vector<std::string> cells) { m_rows.push_back(std::move(cells)); }
    /// 100 characters wide at most, unless two columns of unbreakable words are wider.
    void print() const;
    void printWide() const; ///< one line per row, of any width; a long cell widens only its own row

private:
    void printInParts() const;

    std::vector<std::vector<std::string>> m_rows;
};

std::string percent(double share);       ///< 0.1585 -> "15.85 %"
std::string signedPercent(double share); ///< 0.02 -> "+2.00 %"

} // namespace pipewright::app
