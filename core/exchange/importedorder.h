// SPDX-License-Identifier: GPL-3.0-or-later
// From another tool's lists of blocks to a design. Such files do not state placement, microbatches and backward style,
// so they are inferred from the blocks. Faults of the schedule are reported at the line and cell of the block. O(blocks
// log blocks).
#pragma once

#include "core/base/textcells.h"
#include "core/design/design.h"

#include <string>
#include <vector>

namespace pipewright {

/// An imported design with warnings and notes.
struct Imported {
    Design design;
    Diagnostics diagnostics;
};

/// Larger numbers count as typing errors.
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

/// A validated design with uniform costs of 1 ms per pass. When the upper half of the stages runs exactly the upper
/// half of the microbatches, it is a second replica, as pytorchCsv() writes it. Faults are added to `faults` and thrown
/// as Error; `lettersHint` is added where another reading of the letters would explain the fault.
Design designOf(ImportedOrder imported, CellFaults& faults, const std::string& lettersHint);

/// "runs/zb.csv" gives "zb".
std::string nameOfSource(const std::string& source);

} // namespace pipewright
