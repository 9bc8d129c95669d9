// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cancel.h"
#include "app/command.h"
#include "app/progress.h"
#include "app/table.h"
#include "app/terminal.h"

#include "core/base/outputfile.h"
#include "core/base/textfile.h"
#include "core/base/units.h"
#include "executor/torch/torchprofile.h"

#include <fmt/format.h>

#include <memory>

namespace pipewright::app {

namespace {

struct ProfileCommandOptions {
    explicit ProfileCommandOptions(Command command)
    {
        command
            .option("--torch", profile.module,
                    "your model: FILE.py:build returns its layers in order; the file has batch(step) and "
                    "loss(output, target) too")
            .required()
            .typeName("FILE.py:NAME");
        command.option("-o,--output", output, "the model to write, for --model: .json, or .csv with spread and peak")
            .required()
            .typeName("FILE");
        command
            .option("--microbatches", profile.microbatches,
                    "batch(0) is cut into so many, and one is measured; as many as the design's (1)")
            .range(1, 1 << 20)
            .typeName("M");
        command.option("--seconds", profile.seconds, "for each layer, at least (0.5)").typeName("X");
        command.option("--device", profile.device, "host, cuda, or auto: the GPU where there is one")
            .typeName("DEVICE");
        command.option("--python", profile.python, "the Python that has PyTorch (python3)").typeName("PROGRAM");
        command.option("--seed", profile.seed, "of parameters and data").typeName("N");
        command.flag("--force", force, "replace the file if it exists");
        command.option("--progress", progress, "auto, bar, json (lines on standard error) or none").typeName("STYLE");
        command.flag("--json", json, "print one JSON object");
    }
    TorchProfileOptions profile;
    std::string output, progress = "auto";
    bool force = false, json = false;
};

Json toJson(const TorchProfile& profile, const std::string& output)
{
    Json layers = Json::array();
    for (std::size_t i = 0; i < profile.layers.size(); ++i) {
        const KnownLayer& layer = profile.shape.table[i];
        const ProfiledLayer& measured = profile.layers[i];
        layers.push_back({{"layer", layer.name},
                          {"forward_ns", layer.forward},
                          {"input_grad_ns", layer.inputGrad},
                          {"weight_grad_ns", layer.weightGrad},
                          {"backward_ns", layer.backward},
                          {"saved_bytes", layer.saved},
                          {"saved_for_weight_grad_bytes", layer.savedForWeightGrad},
                          {"parameter_bytes", layer.parameters},
                          {"output_bytes", layer.output},
                          {"peak_bytes", measured.peak < 0 ? Json() : Json(measured.peak)},
                          {"spread", measured.spread},
                          {"rounds", measured.rounds}});
    }
    return {{"model", output},
            {"device", profile.device},
            {"torch", profile.torch},
            {"microbatch_size", profile.shape.microbatchSize},
            {"layers", std::move(layers)}};
}

void print(const TorchProfile& profile, const std::string& output)
{
    printText("{} layers on {}, PyTorch {}, {} rows per microbatch\n\n", profile.layers.size(), profile.device,
              profile.torch, profile.shape.microbatchSize);
    TextTable table({"layer", "F", "I", "W", "B", "saved", "parameters", "output", "spread"});
    for (std::size_t i = 0; i < profile.layers.size(); ++i) {
        const KnownLayer& layer = profile.shape.table[i];
        table.addRow({layer.name, formatDuration(layer.forward), formatDuration(layer.inputGrad),
                      formatDuration(layer.weightGrad), formatDuration(layer.backward), formatSize(layer.saved),
                      formatSize(layer.parameters), formatSize(layer.output),
                      fmt::format("{:.1f} %", profile.layers[i].spread * 100)});
    }
    table.print();
    printText("\n{}: pipewright new zb-h1 --model {} …\n", output, output);
}

int runProfile(const ProfileCommandOptions& given)
{
    checkProgressStyle(given.progress);
    checkOutput(given.output, given.force);
    const bool csv = extensionOf(given.output) == "csv";
    if (!csv && extensionOf(given.output) != "json")
        throw Error(given.output, "what kind of file is this to be?", "end its name in .json or .csv");
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
    writeFileAtomically(given.output, csv ? layerTableText(profile) : modelFileText(profile, profile.origin(options)),
                        given.force);
    for (const std::string& note : profile.notes)
        printDiagnostics({{Severity::Note, "profile", note, {}}});
    if (options.microbatches == 1)
        printDiagnostics({{Severity::Note, "--microbatches", "the whole batch was measured as one microbatch",
                           "give as many as the design's to measure one of them"}});
    if (given.json)
        printJson(toJson(profile, given.output));
    else
        print(profile, given.output);
    return exitSuccess;
}

} // namespace

void addProfileCommand(CommandLine& line, int& exitCode)
{
    Command command = line.add("profile", "Measures the layers of your PyTorch module and writes a model of them");
    const auto options = std::make_shared<ProfileCommandOptions>(command);
    command.onCall([options, &exitCode] { exitCode = runProfile(*options); });
}

} // namespace pipewright::app
