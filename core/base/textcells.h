// SPDX-License-Identifier: GPL-3.0-or-later
// Text files of other tools as lines of cells: schedules are exchanged as one line per device. Cells are views
// into the text, so a file of 200,000 cells costs a few milliseconds; cells are numbered for diagnostics.
#pragma once

#include "core/base/diagnostic.h"

#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

struct TextCell {
    std::string_view text; ///< without the blanks around it
    int number = 1;        ///< in its line, from 1
};

struct TextLine {
    std::vector<TextCell> cells;
    int number = 1; ///< in the file, from 1
};

/// Without the blanks before and behind it.
std::string_view withoutBlanks(std::string_view text, std::string_view blanks = " ");

/// Cells separated by commas, empty ones kept; a pair of double quotes around a cell is taken off, since
/// spreadsheets add them. The line feed after the last line makes no further line; a byte order mark and
/// carriage returns are skipped.
std::vector<TextLine> splitCommas(std::string_view text);

/// Cells separated by commas and blanks, without empty ones.
std::vector<TextLine> splitWords(std::string_view text);

/// Faults of a file as diagnostics "schedule.csv:3: error: cell 5, "2BW0": …"; after 32 of them they are only counted.
class CellFaults {
public:
    explicit CellFaults(std::string source) : m_source(std::move(source)) {}

    void add(int line, const TextCell& cell, std::string what, std::string hint = {});
    void add(int line, std::string what, std::string hint = {}, Severity severity = Severity::Error);
    bool any() const { return m_errors > 0; }
    /// Throws Error with all of them when there is an error.
    void raise();
    /// What was added, with a note that says how many more there are.
    Diagnostics take();
    const std::string& source() const { return m_source; }

private:
    std::string m_source;
    Diagnostics m_diagnostics;
    int m_errors = 0;
    int m_left = 0; ///< not kept
};

/// Reads a number at the front of `text` and removes it: plain digits, no sign, no leading zeros, at most
/// `largest`. Returns -1 when there is none, or -2 when it is too large.
int takeNumber(std::string_view& text, int largest);

} // namespace pipewright
