// SPDX-License-Identifier: GPL-3.0-or-later
// `experiment`: trains several designs on the same data from the same weights and compares what comes of it; or,
// with --toy, works a small model's weights through by hand, update by update, in double precision.
#include "app/command.h"
#include "app/progress.h"
#include "app/table.h"

#include "core/formats/designfile.h"
#include "core/predict/stability.h"
#include "core/predict/toytraining.h"
#include "core/program/compile.h"
#include "executor/experiment.h"
#include "traces/experimentstore.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>

namespace pipewright::app {

namespace {

struct Options {
    explicit Options(CLI::App& command)
    {
        command.add_option("files", files, "designs to compare")->required()->type_name("FILE");
        command.add_option("--steps", steps, "updates (100)")->type_name("N");
        command.add_option("--seeds", seeds, "seeds 1 to K (1)")->type_name("K");
        command.add_option("--data", data, "text to train on (the program's own sources)")->type_name("PATH");
        rate = command.add_option("--learning-rate", learningRate, "of all designs' optimizers (toy: 0.125)")
                   ->type_name("X");
        momentumOption =
            command.add_option("--momentum", momentum, "of SGD, and Adam's first one (toy: 0.5)")->type_name("U");
        command.add_option("--optimizer", optimizer, "in place of the designs' own")
            ->type_name("sgd|adam|adamw|rmsprop");
        command.add_flag("--no-reference", noReference, "leave out the sequential run");
        command.add_option("-o,--output", output, "loss curves as CSV, a column per run")->type_name("CSV");
        command.add_option("--database", database, "add the results to a SQLite file")->type_name("DB");
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
        command.add_flag("--force", force, "replace the CSV file if it exists");
        command.add_option("--progress", progress, "auto, bar, json (lines on standard error) or none")
            ->type_name("STYLE");
    }
    std::vector<std::string> files;
    int steps = 100, seeds = 1;
    std::string data, optimizer, output, database, toy, progress = "auto";
    double learningRate = 0, momentum = 0, start = 0.5, target = 1, dampening = 0, beta2 = 0.999, epsilon = 1e-8;
    std::vector<double> inputs{1};
    CLI::Option *rate = nullptr, *momentumOption = nullptr;
    bool noReference = false, json = false, force = false;
};

std::optional<UpdateRule> optimizerOf(const Options& given)
{
    if (given.optimizer.empty())
        return std::nullopt;
    const auto rule = updateRuleNamed(given.optimizer);
    if (!rule)
        throw Error("--optimizer", "\"" + given.optimizer + "\" is not known", "use one of sgd, adam, adamw, rmsprop");
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

/// The designs as they are, one run through each.
void runToys(const Options& given)
{
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
            located.design.schedule.weights.optimizer = *rule;
        const Program program = predictOrFind(located).program;
        const auto run = trainToy<double>(program, program.weightPolicy.optimizer, settings, model);
        Json entry{{"design", file},
                   {"rule", nameOf(program.weightPolicy.rule)},
                   {"losses", run.losses},
                   {"weights", run.weights}};
        const double momentum = program.weightPolicy.optimizer == UpdateRule::SgdMomentum ? settings.momentum : -1;
        const std::vector<StageWeights> report = weightReport(program);
        if (momentum >= 0 && momentum < 1 && settings.dampening == 0)
            for (const StageWeights& stage : report)
                entry["largest_stable_rate"].push_back(
                    largestStableRate(momentum, stage.staleness, std::min(stage.forwardSteps, stage.staleness)));
        object["runs"].push_back(entry);
        if (given.json)
            continue;
        fmt::print("{}\n", file);
        Table table({"stage", "weight after each update"});
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

Json toJson(const ExperimentRun& run)
{
    Json stages = Json::array();
    for (const StageWeights& stage : run.weights)
        stages.push_back({{"stage", stage.stage},
                          {"staleness", stage.staleness},
                          {"forward_steps", stage.forwardSteps},
                          {"backward_steps", stage.backwardSteps},
                          {"versions", stage.versions},
                          {"copies", stage.copies}});
    return {{"design", run.name},
            {"rule", run.rule},
            {"optimizer", run.optimizer},
            {"seed", run.seed},
            {"microbatches_per_update", run.microbatchesPerUpdate},
            {"tokens_per_update", run.tokensPerUpdate},
            {"loss", run.losses},
            {"final_loss", run.finalLoss},
            {"held_back_loss", run.heldBackLoss},
            {"perplexity", std::exp(run.heldBackLoss)},
            {"updates_per_second", run.updatesPerSecond},
            {"predicted_updates_per_second", run.predictedUpdatesPerSecond},
            {"peak_bytes", run.peakBytes},
            {"predicted_peak_bytes", run.predictedPeakBytes},
            {"reads_agree", run.readsAgree},
            {"weights", std::move(stages)}};
}

std::string csvOf(const std::vector<ExperimentRun>& runs)
{
    std::string text = "update";
    std::size_t rows = 0;
    for (const ExperimentRun& run : runs) {
        std::string name = run.name;
        for (char& c : name)
            c = c == '"' || c == '\n' ? ' ' : c;
        text += fmt::format(",\"{} seed {}\"", name, run.seed);
        rows = std::max(rows, run.losses.size());
    }
    for (std::size_t row = 0; row < rows; ++row) {
        text += fmt::format("\n{}", row);
        for (const ExperimentRun& run : runs)
            text += row < run.losses.size() ? fmt::format(",{:.9g}", run.losses[row]) : ",";
    }
    return text + "\n";
}

Bytes largest(const std::vector<Bytes>& bytes)
{
    return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

void store(ExperimentStore& store, const ExperimentRun& run)
{
    store.add({run.name, run.rule, run.optimizer, static_cast<std::int64_t>(run.seed), run.devices, run.stages,
               run.microbatchesPerUpdate, run.finalLoss, run.heldBackLoss, run.updatesPerSecond,
               run.predictedUpdatesPerSecond, largest(run.peakBytes), run.losses, run.weights});
}

/// A row per design: means over the seeds, and how far they spread.
void printTable(const std::vector<ExperimentRun>& runs, int seeds)
{
    Table table({"design", "weights", "optimizer", "final loss", "spread", "held back", "spread", "updates/s",
                 "peak memory", "staleness"});
    const auto group = static_cast<std::size_t>(seeds);
    for (std::size_t first = 0; first + group <= runs.size(); first += group) {
        const auto statistics = [&](double ExperimentRun::*field) {
            double sum = 0, low = INFINITY, high = -INFINITY;
            for (std::size_t i = first; i < first + group; ++i) {
                sum += runs[i].*field;
                low = std::min(low, runs[i].*field);
                high = std::max(high, runs[i].*field);
            }
            return std::pair(sum / seeds, high - low);
        };
        const ExperimentRun& run = runs[first];
        std::string staleness;
        for (const StageWeights& stage : run.weights)
            staleness += fmt::format("{}{}", staleness.empty() ? "" : " ", stage.staleness);
        const auto [loss, lossSpread] = statistics(&ExperimentRun::finalLoss);
        const auto [held, heldSpread] = statistics(&ExperimentRun::heldBackLoss);
        table.addRow({run.name, run.rule, run.optimizer, fmt::format("{:.4f}", loss), fmt::format("{:.4f}", lossSpread),
                      fmt::format("{:.4f}", held), fmt::format("{:.4f}", heldSpread),
                      fmt::format("{:.3g}", statistics(&ExperimentRun::updatesPerSecond).first),
                      formatSize(largest(run.peakBytes)), staleness});
    }
    table.print();
}

void runTraining(const Options& given)
{
    ExperimentOptions options;
    options.updates = given.steps;
    options.optimizer = optimizerOf(given);
    options.data = given.data.empty() ? std::string(PIPEWRIGHT_SOURCE_DIR) + "/core" : given.data;
    if (given.rate->count() > 0)
        options.learningRate = given.learningRate;
    if (given.momentumOption->count() > 0)
        options.momentum = given.momentum;
    if (given.steps < 1 || given.seeds < 1)
        throw Error(given.steps < 1 ? "--steps" : "--seeds", "less than 1", "use 1 or more");
    if (!given.output.empty() && !given.force && std::filesystem::exists(given.output))
        throw Error(given.output, "the file exists", "name another file, or pass --force to replace it");

    std::vector<Design> designs;
    for (const std::string& file : given.files) {
        const LocatedDesign located = readLocatedDesign(file);
        predictOrFind(located);
        designs.push_back(located.design);
    }
    if (!given.noReference)
        designs.insert(designs.begin(), sequentialReference(designs.front()));
    std::unique_ptr<ExperimentStore> database;
    if (!given.database.empty())
        database = std::make_unique<ExperimentStore>(given.database);
    std::vector<ExperimentRun> runs;
    const int total = static_cast<int>(designs.size()) * given.seeds;
    ProgressPrinter progress(given.progress, total * given.steps);
    for (const Design& design : designs)
        for (int seed = 1; seed <= given.seeds; ++seed) {
            const int before = static_cast<int>(runs.size()) * given.steps;
            options.progress = [&](int update, double loss) {
                RunProgress now;
                now.step = before + std::min(update, given.steps);
                now.fraction = static_cast<double>(now.step) / (total * given.steps);
                now.loss = loss;
                progress.show(now);
            };
            runs.push_back(runExperiment(design, static_cast<std::uint64_t>(seed), options));
            if (database)
                store(*database, runs.back());
        }
    progress.finish();
    if (!given.output.empty())
        writeFileAtomically(given.output, csvOf(runs), given.force);
    for (const ExperimentRun& run : runs)
        if (run.tokensPerUpdate != runs.front().tokensPerUpdate && run.seed == 1)
            printDiagnostics({{Severity::Warning, run.name,
                               fmt::format("its updates take {} tokens, those of {} {}", run.tokensPerUpdate,
                                           runs.front().name, runs.front().tokensPerUpdate),
                               "for a fair comparison give the designs microbatch sizes that make equal updates"}});
    if (given.json) {
        Json object{{"steps", given.steps}, {"seeds", given.seeds}, {"data", options.data}, {"runs", Json::array()}};
        for (const ExperimentRun& run : runs)
            object["runs"].push_back(toJson(run));
        printJson(object);
    } else {
        printTable(runs, given.seeds);
    }
}

} // namespace

void addExperimentCommand(CLI::App& app, int& exitCode)
{
    CLI::App* command =
        app.add_subcommand("experiment", "Trains designs on the same data and compares their weight policies");
    const auto options = std::make_shared<Options>(*command);
    command->callback([options, &exitCode] {
        options->toy.empty() ? runTraining(*options) : runToys(*options);
        exitCode = exitSuccess;
    });
}

} // namespace pipewright::app
