// SPDX-License-Identifier: GPL-3.0-or-later
// Links of the host backend take the time that the costs say: alone, blocking, on a bus; and so do the host's gaps.
#include "core/predict/evaluator.h"
#include "executor/host/hostbackend.h"
#include "executor/runtime/runtime.h"
#include "executor/runtime/timedwork.h"
#include "makers/tinydesigns.h"
#include "memorysink.h"
#include "testmain.h"

#include <QTest>

#include <map>
#include <vector>

using namespace pipewright;
using namespace pipewright::test;

namespace {

struct Step {
    std::vector<TaskRecord> records;
    StepOutcome outcome;
};

/// One step of blocks that sleep for `times`, each device a thread.
Step runOnce(const Program& program, std::vector<Nanoseconds> times, const RuntimeOptions& options)
{
    MemorySink sink;
    const auto backend = createHostBackend(static_cast<int>(program.devices.size()));
    TimedWork work(std::move(times), TimedWork::Pace::Sleep);
    Recorder recorder(sink, backend->devices(), 1024);
    Runtime runtime(program, *backend, work, &recorder, options);
    const StepOutcome outcome = runtime.runStep(0);
    recorder.finish();
    return {sink.tasks, outcome};
}

} // namespace

class TestEmulatedLinks : public QObject {
    Q_OBJECT

private slots:
    /// In real time nothing is shorter than it was asked to be.
    void modelledWorkKeepsTheHostsGapsInRealTime()
    {
        tiny::Case which = tiny::oneForwardOneBackward();
        constexpr Nanoseconds gap = 400'000;
        which.costs.hostGaps.assign(2, {});
        for (HostGaps& gaps : which.costs.hostGaps)
            gaps.before.fill(gap);
        const Program program = tiny::compiled(which);
        const auto records =
            runOnce(program, taskDurations(program, which.costs), {.hostGaps = hostGaps(program, which.costs)}).records;
        std::vector<Nanoseconds> ends(program.tasks.size(), 0);
        for (const TaskRecord& record : records)
            ends[record.task] = record.end;
        int behind = 0;
        for (const TaskRecord& record : records)
            if (const TaskId before = program.afterOnDevice[record.task];
                before != none && program.tasks[record.task].kind != TaskKind::Transfer) {
                QVERIFY2(record.start >= ends[before] + gap, QByteArray::fromStdString(program.label(record.task)));
                ++behind;
            }
        QVERIFY(behind >= 14);
    }

    void aBlockingTransferHoldsUpBothDevices()
    {
        tiny::Case which = tiny::oneForwardOneBackward();
        which.costs.link = {2'000'000, 0};
        which.costs.communication = Communication::Blocking;
        const Program program = tiny::compiled(which);
        const auto records =
            runOnce(program, workTimes(program, which.costs),
                    {.eagerSlots = 2, .emulateLinks = true, .durations = taskDurations(program, which.costs)})
                .records;
        for (const TaskRecord& transfer : records)
            for (const TaskRecord& block : records) {
                const Task& moved = program.tasks[transfer.task];
                const int device = program.tasks[block.task].device;
                if (moved.kind != TaskKind::Transfer || program.tasks[block.task].kind != TaskKind::Compute
                    || (device != moved.device && device != moved.destination()))
                    continue;
                QVERIFY(block.end <= transfer.start || block.start >= transfer.start + 2'000'000);
            }
    }

    /// Two pipelines of two devices side by side, whose transfers pass one bus.
    static tiny::Case twoPipelinesOnOneBus()
    {
        tiny::Case which = tiny::make({0, 1}, 2, {"F0.0 B0.0", "F1.0 B1.0", "F0.1/1 B0.1/1", "F1.1/1 B1.1/1"});
        which.schedule.replicaPlacements = {{2, 3}};
        for (StageCosts& stage : which.costs.stages) {
            stage.forward = 2'000'000;
            stage.backward = 3'000'000;
            stage.output = 10'000;
        }
        which.costs.link = {1'000'000, 1e6, "switch"}; // 10 ms on the wire
        return which;
    }

    void aBusCarriesOneTransferAfterTheOther_data()
    {
        QTest::addColumn<int>("eager");
        QTest::addColumn<bool>("blocking");
        QTest::newRow("rendezvous") << 0 << false;
        QTest::newRow("eager") << 2 << false;
        QTest::newRow("blocking") << 0 << true;
    }
    void aBusCarriesOneTransferAfterTheOther()
    {
        QFETCH(int, eager);
        QFETCH(bool, blocking);
        tiny::Case which = twoPipelinesOnOneBus();
        which.costs.communication = blocking ? Communication::Blocking : Communication::Overlapped;
        const Program program = tiny::compiled(which);
        const auto [records, outcome] = runOnce(program, workTimes(program, which.costs),
                                                {.eagerSlots = eager,
                                                 .emulateLinks = true,
                                                 .durations = taskDurations(program, which.costs),
                                                 .busUses = busUses(program, which.costs)});
        std::vector<Nanoseconds> starts;
        for (const TaskRecord& record : records)
            if (program.tasks[record.task].kind == TaskKind::Transfer)
                starts.push_back(record.start);
        std::sort(starts.begin(), starts.end());
        QCOMPARE(starts.size(), std::size_t(4));
        for (std::size_t i = 1; i < starts.size(); ++i)
            QVERIFY(starts[i] - starts[i - 1] >= 10'000'000);
        Timeline predicted;
        Evaluator(program, which.costs).evaluate(predicted);
        const Nanoseconds makespan = *std::max_element(predicted.end.begin(), predicted.end.end());
        QVERIFY(makespan > 40'000'000);
        QVERIFY(outcome.end - outcome.start >= makespan);
    }

    /// 5 ms of gradients each way over the wire that transfers pass too: 10 ms per stage, and two stages queue.
    void sumsOverReplicasPassTheBusOneAfterTheOther()
    {
        tiny::Case which = twoPipelinesOnOneBus();
        for (StageCosts& stage : which.costs.stages)
            stage.gradients = 5'000;
        const Program program = tiny::compiled(which);
        Timeline predicted;
        Evaluator(program, which.costs).evaluate(predicted);
        const auto [records, outcome] = runOnce(program, workTimes(program, which.costs),
                                                {.eagerSlots = 2,
                                                 .emulateLinks = true,
                                                 .durations = taskDurations(program, which.costs),
                                                 .busUses = busUses(program, which.costs)});
        std::vector<std::pair<Nanoseconds, Nanoseconds>> passes, sums;
        for (const TaskRecord& record : records) {
            const TaskKind kind = program.tasks[record.task].kind;
            if (kind == TaskKind::Transfer || kind == TaskKind::ReplicaSum)
                passes.emplace_back(record.start, record.end);
            if (kind == TaskKind::ReplicaSum) {
                sums.emplace_back(record.start, record.end);
                QCOMPARE(predicted.end[record.task] - predicted.start[record.task], Nanoseconds(11'000'000));
            }
        }
        QCOMPARE(sums.size(), std::size_t(2));
        for (const auto& [start, end] : sums)
            QVERIFY(end - start >= 11'000'000);
        // Each holds the wire for 10 ms; a transfer comes first, and is recorded from when it has the wire.
        std::sort(passes.begin(), passes.end());
        for (std::size_t i = 1; i < passes.size(); ++i)
            QVERIFY(passes[i].first - passes[0].first >= static_cast<Nanoseconds>(i) * 10'000'000);
        const Nanoseconds makespan = *std::max_element(predicted.end.begin(), predicted.end.end());
        QVERIFY(makespan >= 60'000'000); // four transfers and two sums
        QVERIFY(outcome.end - outcome.start >= makespan);
    }

    void busesMustBeKnown()
    {
        const tiny::Case which = twoPipelinesOnOneBus();
        const Program program = tiny::compiled(which);
        const auto backend = createHostBackend(4);
        TimedWork work(workTimes(program, which.costs), TimedWork::Pace::Virtual);
        try {
            Runtime runtime(program, *backend, work, nullptr,
                            {.virtualClock = true, .durations = taskDurations(program, which.costs)});
            QFAIL("it ran");
        } catch (const Error& error) {
            QVERIFY2(std::string(error.what()).find("which transfers share a bus") != std::string::npos, error.what());
        }
    }

    void emulatedLinksTakeTheirTime()
    {
        tiny::Case which = tiny::oneForwardOneBackward();
        which.costs.link = {3'000'000, 0};
        const Program program = tiny::compiled(which);
        const auto records = runOnce(program, taskDurations(program, which.costs),
                                     {.emulateLinks = true, .durations = taskDurations(program, which.costs)})
                                 .records;
        std::map<TaskId, TaskRecord> of;
        for (const TaskRecord& record : records)
            of[record.task] = record;
        for (TaskId task = 0; task < program.tasks.size(); ++task) {
            if (program.tasks[task].kind == TaskKind::Transfer)
                QVERIFY(of[task].end - of[task].start >= 3'000'000);
            else if (program.tasks[task].kind == TaskKind::Compute && program.afterData[task] != none)
                QVERIFY(of[task].start >= of[program.afterData[task]].end);
        }
    }
};

PIPEWRIGHT_TEST(TestEmulatedLinks, QCoreApplication)
#include "tst_emulatedlinks.moc"
