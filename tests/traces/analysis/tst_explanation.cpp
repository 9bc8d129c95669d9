// SPDX-License-Identifier: GPL-3.0-or-later
// Causes of the difference between a prediction and a step: none where there is no difference, and each by its name.
#include "core/design/redesign.h"
#include "testmain.h"
#include "traces/analysis/causetext.h"
#include "traces/analysis/explanation.h"
#include "traces/analysis/missingblocks.h"
#include "traces/analysis/whatif.h"
#include "traces/store/recording.h"

#include <QTest>

#include <numeric>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// A design and a step of it that ran as other costs say.
struct Ran {
    Ran(Design of, const Costs& real) : design(std::move(of)), prediction(predict(design))
    {
        Evaluator(prediction.program, real).evaluate(measured);
    }
    explicit Ran(const Design& of) : Ran(of, of.costs) {}

    Explanation explained(Nanoseconds coreWait = -1) const
    {
        return explain(prediction.program, design.costs, prediction.timeline, measured, coreWait);
    }
    Nanoseconds difference() const
    {
        const Explanation e = explained();
        return e.measured - e.predicted;
    }

    Design design;
    Prediction prediction;
    Timeline measured;
};

Design replicated(const char* family = "1f1b")
{
    DesignRequest request = requestFor(family, 4, 8);
    request.replicas = 2;
    Design design = makeDesign(request);
    design.costs.link = {10'000, 2e8};
    return design;
}

Design bused()
{
    Design design = smallDesign("interleaved-1f1b", 4, 8);
    design.costs.link = {10'000, 2e8, "wire"};
    return design;
}

Nanoseconds idleOf(const DeviceExplanation& d)
{
    return d.warmUp + d.lateData + d.transfer + d.pinned + d.hostGap + d.memoryWait + d.coolDown + d.notRecorded;
}

} // namespace

class TestExplanation : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// Pins, sums over replicas, shared wires, gaps: what is predicted is the cause of nothing.
    void aStepAsPredictedHasNoCause_data()
    {
        QTest::addColumn<QString>("what");
        for (const char* what :
             {"1f1b", "cdp-v1", "cdp-v2", "dp", "chimera", "dualpipe", "zb-v", "tied", "replicas", "bus", "gaps"})
            QTest::newRow(what) << what;
    }

    void aStepAsPredictedHasNoCause()
    {
        QFETCH(QString, what);
        Design design = what == "replicas" ? replicated() : what == "bus" ? bused() : smallDesign("1f1b", 4, 8);
        if (what == "gaps")
            design.costs.hostGaps.assign(4, {{70'000, 60'000, 50'000, 40'000, 30'000, 20'000}, {}});
        else if (findFamily(what.toStdString()) != nullptr)
            design = smallDesign(what.toUtf8().constData(), 4, 8);
        for (StageCosts& stage : design.costs.stages)
            stage.update = 300'000;
        const Ran ran(design);
        const Explanation e = ran.explained();
        for (const Cause& cause : e.causes)
            QFAIL(qPrintable(QString("%1: %2 ns").arg(QString::fromStdString(describe(cause))).arg(cause.excess)));
        QCOMPARE(e.allRight, e.predicted);
        for (const DeviceExplanation& device : e.devices) {
            QCOMPARE(device.computing + idleOf(device), e.measured);
            QVERIFY(what == "gaps" || device.hostGap == 0);
        }
    }

    void aPinIsNoGapOfTheHost()
    {
        const Ran ran(smallDesign("cdp-v1", 4, 4));
        QVERIFY(!ran.design.schedule.pins.empty());
        const Explanation e = ran.explained();
        Nanoseconds pinned = 0;
        for (const DeviceExplanation& device : e.devices)
            pinned += device.pinned + device.warmUp;
        QVERIFY(pinned > 0);
        // A gap of the host beyond the pin is one.
        Costs real = ran.design.costs;
        real.hostGaps.assign(4, {{200'000, 200'000, 200'000, 200'000, 200'000, 200'000}, {}});
        const Explanation late = Ran(ran.design, real).explained();
        QVERIFY(!late.causes.empty());
        for (const Cause& cause : late.causes)
            QCOMPARE(cause.kind, Cause::Kind::HostGap);
    }

    void sumsOverReplicasAreTransfers()
    {
        for (const char* family : {"1f1b", "gpipe"}) {
            const Design design = replicated(family);
            Costs real = design.costs;
            real.link.bytesPerSecond = 1e8;
            const Ran ran(design, real);
            const Explanation e = ran.explained();
            for (std::size_t d = 0; d < e.devices.size(); ++d) {
                Nanoseconds blocks = 0;
                for (TaskId t = 0; t < ran.measured.start.size(); ++t) {
                    const Task& task = ran.prediction.program.tasks[t];
                    if (task.device == static_cast<int>(d) && task.kind == TaskKind::Compute)
                        blocks += ran.measured.end[t] - ran.measured.start[t];
                }
                QCOMPARE(e.devices[d].computing, blocks);
                QCOMPARE(e.devices[d].computing + idleOf(e.devices[d]), e.measured);
                QVERIFY(e.devices[d].transfer > 10'000'000); // the sum of three mebibytes takes 30 ms
            }
            QVERIFY(!e.causes.empty());
            for (const Cause& cause : e.causes)
                QVERIFY2(cause.kind == Cause::Kind::Transfer || cause.kind == Cause::Kind::Contention,
                         describe(cause).c_str());
            QVERIFY(e.causes.front().contribution > 0);
        }
    }

    void whatHasNoRecordHasNoCause()
    {
        Ran ran(smallDesign("zb-h1", 4, 8));
        const Program& program = ran.prediction.program;
        QVERIFY(warningOfMissing(program, ran.measured, "run.db", "step 3").empty());
        std::size_t dropped = 0;
        for (TaskId t = 0; t < program.tasks.size(); t += 7)
            if (program.tasks[t].kind == TaskKind::Compute) {
                ran.measured.start[t] = ran.measured.end[t] = notRun;
                ++dropped;
            }
        QVERIFY(dropped > 5);
        const Explanation e = ran.explained();
        for (const Cause& cause : e.causes)
            QFAIL(qPrintable(QString("%1: %2 ns").arg(QString::fromStdString(describe(cause))).arg(cause.excess)));
        Nanoseconds notRecorded = 0;
        for (const DeviceExplanation& device : e.devices) {
            notRecorded += device.notRecorded;
            QCOMPARE(device.computing + idleOf(device), e.measured);
        }
        QVERIFY(notRecorded > 0);
        QCOMPARE(missingBlocks(program, ran.measured).size(), dropped);
        const Diagnostics warning = warningOfMissing(program, ran.measured, "run.db", "step 3");
        QCOMPARE(warning.size(), std::size_t{1});
        QCOMPARE(warning[0].severity, Severity::Warning);
        QVERIFY2(warning[0].what.starts_with(std::to_string(dropped) + " of 96 blocks were not measured in step 3: "),
                 warning[0].what.c_str());
    }

    /// On one device some blocks took longer and others less: two causes, each called by what its blocks did.
    void aCauseIsCalledByWhatItsBlocksDid()
    {
        const Design design = smallDesign("1f1b", 2, 8);
        Costs real = design.costs;
        real.stages[0].forward += 900'000;
        real.stages[0].backward -= 300'000;
        real.stages[1].backward += 10'000;
        for (const bool slower : {true, false}) {
            if (!slower)
                real.stages[0].forward = design.costs.stages[0].forward - 100'000;
            const Ran ran(design, real);
            const Explanation e = ran.explained();
            QCOMPARE(ran.difference() > 0, slower);
            QCOMPARE(e.causes.front().contribution > 0, slower);
            for (const Cause& cause : e.causes) {
                QCOMPARE(cause.faster, cause.excess < 0);
                QVERIFY2(cause.faster ? cause.contribution <= 0 : cause.contribution >= 0, describe(cause).c_str());
                const std::string text = shortText(cause, [](int d) { return "CPU " + std::to_string(d); });
                QVERIFY2(text.starts_with(cause.faster ? "faster" : "slower"), text.c_str());
                QVERIFY(std::string(nameOf(cause)).starts_with(cause.faster ? "faster" : "slower"));
            }
        }
    }

    void waitsForCoresAreACause()
    {
        const Design design = smallDesign("1f1b", 2, 8);
        Costs real = design.costs;
        for (StageCosts& stage : real.stages) {
            stage.forward += 500'000;
            stage.backward += 500'000;
        }
        const Ran ran(design, real);
        const Nanoseconds beyond = 8 * 2 * 500'000; // per device
        const Explanation all = ran.explained(beyond);
        QCOMPARE(all.causes.size(), std::size_t{1});
        QCOMPARE(all.causes[0].kind, Cause::Kind::CoreWait);
        QCOMPARE(all.causes[0].contribution, ran.difference());
        QCOMPARE(describe(all.causes[0]), std::string("waiting for a processor core"));
        const Explanation half = ran.explained(beyond / 2);
        QCOMPARE(half.causes.size(), std::size_t{3});
        for (const Cause& cause : half.causes)
            if (cause.kind == Cause::Kind::CoreWait)
                QVERIFY(std::abs(double(cause.contribution) / double(ran.difference()) - 0.5) < 0.01);
        for (const Nanoseconds unknown : {-1, 0})
            QCOMPARE(ran.explained(unknown).causes.size(), std::size_t{2});
        QCOMPARE(half.unexplained(), Nanoseconds{0});

        // Nobody is a straggler for what may be such waiting.
        Costs slower = design.costs;
        slower.stages[1].forward += slower.stages[1].forward / 2;
        slower.stages[1].backward += slower.stages[1].backward / 2;
        const Ran slow(design, slower);
        QCOMPARE(slow.explained().straggler, 1);
        QCOMPARE(slow.explained(1'000).straggler, 1);
        QCOMPARE(slow.explained(slow.measured.end.back()).straggler, -1);
    }

    /// A gap that was not there can be asked for; what does not change is not counted.
    void whatIfReachesBlocksWithoutAGap()
    {
        const Design design = smallDesign("1f1b", 3, 6);
        const Ran ran(design);
        std::vector<Nanoseconds> durations;
        const Evaluator evaluator(ran.prediction.program, design.costs);
        for (TaskId t = 0; t < ran.measured.start.size(); ++t)
            durations.push_back(evaluator.duration(t));
        const Replay replay(ran.prediction.program, ran.measured, durations);
        Design gaps = design;
        gaps.costs.hostGaps.resize(3);
        gaps.costs.hostGaps[1].before.fill(250'000);
        const WhatIf answer = whatIf(ran.prediction.program, replay, {"host1=250us"});
        QCOMPARE(answer.after, predict(gaps).metrics.makespan);
        QCOMPARE(answer.changed, std::int64_t{6 + 6 + 1}); // forwards, backwards and the update
        QCOMPARE(whatIf(ran.prediction.program, replay, {"host1=0ns"}).changed, std::int64_t{0});
        // Sums are no work of a device, but of the link.
        const Ran sums(replicated());
        std::vector<Nanoseconds> times;
        for (TaskId t = 0; t < sums.measured.start.size(); ++t)
            times.push_back(sums.measured.end[t] - sums.measured.start[t]);
        const Replay ofSums(sums.prediction.program, sums.measured, times);
        QCOMPARE(whatIf(sums.prediction.program, ofSums, {"device0=2x"}).changed, std::int64_t{8});
        QVERIFY(whatIf(sums.prediction.program, ofSums, {"link0-2=0.5x"}).after
                <= whatIf(sums.prediction.program, ofSums, {"device0=1x"}).after);
    }
};

PIPEWRIGHT_TEST(TestExplanation, QCoreApplication)
#include "tst_explanation.moc"
