// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cancel.h"
#include "app/command.h"
#include "app/progress.h"
#include "app/table.h"
#include "app/terminal.h"

#include "core/base/outputfile.h"
#include "core/base/textfile.h"
#include "core/base/units.h"
#include "core/model/layertable.h"
#include "core/presets/modelfile.h"
#include "executor/torch/python.h"
#include "executor/torch/torchprofile.h"
#include "traces/analysis/layerranges.h"
#include "traces/import/traceimport.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

namespace pipewright::app {

namespace {

struct ProfileCommandOptions {
    explicit ProfileCommandOptions(CLI::App& command)
    {
        command
            .add_option("--torch", profile.module,
                        "your model: FILE.py:build returns its layers in order; the file has batch(step) and "
                        "loss(output, target) too; PyTorch measures them")
            ->type_name("FILE.py:NAME");
        command
            .add_option(
                "--trace", trace,
                "a recorded run on one device whose layers have ranges (record_function, NVTX): a trace of PyTorch's "
                "profiler, a SQLite export of Nsight Systems, or one that was imported")
            ->type_name("FILE");
        command
            .add_option("-o,--output", output, "the model to write, for --model: .json, or .csv with spread and peak")
            ->required()
            ->type_name("FILE");
        command
            .add_option("--layers", ranges.layers,
                        "of a trace: which ranges are layers, a regular expression such as \"block [0-9]+|head\" (the "
                        "outermost of which a forward pass has several)")
            ->type_name("EXPRESSION");
        command
            .add_option("--model", model,
                        "of a trace without the allocator's reports: bytes are those of this model, of as many layers")
            ->type_name("MODEL");
        measuring = command.add_option_group("With --torch");
        measuring
            ->add_option("--microbatches", profile.microbatches,
                         "batch(0) is cut into so many, and one is measured; as many as the design's (1)")
            ->check(CLI::Range(1, 1 << 20))
            ->type_name("M");
        measuring->add_option("--seconds", profile.seconds, "for each layer, at least (0.5)")->type_name("X");
        measuring->add_option("--device", profile.device, "host, cuda, or auto: the GPU where there is one")
            ->type_name("DEVICE");
        measuring->add_option("--python", profile.python, "the Python that has PyTorch (python3)")
            ->type_name("PROGRAM");
        measuring->add_option("--seed", profile.seed, "of parameters and data")->type_name("N");
        command.add_flag("--force", force, "replace the file if it exists");
        command.add_option("--progress", progress, "auto, bar, json (lines on standard error) or none")
            ->type_name("STYLE");
        command.add_flag("--json", json, "print one JSON object");
    }
    CLI::App* measuring;
    TorchProfileOptions profile;
    LayerRangeOptions ranges;
    std::string trace, model, output, progress = "auto";
    bool force = false, json = false;
};

Json toJson(const LayerProfile& profile, const std::string& output)
{
    Json layers = Json::array();
    for (std::size_t i = 0; i < profile.layers.size(); ++i) {
        const KnownLayer& layer = profile.shape.table[i];
        const ProfiledLayer& measured = profile.layers[i];
        Json row{{"layer", layer.name},
                 {"forward_ns", layer.forward},
                 {"input_grad_ns", layer.inputGrad},
                 {"weight_grad_ns", layer.weightGrad},
                 {"backward_ns", layer.backward},
                 {"saved_bytes", layer.saved},
                 {"saved_for_weight_grad_bytes", layer.savedForWeightGrad},
                 {"parameter_bytes", layer.parameters},
                 {"frozen_bytes", layer.frozen},
                 {"shared_bytes", layer.shared},
                 {"shared_with", layer.sharedWith.empty() ? Json() : Json(layer.sharedWith)},
                 {"output_bytes", layer.output},
                 {"peak_bytes", measured.peak < 0 ? Json() : Json(measured.peak)},
                 {"spread", measured.spread},
                 {"rounds", measured.rounds}};
        if (profile.shape.autograd)
            forEachAutogradField(layer.autograd,
                                 [&row](const std::string& key, Bytes bytes) { row[key + "_bytes"] = bytes; });
        layers.push_back(std::move(row));
    }
    return {{"model", output},
            {"device", profile.device},
            {"tool", profile.tool},
            {"microbatch_size", profile.shape.microbatchSize},
            {"estimated", profile.estimated},
            {"unknown", profile.unknown},
            {"layers", std::move(layers)}};
}

void print(const LayerProfile& profile, const std::string& output)
{
    printText("{} layers on {}, {}\n\n", profile.layers.size(), profile.device, profile.tool);
    const auto isIn = [](const std::vector<std::string>& list, const char* column) {
        return std::find(list.begin(), list.end(), column) != list.end();
    };
    const auto titled = [&](const char* title, const char* column) {
        return title + std::string(isIn(profile.estimated, column) ? " (estimated)" : "");
    };
    const auto size = [&](Bytes bytes, const char* column) {
        return isIn(profile.unknown, column) ? std::string("not known") : formatSize(bytes);
    };
    TextTable table({"layer", "F", titled("I", "input_grad"), titled("W", "weight_grad"), "B", titled("saved", "saved"),
                     titled("parameters", "parameters"), titled("output", "output"), "spread"});
    for (std::size_t i = 0; i < profile.layers.size(); ++i) {
        const KnownLayer& layer = profile.shape.table[i];
        table.addRow({layer.name, formatDuration(layer.forward), formatDuration(layer.inputGrad),
                      formatDuration(layer.weightGrad), formatDuration(layer.backward), size(layer.saved, "saved"),
                      size(layer.parameters, "parameters"), size(layer.output, "output"),
                      fmt::format("{:.1f} %", profile.layers[i].spread * 100)});
    }
    table.print();
    printText("\n{}: pipewright new zb-h1 --model {} …\n", output, output);
}

void writeProfile(const LayerProfile& profile, const ProfileCommandOptions& given, const std::string& of)
{
    writeFileAtomically(given.output,
                        extensionOf(given.output) == "csv" ? layerTableText(profile)
                                                           : modelFileText(profile, profile.origin(of)),
                        given.force);
    for (const std::string& note : profile.notes)
        printDiagnostics({{Severity::Note, "profile", note, {}}});
    if (given.json)
        printJson(toJson(profile, given.output));
    else
        print(profile, given.output);
}

int profileTrace(const ProfileCommandOptions& given)
{
    if (const auto measuring = givenOptions(*given.measuring); !measuring.empty())
        throw Error(measuring.front(), "a trace was recorded already", "leave it out, or measure with --torch");
    LayerRangeOptions options = given.ranges;
    std::optional<ModelFile> model;
    if (!given.model.empty()) {
        model = loadModel(given.model);
        options.model = &model->shape;
    }
    options.name = std::filesystem::path(given.trace).stem().string();
    const RunFolder folder;
    std::string stored = given.trace;
    if (isForeignTrace(given.trace)) {
        stored = folder.file("trace.db");
        ProgressPrinter printer(given.progress);
        const WorkProgress progress = percentsOn(printer, "import");
        printDiagnostics(importTraces({given.trace}, stored, false, progress).report.diagnostics(given.trace));
    }
    writeProfile(layersOfRanges(readActivities(stored), given.trace, options), given,
                 std::filesystem::path(given.trace).filename().string());
    return exitSuccess;
}

int profileModule(const ProfileCommandOptions& given)
{
    if (!given.ranges.layers.empty() || !given.model.empty())
        throw Error(given.model.empty() ? "--layers" : "--model", "is about ranges of a trace", "give --trace FILE");
    TorchProfileOptions options = given.profile;
    ProgressPrinter printer(given.progress);
    options.cancel = cancelOnSignals();
    options.progress = [&](int done, int all, const std::string& layer) {
        printer.show(
            all > 0 ? static_cast<double>(done) / all : 0,
            [&] { return fmt::format("layer {} of {}  {}", done, all, layer); },
            [&] {
                return Json{{"progress", double(done) / all}, {"layer", layer}, {"layers", all}}.dump();
            });
    };
    const TorchProfile profile = profileWithTorch(options);
    if (profile.cancelled) {
        printDiagnostics({{Severity::Error,
                           given.output,
                           fmt::format("cancelled after {} layers; nothing was written", profile.layers.size()),
                           {}}});
        return exitFinding;
    }
    writeProfile(profile, given, options.module);
    if (options.microbatches == 1)
        printDiagnostics({{Severity::Note, "--microbatches", "the whole batch was measured as one microbatch",
                           "give as many as the design's to measure one of them"}});
    return exitSuccess;
}

int runProfile(const ProfileCommandOptions& given)
{
    checkProgressStyle(given.progress);
    checkOutput(given.output, given.force);
    if (extensionOf(given.output) != "csv" && extensionOf(given.output) != "json")
        throw Error(given.output, "what kind of file is this to be?", "end its name in .json or .csv");
    if (given.profile.module.empty() == given.trace.empty())
        throw Error("profile", given.trace.empty() ? "of what?" : "--torch and --trace together",
                    "give --torch FILE.py:build to measure, or --trace FILE of a recorded run");
    return given.trace.empty() ? profileModule(given) : profileTrace(given);
}

} // namespace

void addProfileCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command = *program.add_subcommand(
        "profile",
        "Measures the layers of your PyTorch module, or reads them from a recorded run, and writes a model of them");
    const auto options = std::make_shared<ProfileCommandOptions>(command);
    command.callback([options, &exitCode] { exitCode = runProfile(*options); });
}

} // namespace pipewright::app
