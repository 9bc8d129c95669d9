// SPDX-License-Identifier: GPL-3.0-or-later
// Infers stages, placement, backward style and a second replica from sorted lists of blocks, and reports faults per
// cell. O(blocks log blocks).
#include "core/exchange/importedorder.h"

#include "core/schedule/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace pipewright {

namespace {

struct Placed {
    Block block;
    int device;
    int index; ///< in its device's order
};

/// When the upper half of the stages runs only the upper half of the microbatches, and the lower half only the
/// lower, the upper stages are replica 1: renames their blocks. Returns whether they are.
bool nameSecondReplica(ImportedOrder& imported)
{
    int stages = 0, microbatches = 0;
    for (const auto& order : imported.order)
        for (const Block& block : order) {
            stages = std::max(stages, block.stage + 1);
            microbatches = std::max(microbatches, block.microbatch + 1);
        }
    if (stages % 2 != 0 || microbatches % 2 != 0)
        return false;
    for (const auto& order : imported.order)
        for (const Block& block : order)
            if ((block.stage < stages / 2) != (block.microbatch < microbatches / 2))
                return false;
    const auto rename = [&](Block& block) {
        block.replica = block.stage < stages / 2 ? 0 : 1;
        block.stage %= stages / 2;
    };
    for (auto& order : imported.order)
        std::for_each(order.begin(), order.end(), rename);
    for (Overlap& pair : imported.overlaps) {
        rename(pair.first);
        rename(pair.second);
    }
    return true;
}

class Inference {
public:
    Inference(ImportedOrder& imported, bool twoWays, CellFaults& faults, const std::string& lettersHint)
        : m_imported(imported), m_faults(faults), m_lettersHint(lettersHint), m_replicas(twoWays ? 2 : 1)
    {
        for (std::size_t device = 0; device < imported.order.size(); ++device)
            for (std::size_t i = 0; i < imported.order[device].size(); ++i)
                m_placed.push_back({imported.order[device][i], static_cast<int>(device), static_cast<int>(i)});
        // By replica, stage, microbatch and operation, so that duplicates are adjacent and gaps show.
        std::sort(m_placed.begin(), m_placed.end(), [](const Placed& a, const Placed& b) {
            if (a.block.replica != b.block.replica)
                return a.block.replica < b.block.replica;
            if (a.block.stage != b.block.stage)
                return a.block.stage < b.block.stage;
            if (a.block.microbatch != b.block.microbatch)
                return a.block.microbatch < b.block.microbatch;
            return std::tie(a.block.op, a.device, a.index) < std::tie(b.block.op, b.device, b.index);
        });
    }

    Schedule schedule()
    {
        Schedule schedule;
        schedule.family = "custom";
        if (m_placed.empty()) {
            m_faults.add(0, "there is no block in this file",
                         "one line per device is expected, for example 0F0,0F1,0B0,0B1");
            m_faults.raise();
        }
        for (std::size_t device = 0; device < m_imported.order.size(); ++device)
            if (m_imported.order[device].empty())
                m_faults.add(m_imported.lines[device], fmt::format("device {} has no block", device),
                             "one line per device is expected; remove empty lines");
        for (const Placed& p : m_placed)
            schedule.microbatches = std::max(schedule.microbatches, p.block.microbatch + 1);
        for (auto begin = m_placed.begin(); begin != m_placed.end();) {
            const int stage = begin->block.stage, replica = begin->block.replica;
            const auto end = std::find_if(begin, m_placed.end(), [&](const Placed& p) {
                return p.block.stage != stage || p.block.replica != replica;
            });
            const int share = schedule.microbatches / m_replicas;
            checkStage({begin, end}, replica * share, replica * share + share);
            if (replica > 0 && schedule.replicaPlacements.empty())
                schedule.replicaPlacements.emplace_back();
            std::vector<int>& placement = replica == 0 ? schedule.deviceOfStage : schedule.replicaPlacements.front();
            if (const auto expected = static_cast<int>(placement.size()); stage > expected)
                m_faults.add(
                    placeOf(*begin).first,
                    fmt::format("{}stage {} has blocks, stage {} has none", placeOf(*begin).second, stage, expected),
                    "stages are numbered from 0 without gaps");
            placement.resize(stage + 1, begin->device);
            begin = end;
        }
        m_faults.raise();
        const auto count = [&](Op op) {
            return std::count_if(m_placed.begin(), m_placed.end(), [op](const Placed& p) { return p.block.op == op; });
        };
        schedule.backward =
            count(Op::I) > 0 && count(Op::I) >= count(Op::B) ? BackwardStyle::Split : BackwardStyle::Full;
        schedule.firstStageMaySplit = firstStageIsSplit();
        schedule.order = m_imported.order;
        schedule.overlaps = m_imported.overlaps;
        std::sort(schedule.overlaps.begin(), schedule.overlaps.end());
        return schedule;
    }

private:
    /// The line, and the text "cell 5: ".
    std::pair<int, std::string> placeOf(const Placed& p) const
    {
        return {m_imported.lines[p.device],
                fmt::format("cell {} ({}): ", m_imported.cells[p.device][p.index], toString(p.block))};
    }

    void fault(const Placed& p, const std::string& what, std::string hint)
    {
        const auto [line, cell] = placeOf(p);
        m_faults.add(line, cell + what, std::move(hint));
    }

    /// All blocks of one stage, sorted.
    void checkStage(std::span<const Placed> blocks, int firstMicrobatch, int lastMicrobatch)
    {
        const Placed& first = blocks.front();
        for (const Placed& p : blocks)
            if (p.device != first.device) {
                fault(p, fmt::format("stage {} is held by device {}", p.block.stage, first.device),
                      "all blocks of a stage stand on one line");
                return;
            }
        int next = firstMicrobatch;
        for (auto begin = blocks.begin(); begin != blocks.end(); ++next) {
            const int microbatch = begin->block.microbatch;
            if (microbatch > next)
                return missing(first, Op::F, next);
            const auto end =
                std::find_if(begin, blocks.end(), [&](const Placed& p) { return p.block.microbatch != microbatch; });
            checkMicrobatch({begin, end});
            begin = end;
        }
        if (next < lastMicrobatch)
            missing(first, Op::F, next);
    }

    void missing(const Placed& example, Op op, int microbatch)
    {
        m_faults.add(
            m_imported.lines[example.device],
            fmt::format("missing block {} ({})", toString({op, example.block.stage, microbatch}), describe(op)),
            op == Op::F ? "every stage has a forward and a backward for every microbatch" : m_lettersHint);
    }

    /// The blocks of one microbatch on one stage, sorted by operation.
    void checkMicrobatch(std::span<const Placed> blocks)
    {
        const Placed* of[opCount] = {};
        for (const Placed& p : blocks) {
            const Placed*& slot = of[indexOf(p.block.op)];
            if (slot)
                return fault(p, "the same block is placed twice",
                             fmt::format("it already stands in cell {}; remove one",
                                         m_imported.cells[slot->device][slot->index]));
            slot = &p;
        }
        const auto has = [&](Op op) { return of[indexOf(op)]; };
        const Placed& any = blocks.front();
        const bool split = has(Op::I) || has(Op::W);
        if (has(Op::F) && has(Op::B) && split)
            return fault(*has(Op::B), "full backward beside a split one", m_lettersHint);
        for (const Op op : allOps)
            if (isNeeded(op, split ? BackwardStyle::Split : BackwardStyle::Full) && !has(op))
                return missing(any, op, any.block.microbatch);
    }

    /// True when a block runs between an I and its W on stage 0.
    bool firstStageIsSplit() const
    {
        const Placed* input = nullptr;
        for (const Placed& p : m_placed) {
            if (p.block.stage != 0)
                break;
            if (p.block.op == Op::I)
                input = &p;
            else if (p.block.op == Op::W && input && p.index != input->index + 1)
                return true;
        }
        return false;
    }

    ImportedOrder& m_imported;
    CellFaults& m_faults;
    const std::string& m_lettersHint;
    int m_replicas;
    std::vector<Placed> m_placed;
};

/// The number after `word`; -1 when there is none.
int numberAfter(std::string_view text, std::string_view word)
{
    const std::size_t at = text.find(word);
    int number = -1;
    if (at != std::string_view::npos)
        std::from_chars(text.data() + at + word.size(), text.data() + text.size(), number);
    return number;
}

/// "device 1, position 3 (B0.0)" becomes the line of device 1 and the cell of its fourth block.
void locate(const Diagnostic& diagnostic, const ImportedOrder& imported, CellFaults& faults)
{
    const int device = numberAfter(diagnostic.where, "device ");
    const int position = numberAfter(diagnostic.where, "position ");
    int line = 0;
    std::string cell;
    if (device >= 0 && device < static_cast<int>(imported.lines.size())) {
        line = imported.lines[device];
        if (position >= 0 && position < static_cast<int>(imported.cells[device].size()))
            cell = fmt::format("cell {} ({}): ", imported.cells[device][position],
                               toString(imported.order[device][position]));
    }
    if (cell.empty() && !diagnostic.where.empty())
        cell = diagnostic.where + ": ";
    faults.add(line, cell + diagnostic.what, diagnostic.hint, diagnostic.severity);
}

} // namespace

void ImportedOrder::addDevice(int line)
{
    order.emplace_back();
    cells.emplace_back();
    lines.push_back(line);
}

void ImportedOrder::overlapLastTwo()
{
    overlaps.push_back({order.back().end()[-2], order.back().back()});
}

void ImportedOrder::add(const Block& block, int cell)
{
    order.back().push_back(block);
    cells.back().push_back(cell);
}

Design designOf(ImportedOrder imported, CellFaults& faults, const std::string& lettersHint)
{
    faults.raise();
    const bool twoWays = nameSecondReplica(imported);
    Design design;
    design.name = nameOfSource(faults.source());
    design.schedule = Inference(imported, twoWays, faults, lettersHint).schedule();
    for (const Diagnostic& diagnostic : validate(design.schedule))
        locate(diagnostic, imported, faults);
    faults.raise();
    design.costs = uniformCosts({}, design.schedule.stages(), 1);
    return design;
}

std::string nameOfSource(const std::string& source)
{
    return std::filesystem::path(source).stem().string();
}

} // namespace pipewright
