// SPDX-License-Identifier: GPL-3.0-or-later
// Update blocks in a schedule: who reads which version, how stale it is, what is kept and sent, and when blocks run.
#include "testmain.h"

#include <QTest>

#include "core/files/designfile.h"
#include "core/files/locateddesign.h"
#include "core/program/compile.h"
#include "core/program/weightreport.h"
#include "core/schedule/validate.h"
#include "core/schedule/weightrules.h"
#include "makers/costs.h"
#include "weightruns.h"

#include <map>
#include <set>

using namespace pipewright;
using namespace pipewright::test;

class tst_weightversions : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void asynchronous1F1BKeepsItsTimetable();
    void versionPairsAsPublished();
    void stalenessStepsAndCopies();
    void stashedForwardAndBackwardAgree();
    void olderVersionsAreBuffers();
    void updatesOutOfPlaceAreRefused_data();
    void updatesOutOfPlaceAreRefused();
    void badPoliciesAreRefused();
    void designsKeepTheirPolicy();
    void xpipeSteps();
};

void tst_weightversions::asynchronous1F1BKeepsItsTimetable()
{
    for (int depth = 1; depth <= 6; ++depth) {
        const int q = 3 * depth;
        const Compiled run = family("pipeoptim", parametersOf(depth, q));
        for (int k = 0; k < depth; ++k)
            for (int i = 1; i <= q; ++i) {
                const int backward = 2 * depth - 1 - k + 2 * (i - 1);
                QCOMPARE(run.tick(Op::B, k, i - 1), backward);
                QCOMPARE(run.tick(Op::F, k, i - 1),
                         i <= depth - k ? k + i - 1 : 2 * depth - 1 - k + 2 * (i - (depth - k) - 1) + 1);
                QCOMPARE(run.tick(Op::U, k, i - 1), backward + 1);
            }
    }
}

void tst_weightversions::versionPairsAsPublished()
{
    // (version of the forward, version of the backward), where both read the newest there is.
    for (int depth = 1; depth <= 6; ++depth) {
        const Compiled run = family("async-1f1b", parametersOf(depth, 4 * depth));
        for (int k = 0; k < depth; ++k)
            for (int q = 0; q < 4 * depth; ++q) {
                const int lag = std::min(q, depth - 1 - k);
                QCOMPARE(run.use(Op::F, k, q).version, q - lag);
                QCOMPARE(run.use(Op::B, k, q).version, q);
                QCOMPARE(run.use(Op::F, k, q).staleness(), lag);
                QCOMPARE(run.use(Op::B, k, q).staleness(), 0);
                const Compiled& again = run;
                QCOMPARE(again.use(Op::U, k, q).update, q);
            }
    }
}

void tst_weightversions::stalenessStepsAndCopies()
{
    const auto column = [](const std::vector<StageWeights>& report, auto field) {
        std::vector<int> values;
        for (const StageWeights& stage : report)
            values.push_back(stage.*field);
        return values;
    };
    using V = std::vector<int>;
    FamilyParameters p = parametersOf(4, 32);
    const auto report = [&](std::string_view name) { return weightReport(family(name, p).program); };
    QCOMPARE(column(report("async-1f1b"), &StageWeights::staleness), (V{3, 2, 1, 0}));
    QCOMPARE(column(report("async-1f1b"), &StageWeights::copies), (V{1, 1, 1, 1}));
    QCOMPARE(column(report("async-1f1b"), &StageWeights::inFlight), (V{4, 3, 2, 1}));
    QCOMPARE(column(report("pipedream"), &StageWeights::versions), (V{4, 3, 2, 1}));
    QCOMPARE(column(report("pipedream-2bw"), &StageWeights::versions), (V{2, 2, 2, 2}));
    QCOMPARE(column(report("pipedream-2bw"), &StageWeights::staleness), (V{1, 1, 1, 1}));
    QCOMPARE(column(report("spectrain"), &StageWeights::forwardSteps), (V{3, 2, 2, 1}));
    QCOMPARE(column(report("spectrain"), &StageWeights::backwardSteps), (V{0, 0, 1, 1}));
    QCOMPARE(column(report("spectrain"), &StageWeights::copies), (V{2, 2, 2, 2}));
    QCOMPARE(column(report("pipeoptim"), &StageWeights::forwardSteps), (V{3, 2, 1, 0}));
    QCOMPARE(column(report("pipeoptim"), &StageWeights::backwardSteps), (V{0, 0, 0, 0}));
    QCOMPARE(column(report("pipeoptim"), &StageWeights::copies), (V{2, 2, 2, 1}));
    QCOMPARE(column(report("pipeoptim"), &StageWeights::inFlight), (V{4, 3, 2, 1}));
    p.weights.steps = PredictionSteps::Code;
    QCOMPARE(column(report("pipeoptim"), &StageWeights::forwardSteps), (V{4, 3, 2, 1}));
    p.weights.steps = PredictionSteps::Exact;
    const Compiled exact = family("pipeoptim", p);
    for (int k = 0; k < 4; ++k)
        for (int q = 0; q < 32; ++q)
            QCOMPARE(exact.use(Op::F, k, q).steps, std::min(q, 3 - k));
    for (const int depth : {2, 3, 8}) {
        const auto wide = weightReport(family("spectrain", parametersOf(depth, 3 * depth)).program);
        for (int k = 0; k < depth; ++k) {
            QCOMPARE(wide[size_t(k)].forwardSteps, k / 2 + depth - k - 1);
            QCOMPARE(wide[size_t(k)].backwardSteps, k / 2);
        }
    }
    FamilyParameters second = parametersOf(4, 32);
    second.weights.specTrain = 2; // the forward's prediction is kept for every microbatch in flight
    QCOMPARE(column(weightReport(family("spectrain", second).program), &StageWeights::copies), (V{5, 4, 3, 2}));
}

void tst_weightversions::stashedForwardAndBackwardAgree()
{
    for (const bool vertical : {false, true}) {
        FamilyParameters p = parametersOf(4, 16);
        p.weights.verticalSync = vertical;
        const Compiled run = family("pipedream", p);
        for (int k = 0; k < 4; ++k)
            for (int q = 0; q < 16; ++q) {
                QCOMPARE(run.use(Op::F, k, q).version, run.use(Op::B, k, q).version);
                if (vertical)
                    QCOMPARE(run.use(Op::F, k, q).version, run.use(Op::F, 0, q).version);
            }
    }
    const Compiled predicted = family("pipeoptim", parametersOf(4, 16));
    for (int k = 0; k < 4; ++k)
        for (int q = 0; q < 16; ++q)
            QCOMPARE(predicted.use(Op::B, k, q).version, q);
}

/// The worker that reads an update's weights first reads them in the very next time step with CDP-v2, two later with
/// CDP-v1: a transfer of half a time step delays only the former.
void tst_weightversions::olderVersionsAreBuffers()
{
    // Memory needs no formula of its own: the same order with stashing holds that many weights more at its peak.
    const Compiled stash = family("pipedream", parametersOf(4, 24)),
                   vanilla = family("async-1f1b", parametersOf(4, 24));
    for (int d = 0; d < 4; ++d)
        QCOMPARE(stash.program.devices[size_t(d)].peakBytes - vanilla.program.devices[size_t(d)].peakBytes,
                 Bytes{3 - d} * 1000);
    // Every version's buffer is written by the update that replaces it and read by those that want it.
    for (TaskId t = 0; t < stash.program.tasks.size(); ++t)
        for (const BufferId id : stash.program.reads(t))
            if (stash.program.buffers[id].kind == BufferKind::WeightVersion)
                QCOMPARE(stash.program.buffers[id].microbatch, stash.program.weights[t].version);
}

void tst_weightversions::updatesOutOfPlaceAreRefused_data()
{
    QTest::addColumn<QStringList>("lanes");
    QTest::addColumn<int>("rule");
    QTest::addColumn<QString>("what");
    QTest::newRow("never applied") << QStringList{"F0.0 B0.0 U0.0 F0.1 B0.1"} << int(WeightRule::Vanilla)
                                   << "never applied";
    QTest::newRow("nothing to apply") << QStringList{"F0.0 B0.0 U0.0 U0.1 F0.1 B0.1"} << int(WeightRule::Vanilla)
                                      << "comes later";
    QTest::newRow("twice") << QStringList{"F0.0 B0.0 U0.0 F0.1 B0.1 U0.0"} << int(WeightRule::Vanilla)
                           << "placed twice";
    QTest::newRow("too late") << QStringList{"F0.0 F0.1 B0.0 U0.0 B0.1 U0.1"} << int(WeightRule::Synchronous)
                              << "makes later";
    QTest::newRow("no updates") << QStringList{"F0.0 B0.0 F0.1 B0.1"} << int(WeightRule::PipeDream)
                                << "no update blocks";
    QTest::newRow("between halves") << QStringList{"F0.0 I0.0 F0.1 I0.1 W0.1 U0.1 W0.0 U0.0"}
                                    << int(WeightRule::Vanilla) << "between";
}

void tst_weightversions::updatesOutOfPlaceAreRefused()
{
    QFETCH(QStringList, lanes);
    QFETCH(int, rule);
    QFETCH(QString, what);
    Schedule schedule = test::schedule(2, {0}, {lanes[0].toStdString()});
    schedule.firstStageMaySplit = true;
    schedule.weightPolicy.rule = static_cast<WeightRule>(rule);
    const Diagnostics diagnostics = validate(schedule);
    QVERIFY(hasErrors(diagnostics));
    bool said = false;
    for (const Diagnostic& diagnostic : diagnostics)
        said = said || QString::fromStdString(diagnostic.what).contains(what);
    QVERIFY2(said, diagnostics.front().what.c_str());
    QVERIFY(!diagnostics.front().hint.empty());
    QVERIFY_THROWS_EXCEPTION(Error, compile(schedule, test::unitCosts(1)));
}

void tst_weightversions::badPoliciesAreRefused()
{
    // With a reason that names what is the matter, and a remedy.
    const auto refused = [](std::string_view name, FamilyParameters p, std::string_view reason = {}) {
        try {
            makeSchedule(name, p);
        } catch (const Error& error) {
            return !error.diagnostics().empty() && !error.diagnostics().front().hint.empty()
                   && error.diagnostics().front().what.find(reason) != std::string::npos;
        }
        return false;
    };
    FamilyParameters p = parametersOf(4, 16);
    p.optimizer = Optimizer::Adam;
    QVERIFY(refused("spectrain", p, "SGD with momentum; adam"));
    QVERIFY(!refused("pipeoptim", p));
    p.optimizer = Optimizer::SgdMomentum;
    QVERIFY(refused("xpipe", p, "Adam's moments; sgd"));
    p.optimizer.reset();
    p.accumulate = 1;
    QVERIFY(refused("xpipe", p, "microbatches of a mini-batch, and there is one"));
    p.accumulate = 2;
    QVERIFY(!refused("xpipe", p));
    QVERIFY(refused("pipedream-2bw", p)); // fewer than stages
    p.accumulate = 5;
    QVERIFY(refused("pipedream-2bw", p)); // 16 is no multiple
    QVERIFY(refused("1f1b", p));
    FamilyParameters workers = parametersOf(4, 15);
    workers.workers = 3; // three workers on four stages
    QVERIFY(refused("cdp-v1", workers, "3 workers where 4 devices hold 4 stages"));
    workers.workers.reset();
    QVERIFY(refused("cdp-v2", workers)); // 15 microbatches of 4 workers
    workers.microbatches = 16;
    workers.layout = WorkerLayout::Triangle;
    QVERIFY(refused("cdp-v2", workers)); // 4 is no N (N + 1) / 2
    workers.layout = WorkerLayout::Sharded;
    QVERIFY(!refused("cdp-v2", workers));
    QVERIFY(refused("dp", workers, "all workers of synchronous data parallelism need a stage at once"));
    Schedule alone = makeSchedule("cdp-v1", workers);
    QVERIFY(!hasErrors(validate(alone)));
    alone.dataParallelDevices.clear();
    QVERIFY(hasErrors(validate(alone))); // nobody to hop to
    // By hand: a cyclic rule over an order whose updates take another number of microbatches.
    Schedule schedule = makeSchedule("pipedream-2bw", parametersOf(2, 12));
    schedule.weightPolicy.rule = WeightRule::CdpV2;
    QVERIFY(!hasErrors(validate(schedule)));
    FamilyParameters wide = parametersOf(2, 12);
    wide.accumulate = 3;
    schedule = makeSchedule("pipedream-2bw", wide);
    schedule.weightPolicy.rule = WeightRule::CdpV2;
    QVERIFY(hasErrors(validate(schedule)));
}

void tst_weightversions::designsKeepTheirPolicy()
{
    for (const char* name : {"pipedream", "pipeoptim", "spectrain", "xpipe", "cdp-v2", "dp", "async-1f1b"}) {
        const bool cyclic = std::string_view(name) == "cdp-v2";
        FamilyParameters p = workersOn(cyclic ? WorkerLayout::Sharded : WorkerLayout::Workers, 3, 4, true);
        if (!cyclic && std::string_view(name) != "dp") {
            p = parametersOf(3, 12);
            if (std::string_view(name) == "pipedream")
                p.weights.verticalSync = true;
            if (std::string_view(name) == "pipeoptim")
                p.weights.steps = PredictionSteps::Exact, p.optimizer = Optimizer::RmsProp;
            if (std::string_view(name) == "spectrain")
                p.weights.specTrain = 2;
            if (std::string_view(name) == "xpipe")
                p.weights.rounding = StepRounding::HalfUp;
        }
        Design design;
        design.name = name;
        design.schedule = makeSchedule(name, p);
        design.costs = tickCosts(design.schedule.stages());
        const Design back = locatedDesignFromJson(designToJson(design), "test").design;
        QVERIFY2(back.schedule == design.schedule, name);
    }
}

void tst_weightversions::xpipeSteps()
{
    QCOMPARE(xpipeForwardSteps(4, 1, 1), 2.5);
    QCOMPARE(xpipeForwardSteps(4, 3, 2), 1.25);
    QCOMPARE(xpipeForwardSteps(4, 0, 4), 1.5);
    for (int k = 0; k < 4; ++k) {
        QCOMPARE(rounded(xpipeForwardSteps(4, k, 1), StepRounding::Floor), specTrainForwardSteps(4, k));
        QCOMPARE(rounded(xpipeBackwardSteps(k, 1), StepRounding::HalfEven), specTrainBackwardSteps(k));
    }
    QCOMPARE(rounded(2.5, StepRounding::HalfEven), 2);
    QCOMPARE(rounded(2.5, StepRounding::HalfUp), 3);
    QCOMPARE(rounded(1.5, StepRounding::HalfEven), 2);
    QCOMPARE(rounded(1.5, StepRounding::HalfDown), 1);
    QCOMPARE(rounded(1.25, StepRounding::Ceiling), 2);
    FamilyParameters p = parametersOf(4, 16);
    p.accumulate = 4;
    const Compiled run = family("xpipe", p);
    for (int k = 0; k < 4; ++k)
        for (int batch = 0; batch < 4; ++batch)
            for (int i = 1; i < 4; ++i) // all share what the first one predicted
                QVERIFY(run.use(Op::F, k, 4 * batch + i).version == run.use(Op::F, k, 4 * batch).version
                        && run.use(Op::F, k, 4 * batch + i).steps == run.use(Op::F, k, 4 * batch).steps);
}

PIPEWRIGHT_TEST(tst_weightversions, NoApplication)
#include "tst_weightversions.moc"
