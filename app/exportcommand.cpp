// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"
#include "app/stepchoice.h"
#include "app/stretchchoice.h"
#include "app/terminal.h"
#include "core/base/outputfile.h"
#include "core/base/textfile.h"

#include "core/exchange/exchange.h"
#include "traces/analysis/missingblocks.h"
#include "traces/export/activityexport.h"
#include "traces/export/report.h"
#include "traces/import/traceimport.h"
#include "traces/store/tracereader.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

namespace pipewright::app {

namespace {

struct ExportCommandOptions {
    explicit ExportCommandOptions(CLI::App& command)
    {
        std::string formats = "format to write:";
        for (const ExportFormat& format : exportFormats())
            formats += fmt::format("\n{} ({})", format.name, format.title);
        formats += "\nhtml (report of a trace: pictures, numbers, causes, notes; FILE may be the trace itself)";
        command
            .add_option("file", file,
                        "the design file, or a recording, which holds its design; chrome, perfetto and html: "
                        "an imported trace too")
            ->required()
            ->type_name("FILE");
        command.add_option("--to", to, formats)->required()->type_name("FORMAT");
        command.add_option("-o,--output", output, "the file to write")->required()->type_name("FILE");
        command
            .add_option("--csv", csv,
                        "torchtitan, automodel: the schedule CSV to name (default: the design's name with .csv)")
            ->type_name("FILE");
        command
            .add_option("--trace", trace,
                        "chrome, perfetto, page and the tables: a trace of the design, shown beside the prediction")
            ->type_name("TRACE");
        step.addTo(command);
        stretch.addTo(command, "--until");
        command.add_flag("--force", force, "replace the file if it exists");
        command.add_flag("--json", json, "print one JSON object");
    }
    std::string file, to, output, csv, trace;
    StepChoice step;
    StretchChoice stretch;
    bool force = false, json = false;
};

/// The trace is FILE itself if FILE is a trace, else --trace, compared with the design FILE.
std::string reportText(const ExportCommandOptions& options)
{
    const bool bare = options.trace.empty();
    const std::string& path = bare ? options.file : options.trace;
    if (bare && isForeignTrace(path))
        throw Error(path, "this trace is not imported yet", "pipewright import " + path + " -o trace.db");
    if (bare && holdsActivities(path)) {
        const StoredActivities activities = readActivities(path);
        return activityReport(activities, path, options.stretch.of(activities, path, options.step.number()),
                              readNotes(path));
    }
    if (options.stretch.given())
        throw Error("--from", "a recording of a design is shown by whole steps", "choose one with --step");
    if (bare && !isTrace(path))
        throw Error(path, "a report needs a trace", "name one with --trace");
    const TraceReader trace(path);
    LocatedDesign located;
    if (bare)
        located.design = trace.design();
    else
        located = readLocatedDesign(options.file);
    const Prediction prediction = predictOrFind(located);
    const StepChoice::Chosen chosen = options.step.of(trace, prediction.program);
    printDiagnostics(warningOfMissing(prediction.program, chosen.timeline, path, chosen.name));
    return runReport(located.design, prediction, trace, path, {chosen.timeline, chosen.name, chosen.step},
                     readNotes(path));
}

void writeReport(const ExportCommandOptions& options)
{
    const std::string text = reportText(options);
    writeFileAtomically(options.output, text, options.force);
    if (options.json)
        printJson(
            {{"output", options.output}, {"format", "html"}, {"bytes", text.size()}, {"warnings", Json::array()}});
    else
        printText("{}: report\n", options.output);
}

/// Exports an imported trace without a design, all of it or a stretch.
void exportActivities(const ExportCommandOptions& options, const ExportFormat& format)
{
    if (format.name != "perfetto" && format.name != "chrome")
        throw Error(options.file, "this is another tool's trace, which holds no design to export",
                    "perfetto, chrome and html show the trace itself; for the others name the design of its blocks: "
                    "pipewright export DESIGN --trace TRACE");
    if (!options.trace.empty())
        throw Error("--trace", "another tool's trace is exported by itself", "leave it out");
    const StoredActivities activities = readActivities(options.file);
    const bool isPart = options.stretch.given() || options.step.number() >= 0;
    const TraceStep stretch =
        isPart ? options.stretch.of(activities, options.file, options.step.number()) : wholeOf(activities);
    OutputFile file(options.output, options.force);
    std::size_t bytes = 0;
    (format.name == "chrome" ? chromeTrace : perfettoTrace)(activities, stretch, [&](std::string_view piece) {
        file.write(piece);
        bytes += piece.size();
    });
    file.keep();
    if (options.json)
        printJson({{"output", options.output}, {"format", format.name}, {"bytes", bytes}, {"warnings", Json::array()}});
    else
        printText("{}: {} of {} slices, as recorded\n", options.output, isPart ? "a stretch" : "a trace",
                  activities.slices());
}

void run(const ExportCommandOptions& options)
{
    if (options.to == "html") {
        writeReport(options);
        return;
    }
    const ExportFormat& format = exportFormat(options.to);
    if (isForeignTrace(options.file))
        throw Error(options.file, "this trace is not imported yet",
                    "pipewright import " + options.file + " -o trace.db");
    if (holdsActivities(options.file)) {
        exportActivities(options, format);
        return;
    }
    if (options.stretch.given())
        throw Error("--from", "a recording of a design is shown by whole steps", "choose one with --step");
    const bool isRecording = isTrace(options.file);
    LocatedDesign located;
    if (isRecording)
        located.design = TraceReader(options.file).design();
    else
        located = readLocatedDesign(options.file);
    const std::string tracePath = options.trace.empty() && isRecording && format.times ? options.file : options.trace;
    // An invalid design is a finding in all formats.
    const OutlinedPrediction prediction = outlineOrFind(located, format.curves);
    ExportOptions exportOptions;
    if (format.curves == Curves::OneByOne)
        exportOptions.predictedCurve = [&prediction](int device) { return prediction.memoryOf(device); };
    exportOptions.csv =
        options.csv.empty() ? std::filesystem::path(options.file).stem().string() + ".csv" : options.csv;
    Timeline measured;
    if (!tracePath.empty()) {
        if (!format.times)
            throw Error("--trace", "this format has no times",
                        "use it with chrome, perfetto, page, blocks-csv or metrics-csv");
        const TraceReader trace(tracePath);
        StepChoice::Chosen chosen = options.step.of(trace, prediction.program);
        printDiagnostics(warningOfMissing(prediction.program, chosen.timeline, tracePath, chosen.name));
        measured = std::move(chosen.timeline);
        exportOptions.measured = &measured;
    }
    exportOptions.predicted = &prediction;
    OutputFile file(options.output, options.force);
    std::size_t bytes = 0;
    std::exception_ptr unwritten; // the file's fault, and no finding about the design
    const Diagnostics diagnostics = orFind(located, [&] {
        return format.writeTo(
            [&](std::string_view piece) {
                bytes += piece.size();
                try {
                    if (!unwritten)
                        file.write(piece);
                } catch (const Error&) {
                    unwritten = std::current_exception();
                }
            },
            located.design, exportOptions);
    });
    if (unwritten)
        std::rethrow_exception(unwritten);
    file.keep();
    printDiagnostics(located.locate(diagnostics));
    if (options.json) {
        Json warnings = Json::array();
        for (const Diagnostic& diagnostic : diagnostics)
            if (diagnostic.severity == Severity::Warning)
                warnings.push_back(diagnostic.what);
        printJson({{"output", options.output}, {"format", format.name}, {"bytes", bytes}, {"warnings", warnings}});
    } else {
        printText("{}: {}\n", options.output, format.title);
    }
}

} // namespace

void addExportCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command = *program.add_subcommand("export", "Writes a design in another tool's format");
    const auto options = std::make_shared<ExportCommandOptions>(command);
    command.callback([options, &exitCode] {
        run(*options);
        exitCode = exitSuccess;
    });
}

} // namespace pipewright::app
