// SPDX-License-Identifier: GPL-3.0-or-later
// The runtime on the host backend: results and peaks on every kind of schedule, recording, deadlocks, stalls, faults.
#include "checksumwork.h"
#include "core/predict/evaluator.h"
#include "executor/host/hostbackend.h"
#include "executor/runtime/runtime.h"
#include "executor/runtime/timedwork.h"
#include "makers/faults.h"
#include "makers/tinydesigns.h"
#include "memorysink.h"
#include "testmain.h"

#include <QTest>

#include <chrono>
#include <cmath>
#include <map>
#include <thread>

using namespace pipewright;
using test::MemorySink;

namespace {

/// Runs the blocks one after the other on one device's worth of memory: what every schedule must equal.
std::vector<std::byte> sequentialChecksum(const tiny::Case& which)
{
    tiny::Case alone = which;
    const int stages = which.schedule.stages();
    alone.schedule.deviceOfStage.assign(static_cast<std::size_t>(stages), 0);
    for (std::vector<int>& placement : alone.schedule.replicaPlacements)
        placement = alone.schedule.deviceOfStage;
    alone.schedule.overlaps.clear();
    auto& list = alone.schedule.order;
    list.assign(1, {});
    const bool split = which.schedule.backward == BackwardStyle::Split;
    const int pieces = which.schedule.sequencePieces;
    for (int first = 0; first < which.schedule.microbatches; first += pieces) {
        for (int m = first; m < first + pieces; ++m)
            for (int s = 0; s < stages; ++s)
                list[0].push_back(which.schedule.block(Op::F, s, m));
        for (int m = first + pieces - 1; m >= first; --m)
            for (int s = stages - 1; s >= 0; --s) {
                list[0].push_back(which.schedule.block(split ? Op::I : Op::B, s, m));
                if (split)
                    list[0].push_back(which.schedule.block(Op::W, s, m));
            }
    }
    const Program program = tiny::compiled(alone);
    const auto backend = createHostBackend(1);
    test::ChecksumWork work;
    Runtime runtime(program, *backend, work, nullptr, {.checkMemory = true});
    runtime.runStep(0);
    return work.result();
}

std::vector<std::byte> runChecksum(const Program& program, const RuntimeOptions& options, int steps = 1)
{
    const auto backend = createHostBackend(static_cast<int>(program.devices.size()));
    test::ChecksumWork work;
    Runtime runtime(program, *backend, work, nullptr, options);
    for (int step = 0; step < steps; ++step)
        runtime.runStep(step);
    return work.result();
}

std::uint32_t indexOf(const Program& program, int device, InstructionKind kind, int nth)
{
    const auto& list = program.devices[device].instructions;
    for (std::uint32_t i = 0; i < list.size(); ++i) {
        if (list[i].kind == kind && nth-- == 0)
            return i;
    }
    return static_cast<std::uint32_t>(list.size());
}

/// Device 0 sends two forwards in the opposite order of the receives of device 1.
Program crossed()
{
    Program program = tiny::compiled(tiny::oneForwardOneBackward());
    auto& list = program.devices[0].instructions;
    std::swap(list[indexOf(program, 0, InstructionKind::Send, 0)], list[indexOf(program, 0, InstructionKind::Send, 1)]);
    return program;
}

} // namespace

class TestRuntime : public QObject {
    Q_OBJECT

private slots:
    void everyScheduleGivesTheSequentialResult_data() { cases(); }
    void everyScheduleGivesTheSequentialResult()
    {
        QFETCH(int, index);
        QFETCH(int, eager);
        const tiny::Case which = tiny::all[index].make();
        const Program program = tiny::compiled(which);
        const auto result = runChecksum(program, {.eagerSlots = eager, .checkMemory = true}, 3);
        QVERIFY(result == sequentialChecksum(which));
    }

    void theMeasuredPeakIsThePredictedPeak_data() { cases(); }
    void theMeasuredPeakIsThePredictedPeak()
    {
        QFETCH(int, index);
        QFETCH(int, eager);
        for (const int outstanding : {1, 2, 5}) {
            const Program program = tiny::compiled(tiny::all[index].make(), outstanding);
            const auto backend = createHostBackend(static_cast<int>(program.devices.size()));
            test::ChecksumWork work;
            Runtime runtime(program, *backend, work, nullptr, {.eagerSlots = eager, .checkMemory = true});
            for (int step = 0; step < 2; ++step)
                runtime.runStep(step);
            for (std::size_t d = 0; d < program.devices.size(); ++d) {
                QCOMPARE(runtime.peakBytes()[d], program.devices[d].peakBytes);
                QVERIFY(runtime.arenaBytes()[d] + program.devices[d].persistentBytes >= program.devices[d].peakBytes);
            }
        }
    }

    void theVirtualClockIsThePredictor_data()
    {
        QTest::addColumn<int>("index");
        QTest::addColumn<int>("eager");
        QTest::addColumn<int>("variant");
        const std::pair<const char*, tiny::Variant> variants[] = {
            {"plain", tiny::Variant::Plain},
            {"blocking transfers", tiny::Variant::Blocking},
            {"shared link", tiny::Variant::SharedLink},
            {"uneven microbatches", tiny::Variant::UnevenMicrobatches},
            {"gaps of the host", tiny::Variant::HostGaps},
            {"stated transfers", tiny::Variant::StatedTransfers}};
        for (int i = 0; i < static_cast<int>(std::size(tiny::all)); ++i)
            for (const int eager : {0, 1, 3})
                for (const auto& [name, variant] : variants)
                    QTest::addRow("%s, %d eager, %s", tiny::all[i].name, eager, name)
                        << i << eager << static_cast<int>(variant);
    }
    void theVirtualClockIsThePredictor()
    {
        QFETCH(int, index);
        QFETCH(int, eager);
        QFETCH(int, variant);
        tiny::Case which = tiny::all[index].make();
        tiny::apply(static_cast<tiny::Variant>(variant), which);
        which.schedule.pins.push_back({{Op::F, 1, 1, 0}, 4000});
        const Program program = tiny::compiled(which);
        const Evaluator evaluator(program, which.costs);
        Timeline predicted;
        evaluator.evaluate(predicted);

        MemorySink sink;
        const auto backend = createHostBackend(static_cast<int>(program.devices.size()));
        TimedWork work(taskDurations(program, which.costs), TimedWork::Pace::Virtual);
        Recorder recorder(sink, backend->devices(), 1024);
        Runtime runtime(program, *backend, work, &recorder,
                        {.eagerSlots = eager,
                         .virtualClock = true,
                         .durations = taskDurations(program, which.costs),
                         .busUses = busUses(program, which.costs),
                         .hostGaps = hostGaps(program, which.costs)});
        std::vector<StepOutcome> outcomes;
        for (int step = 0; step < 2; ++step) {
            outcomes.push_back(runtime.runStep(step));
            recorder.record(StepRecord{step, outcomes.back().start, outcomes.back().end, outcomes.back().loss});
        }
        recorder.finish();
        QCOMPARE(recorder.dropped(), 0);
        QCOMPARE(sink.tasks.size(), 2 * program.tasks.size());
        QCOMPARE(outcomes[1].start, outcomes[0].end);
        for (const TaskRecord& record : sink.tasks) {
            const Nanoseconds zero = outcomes[record.step].start;
            const QByteArray label = QByteArray::fromStdString(program.label(record.task));
            QVERIFY2(record.start - zero == predicted.start[record.task], label);
            QVERIFY2(record.end - zero == predicted.end[record.task], label);
        }
    }

    void everyTaskIsRecordedOncePerStepAndMemoryAddsUpToThePeak()
    {
        const Program program = tiny::compiled(tiny::zeroBubble());
        MemorySink sink;
        const auto backend = createHostBackend(2);
        test::ChecksumWork work;
        Recorder recorder(sink, 2, 1024);
        Runtime runtime(program, *backend, work, &recorder, {});
        for (int step = 0; step < 3; ++step) {
            const StepOutcome outcome = runtime.runStep(step);
            recorder.record(StepRecord{step, outcome.start, outcome.end, outcome.loss});
        }
        recorder.finish();
        std::map<std::pair<int, TaskId>, int> seen;
        for (const TaskRecord& record : sink.tasks) {
            ++seen[{record.step, record.task}];
            QVERIFY(record.start <= record.end);
            const StepRecord& step = sink.steps[record.step];
            QVERIFY(step.start <= record.start && record.end <= step.end);
            const Task& task = program.tasks[record.task];
            QCOMPARE(record.device, task.recordedOn());
        }
        QCOMPARE(seen.size(), 3 * program.tasks.size());
        for (const auto& [key, count] : seen)
            QCOMPARE(count, 1);
        std::vector<Bytes> highest(2, 0);
        for (const MemoryRecord& record : sink.memory)
            highest[record.device] = std::max(highest[record.device], record.bytes);
        QCOMPARE(highest, runtime.peakBytes());
    }

    void aFullRingCountsWhatItDrops()
    {
        struct Blocked final : RecordSink {
            void append(const std::vector<TaskRecord>& records) override
            {
                count += static_cast<std::int64_t>(records.size());
            }
            void append(const std::vector<MemoryRecord>& records) override
            {
                count += static_cast<std::int64_t>(records.size());
            }
            void append(const StepRecord&) override {}
            void commit() override {}
            std::int64_t count = 0;
        } sink;
        Recorder recorder(sink, 1, 4);
        constexpr int many = 10'000;
        for (int i = 0; i < many; ++i)
            recorder.record(0, TaskRecord{static_cast<TaskId>(i), 0, 0, i, i});
        recorder.finish();
        QVERIFY(recorder.dropped() > 0);
        QCOMPARE(recorder.dropped() + sink.count, many);
    }

    void aFailingSinkIsReportedAndItsRecordsCountAsDropped()
    {
        struct Full final : RecordSink {
            void append(const std::vector<TaskRecord>&) override { throw Error("trace", "the disk is full"); }
            void append(const std::vector<MemoryRecord>&) override {}
            void append(const StepRecord&) override {}
            void commit() override {}
        } sink;
        Recorder recorder(sink, 1, 16);
        recorder.record(0, TaskRecord{});
        QVERIFY_THROWS_EXCEPTION(Error, recorder.finish());
        QCOMPARE(recorder.dropped(), 1);
    }

    void whatWasRecordedBeforeAFlushIsWithTheSinkBehindIt()
    {
        MemorySink sink;
        Recorder recorder(sink, 1, 16);
        for (int i = 0; i < 100; ++i) {
            recorder.record(0, TaskRecord{static_cast<TaskId>(i), i, 0, i, i});
            recorder.record(StepRecord{i, i, i + 1, 0});
            recorder.flush();
            QCOMPARE(sink.tasks.size(), static_cast<std::size_t>(i + 1));
            QCOMPARE(sink.steps.size(), static_cast<std::size_t>(i + 1));
        }
    }

    void crossedTransfersAreADeadlockThatNamesBothDevices()
    {
        const Program program = crossed();
        const std::string text = test::faultOf([&] { runChecksum(program, {.deadline = 2'000'000'000}); });
        QVERIFY2(text.find("device 1: error: waits for F0.0 from device 0, but on this link device 0 sends F0.1 where "
                           "device 1 receives F0.0")
                     != std::string::npos,
                 text.c_str());
        QVERIFY2(text.find("device 0: error: waits") != std::string::npos, text.c_str());
        QVERIFY2(text.find("the same order") != std::string::npos, text.c_str());
    }

    void slotsDoNotHideCrossedTransfers()
    {
        const Program program = crossed();
        const std::string text =
            test::faultOf([&] { runChecksum(program, {.eagerSlots = 4, .deadline = 2'000'000'000}); });
        QVERIFY2(text.find("device 0 sends F0.1 where device 1 receives F0.0") != std::string::npos, text.c_str());
    }

    void aDeadDeviceEndsTheRunAndIsNamed()
    {
        const Program program = tiny::compiled(tiny::oneForwardOneBackward());
        const std::uint32_t at = indexOf(program, 0, InstructionKind::Send, 1);
        const std::string text = test::faultOf([&] {
            runChecksum(program, {.faults = {{Fault::Kind::Dies, 0, 1, at, 0}}}, 3);
        });
        QVERIFY2(text.find("step 1: error: no device can go on") != std::string::npos, text.c_str());
        const std::string stopped = "stopped at instruction " + std::to_string(at) + ": send of F0.1";
        QVERIFY2(text.find("device 0: error: " + stopped) != std::string::npos, text.c_str());
        QVERIFY2(
            text.find("device 1: error: waits for F0.1 from device 0, which has not been sent (device 0 " + stopped)
                != std::string::npos,
            text.c_str());
    }

    void aStalledDeviceIsGivenUpAfterTheDeadline()
    {
        const Program program = tiny::compiled(tiny::oneForwardOneBackward());
        const std::string text = test::faultOf([&] {
            runChecksum(program, {.deadline = 100'000'000, .faults = {{Fault::Kind::Stalls, 1, 0, 2, 0}}});
        });
        QVERIFY2(text.find("no device has made progress for 100") != std::string::npos, text.c_str());
        QVERIFY2(text.find("device 1: error: hangs at instruction 2") != std::string::npos, text.c_str());
        QVERIFY2(text.find("(device 1 hangs at instruction 2") != std::string::npos, text.c_str());
    }

    void aSlowDeviceIsNoDeadlock()
    {
        const tiny::Case which = tiny::oneForwardOneBackward();
        const Program program = tiny::compiled(which);
        // Altogether longer than the deadline, but something moves all the time.
        const auto result = runChecksum(
            program,
            {.deadline = 1'000'000'000, .checkMemory = true, .faults = {{Fault::Kind::Slows, 1, 0, 0, 30'000'000}}});
        QVERIFY(result == sequentialChecksum(which));
    }

    void cancellingEndsTheStepThatIsUnderWay()
    {
        tiny::Case which = tiny::gpipe();
        for (StageCosts& stage : which.costs.stages)
            stage.forward = 3'600'000'000'000; // nobody waits for this block to end by itself
        const Program program = tiny::compiled(which);
        std::atomic<bool> cancel{false};
        std::atomic<int> begun{0};
        const auto backend = createHostBackend(3);
        const TimedWork hour(workTimes(program, which.costs), TimedWork::Pace::Sleep);
        test::ChecksumWork work;
        work.onCompute = [&](const TaskContext& context) {
            ++begun;
            cancel = true;
            hour.spend(context);
        };
        Runtime runtime(program, *backend, work, nullptr, {.cancel = &cancel});
        QVERIFY(runtime.runStep(0).cancelled);
        QCOMPARE(begun.load(), 1); // the others were waiting for it
    }

    /// As a library does that tries for ever to get memory.
    void aBlockThatNeverComesBackIsNotWaitedFor_data()
    {
        QTest::addColumn<bool>("cancelled");
        QTest::newRow("cancelled") << true;
        QTest::newRow("deadline") << false;
    }

    void aBlockThatNeverComesBackIsNotWaitedFor()
    {
        QFETCH(bool, cancelled);
        const Program program = tiny::compiled(tiny::gpipe());
        std::atomic<bool> cancel{false}, released{false};
        const auto backend = createHostBackend(3);
        test::ChecksumWork work;
        work.onCompute = [&](const TaskContext&) {
            cancel = cancelled;
            while (!released) // deaf to `stopped`
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
        };
        Diagnostics told;
        RuntimeOptions options;
        options.cancel = &cancel;
        options.deadline = 50'000'000;
        options.patience = 50'000'000;
        options.abandon = [&](const Diagnostics& why) {
            told = why;
            released = true; // the program would end here
        };
        Runtime runtime(program, *backend, work, nullptr, options);
        try {
            QVERIFY(runtime.runStep(0).cancelled && cancelled);
        } catch (const Error&) {
            QVERIFY(!cancelled);
        }
        QVERIFY(told.size() >= 2);
        QVERIFY2(told.back().what.starts_with("does not come back from F0.0"), told.back().what.c_str());
    }

    void aCancelBeforeTheStepBeginsNothing()
    {
        const Program program = tiny::compiled(tiny::gpipe());
        const std::atomic<bool> cancel{true};
        std::atomic<int> begun{0};
        const auto backend = createHostBackend(3);
        test::ChecksumWork work;
        work.onCompute = [&](const TaskContext&) { ++begun; };
        Runtime runtime(program, *backend, work, nullptr, {.cancel = &cancel});
        QVERIFY(runtime.runStep(0).cancelled);
        QCOMPARE(begun.load(), 0);
    }

    void anErrorInTheMathsNamesTheBlockAndStopsTheRun()
    {
        const Program program = tiny::compiled(tiny::gpipe());
        const auto backend = createHostBackend(3);
        test::ChecksumWork work;
        work.onCompute = [](const TaskContext& context) {
            if (toString(context.task->block()) == "F1.1")
                throw Error("maths", "the loss is not a number");
        };
        Runtime runtime(program, *backend, work, nullptr, {});
        const std::string text = test::faultOf([&] { runtime.runStep(0); });
        QVERIFY2(text.find("the loss is not a number") != std::string::npos, text.c_str());
        QVERIFY2(text.find("device 1: error: failed at instruction") != std::string::npos, text.c_str());
        QVERIFY2(text.find("F1.1") != std::string::npos, text.c_str());
    }

    void aReadAfterTheFreeMeetsNaNs()
    {
        // Without its Free moved, the saved activations are intact; freed before the backward, they are not.
        Program program = tiny::compiled(tiny::gpipe());
        auto& list = program.devices[2].instructions;
        const auto isSaved = [&](const Instruction& i) {
            return i.kind == InstructionKind::Free && i.buffer != none
                   && program.buffers[i.buffer].kind == BufferKind::SavedUntilInputGrad;
        };
        const auto free = std::find_if(list.begin(), list.end(), isSaved);
        QVERIFY(free != list.end());
        const auto backward = std::find_if(list.begin(), free, [&](const Instruction& i) {
            return i.kind == InstructionKind::Compute && program.tasks[i.task].op == Op::B;
        });
        std::rotate(backward, free, free + 1);
        QVERIFY(runChecksum(program, {.checkMemory = true}) != sequentialChecksum(tiny::gpipe()));
    }

    void aBufferWithoutFreeIsRefusedBeforeAnythingRuns()
    {
        Program program = tiny::compiled(tiny::gpipe());
        auto& list = program.devices[1].instructions;
        list.erase(std::find_if(list.begin(), list.end(),
                                [](const Instruction& i) { return i.kind == InstructionKind::Free; }));
        const std::string text = test::faultOf([&] { runChecksum(program, {}); });
        QVERIFY2(text.find("device 1, instruction") != std::string::npos, text.c_str());
        QVERIFY2(text.find("which is never freed") != std::string::npos, text.c_str());
    }

    void aPairsTimeIsSharedOutBetweenItsBlocks()
    {
        const tiny::Case which = tiny::overlapping();
        const Program program = tiny::compiled(which);
        QCOMPARE(program.overlaps.size(), which.schedule.overlaps.size());
        const auto predicted = taskDurations(program, which.costs), spent = workTimes(program, which.costs);
        std::vector<bool> paired(program.tasks.size(), false);
        for (const Program::Overlap& pair : program.overlaps) {
            QCOMPARE(predicted[pair.first], predicted[pair.second]);
            QCOMPARE(spent[pair.first] + spent[pair.second], predicted[pair.first]);
            const Task& first = program.tasks[pair.first];
            QCOMPARE(spent[pair.first], Nanoseconds(std::llround(0.75 * which.costs.duration(first.op, first.stage))));
            paired[pair.first] = paired[pair.second] = true;
        }
        for (TaskId task = 0; task < program.tasks.size(); ++task)
            QVERIFY(paired[task] || spent[task] == predicted[task]);
    }

private:
    static void cases()
    {
        QTest::addColumn<int>("index");
        QTest::addColumn<int>("eager");
        for (int i = 0; i < static_cast<int>(std::size(tiny::all)); ++i) {
            for (const int eager : {0, 1, 3})
                QTest::addRow("%s, %d eager", tiny::all[i].name, eager) << i << eager;
        }
    }
};

PIPEWRIGHT_TEST(TestRuntime, QCoreApplication)
#include "tst_runtime.moc"
