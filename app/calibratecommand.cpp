// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"
#include "app/table.h"

#include "core/formats/designfile.h"
#include "traces/calibration.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

namespace pipewright::app {

namespace {

struct CalibrateOptions {
    explicit CalibrateOptions(CLI::App& command)
    {
        command.add_option("file", file, "the design file")->required()->type_name("FILE");
        command.add_option("trace", trace, "a trace of this design")->required()->type_name("TRACE");
        command.add_option("-o,--output", output, "the calibrated design to write")->required()->type_name("FILE");
        command.add_flag("--force", force, "replace the file if it exists");
        command.add_flag("--json", json, "print one JSON object");
    }
    std::string file, trace, output;
    bool force = false, json = false;
};

Nanoseconds makespanOf(const Design& design)
{
    LocatedDesign located;
    located.design = design;
    return predictOrFind(located).metrics.makespan;
}

Json toJson(const CalibrateOptions& options, const Design& before, const Design& after)
{
    Json object{{"design", options.output}, {"trace", options.trace}, {"source", after.costs.source}};
    object["makespan"] = {{"before_ns", makespanOf(before)}, {"after_ns", makespanOf(after)}};
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
    return object;
}

void print(const CalibrateOptions& options, const Design& before, const Design& after)
{
    fmt::print("{}: costs measured in {}\n\n", options.output, options.trace);
    const auto change = [](Nanoseconds from, Nanoseconds to) {
        return from == to ? formatDuration(to) : fmt::format("{} -> {}", formatDuration(from), formatDuration(to));
    };
    Table table({"stage", "forward", "input gradient", "weight gradient", "full backward", "update"});
    for (std::size_t stage = 0; stage < after.costs.stages.size(); ++stage) {
        const StageCosts& a = before.costs.stages[stage];
        const StageCosts& b = after.costs.stages[stage];
        table.addRow({std::to_string(stage), change(a.forward, b.forward), change(a.inputGrad, b.inputGrad),
                      change(a.weightGrad, b.weightGrad), change(a.backward, b.backward), change(a.update, b.update)});
    }
    table.print();
    fmt::print("\nlink      {}\n", change(before.costs.link.latency, after.costs.link.latency));
    if (after.costs.link.bytesPerSecond > 0)
        fmt::print("          and {:.3g} GB/s\n", after.costs.link.bytesPerSecond * 1e-9);
    fmt::print("makespan  {}\n", change(makespanOf(before), makespanOf(after)));
}

} // namespace

void addCalibrateCommand(CLI::App& app, int& exitCode)
{
    CLI::App* command = app.add_subcommand("calibrate", "Writes a design whose costs are the measured ones");
    const auto options = std::make_shared<CalibrateOptions>(*command);
    command->callback([options, &exitCode] {
        const LocatedDesign located = readLocatedDesign(options->file);
        predictOrFind(located); // an invalid design is a finding, before its trace is looked at
        const TraceReader trace(options->trace);
        const std::string name = std::filesystem::path(options->trace).filename().string();
        const Design calibrated = calibrate(located.design, trace, name);
        writeDesign(calibrated, options->output, options->force);
        if (options->json)
            printJson(toJson(*options, located.design, calibrated));
        else
            print(*options, located.design, calibrated);
        exitCode = exitSuccess;
    });
}

} // namespace pipewright::app
