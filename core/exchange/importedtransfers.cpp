// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/importedtransfers.h"

#include "core/exchange/pytorchlowering.h"
#include "core/predict/evaluator.h"
#include "core/program/compile.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

/// How long the step takes with the transfers in that order; nothing when they wait in a circle.
std::optional<Nanoseconds> stepWith(Design design, std::vector<TransferPrecedence> order)
{
    design.schedule.transferOrder = std::move(order);
    try {
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        Timeline timeline;
        Evaluator(program, design.costs).evaluate(timeline);
        return *std::max_element(timeline.end.begin(), timeline.end.end());
    } catch (const Error&) {
        return std::nullopt; // the reader of the file has told the circle
    }
}

struct Counts {
    std::int64_t transfers = 0, waits = 0;
};

Counts countsOf(const PytorchRows& rows)
{
    Counts counts;
    for (const std::vector<PytorchAction>& row : rows)
        for (const PytorchAction& action : row) {
            counts.transfers += action.isTransfer();
            counts.waits += action.isSendWait();
        }
    return counts;
}

} // namespace

void orderTransfers(Imported& imported, const PytorchRows& rows, std::optional<TransferSource> wanted,
                    const std::string& source)
{
    Design& design = imported.design;
    design.costs.communication = Communication::OneStream;
    const Counts counts = countsOf(rows);
    if (wanted == TransferSource::File && counts.transfers == 0)
        throw Error(source, "there are no sends and receives in this file, and their order is to be the file's",
                    "use --transfers pytorch or own, or leave it out");
    const TransferSource taken = wanted.value_or(counts.transfers > 0 ? TransferSource::File : TransferSource::Own);
    if (design.schedule.replicas() > 1) // PyTorch has no replicas, and would take them for one long pipeline
        return;
    const std::vector<TransferPrecedence> ofFile =
        taken == TransferSource::File ? transferOrderOf(design.schedule, rows)
                                      : transferOrderOf(design.schedule, loweredByPytorch(design.schedule));
    const std::optional<Nanoseconds> theirs = stepWith(design, ofFile), own = stepWith(design, {});
    if (taken != TransferSource::Own)
        design.schedule.transferOrder = ofFile;

    const auto note = [&](std::string what, std::string hint) {
        imported.diagnostics.push_back({Severity::Note, source, std::move(what), std::move(hint)});
    };
    if (counts.waits > 0)
        note(fmt::format("{} waits for sends are left out", counts.waits), {});
    if (counts.transfers > 0 && taken != TransferSource::File)
        note(fmt::format("the order of its {} sends and receives is left out", counts.transfers), {});
    const std::string first =
        taken == TransferSource::File
            ? fmt::format("{} sends and receives keep their order, on one stream of each rank", counts.transfers)
            : "as PyTorch lowers it";
    if (!theirs) {
        note(first + ", where they wait for each other in a circle", "import with --transfers own");
    } else if (own && *theirs != *own) {
        note(fmt::format("{}: the step takes {}; with this program's own order of transfers {} (F, I and W of 1 ms, "
                         "transfers of no time)",
                         first, formatDuration(*theirs), formatDuration(*own)),
             taken == TransferSource::Own
                 ? "import with --transfers pytorch to see that; export as pytorch-comms-csv to "
                   "run the own order there"
                 : "import with --transfers own to take that order; export as pytorch-comms-csv "
                   "to run it there");
    } else if (taken == TransferSource::File && counts.transfers > 0) {
        note(first + "; this program's own order takes as long", {});
    }
}

} // namespace pipewright
