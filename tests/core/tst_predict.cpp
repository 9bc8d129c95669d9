// SPDX-License-Identifier: GPL-3.0-or-later
// The evaluator against a slow simulator that knows nothing of its arrays; pins, slack, critical path,
// idle causes and the memory curve.
#include "core/predict/criticalpath.h"
#include "core/predict/evaluator.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/schedule/families/family.h"
#include "schedules.h"

#include <QTest>

#include <map>
#include <numeric>
#include <random>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// Block ends by repeated relaxation straight from the definition of the dependencies.
std::map<Block, Nanoseconds> relaxedEnds(const Schedule& s, const Costs& costs)
{
    std::map<Block, Nanoseconds> end;
    const auto deviceOf = [&](int stage) { return s.deviceOfStage[static_cast<std::size_t>(stage)]; };
    const auto arrival = [&](const Block& from, int toStage) -> Nanoseconds {
        const auto found = end.find(from);
        if (found == end.end())
            return 0;
        const int a = deviceOf(from.stage), b = deviceOf(toStage);
        const int valueStage = std::min(from.stage, toStage);
        return found->second + (a == b ? 0 : costs.linkBetween(a, b).transferTime(costs.stages[static_cast<std::size_t>(valueStage)].output));
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (const auto& lane : s.order) {
            Nanoseconds free = 0;
            for (const Block& b : lane) {
                Nanoseconds start = free;
                if (b.op == Op::F && b.stage > 0)
                    start = std::max(start, arrival({Op::F, b.stage - 1, b.microbatch}, b.stage));
                if (b.op == Op::B || b.op == Op::I) {
                    start = std::max(start, arrival({Op::B, b.stage + 1, b.microbatch}, b.stage));
                    start = std::max(start, arrival({Op::I, b.stage + 1, b.microbatch}, b.stage));
                }
                for (const Pin& pin : s.pins)
                    if (pin.block == b)
                        start = std::max(start, pin.earliestStart);
                free = start + costs.duration(b.op, b.stage);
                if (end[b] != free) {
                    end[b] = free;
                    changed = true;
                }
            }
        }
    }
    return end;
}

Costs randomCosts(int stages, std::mt19937& random)
{
    Costs costs = unitCosts(stages);
    std::uniform_int_distribution<Nanoseconds> time(1, 5000);
    for (StageCosts& stage : costs.stages) {
        stage.forward = time(random);
        stage.inputGrad = time(random);
        stage.weightGrad = time(random);
        stage.backward = stage.inputGrad + stage.weightGrad;
    }
    costs.link = {time(random), 1e9};
    costs.linkOfPair[{0, 1}] = {time(random), 2e8};
    return costs;
}

} // namespace

class PredictTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theEvaluatorAgreesWithRelaxation_data()
    {
        QTest::addColumn<QString>("family");
        for (const Family& family : families())
            QTest::addRow("%s", family.name.data()) << QString::fromUtf8(family.name.data(), static_cast<qsizetype>(family.name.size()));
    }

    void theEvaluatorAgreesWithRelaxation()
    {
        QFETCH(QString, family);
        std::mt19937 random(7);
        for (int round = 0; round < 8; ++round) {
            FamilyParameters parameters;
            parameters.devices = 1 + static_cast<int>(random() % 5);
            parameters.microbatches = parameters.devices * (1 + static_cast<int>(random() % 3));
            Design design;
            design.schedule = makeSchedule(family.toStdString(), parameters);
            design.costs = randomCosts(design.schedule.stages(), random);
            for (int i = 0; i < 3; ++i) {
                const auto& lane = design.schedule.order[random() % design.schedule.order.size()];
                design.schedule.pins.push_back({lane[random() % lane.size()], static_cast<Nanoseconds>(random() % 60'000)});
            }
            const Prediction p = predict(design);
            const auto expected = relaxedEnds(design.schedule, design.costs);
            for (TaskId t = 0; t < p.program.tasks.size(); ++t)
                if (p.program.tasks[t].kind == TaskKind::Compute)
                    QCOMPARE(p.timeline.end[t], expected.at(p.program.tasks[t].block()));
        }
    }

    void newCostsForTheSameOrder()
    {
        std::mt19937 random(3);
        const Schedule s = makeSchedule("zb-h1", {});
        const Costs first = randomCosts(4, random), second = randomCosts(4, random);
        const Program program = compile(s, first);
        Evaluator evaluator(program, first);
        Timeline before, again, direct;
        evaluator.evaluate(before);
        evaluator.setCosts(second);
        evaluator.evaluate(again);
        Evaluator(program, second).evaluate(direct);
        QVERIFY(before != again);
        QCOMPARE(again.end, direct.end);
        evaluator.setCosts(first);
        evaluator.evaluate(again);
        QCOMPARE(again.end, before.end);
    }

    void theCriticalPathIsAChainWithoutGapsAndWithoutSlack()
    {
        std::mt19937 random(11);
        for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b"}) {
            Design design;
            design.schedule = makeSchedule(family, {});
            design.costs = randomCosts(design.schedule.stages(), random);
            const Prediction p = predict(design);
            const std::vector<TaskId> path = criticalPath(p.program, p.timeline);
            const std::vector<Nanoseconds> room = slack(p.program, p.timeline);
            QVERIFY(!path.empty());
            QCOMPARE(p.timeline.start[path.front()], Nanoseconds{0});
            QCOMPARE(p.timeline.end[path.back()], p.metrics.makespan);
            for (std::size_t i = 0; i < path.size(); ++i) {
                QCOMPARE(room[path[i]], Nanoseconds{0});
                if (i > 0)
                    QCOMPARE(p.timeline.start[path[i]], p.timeline.end[path[i - 1]]);
            }
            QVERIFY(*std::min_element(room.begin(), room.end()) == 0);
        }
    }

    void slackIsHowMuchLongerABlockCouldTake()
    {
        Design design;
        design.schedule = makeSchedule("zb-h1", {});
        design.costs = unitCosts(4);
        const Prediction p = predict(design);
        const std::vector<Nanoseconds> room = slack(p.program, p.timeline);
        const auto finish = [](const Design& d) { // not the makespan, which begins with the first block
            const Prediction q = predict(d);
            return *std::max_element(q.timeline.end.begin(), q.timeline.end.end());
        };
        for (TaskId t = 0; t < p.program.tasks.size(); ++t) {
            if (p.program.tasks[t].kind != TaskKind::Compute)
                continue;
            Design pinned = design;
            pinned.schedule.pins = {{p.program.tasks[t].block(), p.timeline.start[t] + room[t]}};
            QCOMPARE(finish(pinned), p.metrics.makespan);
            pinned.schedule.pins.front().earliestStart += 1;
            QVERIFY2(finish(pinned) > p.metrics.makespan,
                     qPrintable(QString("%1 at %2 with slack %3")
                                    .arg(QString::fromStdString(p.program.label(t)))
                                    .arg(p.timeline.start[t])
                                    .arg(room[t])));
        }
    }

    void idleCausesSumToIdle()
    {
        std::mt19937 random(5);
        for (const Family& family : families()) {
            Design design;
            design.schedule = makeSchedule(family.name, {});
            design.costs = randomCosts(design.schedule.stages(), random);
            const Metrics m = predict(design).metrics;
            for (std::size_t d = 0; d < m.devices.size(); ++d) {
                const IdleCauses& c = m.idleCauses[d];
                QCOMPARE(c.warmUp + c.waitActivation + c.waitGradient + c.transfer + c.coolDown + c.other, m.devices[d].idle);
                QCOMPARE(m.devices[d].busy + m.devices[d].idle, m.makespan);
            }
        }
    }

    void theFirstDeviceOf1F1BWaitsForGradients()
    {
        Design design;
        design.schedule = makeSchedule("1f1b", {});
        design.costs = unitCosts(4);
        const Metrics m = predict(design).metrics;
        QCOMPARE(m.idleCauses[0].warmUp, Nanoseconds{0});
        QCOMPARE(m.idleCauses[0].waitGradient, Nanoseconds{9'000});
        QCOMPARE(m.idleCauses[3].warmUp, Nanoseconds{3'000});
        QCOMPARE(m.idleCauses[3].coolDown, Nanoseconds{6'000});
    }

    void theMemoryCurvePeaksAtThePeakAndReturnsToTheBase()
    {
        for (const Family& family : families()) {
            Design design;
            design.schedule = makeSchedule(family.name, {});
            design.costs = unitCosts(design.schedule.stages());
            const Prediction p = predict(design);
            for (std::size_t d = 0; d < p.timeline.memory.size(); ++d) {
                const auto& curve = p.timeline.memory[d];
                Bytes top = 0;
                for (std::size_t i = 0; i < curve.size(); ++i) {
                    top = std::max(top, curve[i].bytes);
                    QVERIFY(i == 0 || curve[i].time >= curve[i - 1].time);
                }
                QCOMPARE(top, p.program.devices[d].peakBytes);
                QCOMPARE(curve.back().bytes, p.program.devices[d].persistentBytes);
            }
        }
    }
};

QTEST_APPLESS_MAIN(PredictTest)
#include "tst_predict.moc"
