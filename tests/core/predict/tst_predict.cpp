// SPDX-License-Identifier: GPL-3.0-or-later
// The evaluator against a slow simulator that knows nothing of its arrays; pins, slack, critical path,
// idle causes and the memory curve.
#include "core/families/family.h"
#include "core/predict/criticalpath.h"
#include "core/predict/evaluator.h"
#include "core/predict/predict.h"
#include "core/predict/spread.h"
#include "core/program/compile.h"
#include "makers/designs.h"
#include "testmain.h"

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
    const auto inputs = [&](const Block& b) {
        const auto of = [&](Op op, int stage) { return Block{op, stage, b.microbatch, b.replica}; };
        if (b.op == Op::F)
            return std::vector{of(Op::F, b.stage - 1)};
        return b.op == Op::W ? std::vector<Block>{} : std::vector{of(Op::B, b.stage + 1), of(Op::I, b.stage + 1)};
    };
    const auto earliest = [&](const Block& b) {
        Nanoseconds start = 0;
        for (const Block& from : inputs(b)) {
            const auto found = end.find(from);
            if (found == end.end())
                continue;
            const int source = s.deviceOf(from), device = s.deviceOf(b);
            const Bytes bytes = costs.stages[std::min(from.stage, b.stage)].output;
            const LinkCosts& link = costs.linkBetween(source, device);
            start = std::max(
                start, found->second + (source == device ? 0 : link.transferTime(costs.scaled(bytes, b.microbatch))));
        }
        for (const Pin& pin : s.pins)
            if (pin.block == b)
                start = std::max(start, pin.earliestStart);
        return start;
    };
    const auto duration = [&](const Block& b) { return costs.duration(b.op, b.stage, b.microbatch); };
    const auto together = [&](const Block& a, const Block& b) {
        return std::llround(static_cast<double>(duration(a) + duration(b)) * costs.overlapFactor);
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (const auto& lane : s.order) {
            Nanoseconds free = 0;
            for (std::size_t i = 0; i < lane.size(); ++i) {
                const bool pair = i + 1 < lane.size()
                                  && std::find(s.overlaps.begin(), s.overlaps.end(), Overlap{lane[i], lane[i + 1]})
                                         != s.overlaps.end();
                Nanoseconds start = std::max(free, earliest(lane[i]));
                if (pair)
                    start = std::max(start, earliest(lane[i + 1]));
                free = start + (pair ? together(lane[i], lane[i + 1]) : duration(lane[i]));
                for (std::size_t k = i; k <= i + pair; ++k)
                    if (end[lane[k]] != free) {
                        end[lane[k]] = free;
                        changed = true;
                    }
                i += pair;
            }
        }
    }
    return end;
}

/// Also of microbatches that differ, and with overlapped pairs that take other than their sum.
Costs randomCosts(const Schedule& schedule, std::mt19937& random)
{
    Costs costs = unitCosts(schedule.stages());
    costs.overlapFactor = 0.5 + static_cast<double>(random() % 64) / 64;
    if (random() % 2)
        for (int m = 0; m < schedule.microbatches; ++m)
            costs.microbatches.push_back(
                {0.25 + static_cast<double>(random() % 16) / 8, static_cast<double>(random() % 4)});
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
            QTest::addRow("%s", family.name.data())
                << QString::fromUtf8(family.name.data(), static_cast<qsizetype>(family.name.size()));
    }

    void theEvaluatorAgreesWithRelaxation()
    {
        QFETCH(QString, family);
        std::mt19937 random(7);
        for (int round = 0; round < 8; ++round) {
            const Family& found = *findFamily(family.toStdString());
            const int devices = 1 + static_cast<int>(random() % 5);
            Design design;
            design.schedule = makeSchedule(
                found.name, possibleParameters(found, devices, devices * (1 + static_cast<int>(random() % 3))));
            design.costs = randomCosts(design.schedule, random);
            for (int i = 0; i < 3; ++i) {
                const auto& lane = design.schedule.order[random() % design.schedule.order.size()];
                if (const Block& pinned = lane[random() % lane.size()]; pinned.op != Op::U)
                    design.schedule.pins.push_back({pinned, static_cast<Nanoseconds>(random() % 60'000)});
            }
            const Prediction p = predict(design);
            const auto expected = relaxedEnds(design.schedule, design.costs);
            for (TaskId t = 0; t < p.program.tasks.size(); ++t)
                if (p.program.tasks[t].kind == TaskKind::Compute)
                    QCOMPARE(p.timeline.end[t], expected.at(p.program.tasks[t].block()));
        }
    }

    void theTwoBubblesOfTheSpanAreWhatTheySay()
    {
        Design design;
        design.schedule = makeSchedule("1f1b", sized(4, 8));
        design.costs = unitCosts(4);
        const Metrics even = predict(design).metrics;
        QCOMPARE(even.rateSpan, even.ratePapers);
        // Device 0 has the longest span and little to do, device 3 the most.
        for (int s = 0; s < 4; ++s)
            for (const Op op : {Op::F, Op::B})
                design.costs.stages[static_cast<std::size_t>(s)].*timeField(op) = 1000 * (1 + 3 * s);
        const Metrics m = predict(design).metrics;
        const auto longest = std::max_element(m.devices.begin(), m.devices.end(),
                                              [](const auto& a, const auto& b) { return a.span < b.span; });
        const auto share = [&](Nanoseconds work) {
            return static_cast<double>(m.span - work) / static_cast<double>(m.span);
        };
        QCOMPARE(longest->span, m.span);
        QCOMPARE(m.rateSpan, share(longest->busy));
        QCOMPARE(m.ratePapers, share(m.ideal));
        QVERIFY(m.rateSpan > m.ratePapers + 0.1);
    }

    void noiseMakesStepsLongerAndIsTheSameForTheSameSeed()
    {
        Design design;
        design.schedule = makeSchedule("1f1b", sized(4, 8));
        design.costs = unitCosts(4);
        const Program program = compile(design.schedule, design.costs);
        const Nanoseconds makespan = predict(design).metrics.makespan;
        const auto spread = [&](double block, double device, std::uint64_t seed = 1) {
            return spreadOfStep(program, design.costs, {.block = block, .device = device, .seed = seed});
        };
        QCOMPARE(spread(0, 0), (StepSpread{makespan, makespan}));
        const StepSpread blocks = spread(0.1, 0), devices = spread(0, 0.1);
        QVERIFY(blocks.median > makespan && blocks.p95 > blocks.median);
        QVERIFY(devices.median > makespan);
        QVERIFY(devices.p95 > blocks.p95); // a slow device is slow in all of its blocks
        QVERIFY(spread(0.2, 0).p95 > blocks.p95);
        QCOMPARE(spread(0.1, 0), blocks);
        QVERIFY(spread(0.1, 0, 2) != blocks);
    }

    /// One block alone on one device: what the step takes is what the block takes.
    void noiseHasTheSpreadThatWasStated()
    {
        const Design design = unitDesign(schedule(1, {0}, {"F0.0 B0.0"}));
        Costs costs = design.costs;
        costs.stages[0].forward = 1'000'000;
        costs.stages[0].backward = 0;
        const StepSpread s =
            spreadOfStep(compile(design.schedule, costs), costs, {.block = 0.1, .samples = 20'000, .seed = 3});
        QVERIFY(std::abs(s.median - 1'000'000) < 3'000);
        QVERIFY(std::abs(s.p95 - 1'178'000) < 6'000); // exp(1.645 x 0.0998)
    }

    /// What the costs say of a block counts for it, what was asked for the others.
    void measuredSpreadsAreSampled()
    {
        Design design;
        design.schedule = makeSchedule("1f1b", sized(4, 8));
        design.costs = unitCosts(4);
        const auto step = [&](const SpreadOptions& options) {
            return spreadOfStep(compile(design.schedule, design.costs), design.costs, options);
        };
        const SpreadOptions measured{.measured = true};
        QCOMPARE(step(measured), step({}));
        for (StageCosts& stage : design.costs.stages)
            stage.spread.fill(0.1);
        QCOMPARE(step(measured), step({.block = 0.1}));
        QCOMPARE(step({}), step({.samples = 1}));
        design.costs.stages[2].spread.fill(0);
        QVERIFY(step(measured).p95 < step({.block = 0.1}).p95);
        QCOMPARE(step({.block = 0.1, .measured = true}), step({.block = 0.1}));
        QVERIFY(shownNoise(design.costs).measured);
        QCOMPARE(shownNoise(unitCosts(4)).block, 0.05);
        // What a person says goes before what was measured; slow devices come on top of either.
        QVERIFY(!shownNoise(design.costs, {.block = 0.2}).measured);
        QCOMPARE(shownNoise(design.costs, {.block = 0.2}).block, 0.2);
        QVERIFY(shownNoise(design.costs, {.block = {}, .device = 0.1}).measured);
        QCOMPARE(shownNoise(design.costs, {.block = {}, .device = 0.1}).device, 0.1);
    }

    void twoSchedulesHaveTheSameLuck()
    {
        // The same blocks in the same order, by another name: the same samples.
        Design a;
        a.schedule = makeSchedule("1f1b", sized(4, 8));
        a.costs = unitCosts(4);
        Design b = a;
        b.schedule.family = "custom";
        const SpreadOptions options{.block = 0.2, .device = 0.1, .samples = 50, .seed = 7};
        QCOMPARE(spreadOfStep(compile(a.schedule, a.costs), a.costs, options),
                 spreadOfStep(compile(b.schedule, b.costs), b.costs, options));
        b.schedule = makeSchedule("gpipe", sized(4, 8));
        QVERIFY(spreadOfStep(compile(b.schedule, b.costs), b.costs, options).median > 0);
    }

    void newCostsForTheSameOrder()
    {
        std::mt19937 random(3);
        const Schedule s = makeSchedule("zb-h1", {});
        const Costs first = randomCosts(s, random), second = randomCosts(s, random);
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
        for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "dualpipe"}) {
            Design design;
            design.schedule = makeSchedule(family, {});
            design.costs = randomCosts(design.schedule, random);
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
            design.costs = randomCosts(design.schedule, random);
            const Metrics m = predict(design).metrics;
            for (std::size_t d = 0; d < m.devices.size(); ++d) {
                const IdleCauses& c = m.idleCauses[d];
                QCOMPARE(c.sum(), m.devices[d].idle);
                QCOMPARE(c.host, Nanoseconds{0});
                QCOMPARE(m.devices[d].busy + m.devices[d].idle, m.makespan);
            }
        }
    }

    /// A block with a gap before it is a longer block, but for what is busy and where it begins.
    void theHostsGapIsIdleTimeBeforeABlock()
    {
        std::mt19937 random(23);
        for (const Family& family : families()) {
            Design design, longer;
            design.schedule = makeSchedule(family.name, {});
            design.costs = randomCosts(design.schedule, random);
            design.costs.microbatches.clear(); // a gap does not grow with the microbatch
            longer = design;
            // The same on every device, for stages that have replicas on several.
            design.costs.hostGaps.assign(static_cast<std::size_t>(design.schedule.devices()), {});
            for (const Op op : allOps) {
                const auto gap = static_cast<Nanoseconds>(random() % 900);
                for (HostGaps& gaps : design.costs.hostGaps)
                    gaps.before[indexOf(op)] = gap;
                for (StageCosts& stage : longer.costs.stages)
                    stage.*timeField(op) += gap;
            }
            if (!design.schedule.overlaps.empty())
                continue; // a pair has one gap, and as many longer blocks as it has blocks
            const Prediction with = predict(design), without = predict(longer);
            const Nanoseconds first = design.costs.hostGap(Op::F, 0);
            if (design.schedule.replicas() == 1 && !family.updates) // which hand weights out before their first block
                QVERIFY2(with.metrics.makespan + first == without.metrics.makespan, family.name.data());
            for (std::size_t d = 0; d < with.metrics.devices.size(); ++d) {
                QCOMPARE(with.metrics.idleCauses[d].sum(), with.metrics.devices[d].idle);
                QVERIFY(with.metrics.idleCauses[d].host > 0);
                QVERIFY(with.metrics.devices[d].busy < without.metrics.devices[d].busy);
            }
        }
    }

    void aPairHasOneGap()
    {
        Design design;
        design.schedule = makeSchedule("dualpipe-v", {});
        design.costs = unitCosts(design.schedule.stages());
        design.costs.hostGaps.assign(static_cast<std::size_t>(design.schedule.devices()), {});
        for (HostGaps& gaps : design.costs.hostGaps)
            gaps.before = {70, 50, 40, 30, 20, 10};
        const Prediction p = predict(design);
        QVERIFY(!p.program.overlaps.empty());
        for (const Program::Overlap& pair : p.program.overlaps) {
            QCOMPARE(p.timeline.start[pair.first], p.timeline.start[pair.second]);
            QCOMPARE(p.timeline.end[pair.first], p.timeline.end[pair.second]);
        }
    }

    void slackLeavesTheHostItsGap()
    {
        Design design;
        design.schedule = makeSchedule("zb-h1", {});
        design.costs = unitCosts(4);
        design.costs.hostGaps.assign(4, {});
        for (HostGaps& gaps : design.costs.hostGaps)
            gaps.before = {70, 50, 40, 30, 20, 10};
        const Prediction p = predict(design);
        const std::vector<Nanoseconds> room = slack(p.program, p.timeline);
        for (const TaskId task : criticalPath(p.program, p.timeline))
            QCOMPARE(room[task], Nanoseconds{0});
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

PIPEWRIGHT_TEST(PredictTest, NoApplication)
#include "tst_predict.moc"
