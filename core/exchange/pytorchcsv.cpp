// SPDX-License-Identifier: GPL-3.0-or-later
// Writes rows of cells from lanes, and parses rows back cell by cell with faults per line and cell. O(cells).
#include "core/exchange/pytorchcsv.h"

#include "core/exchange/importedgathers.h"
#include "core/exchange/pytorchcomms.h"
#include "core/exchange/pytorchgathers.h"
#include "core/program/compile.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

using Type = PytorchAction::Type;

std::string csvOf(const PytorchRows& rows)
{
    std::string text;
    for (const std::vector<PytorchAction>& row : rows) {
        appendRow(text, row);
        text += '\n';
    }
    return text;
}

/// The file's cells, parsed.
struct Reading {
    ImportedOrder computations;
    PytorchRows rows; ///< with sends and receives
    std::vector<std::vector<int>> cells;
    int transfers = 0, crowds = 0;
    std::vector<std::pair<int, int>> idle; ///< line, cell
};

void readRow(const TextLine& line, PytorchLetters letters, Reading& reading, CellFaults& faults)
{
    reading.computations.addDevice(line.number);
    std::vector<PytorchAction>& row = reading.rows.emplace_back();
    std::vector<int>& cells = reading.cells.emplace_back();
    row.reserve(line.cells.size());
    cells.reserve(line.cells.size());
    for (const TextCell& cell : line.cells) {
        if (cell.text.empty()) {
            reading.idle.emplace_back(line.number, cell.number);
            continue;
        }
        const std::size_t before = row.size();
        if (const auto fault = parsePytorchCell(cell.text, letters, row)) {
            faults.add(line.number, cell, fault->what, fault->hint);
            continue;
        }
        reading.crowds += row.size() - before > 2;
        cells.resize(row.size(), cell.number);
        for (std::size_t i = before; i < row.size(); ++i) {
            const PytorchAction& action = row[i];
            if (action.isCompute())
                reading.computations.add(action.block(), cell.number);
            if (row.size() - before == 2 && i == before + 1)
                reading.computations.overlapLastTwo();
            reading.transfers += action.isTransfer();
        }
    }
}

void checkForm(const Reading& reading, std::optional<PytorchCsv> form, CellFaults& faults)
{
    if (form == PytorchCsv::ComputeOnly && reading.transfers > 0)
        faults.add(0,
                   fmt::format("{} sends and receives in a file that should hold computations only", reading.transfers),
                   "import it as pytorch-comms-csv");
    if (form == PytorchCsv::ComputeComms || reading.transfers > 0)
        for (const auto& [line, cell] : reading.idle)
            faults.add(line, fmt::format("cell {} is empty", cell),
                       "a file with sends and receives has no idle steps: PyTorch would stop with an assertion");
}

void remark(const Reading& reading, const std::string& source, Diagnostics& diagnostics)
{
    if (reading.crowds > 0)
        diagnostics.push_back(
            {Severity::Warning, source,
             fmt::format("{} overlaps of more than two blocks run one after the other in the design", reading.crowds),
             "PyTorch does the same unless a function is registered for OVERLAP_F_B"});
}

constexpr std::string_view lossHint = "let the last stage run its forwards in the order of their microbatches";

/// PyTorch collects the losses in the order of the last stage's forwards and uses the k-th for the backward of
/// microbatch k. Returns the first forward that is out of that order.
std::optional<Block> misplacedLoss(const Schedule& schedule)
{
    const int last = schedule.stages() - 1;
    int next = 0;
    for (const Block& block : schedule.order[schedule.deviceOfStage.back()])
        if (block.op == Op::F && block.stage == last && block.microbatch != next++)
            return block;
    return std::nullopt;
}

std::string misplacedLossText(const Block& block)
{
    return fmt::format("{} does not come in the order of the microbatches on the last stage, and PyTorch matches "
                       "losses with backwards by "
                       "that order: the step fails",
                       toString(block));
}

bool isSplit(const PytorchRows& rows)
{
    return std::any_of(rows.begin(), rows.end(), [](const std::vector<PytorchAction>& row) {
        return std::any_of(row.begin(), row.end(), [](const PytorchAction& a) { return a.type == Type::W; });
    });
}

/// PyTorch's CSV reader does not reliably keep an empty line as a rank.
void requireBlocksEverywhere(const Design& design)
{
    for (std::size_t device = 0; device < design.schedule.order.size(); ++device)
        if (design.schedule.order[device].empty())
            throw Error(fmt::format("device {}", device),
                        "holds no stage, and every line of the file is a rank with stages",
                        "remove the device from the design");
}

} // namespace

ExportedText pytorchCsv(const Design& given)
{
    ExportedText result;
    const Design design = exportable(given, result.diagnostics);
    leaveOutTransferOrder(design, result.diagnostics);
    requireBlocksEverywhere(design);
    const Schedule& schedule = design.schedule;
    PytorchRows rows;
    for (const std::vector<Block>& order : schedule.order) {
        std::vector<PytorchAction>& row = rows.emplace_back();
        row.reserve(order.size());
        for (std::size_t i = 0; i < order.size(); ++i) {
            const Block& block = order[i];
            row.push_back({computeType(block.op), block.stage + block.replica * schedule.stages(), block.microbatch});
            row.back().together =
                i + 1 < order.size()
                && std::binary_search(schedule.overlaps.begin(), schedule.overlaps.end(), Overlap{block, order[i + 1]});
        }
    }
    result.text = csvOf(rows);
    if (schedule.replicas() > 1) {
        result.diagnostics.push_back(
            {Severity::Warning, "schedule.replica_placements",
             fmt::format("stage s of replica r is written as stage s + {} r, and PyTorch would take that for one "
                         "pipeline of {} stages",
                         schedule.stages(), schedule.stages() * schedule.replicas()),
             "PyTorch has no replicas: the file is for spreadsheets, and for import here"});
        return result;
    }
    if (const auto block = misplacedLoss(design.schedule))
        result.diagnostics.push_back({Severity::Warning, "schedule", misplacedLossText(*block), std::string(lossHint)});
    if (const auto elsewhere = gatheredElsewhere(schedule))
        result.diagnostics.push_back(*elsewhere);
    return result;
}

ExportedText pytorchCommsCsv(const Design& given, PytorchVersion version)
{
    if (!given.dataflow.skips.empty())
        throw Error("dataflow.skips",
                    "PyTorch hands values only from one stage to the next, so skip connections cannot be exported",
                    "remove the skip connections, or export pytorch-csv for the order alone");
    requireOneReplica(given, "PyTorch");
    ExportedText result;
    const Design design = exportable(given, result.diagnostics);
    requireBlocksEverywhere(design);
    if (const auto block = misplacedLoss(design.schedule))
        throw Error(fmt::format("device {} ({})", design.schedule.deviceOfStage.back(), toString(*block)),
                    misplacedLossText(*block), std::string(lossHint));
    Costs costs = design.costs;
    if (!design.schedule.transferOrder.empty()) // PyTorch's ranks have one stream, on which the stated order counts
        costs.communication = Communication::OneStream;
    const Program program = compile(design.schedule, costs);
    PytorchRows rows = communicationOrder(program, costs);
    addBookkeeping(rows, program, version);
    if (design.schedule.zero.sharesParameters()) // the file says where parameters are gathered and freed
        std::erase_if(result.diagnostics, [](const Diagnostic& each) { return each.where == "schedule.zero"; });
    if (design.schedule.zero.reduce == Zero::Reduce::Each)
        result.diagnostics.push_back({Severity::Warning, "schedule.zero",
                                      "gradients are summed over the copies after each microbatch, and by this file "
                                      "once, after the last",
                                      "PyTorch's pipeline schedules sum them once; predict it with --reduce last"});
    for (const Communication communication : {Communication::Blocking, Communication::Overlapped}) {
        Diagnostics diagnostics = checkRowsForDeadlock(program, rows, communication);
        if (hasErrors(diagnostics))
            throw Error(std::move(diagnostics));
    }
    result.text = csvOf(rows);
    if (version == PytorchVersion::V2_9 && isSplit(rows))
        result.diagnostics.push_back(
            {Severity::Warning, "schedule",
             "PyTorch before 2.10 does not divide the gradients of split backwards by the number of microbatches",
             "give the schedule scale_grads=False and divide the loss"});
    return result;
}

namespace {

/// Sends and receives that are wrong are faults; those that would hang only on one stream, or only when transfers
/// block, are warnings.
void checkCommunication(const Design& design, const Reading& reading, CellFaults& faults)
{
    checkTransfers(design.schedule, reading.rows, reading.cells, reading.computations.lines, faults);
    faults.raise();
    const Program program = compile(design.schedule, design.costs);
    for (const Communication communication :
         {Communication::Overlapped, Communication::OneStream, Communication::Blocking}) {
        const Diagnostics hang = checkRowsForDeadlock(program, reading.rows, communication);
        for (const Diagnostic& d : hang)
            faults.add(0,
                       fmt::format("{}: {}{}", d.where,
                                   communication == Communication::OneStream ? "on one stream of each rank: " : "",
                                   d.what),
                       d.hint, communication == Communication::Overlapped ? Severity::Error : Severity::Warning);
        if (!hang.empty())
            break;
    }
    faults.raise();
}

} // namespace

Imported importPytorchCsv(std::string_view text, const std::string& source, PytorchLetters letters,
                          std::optional<PytorchCsv> form, std::optional<TransferSource> transfers)
{
    CellFaults faults(source);
    Reading reading;
    for (const TextLine& line : splitCommas(text))
        readRow(line, letters, reading, faults);
    checkForm(reading, form, faults);

    Imported imported;
    const std::string lettersHint =
        letters == PytorchLetters::Legacy
            ? "read with legacy letters: B is the input gradient, BW the full backward"
            : "in older files B is the input gradient and BW the full backward: import those with --legacy-letters";
    imported.design = designOf(reading.computations, faults, lettersHint);
    checkWaits(reading.rows, reading.cells, reading.computations.lines, faults);
    faults.raise();
    if (reading.transfers > 0 || form == PytorchCsv::ComputeComms)
        checkCommunication(imported.design, reading, faults);
    imported.diagnostics = faults.take();
    orderTransfers(imported, reading.rows, transfers, source);
    stateGathers(imported, reading.rows, source);
    if (const auto block = misplacedLoss(imported.design.schedule))
        imported.diagnostics.push_back({Severity::Warning, source, misplacedLossText(*block), std::string(lossHint)});
    remark(reading, source, imported.diagnostics);
    return imported;
}

} // namespace pipewright
