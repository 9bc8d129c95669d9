// SPDX-License-Identifier: GPL-3.0-or-later
// Schedules with update blocks, really trained: blocks read the versions that were compiled, threads agree with the
// logical clock to the bit, and the cyclic schedule is what its authors emulate.
#include "testmain.h"

#include <QTest>

#include "core/design/stagecosts.h"
#include "core/families/family.h"
#include "core/program/compile.h"
#include "executor/host/hostbackend.h"
#include "executor/run/run.h"
#include "executor/runtime/runtime.h"
#include "executor/stage/gptreference.h"
#include "executor/training/logicalclock.h"
#include "executor/training/textdata.h"
#include "executor/training/trainingwork.h"
#include "laggedranks.h"
#include "makers/schedules.h"
#include "sanitized.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>

#include <cstring>
#include <numeric>
#include <random>

using namespace pipewright;
using namespace pipewright::test;

namespace {

ModelShape shapeOf(int stages)
{
    ModelShape shape = smallShape(std::max(1, stages));
    shape.tiedHead = false;
    return shape;
}

TextData someText(const ModelShape& shape, std::uint64_t seed)
{
    std::string text;
    for (int i = 0; i < 20; ++i)
        text += "weights of the day before yesterday; " + std::to_string(i * i) + " ";
    return TextData::fromText(text, "test", shape, seed);
}

/// As small as can be, for many runs in which only the reads count.
ModelShape tinyShapeOf(int stages)
{
    ModelShape shape = shapeOf(stages);
    shape.hidden = shape.headSize = 4;
    shape.heads = shape.keyValueHeads = 1;
    shape.ffn = 4;
    shape.sequence = 3;
    shape.microbatchSize = 1;
    return shape;
}

/// A design of the small model: as many layers as stages, embedding and head with the ends.
Design designOf(Schedule schedule, ModelShape (*shapeFor)(int stages) = shapeOf)
{
    Costs costs = uniformCosts({}, schedule.stages(), 1);
    Design design = test::designOf(std::move(schedule), std::move(costs));
    design.workload = makeWorkload(shapeFor(design.schedule.stages()), Optimizer::SgdMomentum, "test");
    design.layersPerStage = evenPartition(*design.workload, design.schedule.stages());
    return trainableDesign(design);
}

OptimizerSettings settingsFor(Optimizer rule, float momentum = 0.9f)
{
    OptimizerSettings settings;
    settings.kind = rule;
    settings.sgd.learningRate = 0.05f;
    settings.sgd.momentum = momentum;
    return settings;
}

struct Trained {
    std::vector<float> parameters; ///< of all stages
    TaskId difference = none;
    std::int64_t reads = 0, updates = 0; ///< blocks whose read was logged; U blocks
    std::vector<double> losses;
    std::vector<Bytes> peaks;
};

Trained outcome(const TrainingWork& work)
{
    Trained result;
    for (const std::vector<float>& stage : work.values(BufferKind::Parameters))
        result.parameters.insert(result.parameters.end(), stage.begin(), stage.end());
    result.difference = work.versions()->firstDifference();
    for (const WeightReading& reading : work.versions()->readings())
        result.reads += reading.version >= 0;
    result.losses = work.microbatchLosses();
    return result;
}

Trained train(const Design& design, const Program& program, const OptimizerSettings& optimizer, bool threads,
              int steps = 1)
{
    const TextData data = someText(design.workload->shape, 3);
    TrainingWork work(*design.workload, design.layersPerStage, program.microbatches, optimizer, data, 5,
                      microbatchesPerUpdate(program));
    if (!threads) {
        LogicalClock clock(program, work);
        for (int step = 0; step < steps; ++step)
            clock.runStep(step);
        Trained result = outcome(work);
        for (const Task& task : program.tasks)
            result.updates += task.kind == TaskKind::Update;
        return result;
    }
    const auto backend = createHostBackend(static_cast<int>(program.devices.size()));
    Runtime runtime(program, *backend, work, nullptr, {.checkMemory = true});
    for (int step = 0; step < steps; ++step)
        runtime.runStep(step);
    Trained result = outcome(work);
    result.peaks = runtime.peakBytes();
    return result;
}

bool sameBits(const std::vector<float>& a, const std::vector<float>& b)
{
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// What a run of N workers measured, in activations of one stage and one microbatch: per time step, while its passes
/// run, and per device. A pass takes a millisecond, and an activation is all the memory there is.
std::vector<std::vector<Bytes>> measuredActivations(std::string_view family, WorkerLayout layout, int n, int steps)
{
    const Bytes unit = 4096;
    FamilyParameters p;
    p.layout = layout;
    p.workers = p.devices = n;
    p.microbatches = n * steps;
    const int share = layout == WorkerLayout::Workers ? n : 1; // times are of a device's worth of layers
    p.forward = 1'000'000 * share;
    p.inputGrad = p.weightGrad = 500'000 * share;
    Design design;
    design.name = "memory over time";
    design.schedule = makeSchedule(family, p);
    design.costs = uniformCosts({}, n, 1);
    for (StageCosts& stage : design.costs.stages) {
        stage = {};
        stage.forward = stage.backward = 1'000'000;
        stage.inputGrad = stage.weightGrad = 500'000;
        stage.savedUntilInputGrad = unit;
    }
    const QTemporaryDir folder;
    RunOptions options;
    options.maths = RunOptions::Maths::Timed;
    options.clock = RunOptions::Clock::Virtual;
    options.trace = folder.filePath("memory.db").toStdString();
    run(design, options);
    const Program program = compile(design.schedule, design.costs, design.dataflow);
    const Timeline measured = TraceReader(options.trace).timeline(program, 0);
    std::vector<std::vector<Bytes>> live;
    for (int tau = 0; tau < 2 * n * steps; ++tau) {
        std::vector<Bytes>& devices = live.emplace_back();
        for (const auto& curve : measured.memory) {
            Bytes bytes = 0;
            for (const MemorySample& sample : curve)
                if (sample.time <= tau * 1'000'000 + 500'000)
                    bytes = sample.bytes;
            devices.push_back(bytes % unit == 0 ? bytes / unit : -1);
        }
    }
    return live;
}

} // namespace

class TestWeightTraining : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void everyBlockReadsWhatWasCompiled_data();
    void everyBlockReadsWhatWasCompiled();
    void cyclicTrainingIsTheLaggedEmulation_data();
    void cyclicTrainingIsTheLaggedEmulation();
    void severalDevicesTrainLikeOne();
    void synchronousUpdatesAreTheSequentialRun();
    void predictionsFollowTheOptimizer();
    void measuredMemoryIsTheTriangleAndTheFlatLine();
    void aRunSaysThatItsReadsAgree_data();
    void aRunSaysThatItsReadsAgree();
};

void TestWeightTraining::everyBlockReadsWhatWasCompiled_data()
{
    QTest::addColumn<QString>("policy");
    for (const char* policy :
         {"async-1f1b", "pipedream", "pipedream-2bw", "spectrain", "xpipe", "pipeoptim", "dp", "cdp-v1", "cdp-v2"})
        QTest::newRow(policy) << QString(policy);
}

void TestWeightTraining::everyBlockReadsWhatWasCompiled()
{
    QFETCH(QString, policy);
    const std::string name = policy.toStdString();
    const Family& family = *findFamily(name);
    std::mt19937 random(11);
    const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    for (int done = 0; done < (sanitized ? 80 : 200);) {
        FamilyParameters p = sized(1 + below(4), 1 + below(10));
        p.layout = static_cast<WorkerLayout>(below(workerLayoutCount));
        if (family.dataParallel) {
            if (p.layout == WorkerLayout::Single)
                p.workers = p.devices, p.devices = 1;
        } else {
            p.layout = WorkerLayout::Pipeline;
            if (below(2) != 0)
                p.accumulate = 1 + below(4);
            if (below(2) != 0)
                p.optimizer = static_cast<Optimizer>(below(optimizers.size()));
            p.weights.verticalSync = name == "pipedream" && below(2) != 0;
            p.weights.specTrain = name == "spectrain" ? 1 + below(2) : 1;
            if (name == "pipeoptim")
                p.weights.steps = static_cast<PredictionSteps>(below(3));
            if (name == "xpipe")
                p.weights.rounding = static_cast<StepRounding>(below(5));
        }
        if (hasErrors(family.check(p)))
            continue;
        const Design design = designOf(makeSchedule(name, p), tinyShapeOf);
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        const OptimizerSettings optimizer = settingsFor(program.weightPolicy.optimizer);
        const Trained clock = train(design, program, optimizer, false);
        const std::string what = name + " on " + std::to_string(p.devices) + ", " + std::to_string(p.microbatches);
        QVERIFY2(clock.difference == none,
                 (what + ": " + (clock.difference == none ? "" : program.label(clock.difference))).c_str());
        QCOMPARE(clock.reads, program.computeCount() - clock.updates);
        if (++done % 8 != 0)
            continue; // threads take longer to start than this takes to run
        const Trained threads = train(design, program, optimizer, true);
        QVERIFY2(threads.difference == none, what.c_str());
        QCOMPARE(threads.reads, clock.reads);
        QVERIFY2(sameBits(clock.parameters, threads.parameters), what.c_str());
        QVERIFY2(clock.losses == threads.losses, what.c_str());
        for (std::size_t d = 0; d < threads.peaks.size(); ++d)
            QCOMPARE(threads.peaks[d], program.devices[d].peakBytes);
    }
}

void TestWeightTraining::cyclicTrainingIsTheLaggedEmulation_data()
{
    QTest::addColumn<int>("workers");
    QTest::addColumn<int>("layout");
    QTest::addColumn<bool>("freshest");
    QTest::addColumn<float>("momentum");
    int row = 0;
    for (int n = 2; n <= 6; ++n)
        for (int layout = 0; layout < workerLayoutCount; ++layout)
            for (const bool freshest : {false, true})
                for (const float momentum : {0.0f, 0.9f}) {
                    if (leftOut(row++ + layout)) // momenta take turns
                        continue;
                    QTest::addRow("N=%d %s v%d momentum %g", n, nameOf(static_cast<WorkerLayout>(layout)).data(),
                                  freshest ? 2 : 1, double(momentum))
                        << n << layout << freshest << momentum;
                }
}

void TestWeightTraining::cyclicTrainingIsTheLaggedEmulation()
{
    QFETCH(int, workers);
    QFETCH(int, layout);
    QFETCH(bool, freshest);
    QFETCH(float, momentum);
    const int steps = 4;
    FamilyParameters p;
    p.layout = static_cast<WorkerLayout>(layout);
    p.workers = workers;
    p.devices = p.layout == WorkerLayout::Single     ? 1
                : p.layout == WorkerLayout::Triangle ? workers * (workers + 1) / 2
                                                     : workers;
    p.microbatches = workers * steps;
    const Design design = designOf(makeSchedule(freshest ? "cdp-v2" : "cdp-v1", p));
    const Program program = compile(design.schedule, design.costs, design.dataflow);
    const OptimizerSettings optimizer = settingsFor(Optimizer::SgdMomentum, momentum);
    const Trained real = train(design, program, optimizer, true);

    const TextData data = someText(design.workload->shape, 3);
    LaggedRanks ranks(design, optimizer, freshest, 5);
    for (int t = 0; t < steps; ++t)
        ranks.step(t, data, design.workload->shape);
    const std::vector<float> emulated = ranks.newest();
    QVERIFY(std::isfinite(emulated.front()));
    QVERIFY(sameBits(real.parameters, emulated));
}

void TestWeightTraining::severalDevicesTrainLikeOne()
{
    // Two Programs behind one another: what the first leaves on every device is what the second begins with.
    FamilyParameters p = sized(3, 6);
    const Design pipeline = designOf(makeSchedule("cdp-v2", p));
    p.layout = WorkerLayout::Workers;
    const Design workers = designOf(makeSchedule("cdp-v2", p));
    p.layout = WorkerLayout::Sharded; // and where no device has all of the model
    const Design sharded = designOf(makeSchedule("cdp-v2", p));
    const OptimizerSettings optimizer = settingsFor(Optimizer::AdamW);
    std::vector<Trained> runs;
    for (Design design : {pipeline, workers, sharded}) {
        design.schedule.weightPolicy.optimizer = Optimizer::AdamW;
        design = trainableDesign(design);
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        runs.push_back(train(design, program, optimizer, true, 2));
        QCOMPARE(runs.back().difference, TaskId{none});
        QVERIFY(sameBits(runs.back().parameters, runs.front().parameters));
        for (std::size_t d = 0; d < runs.back().peaks.size(); ++d)
            QCOMPARE(runs.back().peaks[d], program.devices[d].peakBytes);
    }
}

void TestWeightTraining::synchronousUpdatesAreTheSequentialRun()
{
    FamilyParameters p = sized(3, 3 * 4);
    const Design design = designOf(makeSchedule("dp", p));
    const Program program = compile(design.schedule, design.costs, design.dataflow);
    const OptimizerSettings optimizer = settingsFor(Optimizer::SgdMomentum);
    const Trained real = train(design, program, optimizer, true);
    const TextData data = someText(design.workload->shape, 3);
    LaggedRanks ranks(design, optimizer, true, 5);
    // With every rank fresh, which is a single rank's training on N microbatches, each step applies its own gradient.
    std::vector<StageMaths> maths;
    std::vector<StageOptimizer> optimizers;
    std::vector<std::vector<float>> parameters, state, gradients;
    int first = 0;
    for (const int layers : design.layersPerStage) {
        maths.emplace_back(*design.workload, first, first + layers, 3);
        first += layers;
        optimizers.emplace_back(maths.back().parameters(), optimizer);
        parameters.emplace_back(maths.back().parameters().count());
        maths.back().parameters().initialise(parameters.back(), 5);
        state.emplace_back(optimizers.back().stateElements());
        gradients.emplace_back(parameters.back().size());
    }
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(design.workload->shape.tokens())), targets(tokens);
    for (int t = 0; t < 4; ++t) {
        for (auto& gradient : gradients)
            std::fill(gradient.begin(), gradient.end(), 0.0f);
        for (int i = 0; i < 3; ++i) {
            data.sample(0, 3 * t + i, tokens, targets);
            std::vector<StageRoom> rooms;
            for (std::size_t j = 0; j < 3; ++j) {
                rooms.emplace_back(maths[j]);
                maths[j].forward(parameters[j],
                                 {tokens, j > 0 ? rooms[j - 1].output : std::vector<float>(), targets, rooms[j].loss},
                                 rooms[j].memory(), rooms[j].output);
            }
            for (std::size_t j = 3; j-- > 0;)
                maths[j].backward(parameters[j], rooms[j].memory(),
                                  j < 2 ? rooms[j + 1].inputGrad : std::vector<float>(), rooms[j].inputGrad,
                                  gradients[j]);
        }
        for (std::size_t j = 0; j < 3; ++j)
            optimizers[j].update(kernels::hostOperations(), t + 1, parameters[j], gradients[j], state[j]);
    }
    std::vector<float> all;
    for (const auto& stage : parameters)
        all.insert(all.end(), stage.begin(), stage.end());
    QVERIFY(sameBits(real.parameters, all));
}

void TestWeightTraining::predictionsFollowTheOptimizer()
{
    const Workload workload = makeWorkload(shapeOf(1), Optimizer::AdamW, "test");
    const ParameterLayout layout(workload, 0, static_cast<int>(workload.layers.size()));
    for (const Optimizer rule : {Optimizer::SgdMomentum, Optimizer::Adam, Optimizer::AdamW, Optimizer::RmsProp}) {
        OptimizerSettings settings = settingsFor(rule, 0);
        settings.adamW.beta1 = 0.5f;
        settings.adamW.weightDecay = 0.25f;
        const StageOptimizer optimizer(layout, settings);
        std::vector<float> parameters(layout.count(), 1.0f), gradients(layout.count(), 0.5f),
            state(optimizer.stateElements()), predicted(layout.count());
        optimizer.predict(kernels::hostOperations(), 0, 3, parameters, state, predicted);
        QVERIFY(predicted == parameters); // nothing is known yet
        optimizer.update(kernels::hostOperations(), 1, parameters, gradients, state);
        optimizer.predict(kernels::hostOperations(), 1, 0, parameters, state, predicted);
        QVERIFY(predicted == parameters);
        optimizer.predict(kernels::hostOperations(), 1, 2, parameters, state, predicted);
        const float rate =
            rule == Optimizer::SgdMomentum ? settings.sgd.learningRate * 0.5f : settings.adamW.learningRate;
        const float direction = rule == Optimizer::RmsProp ? 1 / std::sqrt(1 - settings.rmsSmoothing) : 1;
        for (std::size_t i = 0; i < predicted.size(); ++i)
            QVERIFY(std::abs(predicted[i] - (parameters[i] - 2 * rate * direction)) < 1e-5f); // decay is no part of it
        std::vector<float> parts(layout.count());
        for (std::size_t first = 0; first < parts.size(); first += 1000)
            optimizer.predict(kernels::hostOperations(), 1, 2, parameters, state,
                              std::span(parts).subspan(first, std::min<std::size_t>(1000, parts.size() - first)),
                              first);
        QVERIFY(parts == predicted);
    }
}

void TestWeightTraining::measuredMemoryIsTheTriangleAndTheFlatLine()
{
    for (int n = 2; n <= 4; ++n) {
        const auto total = [](const std::vector<Bytes>& devices) {
            return std::accumulate(devices.begin(), devices.end(), Bytes{0});
        };
        const auto dp = measuredActivations("dp", WorkerLayout::Workers, n, 2);
        for (int tau = 0; tau < 4 * n; ++tau)
            QCOMPARE(total(dp[size_t(tau)]), Bytes{n} * std::min(tau % (2 * n) + 1, 2 * n - tau % (2 * n)));
        for (const char* family : {"cdp-v1", "cdp-v2"}) {
            const auto cdp = measuredActivations(family, WorkerLayout::Workers, n, 4);
            for (int tau = 2 * (n - 1); tau < 8 * n; ++tau)
                QCOMPARE(total(cdp[size_t(tau)]), Bytes{n} * (n + 1) / 2);
            if (n == 4)
                for (int tau = 0; tau < 9; ++tau)
                    QCOMPARE(total(cdp[size_t(tau)]), (std::vector<Bytes>{1, 2, 4, 6, 8, 9, 10, 10, 10})[size_t(tau)]);
            // A stage per device: each holds N - j of its stage at any time.
            const auto stages = measuredActivations(family, WorkerLayout::Pipeline, n, 4);
            for (int tau = 2 * (n - 1); tau < 8 * n; ++tau)
                for (int j = 0; j < n; ++j)
                    QCOMPARE(stages[size_t(tau)][size_t(j)], Bytes{n - j});
        }
    }
    // Real training on one device, whose stages keep different bytes: to the byte what was predicted.
    for (const char* family : {"dp", "cdp-v1"}) {
        FamilyParameters p;
        p.layout = WorkerLayout::Single;
        p.devices = 1;
        p.workers = 3;
        p.microbatches = 12;
        const Design design = designOf(makeSchedule(family, p));
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        const Trained trained = train(design, program, settingsFor(Optimizer::SgdMomentum), true);
        QCOMPARE(trained.peaks[0], program.devices[0].peakBytes);
        QCOMPARE(program.devices[0].peakActivations * 3, family[0] == 'd' ? 9.0 : 6.0);
    }
}

void TestWeightTraining::aRunSaysThatItsReadsAgree_data()
{
    QTest::addColumn<QString>("family");
    QTest::addColumn<int>("layout");
    QTest::addColumn<int>("optimizer");
    QTest::addColumn<bool>("narrow");
    const auto add = [](const char* family, WorkerLayout layout, Optimizer optimizer, bool narrow) {
        QTest::addRow("%s %s %s %s", family, nameOf(layout).data(), nameOf(optimizer).data(), narrow ? "bf16" : "fp32")
            << QString(family) << int(layout) << int(optimizer) << narrow;
    };
    add("xpipe", WorkerLayout::Pipeline, Optimizer::Adam, false);
    add("cdp-v2", WorkerLayout::Pipeline, Optimizer::SgdMomentum, false);
    for (const OptimizerFacts& facts : optimizers)
        add("pipeoptim", WorkerLayout::Pipeline, facts.optimizer, true);
    add("xpipe", WorkerLayout::Pipeline, Optimizer::Adam, true);
    for (const char* family : {"async-1f1b", "pipedream", "pipedream-2bw", "spectrain"})
        add(family, WorkerLayout::Pipeline, Optimizer::SgdMomentum, true);
    for (int layout = 0; layout < workerLayoutCount; ++layout)
        for (const char* family : {"dp", "cdp-v1", "cdp-v2"})
            if (family != std::string_view("dp") || WorkerLayout(layout) != WorkerLayout::Sharded) // there is none
                add(family, WorkerLayout(layout), Optimizer::AdamW, true);
}

void TestWeightTraining::aRunSaysThatItsReadsAgree()
{
    QFETCH(QString, family);
    QFETCH(int, layout);
    QFETCH(int, optimizer);
    QFETCH(bool, narrow);
    FamilyParameters p = sized(3, 6);
    p.layout = WorkerLayout(layout);
    p.optimizer = Optimizer(optimizer);
    if (p.layout == WorkerLayout::Single)
        p.workers = p.devices, p.devices = 1;
    if (p.layout == WorkerLayout::Triangle)
        p.workers = p.devices, p.devices = family == "dp" ? 9 : 6;
    RunOptions options;
    options.steps = 2;
    Design design = designOf(makeSchedule(family.toStdString(), p));
    design.schedule.weightPolicy.optimizer = Optimizer(optimizer);
    const RunResult wide = run(trainableDesign(design), options);
    if (narrow) {
        ModelShape shape = design.workload->shape;
        shape.dataType = DataType::Bf16;
        shape.widened = true;
        design.workload = makeWorkload(shape, design.workload->optimizer, "test");
    }
    const RunResult result = run(trainableDesign(design), options);
    QCOMPARE(result.maths, std::string("training"));
    QVERIFY(result.gradients->lagged && result.gradients->bitEqual);
    QVERIFY(std::any_of(result.notes.begin(), result.notes.end(),
                        [](const Diagnostic& note) { return note.where == "weights"; }));
    QCOMPARE(result.peakBytes, result.predictedPeakBytes);
    QVERIFY(std::abs(result.losses.back() / wide.losses.back() - 1) < 0.01);
    QCOMPARE(result.losses == wide.losses, !narrow);
}

PIPEWRIGHT_TEST(TestWeightTraining, QCoreApplication)
#include "tst_weighttraining.moc"
