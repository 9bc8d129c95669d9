// SPDX-License-Identifier: GPL-3.0-or-later
// Transfer times: the zero-bubble papers' closed forms with communication, links that share a bus, transfers
// that hold up the compute stream, and microbatches of unequal length.
#include "core/families/family.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/program/deadlock.h"
#include "lifetimes.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>
#include <rapidcheck.h>

#include <map>

using namespace pipewright;
using namespace pipewright::test;

namespace {

using When = Program::ExtraDependency::When;

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

    void everyFamilyOnOneBusWaitsForItAndForNothingElse()
    {
        for (const Family& family : families()) {
            const Schedule schedule = makeSchedule(family.name, possibleParameters(family, 4, 8));
            Costs costs = unitCosts(schedule.stages());
            costs.link = {200, 16e9 / 700, "host bridge"}; // 700 ns on the wire
            const Design design = designOf(schedule, costs);
            const Prediction p = predict(design);
            TaskId previous = none;
            for (TaskId t = 0; t < p.program.tasks.size(); ++t) {
                if (p.program.tasks[t].kind != TaskKind::Transfer)
                    continue;
                Nanoseconds earliest = p.timeline.end[p.program.afterData[t]];
                if (previous != none)
                    earliest = std::max(earliest, p.timeline.end[previous] - 200);
                QVERIFY2(p.timeline.start[t] == earliest, family.name.data());
                previous = t;
            }
            QVERIFY(checkDeadlock(p.program).empty());
            costs.link.bus.clear();
            QVERIFY(predict(designOf(schedule, costs)).metrics.makespan <= p.metrics.makespan);
        }
    }

    void blockingTransfersAreStepsOfBothDevices()
    {
        // One microbatch on two devices: F, transfer, F, B, transfer, B, with nothing beside one another.
        Costs costs = unitCosts(2);
        costs.link.latency = 500;
        costs.blockingTransfers = true;
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
            costs.blockingTransfers = true;
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
                    busy[task.peer].push_back(interval);
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
