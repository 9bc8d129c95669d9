// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/table.h"

#include <algorithm>
#include <fmt/format.h>

namespace pipewright::app {

void Table::print(std::FILE* stream) const
{
    std::vector<std::size_t> width;
    for (const auto& row : m_rows) {
        width.resize(std::max(width.size(), row.size()), 0);
        for (std::size_t column = 0; column < row.size(); ++column)
            width[column] = std::max(width[column], row[column].size());
    }
    for (const auto& row : m_rows) {
        std::string line;
        for (std::size_t column = 0; column < row.size(); ++column)
            line += column == 0 ? fmt::format("{:<{}}", row[column], width[column])
                                : fmt::format("  {:>{}}", row[column], width[column]);
        line.erase(line.find_last_not_of(' ') + 1);
        fmt::print(stream, "{}\n", line);
    }
}

std::string percent(double share) { return fmt::format("{:.2f} %", share * 100); }
std::string signedPercent(double share) { return fmt::format("{:+.2f} %", share * 100); }

} // namespace pipewright::app
