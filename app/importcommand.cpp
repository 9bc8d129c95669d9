// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"
#include "app/progress.h"
#include "app/terminal.h"

#include "core/base/textfile.h"
#include "core/exchange/exchange.h"
#include "core/files/designfile.h"
#include "traces/import/traceimport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

namespace pipewright::app {

namespace {

struct ImportCommandOptions {
    explicit ImportCommandOptions(CLI::App& command)
    {
        std::string formats = "format of the file (default: found out from its content):";
        for (const ImportFormat& format : importFormats())
            formats += fmt::format("\n{} ({})", format.name, format.title);
        command
            .add_option(
                "file", files,
                "the other tool's file: a schedule, or traces, one per rank, or a folder of them (Chrome JSON of "
                "PyTorch's profiler, plain or .gz; SQLite exports of Nsight Systems)")
            ->required()
            ->type_name("FILE");
        command.add_option("-o,--output", output, "the design or trace to write")->required()->type_name("FILE");
        command.add_option("--from", from, formats)->type_name("FORMAT");
        command.add_flag("--legacy-letters", legacyLetters,
                         "PyTorch files from before late 2024: B is the input gradient, BW the full backward");
        command
            .add_option(
                "--transfers", transfers,
                "PyTorch's schedules: the order of sends and receives: file (as the file has them), pytorch (where "
                "PyTorch puts them between the computations) or own (this program's order); default: file, where "
                "it has them, else own")
            ->type_name("ORDER");
        command.add_option("--name", name, "the design's name (default: the file's)")->type_name("NAME");
        command
            .add_option("--size-limit", sizeLimit,
                        "traces: the most that a compressed file may take when decompressed "
                        "(default 16GiB)")
            ->type_name("SIZE");
        command.add_flag("--force", force, "replace the file if it exists");
        command.add_option("--progress", progress, "traces: auto, bar, json (lines on standard error) or none")
            ->type_name("STYLE");
        command.add_flag("--json", json, "print one JSON object");
    }
    std::vector<std::string> files;
    std::string output, from, transfers, name, progress = "auto", sizeLimit;
    bool legacyLetters = false, force = false, json = false;
};

Json toJson(const ImportedTrace& imported, const std::string& output)
{
    Json object{{"trace", output},           {"tool", imported.tool},     {"ranks", imported.ranks},
                {"lanes", imported.lanes},   {"slices", imported.slices}, {"length_ns", imported.length},
                {"blocks", imported.blocks}, {"steps", imported.steps}};
    object["read"] = imported.report.read;
    object["skipped"] = Json::array();
    for (const auto& [reason, entry] : imported.report.entries())
        object["skipped"].push_back(
            {{"reason", reason}, {"count", entry.count}, {"lost", entry.lost}, {"first", entry.example}});
    object["clocks"] = Json::array();
    for (const ClockOffset& clock : imported.clocks)
        object["clocks"].push_back({{"rank", clock.rank},
                                    {"offset_ns", clock.offset},
                                    {"residual_ns", clock.residual},
                                    {"events", clock.events},
                                    {"method", clock.method}});
    return object;
}

ImportedTrace importReporting(const ImportCommandOptions& options)
{
    ProgressPrinter printer(options.progress);
    const WorkProgress progress = percentsOn(printer, "import");
    const std::uint64_t most = options.sizeLimit.empty()
                                   ? mostDecompressed
                                   : static_cast<std::uint64_t>(parseSize(options.sizeLimit, "--size-limit"));
    ImportedTrace imported = importTraces(options.files, options.output, options.force, progress, most);
    progress.report(1);
    return imported;
}

void runTraces(const ImportCommandOptions& options)
{
    const ImportedTrace imported = importReporting(options);
    printDiagnostics(imported.report.diagnostics(options.files.size() == 1 ? options.files[0] : options.output));
    if (options.json) {
        printJson(toJson(imported, options.output));
        return;
    }
    printText("{}: {}; {} slices on {} lanes of {} rank{}, {} long\n", options.output, imported.tool, imported.slices,
              imported.lanes, imported.ranks, imported.ranks == 1 ? "" : "s", formatDuration(imported.length));
    if (imported.blocks > 0)
        printText("{} blocks of a schedule in {} step{}: compare a design with it\n", imported.blocks, imported.steps,
                  imported.steps == 1 ? "" : "s");
    for (const ClockOffset& clock : imported.clocks)
        if (clock.method != "reference")
            printText("rank {}: clock moved by {}{} ({}, {} events, off by {} in the median)\n", clock.rank,
                      clock.offset < 0 ? "-" : "", formatDuration(std::abs(clock.offset)), clock.method, clock.events,
                      formatDuration(clock.residual));
}

void run(const ImportCommandOptions& options)
{
    std::error_code error;
    if (options.from.empty()
        && (std::filesystem::is_directory(options.files[0], error)
            || traceFormatOf(options.files[0]) != TraceFormat::None)) {
        if (!options.transfers.empty())
            throw Error("--transfers", "is of schedules, and " + options.files[0] + " is read as a trace",
                        "leave it out");
        runTraces(options);
        return;
    }
    if (!options.sizeLimit.empty())
        throw Error("--size-limit", "is of compressed traces, and " + options.files[0] + " is read as a schedule",
                    "leave it out");
    if (options.files.size() > 1)
        throw Error(options.files[0], "only traces can be imported several at once", "import one schedule file");
    const std::string& file = options.files[0];
    ImportOptions importOptions;
    importOptions.format = options.from;
    importOptions.letters = options.legacyLetters ? PytorchLetters::Legacy : PytorchLetters::Current;
    if (!options.transfers.empty()) {
        const auto known = std::find(transferSourceNames.begin(), transferSourceNames.end(), options.transfers);
        if (known == transferSourceNames.end())
            throw Error("--transfers", fmt::format("{} is no order of transfers", inQuotes(options.transfers)),
                        "use file, pytorch or own");
        importOptions.transfers = static_cast<TransferSource>(known - transferSourceNames.begin());
    }
    Imported imported = importDesign(readTextFile(file), file, importOptions);
    if (!options.name.empty())
        imported.design.name = options.name;
    writeDesign(imported.design, options.output, options.force);
    printDiagnostics(imported.diagnostics);
    const Schedule& schedule = imported.design.schedule;
    if (options.json)
        printJson({{"design", options.output},
                   {"devices", schedule.devices()},
                   {"stages", schedule.stages()},
                   {"microbatches", schedule.microbatches},
                   {"blocks", schedule.blocks()},
                   {"backward", schedule.backward == BackwardStyle::Full ? "full" : "split"}});
    else
        printText("{}: {} blocks of {} stages on {} devices, {} microbatches\n", options.output, schedule.blocks(),
                  schedule.stages(), schedule.devices(), schedule.microbatches);
}

} // namespace

void addImportCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command = *program.add_subcommand(
        "import", "Writes a design made from another tool's schedule file, or a trace made from its traces");
    const auto options = std::make_shared<ImportCommandOptions>(command);
    command.callback([options, &exitCode] {
        run(*options);
        exitCode = exitSuccess;
    });
}

} // namespace pipewright::app
