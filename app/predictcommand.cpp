// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"
#include "app/inlinedesign.h"
#include "app/table.h"

#include "core/predict/criticalpath.h"

#include <fmt/format.h>

#include <memory>

namespace pipewright::app {

namespace {

Json toJson(const Design& design, const Prediction& prediction)
{
    const Program& program = prediction.program;
    const Metrics& metrics = prediction.metrics;
    Json object;
    object["family"] = design.schedule.family;
    object["devices"] = program.devices.size();
    object["stages"] = program.stages;
    object["microbatches"] = program.microbatches / program.sequencePieces;
    object["blocks"] = program.computeCount();
    object["transfers"] = program.transferCount();
    object["makespan_ns"] = metrics.makespan;
    object["span_ns"] = metrics.span;
    object["ideal_ns"] = metrics.ideal;
    object["bubble"] = {{"rate_makespan", metrics.rateMakespan},
                        {"rate_span", metrics.rateSpan},
                        {"ratio_ideal", metrics.ratioIdeal}};
    object["per_device"] = Json::array();
    for (std::size_t device = 0; device < metrics.devices.size(); ++device) {
        const DeviceMetrics& d = metrics.devices[device];
        object["per_device"].push_back({{"device", device},
                                        {"busy_ns", d.busy},
                                        {"idle_ns", d.idle},
                                        {"span_ns", d.span},
                                        {"peak_activations", d.peakActivations},
                                        {"peak_bytes", d.peakBytes}});
    }
    object["critical_path"] = Json::array();
    for (const TaskId id : criticalPath(program, prediction.timeline)) {
        const Task& task = program.tasks[id];
        if (task.kind == TaskKind::Compute)
            object["critical_path"].push_back({{"device", task.device}, {"block", toString(task.block())}});
    }
    return object;
}

void print(const Design& design, const Prediction& prediction)
{
    const Program& program = prediction.program;
    const Metrics& metrics = prediction.metrics;
    fmt::print("{}: {} on {} devices, {} stages, {} microbatches\n", design.name, design.schedule.family,
               program.devices.size(), program.stages, program.microbatches / program.sequencePieces);
    fmt::print("{} blocks, {} transfers; costs: {}\n\n", program.computeCount(), program.transferCount(),
               design.costs.source);
    fmt::print("makespan  {:>10}   idle / (devices x makespan)  {:>8}  rate_makespan\n",
               formatDuration(metrics.makespan), percent(metrics.rateMakespan));
    fmt::print("span      {:>10}   (span - ideal) / span        {:>8}  rate_span\n", formatDuration(metrics.span),
               percent(metrics.rateSpan));
    fmt::print("ideal     {:>10}   (makespan - ideal) / ideal   {:>8}  ratio_ideal\n\n",
               formatDuration(metrics.ideal), percent(metrics.ratioIdeal));
    Table table({"device", "busy", "idle", "span", "activations", "peak memory"});
    for (std::size_t device = 0; device < metrics.devices.size(); ++device) {
        const DeviceMetrics& d = metrics.devices[device];
        table.addRow({std::to_string(device), formatDuration(d.busy), formatDuration(d.idle), formatDuration(d.span),
                      fmt::format("{:.4g}", d.peakActivations), formatSize(d.peakBytes)});
    }
    table.print();
}

struct PredictOptions {
    explicit PredictOptions(CLI::App& command) : design(command, true)
    {
        command.add_flag("--json", json, "print one JSON object");
    }
    InlineDesign design;
    bool json = false;
};

} // namespace

void addPredictCommand(CLI::App& app, int& exitCode)
{
    CLI::App* command = app.add_subcommand("predict", "Evaluates a design: time, bubbles, memory, critical path");
    const auto options = std::make_shared<PredictOptions>(*command);
    command->callback([options, &exitCode] {
        const LocatedDesign located = options->design.make();
        const Prediction prediction = predictOrFind(located);
        if (options->json)
            printJson(toJson(located.design, prediction));
        else
            print(located.design, prediction);
        exitCode = exitSuccess;
    });
}

} // namespace pipewright::app
