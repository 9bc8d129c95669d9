// SPDX-License-Identifier: GPL-3.0-or-later
// A timed run of overlapped pairs with parts: both streams of a device, and what is recorded of them.
#include "core/predict/predict.h"
#include "core/program/pairtimes.h"
#include "executor/run/run.h"
#include "makers/pairdesigns.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>
#include <QTest>

#include <map>

using namespace pipewright;

class PartsRunTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void partsOfPairsRunOnTwoThreadsAndAreRecorded()
    {
        const QTemporaryDir folder;
        Design design = test::partedDesign("dualpipe-v", 2, 6);
        design.name = "parts";
        RunOptions options;
        options.steps = 1;
        options.maths = RunOptions::Maths::Timed;
        const Prediction prediction = predict(design);
        options.clock = RunOptions::Clock::Virtual;
        QCOMPARE(run(design, options).stepTimes.front(), prediction.metrics.makespan);

        options.clock = RunOptions::Clock::Real;
        options.trace = folder.filePath("run.db").toStdString();
        (void)run(design, options);
        const Program& program = prediction.program;
        const TraceReader trace(options.trace);
        const Timeline measured = trace.timeline(program, 0);
        std::map<TaskId, std::vector<GpuWork::Slice>> parts;
        const GpuWork work = trace.gpuWork(program, 0);
        for (const GpuWork::Slice& slice : work.slices)
            parts[slice.task].push_back(slice);
        QVERIFY(!program.overlaps.empty());
        PairTimes times(design.costs);
        for (const Program::Overlap& pair : program.overlaps) {
            const auto [first, second, order] = pair;
            QCOMPARE(measured.start[second], measured.start[first]);
            QCOMPARE(measured.end[second], measured.end[first]);
            const PairTimes::Plan plan = times.plan(program, pair);
            QVERIFY(measured.end[first] - measured.start[first] >= plan.length); // nobody sleeps less than asked
            QCOMPARE(parts[first].size(), plan.parts[0].size());
            QCOMPARE(parts[second].size(), plan.parts[1].size());
            for (const TaskId task : {first, second})
                for (const GpuWork::Slice& slice : parts[task]) {
                    QVERIFY(slice.start >= measured.start[task] && slice.end <= measured.end[task]);
                    QVERIFY(!work.names[slice.name].empty());
                }
        }
    }
};

PIPEWRIGHT_TEST(PartsRunTest, QCoreApplication)
#include "tst_partsrun.moc"
