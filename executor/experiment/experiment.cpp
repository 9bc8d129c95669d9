// SPDX-License-Identifier: GPL-3.0-or-later
// Runs each design over the same rows of data and evaluates it at the updates that were asked for. The cost is the
// training's.
#include "executor/experiment/experiment.h"

#include "core/families/family.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/schedule/weightplan.h"
#include "executor/host/hostbackend.h"
#include "executor/run/run.h"
#include "executor/runtime/runtime.h"
#include "executor/runtime/steadyclock.h"
#include "executor/stage/counterrandom.h"
#include "executor/training/referencetrainer.h"
#include "executor/training/trainingdata.h"
#include "executor/training/trainingwork.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>

namespace pipewright {

namespace {

constexpr int heldBackMicrobatches = 16;

/// Row n of the data is chosen by the n-th random number.
TrainingWork::Feed rowsOf(const TrainingData& data, const ModelShape& shape, std::uint64_t seed, int microbatches)
{
    const CounterRandom random(seed, "experiment rows");
    const auto rows = static_cast<std::size_t>(shape.microbatchSize);
    return [&data, random, rows, microbatches](int step, int microbatch, std::span<std::int32_t> inputs,
                                               std::span<std::int32_t> targets) {
        const std::size_t first = (static_cast<std::size_t>(step) * static_cast<std::size_t>(microbatches)
                                   + static_cast<std::size_t>(microbatch))
                                  * rows;
        const std::size_t in = inputs.size() / rows, out = targets.size() / rows;
        for (std::size_t row = 0; row < rows; ++row)
            data.row(random.bits(first + row), inputs.subspan(row * in, in), targets.subspan(row * out, out));
    };
}

OptimizerSettings settingsOf(const Design& design, const ExperimentOptions& options)
{
    OptimizerSettings settings;
    settings.kind = hasUpdates(design.schedule) ? design.schedule.weightPolicy.optimizer : design.workload->optimizer;
    if (options.learningRate)
        settings.sgd.learningRate = settings.adamW.learningRate = static_cast<float>(*options.learningRate);
    if (options.momentum) {
        settings.sgd.momentum = static_cast<float>(*options.momentum);
        settings.adamW.beta1 = static_cast<float>(*options.momentum);
    }
    return settings;
}

Design withOptimizer(Design design, std::optional<Optimizer> rule)
{
    if (!rule || !design.workload)
        return design;
    if (hasUpdates(design.schedule)) {
        design.schedule.weightPolicy.optimizer = *rule;
        return design;
    }
    if (factsOf(*rule).nameInModel.empty())
        throw Error("--optimizer", std::string(nameOf(*rule)) + " trains only schedules with update blocks",
                    "use sgd or adamw, or a family that updates amid the run");
    design.workload = makeWorkload(design.workload->shape, *rule, design.workload->source);
    return design;
}

/// Per microbatch, the update to which it contributes.
std::vector<int> updateOfMicrobatch(const Program& program)
{
    std::vector<int> updates(program.microbatches, 0);
    for (TaskId t = 0; program.versioned() && t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (task.kind == TaskKind::Compute && task.op == Op::F && task.stage + 1 == program.stages())
            updates[task.microbatch()] = program.weights[t].update;
    }
    return updates;
}

/// Collects the losses of updates from those of their microbatches as they arrive, from any thread.
class UpdateLosses {
public:
    UpdateLosses(std::vector<int> updateOf, int batch) : m_updateOf(std::move(updateOf)), m_batch(batch)
    {
        const int last = m_updateOf.empty() ? 0 : *std::max_element(m_updateOf.begin(), m_updateOf.end());
        m_counts.resize(static_cast<std::size_t>(last) + 1);
        m_sums.resize(m_counts.size());
    }
    void beginStep(int firstUpdate)
    {
        m_first = firstUpdate;
        std::fill(m_counts.begin(), m_counts.end(), 0);
        std::fill(m_sums.begin(), m_sums.end(), 0.0);
    }
    /// Calls `told` when all microbatches of the update have arrived.
    template<class Told>
    void add(int microbatch, double loss, const Told& told)
    {
        const std::lock_guard lock(m_mutex);
        const std::size_t update = m_updateOf[microbatch];
        m_sums[update] += loss;
        if (++m_counts[update] == m_batch)
            told(m_first + static_cast<int>(update), m_sums[update] / m_batch);
    }
    /// Adds up in ascending order of microbatches, whatever the order of arrival.
    std::vector<double> means(const std::vector<double>& microbatchLosses) const
    {
        std::vector<double> sums(m_counts.size(), 0);
        for (std::size_t m = 0; m < microbatchLosses.size(); ++m)
            sums[m_updateOf[m]] += microbatchLosses[m];
        for (double& sum : sums)
            sum /= m_batch;
        return sums;
    }

private:
    std::mutex m_mutex;
    std::vector<int> m_updateOf, m_counts;
    std::vector<double> m_sums;
    int m_batch, m_first = 0;
};

/// The design as it is trained here: a bf16 model is widened. Throws Error where it cannot be trained.
Design preparedDesign(const Design& given, const ExperimentOptions& options)
{
    Design design = withUpdates(withOptimizer(given, options.optimizer), options.updates);
    if (design.workload && design.workload->shape.dataType == DataType::Bf16)
        design.workload = withWidened(*design.workload, true);
    return trainableDesign(design);
}

Evaluation heldBack(const Design& design, const OptimizerSettings& settings, const TrainingData& data,
                    const std::vector<std::vector<float>>& parameters)
{
    ReferenceTrainer trainer(*design.workload, design.layersPerStage, heldBackMicrobatches, settings, data, 1);
    std::vector<StageStart> start;
    for (const std::vector<float>& stage : parameters)
        start.push_back({stage});
    trainer.startAt(0, std::move(start));
    return trainer.evaluate();
}

bool sameBits(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b)
{
    std::vector<float> flat[2];
    for (const auto& stage : a)
        flat[0].insert(flat[0].end(), stage.begin(), stage.end());
    for (const auto& stage : b)
        flat[1].insert(flat[1].end(), stage.begin(), stage.end());
    return flat[0].size() == flat[1].size()
           && std::memcmp(flat[0].data(), flat[1].data(), flat[0].size() * sizeof(float)) == 0;
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
        p.optimizer = old.weightPolicy.optimizer;
        p.weights = old.weightPolicy;
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
        longer.schedule.pins.clear(); // waiting for pinned times would only cost time
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
    p.optimizer = program.versioned() ? design.schedule.weightPolicy.optimizer : design.workload->optimizer;
    reference.schedule = makeSchedule("async-1f1b", p);
    reference.layersPerStage = {static_cast<int>(design.workload->layers.size())};
    reference.costs = uniformCosts({}, 1, 1);
    reference.cluster = {};
    reference.cluster.devices.resize(1);
    reference.dataflow = {};
    return reference;
}

namespace {

/// One of the runs. It drives the runtime itself, without the recording, checks, ranks and dumps of a `run`.
ExperimentRun trainOnce(const Design& given, std::uint64_t seed, const ExperimentOptions& options)
{
    const Design design = preparedDesign(given, options);
    const Prediction prediction = predict(design);
    const Program& program = prediction.program;
    const ModelShape& shape = design.workload->shape;
    const SplitData data = loadSplitData(options.data, shape, seed, program.microbatches);
    const OptimizerSettings settings = settingsOf(design, options);
    const int batch = microbatchesPerUpdate(program), perStep = program.microbatches / batch;

    ExperimentRun result;
    result.name = given.name;
    result.rule = program.versioned() ? nameOf(program.weightPolicy.rule) : "flush";
    result.optimizer = nameOf(settings.kind);
    result.seed = seed;
    result.devices = static_cast<int>(program.devices.size());
    result.stages = program.stages();
    result.microbatchesPerUpdate = batch;
    result.rowsPerUpdate = shape.microbatchSize * batch;
    result.classifies = shape.architecture == Architecture::Classifier;
    result.weights = weightReport(program);
    for (const Program::Device& device : program.devices)
        result.predictedPeakBytes.push_back(device.peakBytes);
    if (prediction.metrics.makespan > 0)
        result.predictedUpdatesPerSecond = 1e9 * perStep / static_cast<double>(prediction.metrics.makespan);

    TrainingWork work(*design.workload, design.layersPerStage, program.microbatches, settings, *data.training, seed,
                      batch);
    work.setFeed(rowsOf(*data.training, shape, seed, program.microbatches));
    UpdateLosses losses(updateOfMicrobatch(program), batch);
    if (options.progress)
        work.setListener([&](int microbatch, double loss) {
            losses.add(microbatch, loss, [&](int update, double mean) {
                if (update < options.updates)
                    options.progress({0, 1, given.name, seed, update, options.updates, mean});
            });
        });
    const auto backend = createHostBackend(result.devices);
    Runtime runtime(program, *backend, work, nullptr, {.cancel = options.cancel, .abandon = options.abandon});
    const Nanoseconds start = steadyNow();
    for (int step = 0; static_cast<int>(result.losses.size()) < options.updates; ++step) {
        losses.beginStep(static_cast<int>(result.losses.size()));
        if (runtime.runStep(step).cancelled) {
            result.cancelled = true;
            return result;
        }
        const std::vector<double> means = losses.means(work.microbatchLosses());
        result.losses.insert(result.losses.end(), means.begin(), means.end());
        result.readsAgree = result.readsAgree && (!work.versions() || work.versions()->firstDifference() == none);
    }
    const double seconds = static_cast<double>(steadyNow() - start) / 1e9;
    result.updatesPerSecond = seconds > 0 ? static_cast<double>(result.losses.size()) / seconds : 0;
    result.peakBytes = runtime.peakBytes();
    const std::size_t last = std::max<std::size_t>(1, result.losses.size() / 10);
    result.finalLoss =
        std::accumulate(result.losses.end() - static_cast<std::ptrdiff_t>(last), result.losses.end(), 0.0)
        / static_cast<double>(last);
    result.parameters = work.values(BufferKind::Parameters);
    const Evaluation evaluation = heldBack(design, settings, *data.heldBack, result.parameters);
    result.heldBackLoss = evaluation.loss;
    result.heldBackAccuracy = evaluation.accuracy;
    return result;
}

} // namespace

Experiment runExperiment(const std::vector<Design>& given, const ExperimentOptions& options)
{
    if (given.empty())
        throw Error("designs", "there is nothing to compare", "name at least one design");
    std::vector<Design> designs{sequentialReference(withOptimizer(given.front(), options.optimizer))};
    designs.insert(designs.end(), given.begin(), given.end());
    for (const Design& design : designs) // reports faults before hours are spent
        preparedDesign(design, options);

    Experiment experiment;
    experiment.planned = static_cast<int>(designs.size()) * options.seeds;
    for (int seed = 1; seed <= options.seeds; ++seed) {
        const std::size_t reference = experiment.runs.size();
        for (std::size_t i = 0; i < designs.size(); ++i) {
            ExperimentOptions one = options;
            if (options.progress)
                one.progress = [&, run = static_cast<int>(experiment.runs.size())](ExperimentProgress progress) {
                    progress.run = run;
                    progress.runs = experiment.planned;
                    options.progress(progress);
                };
            ExperimentRun run = trainOnce(designs[i], static_cast<std::uint64_t>(seed), one);
            if (run.cancelled) {
                experiment.cancelled = true;
                return experiment;
            }
            run.design = i;
            run.reference = i == 0;
            if (i > 0)
                run.bitEqual = sameBits(run.parameters, experiment.runs[reference].parameters);
            experiment.runs.push_back(std::move(run));
            if (options.finished)
                options.finished(experiment.runs.back());
        }
    }
    return experiment;
}

} // namespace pipewright
