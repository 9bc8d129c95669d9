// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/saillines.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

constexpr std::string_view exampleOfACell = "a cell is F, B, W or BW and a microbatch, for example F0, B3 or w12";

struct Cell {
    Op op = Op::F;
    bool lower = false;
    int microbatch = 0;
    int number = 0; ///< of the cell in its line
};

bool parseCell(const TextLine& line, const TextCell& text, CellFaults& faults, Cell& cell)
{
    std::string_view rest = text.text;
    const std::size_t letters = std::min(rest.find_first_of("0123456789"), rest.size());
    const std::string_view name = rest.substr(0, letters);
    const std::string_view upper = name == "F" || name == "f"   ? "F"
                                   : name == "B" || name == "b" ? "B"
                                   : name == "W" || name == "w" ? "W"
                                                                : "";
    if (name == "BW" || name == "bw")
        cell.op = Op::B;
    else if (upper == "F")
        cell.op = Op::F;
    else if (upper == "B")
        cell.op = Op::I;
    else if (upper == "W")
        cell.op = Op::W;
    else {
        faults.add(line.number, text, fmt::format("unknown pass {}", inQuotes(name)), std::string(exampleOfACell));
        return false;
    }
    cell.lower = name.front() >= 'a';
    rest.remove_prefix(letters);
    cell.microbatch = takeNumber(rest, maxMicrobatches - 1);
    cell.number = text.number;
    if (cell.microbatch < 0 || !rest.empty()) {
        faults.add(line.number, text,
                   cell.microbatch == -2 ? "microbatch number too large"
                                         : "a microbatch number is expected after the letter",
                   std::string(exampleOfACell));
        return false;
    }
    return true;
}

/// True when lower-case backwards are the second chunk's: they then come before the upper-case ones. Decided by the
/// first microbatch with both.
bool lowerBackwardIsSecondChunk(const std::vector<std::vector<Cell>>& lines)
{
    for (const std::vector<Cell>& line : lines)
        for (const Cell& cell : line)
            if (makesInputGrad(cell.op)) {
                const bool other = std::any_of(line.begin(), line.end(), [&](const Cell& c) {
                    return c.op == cell.op && c.microbatch == cell.microbatch && c.lower != cell.lower;
                });
                if (other)
                    return cell.lower;
                break;
            }
    return false;
}

} // namespace

Imported importSailLines(std::string_view text, const std::string& source)
{
    CellFaults faults(source);
    std::vector<std::vector<Cell>> lines;
    std::vector<int> numbers; // of the lines
    bool vShape = false;
    for (const TextLine& line : splitWords(text)) {
        numbers.push_back(line.number);
        std::vector<Cell>& cells = lines.emplace_back();
        for (const TextCell& textCell : line.cells) {
            Cell cell;
            if (!parseCell(line, textCell, faults, cell))
                continue;
            vShape = vShape || cell.lower;
            cells.push_back(cell);
        }
    }
    if (std::ssize(lines) > maxDevices)
        faults.add(0, fmt::format("{} lines", lines.size()),
                   fmt::format("at most {} devices are possible", maxDevices));
    faults.raise();

    const bool lowerIsSecond = lowerBackwardIsSecondChunk(lines);
    const int devices = static_cast<int>(lines.size());
    ImportedOrder blocks;
    for (int device = 0; device < devices; ++device) {
        blocks.addDevice(numbers[device]);
        for (const Cell& cell : lines[device]) {
            const bool second = vShape && (makesActivation(cell.op) ? cell.lower : cell.lower == lowerIsSecond);
            blocks.add({cell.op, second ? 2 * devices - 1 - device : device, cell.microbatch}, cell.number);
        }
    }
    Imported imported;
    imported.design = designOf(std::move(blocks), faults, "B is the input gradient and BW the full backward");
    if (vShape)
        imported.diagnostics.push_back({Severity::Note,
                                        source,
                                        fmt::format("two stages per device in a V; {} backwards are the second chunk's",
                                                    lowerIsSecond ? "lower-case" : "upper-case"),
                                        {}});
    return imported;
}

} // namespace pipewright
