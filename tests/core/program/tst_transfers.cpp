// SPDX-License-Identifier: GPL-3.0-or-later
// Transfer times: the zero-bubble papers' closed forms with communication, links that share a bus, transfers
// that hold up the compute stream, and microbatches of unequal length.
#include "core/families/family.h"
#include "core/predict/criticalpath.h"
#include "core/predict/evaluator.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/program/deadlock.h"
#include "lifetimes.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>
#include <rapidcheck.h>

#include <algorithm>
#include <tuple>

using namespace pipewright;
using namespace pipewright::test;

namespace {

TaskId taskOf(const Program& program, const char* label)
{
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (program.label(t).starts_with(label))
            return t;
    return none;
}

} // namespace

class TransfersTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void closedFormsWithCommunicationHoldInTheirRegimes()
    {
        // W < F, I = F or near it, c at most 8 % of a pass, m a multiple of p from 3p on.
        QVERIFY(rc::check("closed forms", [] {
            const int p = *rc::gen::inRange(2, 17), m = p * *rc::gen::inRange(3, 7);
            DeviceWorth worth;
            worth.forward = *rc::gen::inRange(95'000, 105'000);
            worth.inputGrad = worth.forward - *rc::gen::inRange(0, 1000);
            worth.weightGrad = *rc::gen::inRange(52'000, 68'000);
            worth.transfer = *rc::gen::inRange(0, 6'000);
            const Nanoseconds f = worth.forward, b = worth.inputGrad, w = worth.weightGrad, c = worth.transfer;
            const auto span = [&](const char* family) {
                FamilyParameters parameters = sized(p, m);
                return predict(designOf(makeSchedule(family, parameters), uniformCosts(worth, p, 1))).metrics.span;
            };
            RC_ASSERT(span("1f1b") == (m + p - 1) * (f + b + w) + c * (2 * (p - 1) * m / p + 2 * (p - 2)));
            RC_ASSERT(span("zb-h1") == m * (f + b + w) + (p - 1) * (f + b - w) + 4 * (p - 1) * c);
            RC_ASSERT(span("zb-h2") == m * (f + b + w) + (p - 1) * (f + b - 2 * w) + 2 * (p - 1) * c);
        }));
    }

    void transfersOfOneBusPassItOneAfterTheOther()
    {
        // Two devices, gpipe: F0.0 is made at 1 us, F0.1 at 2 us; the wire takes 3 us and the latency is 0.1 us.
        FamilyParameters parameters;
        parameters.devices = parameters.microbatches = 2;
        Costs costs = unitCosts(2);
        costs.stages[0].output = 3000;
        costs.link = {100, 1e9, {}};
        const Design apart = designOf(makeSchedule("gpipe", parameters), costs);
        costs.link.bus = "switch";
        const Design shared = designOf(apart.schedule, costs);
        const auto times = [](const Design& design, const char* label) {
            const Prediction p = predict(design);
            const TaskId t = taskOf(p.program, label);
            return std::pair(p.timeline.start[t], p.timeline.end[t]);
        };
        QCOMPARE(times(apart, "F0.0 from"), std::pair(Nanoseconds{1000}, Nanoseconds{4100}));
        QCOMPARE(times(apart, "F0.1 from"), std::pair(Nanoseconds{2000}, Nanoseconds{5100}));
        QCOMPARE(times(shared, "F0.0 from"), std::pair(Nanoseconds{1000}, Nanoseconds{4100}));
        QCOMPARE(times(shared, "F0.1 from"), std::pair(Nanoseconds{4000}, Nanoseconds{7100}));
    }

    void everyFamilyOnOneBusServesWhoIsReadyFirst()
    {
        for (const bool blocking : {false, true})
            for (const Family& family : families()) {
                const Schedule schedule = makeSchedule(family.name, possibleParameters(family, 4, 8));
                Costs costs = unitCosts(schedule.stages());
                costs.link = {200, 16e9 / 700, "host bridge"}; // 700 ns on the wire
                costs.communication = blocking ? Communication::Blocking : Communication::Overlapped;
                const Prediction p = predict(designOf(schedule, costs));
                const Evaluator evaluator(p.program, costs);
                struct Passed {
                    Nanoseconds start, ready;
                    TaskId task;
                };
                std::vector<Passed> passed;
                for (TaskId t = 0; t < p.program.tasks.size(); ++t)
                    if (p.program.tasks[t].kind == TaskKind::Transfer)
                        passed.push_back({p.timeline.start[t], evaluator.ready(t, p.timeline), t});
                std::sort(passed.begin(), passed.end(), [](const Passed& a, const Passed& b) {
                    return std::tie(a.start, a.task) < std::tie(b.start, b.task);
                });
                Nanoseconds freeFrom = 0;
                for (std::size_t i = 0; i < passed.size(); ++i) {
                    const auto [start, ready, task] = passed[i];
                    QVERIFY2(start == std::max(ready, freeFrom), family.name.data());
                    QVERIFY2(i == 0 || std::pair(passed[i - 1].ready, passed[i - 1].task) < std::pair(ready, task),
                             family.name.data());
                    freeFrom = p.timeline.end[task] - 200;
                }
                QVERIFY(
                    checkDeadlock(p.program, blocking ? Communication::Blocking : Communication::Overlapped).empty());
                costs.link.bus.clear();
                QVERIFY(predict(designOf(schedule, costs)).metrics.makespan <= p.metrics.makespan);
            }
    }

    /// Two pipelines of two devices side by side; F takes 2 ms, B 3 ms, 10 ms are spent on the wire.
    static Design twoPipelines(const char* bus, bool blocking)
    {
        Schedule s = schedule(2, {0, 1}, {"F0.0 B0.0", "F1.0 B1.0", "F0.1/1 B0.1/1", "F1.1/1 B1.1/1"});
        s.replicaPlacements = {{2, 3}};
        Costs costs = unitCosts(2);
        for (StageCosts& stage : costs.stages) {
            stage.forward = 2'000'000;
            stage.backward = 3'000'000;
            stage.output = 10'000;
            stage.gradients = 0;
        }
        costs.link = {0, 1e6, bus};
        costs.communication = blocking ? Communication::Blocking : Communication::Overlapped;
        return designOf(std::move(s), costs);
    }

    void blockingTransfersWaitForTheirBus()
    {
        const auto ms = [](const char* bus, bool blocking) {
            return predict(twoPipelines(bus, blocking)).metrics.makespan / 1'000'000;
        };
        QCOMPARE(ms("", false), Nanoseconds{30});       // 2 + 10 + 2 + 3 + 10 + 3
        QCOMPARE(ms("", true), Nanoseconds{30});        // nothing else could run meanwhile
        QCOMPARE(ms("switch", false), Nanoseconds{45}); // 2 + four times 10 + 3
        QCOMPARE(ms("switch", true), Nanoseconds{45});
        // Who waits for the bus holds up its device: a second microbatch cannot be computed meanwhile.
        const auto twoEach = [](const char* bus, bool blocking) {
            Design design = twoPipelines(bus, blocking);
            design.schedule = schedule(4, {0, 1},
                                       {"F0.0 F0.1 B0.0 B0.1", "F1.0 F1.1 B1.0 B1.1", "F0.2/1 F0.3/1 B0.2/1 B0.3/1",
                                        "F1.2/1 F1.3/1 B1.2/1 B1.3/1"});
            design.schedule.replicaPlacements = {{2, 3}};
            for (StageCosts& stage : design.costs.stages)
                stage.forward = 9'000'000;
            return predict(design).metrics.makespan;
        };
        QVERIFY(twoEach("switch", true) > twoEach("switch", false));
        QVERIFY(twoEach("switch", true) > twoEach("", true));
    }

    void onABusTheOrderFollowsFromTheTimes()
    {
        // The Program is compiled with replica 1 late and evaluated with replica 0 late: the bus serves who is ready.
        Design design = twoPipelines("switch", false);
        const auto firstTransfer = [](const Program& program, const Costs& costs) {
            Timeline timeline;
            Evaluator(program, costs).evaluate(timeline);
            TaskId first = none;
            for (TaskId t = 0; t < program.tasks.size(); ++t)
                if (program.tasks[t].kind == TaskKind::Transfer
                    && (first == none || timeline.start[t] < timeline.start[first]))
                    first = t;
            return program.tasks[first].microbatch();
        };
        design.costs.microbatches = {{1, 1}, {3, 1}};
        const Program program = compile(design.schedule, design.costs);
        QCOMPARE(firstTransfer(program, design.costs), 0);
        design.costs.microbatches = {{3, 1}, {1, 1}};
        QCOMPARE(firstTransfer(program, design.costs), 1);
    }

    void theCriticalPathGoesAlongABus()
    {
        const Design design = twoPipelines("switch", false);
        const Prediction p = predict(design);
        const std::vector<TaskId> path = criticalPath(p.program, p.timeline);
        const std::vector<Nanoseconds> room = slack(p.program, p.timeline);
        QCOMPARE(std::count_if(path.begin(), path.end(),
                               [&](TaskId t) { return p.program.tasks[t].kind == TaskKind::Transfer; }),
                 4);
        for (std::size_t i = 0; i < path.size(); ++i) {
            QCOMPARE(room[path[i]], Nanoseconds{0});
            if (i > 0)
                QCOMPARE(p.timeline.start[path[i]], p.timeline.end[path[i - 1]]);
        }
        // B1.0 waits for a transfer that waits for its turn, and not for a computation.
        QVERIFY(p.metrics.idleCauses[0].transfer > 0);
        QCOMPARE(busNames(p.program), std::string("switch"));
    }

    void blockingTransfersAreStepsOfBothDevices()
    {
        // One microbatch on two devices: F, transfer, F, B, transfer, B, with nothing beside one another.
        Costs costs = unitCosts(2);
        costs.link.latency = 500;
        costs.communication = Communication::Blocking;
        const Schedule one = schedule(1, {0, 1}, {"F0.0 B0.0", "F1.0 B1.0"});
        QCOMPARE(predict(designOf(one, costs)).metrics.makespan, Nanoseconds{7000});
        // With two microbatches device 0 cannot start F0.1 before F0.0 has been handed over.
        const Schedule two = schedule(2, {0, 1}, {"F0.0 F0.1 B0.0 B0.1", "F1.0 F1.1 B1.0 B1.1"});
        const Prediction p = predict(designOf(two, costs));
        QCOMPARE(p.timeline.start[taskOf(p.program, "F0.1")], Nanoseconds{1500});
    }

    void everyFamilyRunsWithBlockingTransfers()
    {
        for (const Family& family : families()) {
            const Schedule schedule = makeSchedule(family.name, possibleParameters(family, 4, 8));
            Costs costs = unitCosts(schedule.stages());
            costs.link.latency = 300;
            const Nanoseconds overlapped = predict(designOf(schedule, costs)).metrics.makespan;
            costs.communication = Communication::Blocking;
            const Prediction p = predict(designOf(schedule, costs));
            QVERIFY2(p.metrics.makespan >= overlapped, family.name.data());
            QVERIFY2(checkDeadlock(p.program, Communication::Blocking).empty(), family.name.data());
            QCOMPARE(checkLifetimes(p.program), QString());
            // Nothing runs on a device while it sends or receives; the two of a pair run together.
            std::vector<std::vector<std::pair<Nanoseconds, Nanoseconds>>> busy(p.program.devices.size());
            for (TaskId t = 0; t < p.program.tasks.size(); ++t) {
                const Task& task = p.program.tasks[t];
                const std::pair interval(p.timeline.start[t], p.timeline.end[t]);
                const bool second = std::any_of(p.program.overlaps.begin(), p.program.overlaps.end(),
                                                [t](const auto& pair) { return pair.second == t; });
                if (second)
                    continue;
                busy[task.device].push_back(interval);
                if (task.kind == TaskKind::Transfer)
                    busy[task.destination()].push_back(interval);
            }
            for (auto& intervals : busy) {
                std::sort(intervals.begin(), intervals.end());
                for (std::size_t i = 1; i < intervals.size(); ++i)
                    QVERIFY2(intervals[i].first >= intervals[i - 1].second, family.name.data());
            }
        }
    }

    void longerMicrobatchesTakeLongerAndKeepMore()
    {
        Costs costs = unitCosts(2);
        costs.link.bytesPerSecond = 1e9;
        costs.stages[0].output = 400;
        costs.microbatches = {{1, 1}, {2.5, 3}};
        const Schedule s = schedule(2, {0, 1}, {"F0.0 F0.1 B0.0 B0.1", "F1.0 B1.0 F1.1 B1.1"});
        const Prediction p = predict(designOf(s, costs));
        const auto duration = [&](const char* label) {
            const TaskId t = taskOf(p.program, label);
            return p.timeline.end[t] - p.timeline.start[t];
        };
        QCOMPARE(duration("F0.0"), Nanoseconds{1000});
        QCOMPARE(duration("F0.1"), Nanoseconds{2500});
        QCOMPARE(duration("B1.1"), Nanoseconds{5000});
        QCOMPARE(duration("F0.0 from"), Nanoseconds{400});
        QCOMPARE(duration("F0.1 from"), Nanoseconds{1200});
        QCOMPARE(duration("U0"), Nanoseconds{0});
        for (const Buffer& b : p.program.buffers)
            if (b.kind == BufferKind::SavedUntilInputGrad)
                QCOMPARE(b.bytes, Bytes{b.microbatch == 0 ? 1000 : 3000});
        costs.microbatches.pop_back();
        QVERIFY_THROWS_EXCEPTION(Error, compile(s, costs));
        costs.microbatches.push_back({-1, 1});
        QVERIFY_THROWS_EXCEPTION(Error, compile(s, costs));
    }
};

PIPEWRIGHT_TEST(TransfersTest, NoApplication)
#include "tst_transfers.moc"
