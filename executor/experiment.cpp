// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/experiment.h"

#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/schedule/families/family.h"
#include "core/schedule/weightplan.h"
#include "core/workload/transformer.h"
#include "executor/clock.h"
#include "executor/host/hostbackend.h"
#include "executor/run.h"
#include "executor/runtime.h"
#include "executor/training/counterrandom.h"
#include "executor/training/sequential.h"
#include "executor/trainingwork.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright {

namespace {

constexpr int heldBackMicrobatches = 16;

/// The text, and the last tenth of it, which is never trained on.
struct SplitText {
    TextData training, heldBack;
};

SplitText loadText(const ExperimentOptions& options, const ModelShape& shape, std::uint64_t seed)
{
    const TextData whole = TextData::fromPath(options.data, shape, seed);
    const std::size_t cut = whole.text().size() - whole.text().size() / 10;
    return {TextData::fromText(whole.text().substr(0, cut), whole.source(), shape, seed),
            TextData::fromText(whole.text().substr(cut), whole.source() + ", held back", shape, 1)};
}

/// Row n of the data is one window of the text.
TrainingWork::Feed rowsOf(const TextData& data, const ModelShape& shape, std::uint64_t seed, int microbatches)
{
    const CounterRandom random(seed, "experiment rows");
    const auto rows = static_cast<std::size_t>(shape.microbatchSize), length = static_cast<std::size_t>(shape.sequence);
    return [&data, random, rows, length, microbatches](int step, int microbatch, std::span<std::int32_t> tokens,
                                                       std::span<std::int32_t> targets) {
        const std::string& text = data.text();
        const std::size_t first = (static_cast<std::size_t>(step) * static_cast<std::size_t>(microbatches)
                                   + static_cast<std::size_t>(microbatch))
                                  * rows;
        for (std::size_t row = 0; row < rows; ++row) {
            const std::size_t begin = random.bits(first + row) % (text.size() - length);
            for (std::size_t i = 0; i < length; ++i) {
                tokens[row * length + i] = static_cast<unsigned char>(text[begin + i]);
                targets[row * length + i] = static_cast<unsigned char>(text[begin + i + 1]);
            }
        }
    };
}

OptimizerSettings settingsOf(const Design& design, const ExperimentOptions& options)
{
    OptimizerSettings settings;
    settings.kind = design.workload->optimizer;
    if (hasUpdates(design.schedule))
        settings.rule = design.schedule.weights.optimizer;
    if (options.learningRate)
        settings.sgd.learningRate = settings.adamW.learningRate = static_cast<float>(*options.learningRate);
    if (options.momentum) {
        settings.sgd.momentum = static_cast<float>(*options.momentum);
        settings.adamW.beta1 = static_cast<float>(*options.momentum);
    }
    return settings;
}

Design withOptimizer(Design design, std::optional<UpdateRule> rule)
{
    if (!rule || !design.workload)
        return design;
    if (hasUpdates(design.schedule)) {
        design.schedule.weights.optimizer = *rule;
        return design;
    }
    if (*rule != UpdateRule::SgdMomentum && *rule != UpdateRule::AdamW)
        throw Error("--optimizer", std::string(nameOf(*rule)) + " trains only schedules with update blocks",
                    "use sgd or adamw, or a family that updates amid the run");
    const Optimizer kind = *rule == UpdateRule::AdamW ? Optimizer::AdamW : Optimizer::SgdMomentum;
    design.workload = makeWorkload(design.workload->shape, kind, design.workload->source);
    return design;
}

/// The mean loss of each update's microbatches.
std::vector<double> perUpdate(const Program& program, const std::vector<double>& losses)
{
    std::vector<double> sums;
    std::vector<int> counts;
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (task.kind != TaskKind::Compute || task.op != Op::F || task.stage + 1 != program.stages)
            continue;
        const auto update = static_cast<std::size_t>(program.weights[t].update);
        if (sums.size() <= update) {
            sums.resize(update + 1, 0);
            counts.resize(update + 1, 0);
        }
        sums[update] += losses[static_cast<std::size_t>(task.microbatch)];
        ++counts[update];
    }
    for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] /= std::max(1, counts[i]);
    return sums;
}

double heldBackLoss(const Design& design, const OptimizerSettings& settings, const TextData& data,
                    const std::vector<std::vector<float>>& parameters)
{
    SequentialTrainer trainer(*design.workload, design.layersPerStage, heldBackMicrobatches, settings, data, 1);
    trainer.startAt(0, parameters);
    return trainer.step(
        AccumulationOrder::ascending(trainer.stages(), heldBackMicrobatches)); // the loss before its update
}

} // namespace

Design withUpdates(const Design& design, int updates)
{
    const Schedule& old = design.schedule;
    const Family* family = findFamily(old.family);
    if (family == nullptr || !family->updates)
        return design;
    Diagnostics diagnostics;
    const OrderGraph graph(old, {}, false, diagnostics);
    const WeightPlan plan = planWeights(old, graph, false, diagnostics);
    if (hasErrors(diagnostics))
        throw Error(std::move(diagnostics));
    const int batch = static_cast<int>(plan.batches.front().front().size());
    for (int layout = 0; layout < workerLayoutCount; ++layout) {
        FamilyParameters p;
        p.devices = old.devices();
        p.microbatches = old.microbatches;
        p.layout = static_cast<WorkerLayout>(layout);
        p.optimizer = old.weights.optimizer;
        p.weights = old.weights;
        p.weights.rule = WeightRule::Synchronous;
        p.weights.optimizer = WeightPolicy{}.optimizer;
        if (family->dataParallel)
            p.workers = batch;
        else if (layout > 0)
            break;
        if (family->accumulates)
            p.accumulate = batch;
        if (hasErrors(family->check(p)) || makeSchedule(family->name, p).order != old.order)
            continue;
        p.microbatches = batch * updates;
        Design longer = design;
        longer.schedule = makeSchedule(family->name, p);
        longer.schedule.pins.clear(); // nothing is gained by waiting here
        longer.costs.microbatches.clear();
        return longer;
    }
    return design;
}

Design sequentialReference(const Design& design)
{
    if (!design.workload)
        throw Error("workload", "the design has costs but no model, so there is nothing to train",
                    "make the design from a model");
    const Program program = compile(design.schedule, design.costs, design.dataflow);
    Design reference = design;
    reference.name = "sequential";
    FamilyParameters p;
    p.devices = 1;
    p.accumulate = microbatchesPerUpdate(program);
    p.microbatches = *p.accumulate;
    p.optimizer = program.versioned()                              ? design.schedule.weights.optimizer
                  : design.workload->optimizer == Optimizer::AdamW ? UpdateRule::AdamW
                                                                   : UpdateRule::SgdMomentum;
    reference.schedule = makeSchedule("async-1f1b", p);
    reference.layersPerStage = {static_cast<int>(design.workload->layers.size())};
    reference.costs = uniformCosts({}, 1, 1);
    reference.cluster = {};
    reference.cluster.devices.resize(1);
    reference.dataflow = {};
    return reference;
}

ExperimentRun runExperiment(const Design& given, std::uint64_t seed, const ExperimentOptions& options)
{
    const Design design = trainableDesign(withUpdates(withOptimizer(given, options.optimizer), options.updates));
    const Prediction prediction = predict(design);
    const Program& program = prediction.program;
    const ModelShape& shape = design.workload->shape;
    const SplitText text = loadText(options, shape, seed);
    const OptimizerSettings settings = settingsOf(design, options);
    const int batch = microbatchesPerUpdate(program), perStep = program.microbatches / batch;

    ExperimentRun result;
    result.name = given.name;
    result.rule = program.versioned() ? nameOf(program.weightPolicy.rule) : "flush";
    result.optimizer = nameOf(settings.updateRule());
    result.seed = seed;
    result.devices = static_cast<int>(program.devices.size());
    result.stages = program.stages;
    result.microbatchesPerUpdate = batch;
    result.tokensPerUpdate = shape.tokens() * batch;
    result.weights = weightReport(program);
    for (const Program::Device& device : program.devices)
        result.predictedPeakBytes.push_back(device.peakBytes);
    if (prediction.metrics.makespan > 0)
        result.predictedUpdatesPerSecond = 1e9 * perStep / static_cast<double>(prediction.metrics.makespan);

    TrainingWork work(*design.workload, design.layersPerStage, program.microbatches, settings, text.training, seed,
                      batch);
    work.setFeed(rowsOf(text.training, shape, seed, program.microbatches));
    int step = 0;
    if (options.progress)
        work.setListener(
            [&](int microbatch, double loss) { options.progress(step * perStep + microbatch / batch, loss); });
    const auto backend = createHostBackend(result.devices);
    RuntimeOptions runtimeOptions;
    runtimeOptions.cancel = options.cancel;
    Runtime runtime(program, *backend, work, nullptr, runtimeOptions);
    const Nanoseconds start = steadyNow();
    for (; static_cast<int>(result.losses.size()) < options.updates; ++step) {
        const StepOutcome outcome = runtime.runStep(step);
        if (outcome.cancelled)
            throw Error(given.name, "the experiment was cancelled");
        if (program.versioned()) {
            const std::vector<double> losses = perUpdate(program, work.microbatchLosses());
            result.losses.insert(result.losses.end(), losses.begin(), losses.end());
            result.readsAgree = result.readsAgree && work.versions().firstDifference() == none;
        } else {
            result.losses.push_back(outcome.loss);
        }
    }
    const double seconds = static_cast<double>(steadyNow() - start) / 1e9;
    result.updatesPerSecond = seconds > 0 ? static_cast<double>(result.losses.size()) / seconds : 0;
    result.peakBytes = runtime.peakBytes();
    const std::size_t last = std::max<std::size_t>(1, result.losses.size() / 10);
    result.finalLoss =
        std::accumulate(result.losses.end() - static_cast<std::ptrdiff_t>(last), result.losses.end(), 0.0)
        / static_cast<double>(last);
    for (int stage = 0; stage < work.stages(); ++stage)
        result.parameters.emplace_back(work.parameters(stage).begin(), work.parameters(stage).end());
    result.heldBackLoss = heldBackLoss(design, settings, text.heldBack, result.parameters);
    return result;
}

} // namespace pipewright
