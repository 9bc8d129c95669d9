// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/blocktimechoice.h"
#include "app/command.h"
#include "app/stepchoice.h"
#include "app/table.h"
#include "app/terminal.h"

#include "core/base/formattedtext.h"
#include "core/design/costorigins.h"
#include "core/files/designfile.h"
#include "traces/analysis/calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace pipewright::app {

namespace {

struct CalibrateOptions {
    explicit CalibrateOptions(CLI::App& command)
    {
        command.add_option("file", file, "the design file")->required()->type_name("FILE");
        command.add_option("trace", traces, "traces of this design, one or several")->required()->type_name("TRACE");
        command.add_option("-o,--output", output, "the calibrated design to write")->required()->type_name("FILE");
        command
            .add_option("--steps", steps,
                        "the steps of each trace that count, by number (all that are typical, without the first)")
            ->type_name("N|FIRST-LAST");
        blockTime.addTo(command);
        command.add_flag("--keep-unmeasured", keepUnmeasured,
                         "stages that the traces do not cover keep the design's costs");
        command.add_flag(
            "--busy-machine", busyMachine,
            "take traces too whose devices waited for processor cores for more than a third of their time");
        command.add_flag("--force", force, "replace the file if it exists");
        command.add_flag("--json", json, "print one JSON object");
    }
    std::vector<std::string> traces;
    std::string file, output, steps;
    BlockTimeChoice blockTime;
    bool keepUnmeasured = false, busyMachine = false, force = false, json = false;
};

Nanoseconds makespanOf(const Design& design)
{
    LocatedDesign located;
    located.design = design;
    return predictTimesOrFind(located).metrics.makespan;
}

Json toJson(const CalibrateOptions& options, const Design& before, const Calibration& calibration,
            const std::optional<KernelTotals>& kernels)
{
    const Design& after = calibration.design;
    Json object{{"design", options.output},
                {"trace", options.traces.front()},
                {"traces", options.traces},
                {"source", after.costs.source}};
    addBlockTimes(object, options.blockTime.by(), kernels);
    object["makespan"] = {{"before_ns", makespanOf(before)},
                          {"after_ns", makespanOf(after)},
                          {"measured_ns", calibration.makespan ? Json(*calibration.makespan) : Json()}};
    object["steps"] = Json::array();
    for (const StepLengths& lengths : calibration.steps)
        object["steps"].push_back(app::toJson(lengths));
    object["stages"] = Json::array();
    for (std::size_t stage = 0; stage < after.costs.stages.size(); ++stage) {
        const StageCosts& costs = after.costs.stages[stage];
        object["stages"].push_back({{"stage", stage},
                                    {"forward_ns", costs.forward},
                                    {"input_grad_ns", costs.inputGrad},
                                    {"weight_grad_ns", costs.weightGrad},
                                    {"backward_ns", costs.backward},
                                    {"update_ns", costs.update}});
    }
    object["link"] = {{"latency_ns", after.costs.link.latency}, {"bytes_per_second", after.costs.link.bytesPerSecond}};
    object["reduce_ns"] = after.costs.reduce;
    object["estimated"] = estimatesText(after);
    object["unmeasured_stages"] = calibration.unmeasured;
    object["fits"] = Json::array();
    for (const CalibrationFit& fit : calibration.fits)
        object["fits"].push_back({{"block", std::string(1, letter(fit.op)) + std::to_string(fit.stage)},
                                  {"value_ns", fit.time.value},
                                  {"median_ns", fit.time.value},
                                  {"spread_ns", fit.time.spread},
                                  {"samples", fit.time.samples}});
    object["links"] = Json::array();
    for (const LinkFit& fit : calibration.links)
        object["links"].push_back({{"from", fit.from},
                                   {"to", fit.to},
                                   {"bytes", fit.bytes},
                                   {"median_ns", fit.time.value},
                                   {"spread_ns", fit.time.spread},
                                   {"samples", fit.time.samples}});
    object["host_gaps"] = Json::array();
    for (const HostGapFit& fit : calibration.gaps)
        object["host_gaps"].push_back({{"device", fit.device},
                                       {"before", std::string(1, letter(fit.op))},
                                       {"median_ns", fit.gap.value},
                                       {"spread_ns", fit.gap.spread},
                                       {"samples", fit.gap.samples}});
    object["notes"] = calibration.notes;
    return object;
}

/// Prints every measured cost with its certainty; if there are very many, only the least certain ones.
void printConfidence(const CalibrateOptions& options, const Calibration& calibration)
{
    for (std::size_t i = 0; i < calibration.steps.size(); ++i) {
        const StepLengths& lengths = calibration.steps[i];
        printText("\n{}: medians over {} step{}", options.traces[i], lengths.typical.size(),
                  lengths.typical.size() == 1 ? "" : "s");
        if (!lengths.outliers.empty())
            printText("; left out: {}", outliersText(lengths));
    }
    struct Row {
        std::string name;
        Typical typical;
    };
    std::vector<Row> rows;
    for (const CalibrationFit& fit : calibration.fits)
        rows.push_back({fmt::format("{}{}", letter(fit.op), fit.stage), fit.time});
    for (const LinkFit& fit : calibration.links)
        rows.push_back({fmt::format("link {} -> {}, {}", fit.from, fit.to, formatSize(fit.bytes)), fit.time});
    for (const HostGapFit& fit : calibration.gaps)
        if (fit.gap.value != 0)
            rows.push_back({fmt::format("host before {} on device {}", letter(fit.op), fit.device), fit.gap});
    constexpr std::size_t most = 48;
    const std::size_t all = rows.size();
    if (all > most) {
        const auto unsure = [](const Row& row) {
            return static_cast<double>(row.typical.spread)
                   / static_cast<double>(std::max<Nanoseconds>(1, row.typical.value));
        };
        std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return unsure(a) > unsure(b); });
        rows.resize(most);
    }
    printText("\n\n");
    TextTable table({"measured", "median", "half within", "samples"});
    for (const Row& row : rows)
        table.addRow({row.name, formatDuration(row.typical.value), formatDuration(row.typical.spread),
                      std::to_string(row.typical.samples)});
    table.print();
    if (all > most)
        printText("the {} least sure of {}; all of them: --json\n", most, all);
}

void print(const CalibrateOptions& options, const Design& before, const Calibration& calibration,
           const std::optional<KernelTotals>& kernels)
{
    const Design& after = calibration.design;
    printText("{}: costs measured in {}\n\n", options.output, joined(options.traces, ", "));
    const auto change = [](Nanoseconds from, Nanoseconds to) {
        return from == to ? formatDuration(to) : fmt::format("{} -> {}", formatDuration(from), formatDuration(to));
    };
    TextTable table({"stage", "forward", "input gradient", "weight gradient", "full backward", "update"});
    for (std::size_t stage = 0; stage < after.costs.stages.size(); ++stage) {
        const StageCosts& a = before.costs.stages[stage];
        const StageCosts& b = after.costs.stages[stage];
        table.addRow({std::to_string(stage), change(a.forward, b.forward), change(a.inputGrad, b.inputGrad),
                      change(a.weightGrad, b.weightGrad), change(a.backward, b.backward), change(a.update, b.update)});
    }
    table.print();
    if (const std::string estimates = estimatesText(after); !estimates.empty())
        printText("\nsplit estimated, not measured: {}\n", estimates);
    if (!calibration.unmeasured.empty())
        printText("\nnot in the traces, the design's costs stay: stage{} {}\n",
                  calibration.unmeasured.size() == 1 ? "" : "s", joined(calibration.unmeasured, ", "));
    for (const std::string& note : calibration.notes)
        printText("\n{}\n", note);
    printBlockTimes(options.blockTime.by(), kernels);
    printConfidence(options, calibration);
    printText("\nlink      {}\n", change(before.costs.link.latency, after.costs.link.latency));
    if (after.costs.link.bytesPerSecond > 0)
        printText("          and {:.3g} GB/s\n", after.costs.link.bytesPerSecond * 1e-9);
    if (const std::string gaps = hostGapsText(after); !gaps.empty())
        printText("host      {}\n", gaps);
    const Nanoseconds predicted = makespanOf(after);
    printText("makespan  {}\n", change(makespanOf(before), predicted));
    if (calibration.makespan && *calibration.makespan > 0)
        printText("measured  {}, so this prediction is off by {}\n", formatDuration(*calibration.makespan),
                  signedPercent(static_cast<double>(predicted) / static_cast<double>(*calibration.makespan) - 1));
}

} // namespace

void addCalibrateCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command = *program.add_subcommand("calibrate", "Writes a design whose costs are the measured ones");
    const auto options = std::make_shared<CalibrateOptions>(command);
    command.callback([options, &exitCode] {
        const BlockTime by = options->blockTime.by();
        const std::optional<StepRange> only =
            options->steps.empty() ? std::nullopt : std::optional(parseStepRange(options->steps, "--steps"));
        const LocatedDesign located = readLocatedDesign(options->file);
        // An invalid design is a finding, reported before its trace is read.
        const Prediction prediction = predictOrFind(located);
        std::vector<std::unique_ptr<TraceReader>> readers;
        std::vector<NamedTrace> traces;
        for (const std::string& trace : options->traces) {
            readers.push_back(std::make_unique<TraceReader>(trace, by));
            printDiagnostics(readers.back()->whatMayBeMissing());
            traces.push_back({readers.back().get(), std::filesystem::path(trace).filename().string()});
        }
        const Calibration calibration = calibrate(
            located.design, traces, options->keepUnmeasured ? UnmeasuredStages::Keep : UnmeasuredStages::Refuse, only,
            options->busyMachine ? BusyMachine::Take : BusyMachine::Refuse);
        writeDesign(calibration.design, options->output, options->force);
        const TraceReader& first = *readers.front();
        const int shown = only ? calibration.steps.front().typical.front() : first.medianStep();
        const std::optional<KernelTotals> kernels = kernelTotals(first, prediction.program, shown);
        if (options->json)
            printJson(toJson(*options, located.design, calibration, kernels));
        else
            print(*options, located.design, calibration, kernels);
        exitCode = exitSuccess;
    });
}

} // namespace pipewright::app
