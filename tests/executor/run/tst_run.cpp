// SPDX-License-Identifier: GPL-3.0-or-later
// Whole runs on the host backend: every family trains to the bits of the sequential run, memory and traces are
// as predicted, and runs that cannot begin say why.
#include "core/design/redesign.h"
#include "core/families/workers.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "executor/host/hostbackend.h"
#include "executor/run/gradientcheck.h"
#include "executor/run/run.h"
#include "executor/runtime/runtime.h"
#include "makers/designs.h"
#include "makers/faults.h"
#include "makers/models.h"
#include "sanitized.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>
#include <QTest>

#include <nlohmann/json.hpp>

using namespace pipewright;

namespace {

Design tinyGpt(std::string_view family, int devices = 4, int microbatches = 8)
{
    return test::tinyGpt(family, devices, microbatches);
}

/// Costs by hand, without a model.
Design costsOnly(std::string_view family, int devices = 4)
{
    return test::evenDesign({.transfer = 1000, .saved = 1 << 20, .savedForWeightGrad = 1 << 19},
                            test::possibleSchedule(family, devices, 8));
}

} // namespace

class TestRun : public QObject {
    Q_OBJECT

private slots:
    void aRunOfShortStepsCanBeCancelled()
    {
        // Virtual steps are over long before the watcher looks for the first time.
        std::atomic<bool> cancel{false};
        RunOptions options;
        options.steps = 1'000'000;
        options.maths = RunOptions::Maths::Timed;
        options.clock = RunOptions::Clock::Virtual;
        options.runtime.cancel = &cancel;
        options.progress = [&](const RunProgress& progress) {
            if (progress.step == 3)
                cancel = true;
        };
        const RunResult result = run(costsOnly("1f1b"), options);
        QVERIFY(result.cancelled);
        QCOMPARE(result.stepTimes.size(), std::size_t{3});
    }

    void aRunThatCannotBeginLeavesNoTrace()
    {
        const QTemporaryDir folder;
        Design design = costsOnly("1f1b");
        for (StageCosts& stage : design.costs.stages)
            stage.savedUntilWeightGrad = Bytes{1} << 55; // more than any machine has
        RunOptions options;
        options.steps = 1;
        options.maths = RunOptions::Maths::Timed;
        options.trace = folder.filePath("never.db").toStdString();
        QVERIFY(!test::faultOf([&] { run(design, options); }).empty());
        QVERIFY(QDir(folder.path()).isEmpty());
    }

    void whatTheBuiltInModelsCannotDoIsSaidAndNotTrained_data()
    {
        QTest::addColumn<QString>("reason");
        QTest::newRow("a skip connection of another size") << "carries 4KiB, and the stage hands on 1KiB";
        QTest::newRow("a group") << "a member of a group has no rate";
    }

    void whatTheBuiltInModelsCannotDoIsSaidAndNotTrained()
    {
        const QString what = QTest::currentDataTag();
        QFETCH(QString, reason);
        Design design = tinyGpt("1f1b");
        design.cluster.devices.resize(4);
        if (what == "a skip connection of another size")
            design.dataflow.skips.push_back({0, 2, 4096});
        else
            design.cluster.devices[1].group = std::make_shared<const Cluster>(design.cluster);
        RunOptions options;
        options.steps = 1;
        if (what == "a group") { // which is never timed unasked
            const QString fault = QString::fromStdString(test::faultOf([&] { run(design, options); }));
            QVERIFY2(fault.contains(reason) && fault.contains("--maths timed"), qPrintable(fault));
        } else {
            const RunResult result = run(design, options);
            QCOMPARE(result.maths, std::string("timed"));
            QVERIFY(!result.notes.empty());
            const std::string note = result.notes.front().what;
            QVERIFY2(QString::fromStdString(note).contains(reason), note.c_str());
        }
        options.maths = RunOptions::Maths::Training;
        QVERIFY(QString::fromStdString(test::faultOf([&] { run(design, options); })).contains(reason));
    }

    void skipConnectionsTrain_data()
    {
        QTest::addColumn<QByteArray>("family");
        for (const char* family : {"gpipe", "1f1b", "zb-h1", "interleaved-1f1b", "v-half", "chimera", "dualpipe"})
            QTest::newRow(family) << QByteArray(family);
    }
    void skipConnectionsTrain()
    {
        QFETCH(QByteArray, family);
        const Design plain = tinyGpt(family.toStdString());
        const int last = plain.schedule.stages() - 1;
        Design design = plain;
        for (const auto& [from, to] : {std::pair{0, 2}, {0, last}, {1, last}})
            design.dataflow.skips.push_back({from, to, trainableDesign(plain).costs.stages[0].output});
        for (const bool recomputes : {false, true}) {
            if (recomputes)
                design = withRecompute(design, std::vector(design.schedule.deviceOfStage.size(), Recompute::Block));
            RunOptions options;
            options.steps = 2;
            options.maths = RunOptions::Maths::Training;
            options.runtime.checkMemory = true;
            const RunResult result = run(design, options);
            QVERIFY(result.gradients->bitEqual);
            QCOMPARE(result.peakBytes, result.predictedPeakBytes);
            QVERIFY(result.losses != run(plain, options).losses);
        }
    }

    void everyFamilyTrainsToTheBitsOfTheReference_data() { rows(); }
    void everyFamilyTrainsToTheBitsOfTheReference()
    {
        QFETCH(QByteArray, family);
        QFETCH(int, devices);
        const Design design = tinyGpt(family.toStdString(), devices);
        QCOMPARE(design.schedule.devices(), devices);
        for (const int eager : {0, 2}) {
            RunOptions options;
            options.steps = 3;
            options.runtime.eagerSlots = eager;
            options.runtime.checkMemory = true;
            const RunResult result = run(design, options);
            QCOMPARE(result.maths, std::string("training"));
            QCOMPARE(result.gradients->lagged, findFamily(family.toStdString())->updates);
            QVERIFY2(result.gradients->bitEqual, result.gradients->worst.c_str());
            QCOMPARE(result.gradients->maxRelativeError, 0.0);
            QCOMPARE(result.peakBytes, result.predictedPeakBytes);
            QCOMPARE(result.losses.size(), std::size_t{3});
            for (const double loss : result.losses)
                QVERIFY(std::isfinite(loss));
        }
    }

    void theLossFalls()
    {
        RunOptions options;
        options.steps = 25;
        const RunResult result = run(tinyGpt("1f1b", 2, 4), options);
        QVERIFY2(result.losses.back() < result.losses.front() - 0.2,
                 qPrintable(QString("%1 -> %2").arg(result.losses.front()).arg(result.losses.back())));
    }

    void theGradientCheckSeesAWrongOrder()
    {
        // Not the order that ran: sums differ in their last bits, and the check must say so.
        Design design = trainableDesign(tinyGpt("gpipe"));
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        const auto data = loadTrainingData("", design.workload->shape, 1, program.microbatches);
        const OptimizerSettings optimizer;
        TrainingWork work(*design.workload, design.layersPerStage, program.microbatches, optimizer, *data, 1);
        const auto backend = createHostBackend(4);
        Runtime runtime(program, *backend, work, nullptr, {});
        const auto reference = checkOf(work, {design, program, optimizer, *data, 0, fp32GradientBound});
        reference->begin();
        runtime.runStep(0);
        QVERIFY(reference->compare().bitEqual);
        std::reverse(design.schedule.order[1].begin() + 8, design.schedule.order[1].end());
        const GradientCheck check = reference->compare();
        QVERIFY(!check.bitEqual && check.maxRelativeError > 0);
        QVERIFY(check.holds());
    }

    void theTraceHoldsThePredictionsTasksForEveryStep()
    {
        const QTemporaryDir folder;
        RunOptions options;
        options.steps = 3;
        options.trace = folder.filePath("run.db").toStdString();
        const Design design = tinyGpt("zb-h1");
        const RunResult result = run(design, options);
        QCOMPARE(result.droppedRecords, 0);
        const TraceReader reader(options.trace);
        QVERIFY(reader.complete());
        QCOMPARE(reader.steps().size(), std::size_t{3});
        QCOMPARE(reader.peakBytes(), result.peakBytes);
        const Program program = predict(reader.design()).program;
        for (int step = 0; step < 3; ++step) {
            const Timeline timeline = reader.timeline(program, step);
            for (TaskId task = 0; task < program.tasks.size(); ++task)
                QVERIFY2(timeline.start[task] != notRun, qPrintable(QString::fromStdString(program.label(task))));
        }
        QVERIFY(!test::faultOf([&] { run(design, options); }).empty()); // never overwritten …
        options.overwriteTrace = true;
        run(design, options); // … unless asked to
    }

    void theVirtualClockRecordsThePrediction_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<int>("devices");
        QTest::addColumn<QByteArray>("costs");
        for (const Family& family : families())
            for (const int devices : {2, 4})
                for (const char* costs : {"plain", "blocking transfers", "shared link", "shared link, blocking",
                                          "one stream", "shared link, one stream", "uneven microbatches, fast pairs"}) {
                    if (threadSanitized && (devices == 2 || qstrcmp(costs, "plain") != 0))
                        continue;
                    const QByteArray name(family.name.data(), static_cast<qsizetype>(family.name.size()));
                    QTest::addRow("%s, %d devices, %s", name.constData(), devices, costs)
                        << name << devices << QByteArray(costs);
                }
    }
    void theVirtualClockRecordsThePrediction()
    {
        QFETCH(QByteArray, family);
        const QTemporaryDir folder;
        RunOptions options;
        options.steps = 2;
        options.maths = RunOptions::Maths::Timed;
        options.clock = RunOptions::Clock::Virtual;
        options.trace = folder.filePath("run.db").toStdString();
        QFETCH(int, devices);
        QFETCH(QByteArray, costs);
        Design design = costsOnly(family.toStdString(), devices);
        for (StageCosts& stage : design.costs.stages)
            stage.output = 4096;
        if (costs == "blocking transfers") {
            design.costs.communication = Communication::Blocking;
        } else if (costs.startsWith("shared link")) {
            design.costs.link = {2000, 4096 / 400e-6, "switch"}; // 400 us on the wire, for blocks of 1 ms
            if (costs.endsWith("blocking"))
                design.costs.communication = Communication::Blocking;
            if (costs.endsWith("one stream"))
                design.costs.communication = Communication::OneStream;
        } else if (costs == "one stream") {
            design.costs.communication = Communication::OneStream;
            design.costs.link.latency = 300'000; // they wait for each other
        } else if (costs.startsWith("uneven")) {
            design.costs.overlapFactor = 0.75;
            for (int m = 0; m < design.schedule.microbatches; ++m)
                design.costs.microbatches.push_back({1 + m % 3 / 8.0, 1 + m % 5 / 4.0});
        }
        const RunResult result = run(design, options);
        const Prediction prediction = predict(design);
        QCOMPARE(result.stepTimes, std::vector<Nanoseconds>(2, prediction.metrics.makespan));
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        const Timeline measured = TraceReader(options.trace).timeline(prediction.program, 1);
        QCOMPARE(measured.start, prediction.timeline.start);
        QCOMPARE(measured.end, prediction.timeline.end);
    }

    void theVirtualClockFollowsWeightsFromWorkerToWorker_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<int>("layout");
        for (const char* family : {"dp", "cdp-v1", "cdp-v2"})
            for (const WorkerLayout layout : {WorkerLayout::Workers, WorkerLayout::Triangle, WorkerLayout::Sharded})
                if (std::string_view(family) != "dp" || layout == WorkerLayout::Workers)
                    QTest::addRow("%s, %s", family, nameOf(layout).data()) << QByteArray(family) << int(layout);
    }
    void theVirtualClockFollowsWeightsFromWorkerToWorker()
    {
        QFETCH(QByteArray, family);
        QFETCH(int, layout);
        const auto where = static_cast<WorkerLayout>(layout);
        constexpr int workers = 3;
        FamilyParameters parameters = test::sized(devicesOf(where, workers, family != "dp"), 4 * workers);
        parameters.layout = where;
        parameters.workers = workers;
        const Schedule schedule = makeSchedule(family.toStdString(), parameters);
        const Design design = test::designOf(schedule, test::distinctCosts(schedule.stages()));
        RunOptions options;
        options.steps = 2;
        options.maths = RunOptions::Maths::Timed;
        options.clock = RunOptions::Clock::Virtual;
        const QTemporaryDir folder;
        options.trace = folder.filePath("run.db").toStdString();
        run(design, options);
        const Prediction prediction = predict(design);
        const Timeline measured = TraceReader(options.trace).timeline(prediction.program, 1);
        for (TaskId t = 0; t < prediction.program.tasks.size(); ++t)
            QVERIFY2(measured.start[t] == prediction.timeline.start[t] && measured.end[t] == prediction.timeline.end[t],
                     qPrintable(QString("%1: %2 to %3, predicted %4 to %5")
                                    .arg(QString::fromStdString(prediction.program.label(t)))
                                    .arg(measured.start[t])
                                    .arg(measured.end[t])
                                    .arg(prediction.timeline.start[t])
                                    .arg(prediction.timeline.end[t])));
    }

    void unevenMicrobatchesAreForTimedRuns()
    {
        Design design = tinyGpt("1f1b", 2, 4);
        design.costs.microbatches.assign(4, {});
        RunOptions options;
        options.maths = RunOptions::Maths::Training;
        options.checkGradients = false;
        QCOMPARE(test::faultOf([&] { run(design, options); }), std::string()); // all alike: as if nothing was said
        design.costs.microbatches[2].time = 1.5;
        const std::string text = test::faultOf([&] { run(design, options); });
        QVERIFY2(text.find("costs.microbatches") != std::string::npos
                     && text.find("for timed runs") != std::string::npos,
                 text.c_str());
        options.maths = RunOptions::Maths::Automatic;
        for (StageCosts& stage : design.costs.stages)
            stage.forward = stage.inputGrad = stage.weightGrad = stage.backward = 1000;
        QCOMPARE(run(design, options).maths, std::string("timed"));
    }

    void aModelCutForOtherPiecesThanItsScheduleIsRefused()
    {
        Design design = tinyGpt("seq1f1b", 2, 2);
        ModelShape shape = design.workload->shape;
        QVERIFY(shape.sequencePieces > 1);
        shape.sequencePieces = 1;
        design.workload = makeWorkload(shape, Optimizer::AdamW, "test");
        RunOptions options;
        options.maths = RunOptions::Maths::Training;
        const std::string text = test::faultOf([&] { run(design, options); });
        QVERIFY2(text.find("pieces of a sequence") != std::string::npos, text.c_str());
    }

    void anyOrderOfReplicasPairsAndPiecesTrains()
    {
        // Not a family's: data parallelism on one stage each, a pair within it, pieces that alternate.
        Design design = tinyGpt("gpipe", 2, 4);
        ModelShape shape = design.workload->shape;
        shape.sequencePieces = 2;
        design.workload = makeWorkload(shape, Optimizer::AdamW, "test");
        design.schedule = test::schedule(8, {0},
                                         {"F0.0 F0.2 F0.1 F0.3 B0.3 B0.1 B0.0 B0.2",
                                          "F0.4/1 F0.5/1 F0.6/1 I0.5/1 F0.7/1 I0.4/1 W0.4/1 B0.7/1 W0.5/1 B0.6/1"});
        design.schedule.replicaPlacements = {{1}};
        design.schedule.sequencePieces = 2;
        design.schedule.backward = BackwardStyle::Split;
        design.schedule.firstStageMaySplit = true;
        design.schedule.overlaps = {{test::block("F0.6/1"), test::block("I0.5/1")}};
        design.layersPerStage = {10};
        design.costs = uniformCosts({}, 1, 1);
        RunOptions options;
        options.steps = 3;
        options.maths = RunOptions::Maths::Training;
        options.runtime.checkMemory = true;
        const RunResult result = run(design, options);
        QVERIFY(result.gradients->bitEqual);
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
    }

    void aDesignWithoutAModelRunsTimedAndSaysWhy()
    {
        RunOptions options;
        options.clock = RunOptions::Clock::Virtual;
        RunResult result = run(costsOnly("gpipe"), options);
        QCOMPARE(result.maths, std::string("timed"));
        options.clock = RunOptions::Clock::Real;
        Design quick = costsOnly("gpipe");
        for (StageCosts& stage : quick.costs.stages)
            stage.forward = stage.inputGrad = stage.weightGrad = stage.backward = 1000;
        result = run(quick, options);
        QCOMPARE(result.maths, std::string("timed"));
        QVERIFY(!result.notes.empty());
        QVERIFY(result.notes.front().what.find("timed blocks") != std::string::npos);
        options.maths = RunOptions::Maths::Training;
        const std::string text = test::faultOf([&] { run(quick, options); });
        QVERIFY2(text.find("no model") != std::string::npos && text.find("timed maths") != std::string::npos,
                 text.c_str());
    }

    void aModelThatCannotBeTrainedHereIsAnErrorWithTheReason()
    {
        Design design = tinyGpt("gpipe");
        ModelShape shape = design.workload->shape;
        shape.dropout = true;
        design.workload = makeWorkload(shape, Optimizer::AdamW, "test");
        RunOptions options;
        options.maths = RunOptions::Maths::Training;
        QVERIFY(!test::faultOf([&] { run(design, options); }).empty());
    }

    void theJsonHasTheKeysOfTheCommand()
    {
        RunOptions options;
        options.steps = 2;
        const RunResult result = run(tinyGpt("gpipe", 2, 2), options);
        const auto json = nlohmann::json::parse(result.toJson());
        QCOMPARE(json["backend"].get<std::string>(), std::string("host"));
        QCOMPARE(json["devices"].get<int>(), 2);
        QCOMPARE(json["steps"].get<int>(), 2);
        QCOMPARE(json["step_ns"].size(), std::size_t{2});
        QCOMPARE(json["loss"].size(), std::size_t{2});
        QCOMPARE(json["peak_bytes"].size(), std::size_t{2});
        QCOMPARE(json["allocated_bytes"].size(), std::size_t{2});
        QVERIFY(json["allocated_bytes"] == json["predicted_allocated_bytes"]);
        for (std::size_t d = 0; d < 2; ++d)
            QCOMPARE(json["kept_bytes"]["gaps"][d].get<Bytes>() + json["kept_bytes"]["maths"][d].get<Bytes>()
                         + json["kept_bytes"]["text"][d].get<Bytes>() + json["kept_bytes"]["links"][d].get<Bytes>()
                         + json["predicted_peak_bytes"][d].get<Bytes>(),
                     json["allocated_bytes"][d].get<Bytes>());
        QCOMPARE(json["dropped_records"].get<int>(), 0);
        QCOMPARE(json["gradient_check"]["reference"].get<std::string>(), std::string("sequential"));
        QVERIFY(json["gradient_check"]["bit_equal"].get<bool>());
        QCOMPARE(json["gradient_check"]["max_relative_error"].get<double>(), 0.0);
        QCOMPARE(json["gradient_check"]["within"].get<double>(), fp32GradientBound);
        QVERIFY(json["trace"].is_null());
    }

    void progressEndsBeforeTheCheckAndNeverGoesBack()
    {
        RunOptions options;
        options.steps = 4;
        std::vector<RunProgress> seen;
        options.progress = [&](const RunProgress& progress) { seen.push_back(progress); };
        run(tinyGpt("gpipe", 2, 2), options);
        QCOMPARE(seen.size(), std::size_t{4});
        for (std::size_t i = 0; i < seen.size(); ++i) {
            QCOMPARE(seen[i].step, static_cast<int>(i) + 1);
            QVERIFY(seen[i].fraction < 1 && (i == 0 || seen[i].fraction > seen[i - 1].fraction));
        }
    }

    void cancellingLeavesAReadableTrace()
    {
        const QTemporaryDir folder;
        std::atomic<bool> cancel{false};
        RunOptions options;
        options.steps = 1000;
        options.trace = folder.filePath("run.db").toStdString();
        options.runtime.cancel = &cancel;
        options.progress = [&](const RunProgress& progress) { cancel = progress.step == 2; };
        Design design = costsOnly("1f1b"); // the third step would take a while
        for (StageCosts& stage : design.costs.stages)
            stage.forward = stage.backward = 10'000'000;
        const RunResult result = run(design, options);
        QVERIFY(result.cancelled);
        QCOMPARE(result.stepTimes.size(), std::size_t{2});
        const TraceReader reader(options.trace);
        QVERIFY(!reader.complete());
        QCOMPARE(reader.steps().size(), std::size_t{2});
    }

    void aDeadDeviceLeavesAReadableTraceAndAReason()
    {
        const QTemporaryDir folder;
        RunOptions options;
        options.steps = 3;
        options.trace = folder.filePath("run.db").toStdString();
        options.runtime.faults = {{Fault::Kind::Dies, 2, 1, 5, 0}};
        const std::string text = test::faultOf([&] { run(tinyGpt("1f1b"), options); });
        QVERIFY2(text.find("device 2: error: stopped at instruction 5") != std::string::npos, text.c_str());
        QCOMPARE(TraceReader(options.trace).steps().size(), std::size_t{1});
    }

private:
    static void rows()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<int>("devices");
        for (const Family& family : families())
            for (const int devices : {2, 4}) {
                if (threadSanitized && devices == 2)
                    continue;
                const QByteArray name(family.name.data(), static_cast<qsizetype>(family.name.size()));
                QTest::addRow("%s, %d devices", name.constData(), devices) << name << devices;
            }
    }
};

PIPEWRIGHT_TEST(TestRun, QCoreApplication)
#include "tst_run.moc"
