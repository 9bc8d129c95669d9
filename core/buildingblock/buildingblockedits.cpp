// SPDX-License-Identifier: GPL-3.0-or-later
// Each edit copies the building block; conflicts are found by comparing passes per device. At most O(passes²).
#include "core/buildingblock/buildingblockedits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace pipewright {

namespace {

using Pass = BuildingBlock::Pass;

int deviceOf(const BuildingBlock& block, const Pass& pass)
{
    return block.deviceOfStage[pass.stage];
}

/// The passes that this one depends on, -1 for none.
std::array<int, 2> inputsOf(const BuildingBlock& block, const Pass& pass)
{
    const auto indexOf = [&block](Op op, int stage) {
        for (std::size_t i = 0; i < block.passes.size(); ++i)
            if (block.passes[i].op == op && block.passes[i].stage == stage)
                return static_cast<int>(i);
        return -1;
    };
    const int step = stageStep(pass.op);
    const std::optional<Op> own = waitsFor(pass.op);
    return {step != 0 ? indexOf(pass.op, pass.stage - step) : -1, own ? indexOf(*own, pass.stage) : -1};
}

/// True when both occupy a cell of the same device modulo the interval.
bool meets(const BuildingBlock& block, const Pass& a, const Pass& b)
{
    if (deviceOf(block, a) != deviceOf(block, b))
        return false;
    const int distance = ((b.start - a.start) % block.interval + block.interval) % block.interval;
    return distance < a.length || block.interval - distance < b.length;
}

} // namespace

std::vector<PassConflict> conflictsOf(const BuildingBlock& block)
{
    std::vector<PassConflict> conflicts;
    const int count = static_cast<int>(block.passes.size());
    for (int i = 0; i < count; ++i) {
        const Pass& pass = block.passes[i];
        for (const int input : inputsOf(block, pass))
            if (input >= 0 && pass.start < block.passes[input].end())
                conflicts.push_back({PassConflict::Kind::Early, i, input});
        if (pass.length > block.interval)
            conflicts.push_back({PassConflict::Kind::Meets, i, i});
        for (int other = i + 1; other < count; ++other)
            if (meets(block, pass, block.passes[other]))
                conflicts.push_back({PassConflict::Kind::Meets, i, other});
    }
    return conflicts;
}

std::vector<std::vector<int>> cellsModuloInterval(const BuildingBlock& block)
{
    std::vector<std::vector<int>> cells(block.devices(), std::vector<int>(block.interval, -1));
    for (std::size_t i = 0; i < block.passes.size(); ++i) {
        const Pass& pass = block.passes[i];
        std::vector<int>& own = cells[deviceOf(block, pass)];
        for (int t = pass.start; t < pass.end(); ++t) {
            int& cell = own[t % block.interval];
            if (cell < 0)
                cell = static_cast<int>(i);
        }
    }
    return cells;
}

BuildingBlock withStart(BuildingBlock block, int pass, int start)
{
    block.passes[pass].start = std::max(0, start);
    return block;
}

int firstFreeStart(const BuildingBlock& block, int pass, int from)
{
    Pass moved = block.passes[pass];
    int earliest = std::max(0, from);
    for (const int input : inputsOf(block, moved))
        if (input >= 0)
            earliest = std::max(earliest, block.passes[input].end());
    for (moved.start = earliest; moved.start < earliest + block.interval; ++moved.start) {
        bool free = true;
        for (std::size_t i = 0; i < block.passes.size() && free; ++i)
            free = static_cast<int>(i) == pass || !meets(block, moved, block.passes[i]);
        if (free)
            return moved.start;
    }
    return from;
}

BuildingBlock withStageOn(BuildingBlock block, int stage, int device)
{
    const int devices = block.devices();
    if (device < 0 || device >= devices)
        throw Error(fmt::format("stage {}", stage), fmt::format("there is no device {}", device),
                    fmt::format("use 0 to {}", devices - 1));
    int& own = block.deviceOfStage[stage];
    if (device != own && std::count(block.deviceOfStage.begin(), block.deviceOfStage.end(), own) == 1)
        throw Error(fmt::format("stage {}", stage), fmt::format("is the only one of device {}", own),
                    "every device keeps a stage");
    own = device;
    return block;
}

BuildingBlock withBackward(BuildingBlock block, BackwardStyle style)
{
    if (style == block.backward)
        return block;
    block.backward = style;
    std::vector<Pass> weightGrads;
    if (style == BackwardStyle::Full) {
        std::erase_if(block.passes, [](const Pass& pass) { return pass.op == Op::W; });
        for (Pass& pass : block.passes)
            if (pass.op == Op::I)
                pass.op = Op::B, pass.length = 2;
    } else {
        for (Pass& pass : block.passes) {
            if (pass.op == Op::B) {
                weightGrads.push_back({Op::W, pass.stage, pass.start + 1, 1});
                pass.op = Op::I;
            }
            pass.length = 1;
        }
    }
    block.passes.insert(block.passes.end(), weightGrads.begin(), weightGrads.end());
    return block;
}

std::vector<int> workPerInterval(const BuildingBlock& block)
{
    std::vector<int> work(block.devices(), 0);
    for (const Pass& pass : block.passes)
        work[deviceOf(block, pass)] += pass.length;
    return work;
}

} // namespace pipewright
