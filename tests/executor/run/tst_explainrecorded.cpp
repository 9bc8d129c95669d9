// SPDX-License-Identifier: GPL-3.0-or-later
// Delays put into a real run of the host backend, or into its timeline, are named first by the explanation of its
// trace.
#include "core/design/designbuilder.h"
#include "core/predict/predict.h"
#include "executor/run/run.h"
#include "makers/designs.h"
#include "testmain.h"
#include "traces/analysis/explanation.h"
#include "traces/analysis/whatif.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>
#include <QTest>

using namespace pipewright;

class TestExplainRecorded : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;

    static Design designOf(const char* family, int devices = 3, int microbatches = 6)
    {
        DesignRequest request = test::requestFor(family, devices, microbatches);
        request.transfer = 200'000;
        return makeDesign(request);
    }

    /// Runs `ran` and explains its last step by `design`.
    Explanation explained(const Design& design, const Design& ran, RunOptions options = {})
    {
        options.steps = 2;
        options.maths = RunOptions::Maths::Timed;
        options.checkGradients = false;
        options.trace = m_folder.filePath("run.db").toStdString();
        options.overwriteTrace = true;
        run(ran, options);
        const TraceReader trace(options.trace);
        const Prediction prediction = predict(design);
        return explain(prediction.program, design.costs, prediction.timeline, trace.timeline(prediction.program, 1));
    }

    static RunOptions virtualClock()
    {
        RunOptions options;
        options.clock = RunOptions::Clock::Virtual;
        return options;
    }

    static std::vector<Nanoseconds> durationsOf(const Prediction& prediction)
    {
        std::vector<Nanoseconds> durations;
        for (TaskId t = 0; t < prediction.program.tasks.size(); ++t)
            durations.push_back(prediction.timeline.end[t] - prediction.timeline.start[t]);
        return durations;
    }

private Q_SLOTS:
    void aRunAsPredictedHasNothingToExplain()
    {
        const Design design = designOf("1f1b");
        const Explanation e = explained(design, design, virtualClock());
        QCOMPARE(e.measured, e.predicted);
        QCOMPARE(e.allRight, e.predicted);
        for (const Cause& cause : e.causes)
            QCOMPARE(cause.contribution, Nanoseconds{0});
        QCOMPARE(e.straggler, -1);
        for (const DeviceExplanation& d : e.devices)
            QCOMPARE(d.computing + d.warmUp + d.lateData + d.transfer + d.hostGap + d.memoryWait + d.coolDown,
                     e.measured);
    }

    void aSlowDeviceComesFirst_data()
    {
        QTest::addColumn<QString>("family");
        QTest::newRow("1f1b") << "1f1b";
        QTest::newRow("zb-h1") << "zb-h1";
        QTest::newRow("gpipe") << "gpipe";
    }

    void aSlowDeviceComesFirst()
    {
        QFETCH(QString, family);
        const Design design = designOf(family.toUtf8().constData());
        for (int device = 0; device < 3; ++device) {
            Design slow = design;
            StageCosts& costs = slow.costs.stages[device];
            for (Nanoseconds* cost : {&costs.forward, &costs.backward, &costs.inputGrad, &costs.weightGrad})
                *cost += *cost / 2;
            const Explanation e = explained(design, slow, virtualClock());
            QVERIFY(e.causes[0].kind == Cause::Kind::SlowerBlocks);
            QCOMPARE(e.causes[0].device, device);
            QCOMPARE(e.causes[0].contribution, e.measured - e.predicted);
            QCOMPARE(e.straggler, device);
            QCOMPARE(e.allRight, e.predicted);
        }
    }

    void aSlowLinkComesFirst()
    {
        const Design design = designOf("1f1b");
        for (const auto& pair : {std::pair(0, 1), std::pair(1, 2), std::pair(2, 1), std::pair(1, 0)}) {
            Design slow = design;
            slow.costs.linkOfPair[pair] = slow.costs.link;
            slow.costs.linkOfPair[pair].latency += 3'000'000;
            const Explanation e = explained(design, slow, virtualClock());
            QVERIFY2(e.causes[0].kind == Cause::Kind::Transfer, describe(e.causes[0]).c_str());
            QCOMPARE(std::pair(e.causes[0].device, e.causes[0].peer), pair);
            QVERIFY(e.causes[0].contribution > 0);
        }
    }

    void aSlowHostComesFirst()
    {
        // In real time: a device hesitates before each of its instructions, far longer than a busy machine would.
        const Design design = designOf("1f1b", 2, 3);
        RunOptions options;
        Fault fault;
        fault.kind = Fault::Kind::Slows;
        fault.device = 1;
        fault.delay = 40'000'000;
        fault.step = 1;
        options.runtime.faults = {fault};
        const Explanation e = explained(design, design, options);
        QVERIFY2(e.causes[0].kind == Cause::Kind::HostGap || e.causes[0].kind == Cause::Kind::MemoryWait,
                 describe(e.causes[0]).c_str());
        QCOMPARE(e.causes[0].device, 1);
        QVERIFY(e.causes[0].contribution > 100'000'000);
    }

    void gapsInATimelineAreTheHosts()
    {
        const Design design = designOf("zb-h1");
        const Prediction prediction = predict(design);
        const Replay replay(prediction.program, prediction.timeline, durationsOf(prediction));
        std::vector<Nanoseconds> lag = replay.lag;
        for (TaskId t = 0; t < lag.size(); ++t)
            if (prediction.program.tasks[t].kind == TaskKind::Compute && prediction.program.tasks[t].device == 1)
                lag[t] += 400'000;
        const Explanation e =
            explain(prediction.program, design.costs, prediction.timeline, replay.run(replay.duration, lag));
        QVERIFY2(e.causes[0].kind == Cause::Kind::HostGap, describe(e.causes[0]).c_str());
        QCOMPARE(e.causes[0].device, 1);
        QCOMPARE(e.causes[0].contribution, e.measured - e.predicted);
        QVERIFY(e.devices[1].hostGap >= 400'000);
        QCOMPARE(e.devices[0].hostGap, Nanoseconds{0});
    }

    void aReplayWithoutChangeIsTheMeasurement()
    {
        for (const char* family : {"1f1b", "zb-v", "interleaved-1f1b", "dualpipe-v"}) {
            DesignRequest request = test::requestFor(family, 4, 8);
            request.transfer = 130'000;
            const Design design = makeDesign(request);
            const Prediction prediction = predict(design);
            const Replay replay(prediction.program, prediction.timeline, durationsOf(prediction));
            const Timeline again = replay.run(replay.duration, replay.lag);
            QCOMPARE(again.start, prediction.timeline.start);
            QCOMPARE(again.end, prediction.timeline.end);
        }
    }

    void whatIfAnswersWithANewMakespan()
    {
        const Design design = designOf("1f1b");
        const Prediction prediction = predict(design);
        const Replay replay(prediction.program, prediction.timeline, durationsOf(prediction));
        const auto predictedWith = [&](auto change) {
            Design changed = design;
            change(changed.costs);
            return predict(changed).metrics.makespan;
        };
        const auto after = [&](const char* change) { return whatIf(prediction.program, replay, {change}).after; };
        QCOMPARE(after("F1=2ms"), predictedWith([](Costs& c) { c.stages[1].forward = 2'000'000; }));
        QCOMPARE(after("B2=0.5x"), predictedWith([](Costs& c) { c.stages[2].backward /= 2; }));
        QCOMPARE(after("link0-1=1ms"), predictedWith([](Costs& c) {
                     c.linkOfPair[{0, 1}] = c.link;
                     c.linkOfPair[{0, 1}].latency = 1'000'000;
                 }));
        QCOMPARE(after("device0=1x"), prediction.metrics.makespan);
        for (const char* wrong : {"F1", "F9=2ms", "F1=2", "F1=fastx", "link0=1ms", "deviceX=1x", "=1x"})
            QVERIFY_THROWS_EXCEPTION(Error, after(wrong));
        const Prediction other = predict(designOf("gpipe"));
        QCOMPARE(inOtherOrder(prediction.program, replay, other.program, design.costs).after, other.metrics.makespan);
        QVERIFY_THROWS_EXCEPTION(
            Error, inOtherOrder(prediction.program, replay, predict(designOf("1f1b", 4)).program, design.costs));
    }
};

PIPEWRIGHT_TEST(TestExplainRecorded, QCoreApplication)
#include "tst_explainrecorded.moc"
