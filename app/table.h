// SPDX-License-Identifier: GPL-3.0-or-later
// A table for people: columns as wide as their widest cell, the first aligned left, numbers right. A table that would
// be wider than a page has its headings, then its cells, broken at blanks into several lines; where that is not enough
// its columns go on in a further table below, after the first column again.
#pragma once

#include <string>
#include <vector>

namespace pipewright::app {

class Table {
public:
    explicit Table(std::vector<std::string> header) : m_rows{std::move(header)} {}
    void addRow(std::vector<std::string> cells) { m_rows.push_back(std::move(cells)); }
    /// 100 characters wide at most, unless two columns of unbreakable words are wider.
    void print() const;
    void printWide() const; ///< a line per row, however wide

private:
    void printInParts() const;

    std::vector<std::vector<std::string>> m_rows;
};

std::string percent(double share);       ///< 0.1585 -> "15.85 %"
std::string signedPercent(double share); ///< 0.02 -> "+2.00 %"

} // namespace pipewright::app
