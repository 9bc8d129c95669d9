// SPDX-License-Identifier: GPL-3.0-or-later
// From another tool's lists of blocks to a design: placement, number of microbatches and backward style are
// not written in such files and are inferred from the blocks themselves. What is wrong with the schedule is
// said at the line and cell where the block stands. O(blocks x log).
#pragma once

#include "core/design/design.h"
#include "core/exchange/textcells.h"

#include <string>
#include <vector>

namespace pipewright {

/// What an importer returns beside the design: warnings and notes that do not stand in its way.
struct Imported {
    Design design;
    Diagnostics diagnostics;
};

/// Larger numbers are taken for typing errors.
inline constexpr int largestStage = 65'535;

struct ImportedOrder {
    std::vector<std::vector<Block>> order; ///< device -> blocks
    std::vector<std::vector<int>> cells;   ///< device -> per block, the number of its cell
    std::vector<int> lines;                ///< device -> its line
    std::vector<Overlap> overlaps;

    void addDevice(int line);
    void add(const Block& block, int cell); ///< to the device added last
    void overlapLastTwo();                  ///< of the device added last
};

/// Stages whose upper half runs the upper half of the microbatches and nothing else are a second replica, as
/// pytorchCsv() writes it. A design with uniform costs of 1 ms per pass, validated. Faults that make it impossible are
/// added to `faults` and thrown as Error; `hint` is added to those that a wrong reading of the letters would explain.
Design designOf(ImportedOrder imported, CellFaults& faults, const std::string& lettersHint);

/// "runs/zb.csv" gives "zb".
std::string nameOfSource(const std::string& source);

} // namespace pipewright
