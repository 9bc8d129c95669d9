// SPDX-License-Identifier: GPL-3.0-or-later
// `experiment`: trains several designs on the same data from the same weights and compares the results; or, with --toy,
// computes a small model's weights update by update in double precision.
#include "app/cancel.h"
#include "app/command.h"
#include "app/defaultdata.h"
#include "app/progress.h"
#include "app/table.h"
#include "app/terminal.h"

#include "core/base/formattedtext.h"
#include "core/base/outputfile.h"
#include "core/base/textfile.h"
#include "core/predict/stability.h"
#include "core/predict/stepcosts.h"
#include "core/predict/toytraining.h"
#include "core/program/compile.h"
#include "executor/experiment/experimentreport.h"
#include "executor/runtime/steadyclock.h"
#include "executor/torch/torchexperiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace pipewright::app {

namespace {

struct Options {
    explicit Options(CLI::App& command) : command(command)
    {
        command.add_option("files", files, "designs to compare")->required()->type_name("FILE");
        command.add_option("--steps", steps, "updates (100)")->type_name("N");
        command.add_option("--seeds", seeds, "seeds 1 to K (1)")->type_name("K");
        command.add_option("--data", data, "text to train on, or a folder of files to classify (the program's own)")
            ->type_name("PATH");
        command.add_option("--backend", backend, "host: the built-in models (host)")->type_name("host|torch");
        command
            .add_option("--module", module,
                        "torch: your module, FILE.py:build; its file has data, loss and optimizer, and held_back(), "
                        "validation data, if any")
            ->type_name("FILE.py:build");
        command.add_option("--python", python, "torch: the interpreter (python3)")->type_name("PATH");
        rate = command.add_option("--learning-rate", learningRate, "of all designs' optimizers (toy: 0.125)")
                   ->type_name("X");
        momentumOption =
            command.add_option("--momentum", momentum, "of SGD, and Adam's first one (toy: 0.5)")->type_name("U");
        command.add_option("--optimizer", optimizer, "in place of the designs' own")
            ->type_name("sgd|adam|adamw|rmsprop");
        command
            .add_option("-o,--output", outputs,
                        "loss curves: a column per run (.csv) or a picture (.svg); may be repeated")
            ->type_name("FILE");
        command
            .add_option(
                "--curves", curves,
                "what a picture shows: loss, or of a module that classifies accuracy, the share of right answers "
                "(loss)")
            ->type_name("loss|accuracy");
        command.add_option("--table", table, "a row per design, means over the seeds and their spread")
            ->type_name("CSV");
        command.add_option("--database", database, "add the results to a SQLite file, run by run")->type_name("DB");
        command.add_flag(
            "--costs", costs,
            "no training: what each design takes per training step, as in the table of Cyclic Data Parallelism");
        command.add_option("--toy", toy, "a number per stage instead: chain (y = w...w x), quadratic (w^2/2) or slope")
            ->type_name("MODEL");
        command.add_option("--inputs", inputs, "toy chain: x of microbatch 0, 1, … (1)")
            ->delimiter(',')
            ->type_name("X,X,…");
        command.add_option("--start", start, "toy: of every weight (0.5)")->type_name("W");
        command.add_option("--target", target, "toy chain: what y should be (1)")->type_name("Y");
        command.add_option("--dampening", dampening, "toy SGD: v = u v + (1 - dampening) g (0)")->type_name("TAU");
        command.add_option("--beta2", beta2, "toy Adam (0.999)")->type_name("B");
        command.add_option("--epsilon", epsilon, "toy Adam, RMSProp (1e-8)")->type_name("E");
        command.add_flag("--json", json, "print one JSON object");
        command.add_flag("--force", force, "replace output files that exist");
        command.add_option("--progress", progress, "auto, bar, json (lines on standard error) or none")
            ->type_name("STYLE");
    }
    CLI::App& command;
    std::vector<std::string> files, outputs;
    int steps = 100, seeds = 1;
    std::string backend = "host", module, python = "python3";
    std::string curves = "loss", data, optimizer, table, database, toy, progress = "auto";
    double learningRate = 0, momentum = 0, start = 0.5, target = 1, dampening = 0, beta2 = 0.999, epsilon = 1e-8;
    std::vector<double> inputs{1};
    CLI::Option *rate, *momentumOption;
    bool json = false, force = false, costs = false;
};

std::optional<Optimizer> optimizerOf(const Options& given)
{
    if (given.optimizer.empty())
        return std::nullopt;
    const auto rule = optimizerNamed(given.optimizer);
    if (!rule) {
        std::vector<std::string_view> known;
        for (const OptimizerFacts& facts : optimizers)
            known.push_back(facts.name);
        throw Error("--optimizer", "\"" + given.optimizer + "\" is not known",
                    fmt::format("use one of {}", joined(known, ", ")));
    }
    return rule;
}

ToyModel toyModel(const Options& given)
{
    ToyModel model;
    model.inputs = given.inputs;
    model.start = given.start;
    model.target = given.target;
    if (given.toy == "quadratic")
        model.kind = ToyModel::Kind::Quadratic;
    else if (given.toy == "slope")
        model.kind = ToyModel::Kind::Slope;
    else if (given.toy != "chain")
        throw Error("--toy", "\"" + given.toy + "\" is no model", "use chain, quadratic or slope");
    if (model.inputs.empty())
        throw Error("--inputs", "no input", "give at least one number");
    return model;
}

void refuseAll(const Options& given, std::initializer_list<const char*> options, const char* why, const char* remedy)
{
    for (const char* option : options)
        if (given.command.count(option) > 0)
            throw Error(option, why, remedy);
}

/// Refuses every option that is not on the list, so also one that is added without a word about it here.
void allowOnly(const Options& given, std::initializer_list<std::string_view> known, const char* why, const char* remedy)
{
    for (const std::string& option : givenOptions(given.command))
        if (std::find(known.begin(), known.end(), option) == known.end())
            throw Error(option, why, remedy);
}

/// Runs each design once, as it is.
void runToys(const Options& given)
{
    allowOnly(given,
              {"files", "--toy", "--inputs", "--start", "--target", "--optimizer", "--learning-rate", "--momentum",
               "--dampening", "--beta2", "--epsilon", "--json"},
              "has no meaning for a toy, which is computed once and printed",
              "leave it out, or train the designs themselves without --toy");
    const ToyModel model = toyModel(given);
    ToyOptimizer settings;
    if (given.rate->count() > 0)
        settings.learningRate = given.learningRate;
    if (given.momentumOption->count() > 0)
        settings.momentum = settings.beta1 = given.momentum;
    settings.dampening = given.dampening;
    settings.beta2 = given.beta2;
    settings.epsilon = given.epsilon;
    Json object{{"toy", given.toy}, {"runs", Json::array()}};
    for (const std::string& file : given.files) {
        LocatedDesign located = readLocatedDesign(file);
        if (const auto rule = optimizerOf(given))
            located.design.schedule.weightPolicy.optimizer = *rule;
        const Program program = predictOrFind(located).program;
        const auto run = trainToy<double>(program, program.weightPolicy.optimizer, settings, model);
        Json entry{{"design", file},
                   {"rule", nameOf(program.weightPolicy.rule)},
                   {"losses", run.losses},
                   {"weights", run.weights}};
        const double momentum = program.weightPolicy.optimizer == Optimizer::SgdMomentum ? settings.momentum : -1;
        const std::vector<StageWeights> report = weightReport(program);
        if (momentum >= 0 && momentum < 1 && settings.dampening == 0)
            for (const StageWeights& stage : report)
                entry["largest_stable_rate"].push_back(
                    largestStableRate(momentum, stage.staleness, std::min(stage.forwardSteps, stage.staleness)));
        object["runs"].push_back(entry);
        if (given.json)
            continue;
        printText("{}\n", file);
        TextTable table({"stage", "weight after each update"});
        for (std::size_t stage = 0; stage < run.weights.size(); ++stage) {
            std::string text;
            for (const double weight : run.weights[stage])
                text += fmt::format("{:.12g} ", weight);
            table.addRow({std::to_string(stage), text});
        }
        table.print();
    }
    if (given.json)
        printJson(object);
}

/// Prints the predicted time of a training step for each design, by its costs.
void showCosts(const Options& given)
{
    allowOnly(given, {"files", "--costs", "--json"}, "is about training, and --costs only predicts", "leave it out");
    Json object{{"costs", Json::array()}};
    TextTable table({"design", "devices", "activations, fullest device", "all devices", "parameters, fullest device",
                     "gradients moved", "weights moved", "boundaries moved", "transfers in a row"});
    for (const std::string& file : given.files) {
        const LocatedDesign located = readLocatedDesign(file);
        const Prediction prediction = predictOrFind(located);
        const StepCosts costs = stepCosts(prediction.program, prediction.timeline);
        object["costs"].push_back({{"design", file},
                                   {"name", located.design.name},
                                   {"devices", costs.devices},
                                   {"updates", costs.updates},
                                   {"activation_bytes", costs.activations},
                                   {"all_activation_bytes", costs.allActivations},
                                   {"parameter_bytes", costs.parameters},
                                   {"gradient_traffic_bytes", costs.gradientTraffic},
                                   {"weight_traffic_bytes", costs.weightTraffic},
                                   {"boundary_traffic_bytes", costs.boundaryTraffic},
                                   {"transfers_in_a_row", costs.transfersInRow}});
        table.addRow({located.design.name, std::to_string(costs.devices), formatSize(costs.activations),
                      formatSize(costs.allActivations), formatSize(costs.parameters), formatSize(costs.gradientTraffic),
                      formatSize(costs.weightTraffic), formatSize(costs.boundaryTraffic),
                      std::to_string(costs.transfersInRow)});
    }
    if (given.json) {
        printJson(object);
        return;
    }
    printText("predicted, per update of every stage:\n\n");
    table.print();
}

std::string spread(const Spread& value, int seeds)
{
    if (!std::isfinite(value.mean))
        return "diverged";
    return seeds > 1 ? fmt::format("{:.4f} ({:.4f})", value.mean, value.range) : fmt::format("{:.4f}", value.mean);
}

/// A row per design: means over the seeds, with their range in brackets.
void printTable(const std::vector<ExperimentRun>& runs)
{
    TextTable table({"design", "weights", "optimizer", "final loss", "validation loss", "accuracy", "sequential bits",
                     "updates/s", "peak memory", "staleness", "copies"});
    for (const ExperimentSummary& line : summarise(runs))
        table.addRow({line.name, line.rule, line.optimizer, spread(line.finalLoss, line.seeds),
                      line.heldBack ? spread(line.heldBackLoss, line.seeds) : "–",
                      std::isnan(line.heldBackAccuracy.mean) ? "–" : spread(line.heldBackAccuracy, line.seeds),
                      !line.bitEqual   ? ""
                      : *line.bitEqual ? "yes"
                                       : "no",
                      fmt::format("{:.3g}", line.updatesPerSecond.mean),
                      line.peakBytes > 0 ? formatSize(line.peakBytes) : "not recorded", joined(line.staleness, " "),
                      joined(line.copies, " ")});
    table.print();
}

void requireNew(const Options& given, const std::string& path)
{
    if (!path.empty())
        checkOutput(path, given.force);
}

void checkOutputs(const Options& given)
{
    for (const std::string& path : given.outputs) {
        if (extensionOf(path) != "csv" && extensionOf(path) != "svg")
            throw Error(path, "curves are written as .csv or .svg", "end the name in one of the two");
        requireNew(given, path);
    }
    requireNew(given, given.table);
}

void writeOutputs(const Options& given, const Experiment& experiment)
{
    if (experiment.runs.empty())
        return;
    const bool known = std::any_of(experiment.runs.begin(), experiment.runs.end(),
                                   [](const ExperimentRun& run) { return !run.accuracies.empty(); });
    const bool accuracy = given.curves == "accuracy" && known;
    if (given.curves == "accuracy" && !known)
        printDiagnostics({{Severity::Warning, "--curves", "the module does not classify, so its loss is drawn",
                           "a classifier's output has a row of scores for each target, a number"}});
    const auto picture = [&] {
        return lossPicture(fmt::format("{} updates, {}", given.steps, experiment.runs.front().optimizer),
                           accuracy ? accuracyCurves(experiment.runs) : lossCurves(experiment.runs), lightTheme, 0,
                           accuracy ? "accuracy" : "loss");
    };
    for (const std::string& path : given.outputs)
        writeFileAtomically(path, extensionOf(path) == "csv" ? curvesCsv(experiment.runs) : picture(), given.force);
    if (!given.table.empty())
        writeFileAtomically(given.table, summaryCsv(summarise(experiment.runs)), given.force);
}

void show(ProgressPrinter& printer, const ExperimentProgress& now, Nanoseconds start)
{
    const double fraction = now.fraction();
    const auto left = static_cast<Nanoseconds>(static_cast<double>(steadyNow() - start) * (1 - fraction) / fraction);
    printer.show(
        fraction,
        [&] {
            return fmt::format("run {} of {}, {} seed {}: update {} of {}  loss {:.4f}  {} left", now.run + 1, now.runs,
                               now.design, now.seed, now.update + 1, now.updates, now.loss, formatDuration(left));
        },
        [&] {
            return Json{{"progress", fraction},   {"run", now.run},   {"runs", now.runs},
                        {"design", now.design},   {"seed", now.seed}, {"update", now.update},
                        {"updates", now.updates}, {"loss", now.loss}, {"eta_ns", left}}
                .dump();
        });
}

/// The run as JSON, without the losses.
void showFinished(ProgressPrinter& printer, const ExperimentRun& run)
{
    if (!printer.writesJson())
        return;
    Json object = toJson(run);
    object.erase("loss");
    printer.writeLine(Json{{"finished", object}}.dump());
}

/// Runs the experiment that `options` describe. If the database cannot be written any more, this is reported at once
/// and `keptAll` becomes false, but the experiment continues.
Experiment runWithProgress(const Options& given, const std::vector<Design>& designs, ExperimentOptions options,
                           bool& keptAll)
{
    std::unique_ptr<ExperimentStore> database;
    if (!given.database.empty())
        database = std::make_unique<ExperimentStore>(given.database);
    ProgressPrinter printer(given.progress);
    const Nanoseconds start = steadyNow();
    options.cancel = cancelOnSignals();
    options.abandon = [](const Diagnostics& why) {
        printDiagnostics(why);
        endProcess(exitBadInput);
    };
    options.progress = [&](const ExperimentProgress& now) { show(printer, now, start); };
    options.finished = [&](const ExperimentRun& run) {
        try {
            if (database)
                database->add(recordOf(run));
        } catch (const Error& error) {
            database.reset();
            keptAll = false;
            Diagnostics told = error.diagnostics();
            told.front().what += "; the experiment goes on without it: it has the runs before this one";
            printer.interrupt([&] { printDiagnostics(told); });
        }
        showFinished(printer, run);
    };
    if (given.backend == "host")
        return runExperiment(designs, options);
    return runTorchExperiment(designs, {options.updates, options.seeds, given.module, given.python, options.cancel,
                                        options.progress, options.finished, [&](const Diagnostics& now) {
                                            printer.interrupt([&] { printDiagnostics(now); });
                                        }});
}

/// For runs through PyTorch: the memory of weight copies, and the errors of predicted weights.
void printWeightErrors(const std::vector<ExperimentRun>& runs)
{
    TextTable table({"design", "seed", "weights kept, by stage", "predicted weights off by (RMSE)", "unpredicted"});
    const auto numbers = [](const std::vector<double>& values) {
        std::vector<std::string> parts;
        for (const double value : values)
            parts.push_back(std::isfinite(value) ? fmt::format("{:.2e}", value) : "–");
        return joined(parts, " ");
    };
    for (const ExperimentRun& run : runs) {
        std::vector<std::string> bytes;
        for (const Bytes each : run.weightBytes)
            bytes.push_back(formatSize(each));
        table.addRow({run.name, std::to_string(run.seed), joined(bytes, ", "), numbers(run.predictionErrors),
                      numbers(run.staleErrors)});
    }
    printText("\n");
    table.print();
}

void checkBackend(const Options& given)
{
    if (given.backend != "host" && given.backend != "torch")
        throw Error("--backend", "\"" + given.backend + "\" runs no experiments", "use host or torch");
    if (given.curves != "loss" && given.curves != "accuracy")
        throw Error("--curves", "\"" + given.curves + "\" is not drawn", "use loss or accuracy");
    if (given.command.count("--curves") > 0
        && std::all_of(given.outputs.begin(), given.outputs.end(),
                       [](const std::string& path) { return extensionOf(path) == "csv"; }))
        throw Error("--curves", "says what a picture shows, and none is written", "add -o FILE.svg");
    if (given.curves == "accuracy" && given.backend == "host")
        throw Error("--curves",
                    "runs of built-in models know their accuracy at the end only, on validation data, not by update",
                    "leave it out, or train a module of yours with --backend torch");
    if (given.backend == "host") {
        refuseAll(given, {"--module", "--python"}, "is of experiments through PyTorch", "add --backend torch");
        return;
    }
    if (given.module.empty())
        throw Error("--module", "is missing", "--backend torch trains your own module: FILE.py:build");
    refuseAll(given, {"--data", "--optimizer", "--learning-rate", "--momentum"}, "is in the module's file",
              "change it there");
}

int runTraining(const Options& given)
{
    checkBackend(given);
    refuseAll(given, {"--inputs", "--start", "--target", "--dampening", "--beta2", "--epsilon"}, "is of toys only",
              "add --toy MODEL, or leave it out");
    allowOnly(given,
              {"files", "--steps", "--seeds", "--data", "--backend", "--module", "--python", "--optimizer",
               "--learning-rate", "--momentum", "--output", "--curves", "--table", "--database", "--force",
               "--progress", "--json"},
              "has no meaning for training", "leave it out");
    ExperimentOptions options;
    options.updates = given.steps;
    options.seeds = given.seeds;
    options.optimizer = optimizerOf(given);
    if (given.rate->count() > 0)
        options.learningRate = given.learningRate;
    if (given.momentumOption->count() > 0)
        options.momentum = given.momentum;
    if (given.steps < 1 || given.seeds < 1)
        throw Error(given.steps < 1 ? "--steps" : "--seeds", "less than 1", "use 1 or more");
    checkOutputs(given);

    std::vector<Design> designs;
    for (const std::string& file : given.files) {
        const LocatedDesign located = readLocatedDesign(file);
        predictOrFind(located);
        designs.push_back(located.design);
    }
    if (given.backend == "torch")
        options.data = given.module;
    else
        options.data = given.data.empty() ? defaultData(designs.front()) : given.data;
    bool keptAll = true;
    const Experiment experiment = runWithProgress(given, designs, options, keptAll);
    if (!experiment.runs.empty())
        printDiagnostics(whatIsUnfair(experiment.runs));
    if (given.json) {
        Json object{{"steps", given.steps},
                    {"seeds", given.seeds},
                    {"data", options.data},
                    {"cancelled", experiment.cancelled},
                    {"runs", Json::array()}};
        for (const ExperimentRun& run : experiment.runs)
            object["runs"].push_back(toJson(run));
        printJson(object);
    } else if (!experiment.runs.empty()) {
        printTable(experiment.runs);
        if (given.backend == "torch")
            printWeightErrors(experiment.runs);
    }
    writeOutputs(given, experiment); // last: if that fails, the numbers are already on standard output
    if (!experiment.cancelled)
        return keptAll ? exitSuccess : exitBadInput;
    printDiagnostics({{Severity::Error, "experiment",
                       fmt::format("cancelled: {} of {} runs are finished{}, the current one is dropped",
                                   experiment.runs.size(), experiment.planned, keptAll ? " and kept" : ""),
                       "run it again for the rest"}});
    return keptAll ? exitFinding : exitBadInput;
}

} // namespace

void addExperimentCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command =
        *program.add_subcommand("experiment", "Trains designs on the same data and compares their weight policies");
    const auto options = std::make_shared<Options>(command);
    command.callback([options, &exitCode] {
        exitCode = exitSuccess;
        if (options->costs)
            showCosts(*options);
        else if (options->toy.empty())
            exitCode = runTraining(*options);
        else
            runToys(*options);
    });
}

} // namespace pipewright::app
