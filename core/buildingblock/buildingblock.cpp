// SPDX-License-Identifier: GPL-3.0-or-later
// Checks by an occupancy table modulo T, O(passes). unroll() repeats the passes into a UnitGrid, squeezes it and
// reorders it (reorder.cpp).
#include "core/buildingblock/buildingblock.h"

#include "core/buildingblock/lifespan.h"
#include "core/buildingblock/reorder.h"
#include "core/buildingblock/unitgrid.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

/// "F2.m": the pass of any microbatch m; blocks are written with a number in its place.
std::string nameOf(Op op, int stage)
{
    return fmt::format("{}{}.m", letter(op), stage);
}

std::string nameOf(const BuildingBlock::Pass& pass)
{
    return nameOf(pass.op, pass.stage);
}

class BlockCheck {
public:
    explicit BlockCheck(const BuildingBlock& block) : m_block(block), m_passOf(block.stages() * opCount) {}

    Diagnostics run()
    {
        if (m_block.deviceOfStage.empty()
            || *std::min_element(m_block.deviceOfStage.begin(), m_block.deviceOfStage.end()) < 0)
            error("block", "no placement", "name the device of every stage, from 0");
        else if (m_block.interval < 1)
            error("block", fmt::format("an interval of {}", m_block.interval),
                  "use the units of work per device, 1 or more");
        else if (index())
            checkData(), checkCells();
        return std::move(m_diagnostics);
    }

private:
    void error(std::string where, std::string what, std::string hint)
    {
        m_diagnostics.push_back({Severity::Error, std::move(where), std::move(what), std::move(hint)});
    }
    const BuildingBlock::Pass*& passOf(Op op, int stage) { return m_passOf[stage * opCount + indexOf(op)]; }

    bool index()
    {
        const bool split = m_block.backward == BackwardStyle::Split;
        for (const BuildingBlock::Pass& pass : m_block.passes) {
            if (pass.stage < 0 || pass.stage >= m_block.stages() || !isNeeded(pass.op, m_block.backward))
                error(nameOf(pass), "a pass that the block has no place for",
                      fmt::format("{} stages with {}", m_block.stages(), split ? "F, I and W" : "F and B"));
            else if (pass.start < 0 || pass.length < 1)
                error(nameOf(pass), fmt::format("start {} and length {}", pass.start, pass.length),
                      "start at 0 or later, last 1 or more");
            else if (split && pass.length != 1)
                error(nameOf(pass), fmt::format("lasts {} units", pass.length),
                      "in a split backward every pass is one unit");
            else if (passOf(pass.op, pass.stage) != nullptr)
                error(nameOf(pass), "given twice", "every pass once");
            else
                passOf(pass.op, pass.stage) = &pass;
        }
        for (int stage = 0; stage < m_block.stages(); ++stage)
            for (const Op op : allOps)
                if (isNeeded(op, m_block.backward) && passOf(op, stage) == nullptr)
                    error(nameOf(op, stage), "missing", "every stage needs it once");
        return m_diagnostics.empty();
    }

    void needs(const BuildingBlock::Pass& later, const BuildingBlock::Pass& earlier)
    {
        if (later.start < earlier.end())
            error(nameOf(later),
                  fmt::format("starts at {}, before {} ends at {}", later.start, nameOf(earlier), earlier.end()),
                  "a pass starts after its data is there");
    }

    void checkData()
    {
        for (int stage = 0; stage < m_block.stages(); ++stage) {
            for (const Op op : allOps)
                if (const int step = stageStep(op); stage > 0 && step != 0 && isNeeded(op, m_block.backward))
                    needs(*passOf(op, step > 0 ? stage : stage - 1), *passOf(op, step > 0 ? stage - 1 : stage));
            for (const Op op : allOps)
                if (const auto input = waitsFor(op); input && isNeeded(op, m_block.backward))
                    needs(*passOf(op, stage), *passOf(*input, stage));
        }
    }

    void checkCells()
    {
        std::vector<std::vector<const BuildingBlock::Pass*>> cells(m_block.devices());
        for (const BuildingBlock::Pass& pass : m_block.passes) {
            const int device = m_block.deviceOfStage[pass.stage];
            auto& own = cells[device];
            own.resize(m_block.interval, nullptr);
            for (int t = pass.start; t < pass.end(); ++t) {
                const BuildingBlock::Pass*& cell = own[t % m_block.interval];
                if (cell != nullptr) {
                    error(
                        fmt::format("device {}, {} and {}", device, nameOf(*cell), nameOf(pass)),
                        fmt::format("meet in cell {} of every interval of {}", t % m_block.interval, m_block.interval),
                        "shift one of them, or lengthen the interval");
                    break;
                }
                cell = &pass;
            }
        }
        for (std::size_t device = 0; device < cells.size(); ++device)
            if (const auto free = std::count(cells[device].begin(), cells[device].end(), nullptr); free > 0)
                m_diagnostics.push_back({Severity::Warning, fmt::format("device {}", device),
                                         fmt::format("idles {} of every {} units", free, m_block.interval),
                                         "shorten the interval to the work per device"});
    }

    const BuildingBlock& m_block;
    std::vector<const BuildingBlock::Pass*> m_passOf; ///< [stage][op]
    Diagnostics m_diagnostics;
};

} // namespace

int BuildingBlock::devices() const
{
    return deviceOfStage.empty() ? 0 : *std::max_element(deviceOfStage.begin(), deviceOfStage.end()) + 1;
}

Diagnostics checkBlock(const BuildingBlock& block)
{
    return BlockCheck(block).run();
}

void placeWeightGrads(BuildingBlock& block)
{
    const std::size_t interval = block.interval; // unsigned: a pass may begin before 0
    std::vector<std::vector<bool>> taken(block.devices(), std::vector<bool>(interval, false));
    std::vector<const BuildingBlock::Pass*> inputGrads(block.stages(), nullptr);
    for (const BuildingBlock::Pass& pass : block.passes) {
        for (int t = pass.start; t < pass.end(); ++t)
            taken[block.deviceOfStage[pass.stage]][t % interval] = true;
        if (pass.op == Op::I)
            inputGrads[pass.stage] = &pass;
    }
    std::vector<BuildingBlock::Pass> weightGrads;
    for (int stage = block.stages(); stage-- > 0;) {
        auto& cells = taken[block.deviceOfStage[stage]];
        const BuildingBlock::Pass* inputGrad = inputGrads[stage];
        if (inputGrad == nullptr)
            continue; // checkBlock() reports it
        int start = inputGrad->end();
        while (start < inputGrad->end() + block.interval && cells[start % interval])
            ++start;
        if (start == inputGrad->end() + block.interval)
            throw Error(nameOf(Op::W, stage), "finds no free cell on its device", "lengthen the interval");
        cells[start % interval] = true;
        weightGrads.push_back({Op::W, stage, start, 1});
    }
    block.passes.insert(block.passes.end(), weightGrads.begin(), weightGrads.end());
}

Schedule unroll(const BuildingBlock& block, int microbatches, const UnrollOptions& options)
{
    const Diagnostics diagnostics = checkBlock(block);
    if (hasErrors(diagnostics))
        throw Error(diagnostics);
    if (microbatches < 1 || microbatches > maxMicrobatches)
        throw Error("microbatches", fmt::format("{} microbatches", microbatches),
                    fmt::format("use 1 to {}", maxMicrobatches));
    // Squeezing and reordering visit all microbatches in flight for each one that starts.
    constexpr std::int64_t mostLooks = std::int64_t{1} << 24;
    std::int64_t inFlight = 1;
    for (int stage = 0; stage < block.stages(); ++stage)
        inFlight = std::max<std::int64_t>(inFlight, std::int64_t{lifespan(block, stage)} / block.interval + 1);
    if (std::min<std::int64_t>(inFlight, microbatches) * microbatches > mostLooks)
        throw Error("building block", fmt::format("{} microbatches with {} of them in flight", microbatches, inFlight),
                    "use smaller offsets or fewer microbatches");
    Schedule schedule;
    schedule.family = "custom";
    schedule.microbatches = microbatches;
    schedule.deviceOfStage = block.deviceOfStage;
    schedule.backward = block.backward;
    schedule.firstStageMaySplit = block.backward == BackwardStyle::Split;
    UnitGrid grid(block, microbatches);
    const auto reordered = [&](UnitGrid stamped) {
        return block.backward == BackwardStyle::Split ? reorderSplit(std::move(stamped), options.sharePeak)
                                                      : reorderFull(std::move(stamped), options.sharePeak);
    };
    if (options.reorder && !options.keepShorter) {
        grid = reordered(std::move(grid));
    } else if (options.reorder) {
        UnitGrid other = reordered(grid);
        grid.squeeze();
        other.squeeze();
        if (other.span() <= grid.span())
            grid = std::move(other);
    }
    schedule.order = grid.order();
    return schedule;
}

BuildingBlock completed(const RepeatedBlock& repeated)
{
    BuildingBlock block = repeated.block;
    const auto isWeightGrad = [](const BuildingBlock::Pass& pass) { return pass.op == Op::W; };
    const bool placed =
        std::all_of(block.deviceOfStage.begin(), block.deviceOfStage.end(), [](int device) { return device >= 0; })
        && std::all_of(block.passes.begin(), block.passes.end(), [&block](const BuildingBlock::Pass& pass) {
               return pass.stage >= 0 && pass.stage < block.stages() && pass.start >= 0;
           });
    if (placed && block.backward == BackwardStyle::Split && block.interval > 0 // otherwise checkBlock() reports more
        && std::none_of(block.passes.begin(), block.passes.end(), isWeightGrad))
        placeWeightGrads(block);
    return block;
}

Schedule unroll(const RepeatedBlock& repeated)
{
    std::int64_t end = 0;
    for (const BuildingBlock::Pass& pass : repeated.block.passes)
        end = std::max(end, std::int64_t(pass.start) + pass.length);
    const std::int64_t passes = static_cast<std::int64_t>(repeated.block.passes.size()) * repeated.microbatches;
    const std::int64_t cells =
        repeated.block.devices() * (end + std::int64_t(repeated.block.interval) * repeated.microbatches);
    if (std::max(passes, cells) > maxBlocks)
        throw Error("block", fmt::format("{} passes on {} cells", passes, cells),
                    fmt::format("at most {}: fewer microbatches, a shorter interval, or smaller offsets", maxBlocks));
    UnrollOptions options;
    options.reorder = repeated.reorder;
    options.sharePeak = false; // a stage keeps to its own ceil(l / T), as drawn
    return unroll(completed(repeated), repeated.microbatches, options);
}

} // namespace pipewright
