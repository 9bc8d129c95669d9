// SPDX-License-Identifier: GPL-3.0-or-later
// Synthetic runs: times and bytes scaled down, so that any model runs here as a schedule.
#include "core/predict/predict.h"
#include "executor/run/run.h"
#include "makers/designs.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>
#include <QTest>

using namespace pipewright;

namespace {

/// Blocks of hours, activations of terabytes.
Design enormous()
{
    Design design = test::evenDesign({.forward = 1'000'000'000'000,
                                      .inputGrad = 1'200'000'000'000,
                                      .weightGrad = 800'000'000'000,
                                      .saved = Bytes{1} << 40,
                                      .savedForWeightGrad = Bytes{1} << 39},
                                     test::familySchedule("zb-h1", 2, 4));
    design.costs.link = {40'000'000'000, 1e9};
    for (StageCosts& stage : design.costs.stages)
        stage.output = Bytes{1} << 36;
    return design;
}

constexpr SyntheticScale small{1e-6, 1.0 / (1 << 24)};

} // namespace

class TestSynthetic : public QObject {
    Q_OBJECT

private slots:
    void theScaledPredictionIsThePredictionToScale()
    {
        Design scaled = enormous();
        scaled.costs = scaledCosts(scaled.costs, small);
        const Prediction before = predict(enormous()), after = predict(scaled);
        const double makespan = static_cast<double>(before.metrics.makespan) * small.time;
        QVERIFY(std::abs(static_cast<double>(after.metrics.makespan) - makespan) < 1e-4 * makespan);
        for (std::size_t d = 0; d < before.program.devices.size(); ++d)
            QCOMPARE(after.program.devices[d].peakBytes, before.program.devices[d].peakBytes >> 24);
    }

    void theLinkToTheHostIsToScaleToo()
    {
        Costs costs;
        costs.hostLink = LinkCosts{1'000'000, 1e9};
        const Costs scaled = scaledCosts(costs, {0.5, 0.25});
        constexpr Bytes bytes = 1 << 28;
        QCOMPARE(2 * scaled.hostLink->transferTime(bytes / 4), costs.hostLink->transferTime(bytes));
    }

    void blocksThatSleepCanBeToScaleToo()
    {
        RunOptions options;
        options.maths = RunOptions::Maths::Timed;
        options.scale = small;
        const RunResult result = run(enormous(), options);
        QCOMPARE(result.maths, std::string("timed"));
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        for (const Bytes peak : result.peakBytes)
            QVERIFY(peak < Bytes{1} << 30);           // of terabytes
        options.maths = RunOptions::Maths::Automatic; // which may train: a model has one size
        QVERIFY_THROWS_EXCEPTION(Error, (void)run(enormous(), options));
    }

    void aModelTooLargeForThisMachineRunsAsASchedule()
    {
        const QTemporaryDir folder;
        RunOptions options;
        options.steps = 2;
        options.maths = RunOptions::Maths::Synthetic;
        options.scale = small;
        options.trace = folder.filePath("synthetic.db").toStdString();
        const RunResult result = run(enormous(), options);
        QCOMPARE(result.maths, std::string("synthetic"));
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        const TraceReader reader(options.trace);
        QVERIFY(reader.complete());
        QCOMPARE(reader.header().maths, std::string("synthetic"));
        // The trace holds the design that ran, and no block was shorter than it was told to be.
        const Program program = predict(reader.design()).program;
        const Timeline timeline = reader.timeline(program, 1);
        for (TaskId task = 0; task < program.tasks.size(); ++task) {
            const Task& what = program.tasks[task];
            if (what.kind == TaskKind::Compute)
                QVERIFY(timeline.end[task] - timeline.start[task]
                        >= reader.design().costs.duration(what.op, what.stage));
        }
    }

    void nonsensicalScalesAreRefused()
    {
        for (const SyntheticScale scale :
             {SyntheticScale{0, 1}, SyntheticScale{1, -1}, SyntheticScale{1, std::nan("")}, SyntheticScale{1e308, 1},
              SyntheticScale{1e6, 1}, SyntheticScale{1e-308, 1}, SyntheticScale{1, 1e12}})
            QVERIFY_THROWS_EXCEPTION(Error, scaledCosts(enormous().costs, scale));
    }
};

PIPEWRIGHT_TEST(TestSynthetic, QCoreApplication)
#include "tst_synthetic.moc"
