// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/blocktimechoice.h"
#include "app/command.h"
#include "app/explanationtext.h"
#include "app/picture.h"
#include "app/recordingtext.h"
#include "app/stepchoice.h"
#include "app/stretchchoice.h"
#include "app/table.h"
#include "app/terminal.h"

#include "core/base/beyondprediction.h"
#include "core/cluster/devicename.h"
#include "executor/run/backendcheck.h"
#include "executor/run/grouprun.h"
#include "executor/run/runsetup.h"
#include "traces/analysis/comparison.h"
#include "traces/analysis/durationdifference.h"
#include "traces/analysis/replay.h"
#include "traces/analysis/runtorun.h"
#include "traces/store/tracereader.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

namespace pipewright::app {

namespace {

struct CompareOptions {
    explicit CompareOptions(CLI::App& command)
    {
        command.add_option("file", file, "the design file; or another tool's trace, to be compared with a second one")
            ->required()
            ->type_name("FILE");
        command.add_option("trace", trace, "a trace of this design; or the second one")->required()->type_name("TRACE");
        command.add_option("-o,--output", picture, "draw both timelines (.svg, .pdf or .png; more: pipewright render)")
            ->type_name("PICTURE");
        step.addTo(command);
        stretch.addTo(command);
        blockTime.addTo(command);
        command
            .add_option("--first-run", firstRun,
                        "the run of this schedule that the costs were measured in: how much the machine changed since")
            ->type_name("TRACE");
        command.add_option("--tolerance", tolerance, "fail when the makespan is off by more than this share")
            ->type_name("SHARE");
        command.add_flag("--dark", dark, "draw on a dark ground");
        command.add_flag("--force", force, "replace the picture if it exists");
        command.add_flag("--json", json, "print one JSON object");
    }
    std::string file, trace, picture, firstRun;
    StepChoice step;
    StretchChoice stretch;
    BlockTimeChoice blockTime;
    double tolerance = -1;
    bool dark = false, force = false, json = false;
};

void print(const RunToRun& runs, const Comparison& comparison)
{
    printText("\nfrom run to run: {} in the first, {} in this one, changed by {}\n", formatDuration(runs.first),
              formatDuration(runs.second), signedPercent(runs.change));
    const auto beyond = [&](Nanoseconds measured) {
        return signedPercent(
            beyondPrediction(static_cast<double>(measured), static_cast<double>(comparison.predictedMakespan)));
    };
    printText("against the prediction: {} in the first, {} in this one\n", beyond(runs.first),
              beyond(comparison.measuredMakespan));
}

/// Whether the costs come from a run other than this one.
bool fromAnotherRun(const Costs& costs, const std::string& trace)
{
    return costs.source.starts_with("measured: ")
           && costs.source.find(std::filesystem::path(trace).filename().string()) == std::string::npos;
}

Json toJson(const Comparison& comparison)
{
    Json object;
    object["makespan"] = {{"predicted_ns", comparison.predictedMakespan},
                          {"measured_ns", comparison.measuredMakespan},
                          {"error", comparison.makespanError}};
    object["per_device"] = Json::array();
    for (std::size_t device = 0; device < comparison.devices.size(); ++device) {
        const Comparison::Device& d = comparison.devices[device];
        object["per_device"].push_back({{"device", device},
                                        {"busy_error", d.busyError},
                                        {"peak_bytes",
                                         {{"predicted", d.predictedPeak},
                                          {"measured", d.measuredPeak ? Json(*d.measuredPeak) : Json()},
                                          {"error", d.peakError ? Json(*d.peakError) : Json()}}}});
    }
    object["blocks"] = {
        {"matched", comparison.matched},
        {"unmatched", comparison.unmatched},
        {"start_error", {{"median", comparison.startError.median}, {"p95", comparison.startError.p95}}},
        {"duration_error", {{"median", comparison.durationError.median}, {"p95", comparison.durationError.p95}}}};
    return object;
}

void print(const Design& design, const Prediction& prediction, const Comparison& comparison, const std::string& step)
{
    const auto beyond = [](auto measured, auto predicted) {
        return signedPercent(beyondPrediction(static_cast<double>(measured), static_cast<double>(predicted)));
    };
    printText("{}: measured {}, {} of predicted {}\n\n", step, formatDuration(comparison.measuredMakespan),
              beyond(comparison.measuredMakespan, comparison.predictedMakespan),
              formatDuration(comparison.predictedMakespan));
    TextTable devices(
        {"device", "busy predicted", "measured", "difference", "peak predicted", "measured", "difference"});
    for (std::size_t device = 0; device < comparison.devices.size(); ++device) {
        const Comparison::Device& d = comparison.devices[device];
        devices.addRow({deviceName(design.cluster, static_cast<int>(device)), formatDuration(d.predictedBusy),
                        formatDuration(d.measuredBusy), beyond(d.measuredBusy, d.predictedBusy),
                        formatSize(d.predictedPeak), d.measuredPeak ? formatSize(*d.measuredPeak) : "not recorded",
                        d.measuredPeak ? beyond(*d.measuredPeak, d.predictedPeak) : "-"});
    }
    devices.print();
    printText("\n{} blocks matched, {} not measured\n", comparison.matched, comparison.unmatched);
    printText("starts     median {:>8}  95th percentile {:>8}  apart, of the measured makespan\n",
              percent(comparison.startError.median), percent(comparison.startError.p95));
    printText("durations  median {:>8}  of the predicted\n",
              signedPercent(medianBeyond(comparison, prediction.timeline)));
    if (comparison.blocks.empty())
        return;
    printText("\nblocks furthest from their prediction:\n");
    constexpr std::size_t shown = 5;
    TextTable blocks({"block", "device", "difference", "measured - predicted"});
    for (std::size_t i = 0; i < std::min(shown, comparison.blocks.size()); ++i) {
        const Comparison::BlockError& block = comparison.blocks[i];
        blocks.addRow({prediction.program.label(block.task),
                       deviceName(design.cluster, prediction.program.tasks[block.task].device),
                       signedPercent(beyondPrediction(block, prediction.timeline)),
                       (block.contribution < 0 ? "-" : "+") + formatDuration(std::abs(block.contribution))});
    }
    blocks.print();
}

/// The measured timeline; a trace of another program is a finding, not bad input.
StepChoice::Chosen measuredStep(const TraceReader& trace, const Program& program, const StepChoice& step)
{
    try {
        return step.of(trace, program);
    } catch (const Error& error) {
        throw Finding(error.diagnostics());
    }
}

Picture pictureOf(const CompareOptions& options, const Design& design, const Prediction& prediction,
                  const StepChoice::Chosen& step)
{
    PictureOptions look;
    if (options.dark)
        look.colours = PictureColours::Dark;
    PicturePanel panel(design, prediction);
    panel.measured = &step.timeline;
    panel.measuredSource = measuredSource(options.trace, step.name);
    return drawPicture({panel}, look);
}

int compareFiles(const CompareOptions& options)
{
    if (holdsActivities(options.file) && holdsActivities(options.trace)) {
        if (!options.picture.empty() || !options.firstRun.empty() || options.tolerance >= 0)
            throw Error(options.file, "holds no design, which pictures, --first-run and --tolerance are about",
                        "leave them out, or give the design first");
        compareRecordings(options.file, options.trace, options.step.number(), options.stretch, options.json);
        return exitSuccess;
    }
    if (options.stretch.given())
        throw Error("--from", "a design is compared by whole steps", "choose one with --step");
    if (!options.picture.empty())
        checkPictureName(options.picture, options.force);
    (void)options.step.number(); // an invalid step is bad usage, not a finding
    const BlockTime by = options.blockTime.by();
    const LocatedDesign located = readLocatedDesign(options.file);
    const TraceReader trace(options.trace, by);
    printDiagnostics(trace.whatMayBeMissing());
    const Prediction prediction = predictOrFind(located);
    const StepChoice::Chosen chosen = measuredStep(trace, prediction.program, options.step);
    const Timeline& measured = chosen.timeline;
    const StepLengths lengths = stepLengths(trace.steps());
    Comparison comparison = compare(prediction.program, prediction.timeline, measured, trace.peakBytes());
    if (runsMemberByMember(located.design)) {
        const GroupRun run(located.design, whyNotTrainable(located.design).empty());
        takePredictedPeaks(comparison, run.shownOf(peaksOf(run.members.program)));
    }
    if (!options.picture.empty())
        writePicture(options.picture, options.force, pictureOf(options, located.design, prediction, chosen));
    const Explanation explanation = explain(prediction.program, located.design.costs, prediction.timeline, measured,
                                            coreWaitIn(trace.steps(), chosen.step));
    const std::optional<KernelTotals> kernels =
        kernelTotals(trace, prediction.program, chosen.step >= 0 ? chosen.step : trace.medianStep());
    std::optional<RunToRun> runs;
    if (!options.firstRun.empty())
        runs = runToRun(options.firstRun, prediction.program, comparison, by);
    if (options.json) {
        Json object = toJson(comparison);
        object["step"] = chosen.json();
        addBlockTimes(object, by, kernels);
        object["steps"] = app::toJson(lengths);
        object["causes"] = causesToJson(prediction.program, explanation);
        if (runs)
            object["run_to_run"] = {{"first_ns", runs->first},
                                    {"second_ns", runs->second},
                                    {"change", runs->change},
                                    {"error_against_first", runs->errorOfFirst}};
        printJson(object);
    } else {
        print(located.design, prediction, comparison, chosen.name);
        printBlockTimes(by, kernels);
        printText("\ncauses of the difference (more: pipewright explain):\n");
        constexpr std::size_t causesShown = 4;
        printCauses(located.design, prediction.program, explanation, causesShown);
        app::print(lengths);
        if (runs)
            print(*runs, comparison);
        else if (fromAnotherRun(located.design.costs, options.trace))
            printText("\nthe costs are of another run ({}): --first-run says how much two runs differ by themselves\n",
                      located.design.costs.source);
    }

    Diagnostics findings;
    if (comparison.unmatched > 0)
        findings.push_back({Severity::Error, options.trace,
                            fmt::format("{} of {} blocks were not measured in {}", comparison.unmatched,
                                        comparison.matched + comparison.unmatched, chosen.name),
                            trace.droppedRecords() > 0
                                ? fmt::format("{} records were dropped while recording", trace.droppedRecords())
                                : "choose another step with --step"});
    if (options.tolerance >= 0 && !(std::abs(comparison.makespanError) <= options.tolerance))
        findings.push_back({Severity::Error, options.trace,
                            fmt::format("the predicted makespan is off by {} of the measured one",
                                        percent(std::abs(comparison.makespanError))),
                            "calibrate the design with this trace: pipewright calibrate"});
    printDiagnostics(findings);
    return findings.empty() ? exitSuccess : exitFinding;
}

} // namespace

void addCompareCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command = *program.add_subcommand("compare", "Prediction against measurement");
    const auto options = std::make_shared<CompareOptions>(command);
    command.callback([options, &exitCode] { exitCode = compareFiles(*options); });
}

} // namespace pipewright::app
