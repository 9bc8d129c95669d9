// SPDX-License-Identifier: GPL-3.0-or-later
// Compiling: transfers inferred once per value and consuming device and grouped, one global order, every buffer freed
// exactly once after its last use, memory as the instruction lists say, shared parameters reduced once.
#include "core/families/family.h"
#include "core/predict/evaluator.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/program/deadlock.h"
#include "core/program/liveness.h"
#include "lifetimes.h"
#include "makers/costs.h"
#include "makers/schedules.h"
#include "testmain.h"

#include <QTest>

#include <map>
#include <set>

using namespace pipewright;
using namespace pipewright::test;

namespace {

Schedule chain(int stages, const std::vector<int>& deviceOfStage, int microbatches)
{
    // GPipe on any placement: forwards by stage, backwards by stage reversed.
    Schedule s;
    s.microbatches = microbatches;
    s.deviceOfStage = deviceOfStage;
    s.order.resize(static_cast<std::size_t>(*std::max_element(deviceOfStage.begin(), deviceOfStage.end()) + 1));
    for (int stage = 0; stage < stages; ++stage)
        for (int m = 0; m < microbatches; ++m)
            s.order[deviceOfStage[stage]].push_back({Op::F, stage, m});
    for (int stage = stages; stage-- > 0;)
        for (int m = 0; m < microbatches; ++m)
            s.order[deviceOfStage[stage]].push_back({Op::B, stage, m});
    return s;
}

} // namespace

class CompileTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyFamilyFreesEverythingOnceAndCannotHang_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("devices");
        QTest::addColumn<int>("microbatches");
        for (const Family& family : families())
            for (const auto& [p, m] : {std::pair{1, 3}, {2, 2}, {3, 7}, {4, 8}, {5, 20}})
                QTest::addRow("%s p%d m%d", family.name.data(), p, m)
                    << QString::fromUtf8(family.name.data(), static_cast<qsizetype>(family.name.size())) << p << m;
    }

    void everyFamilyFreesEverythingOnceAndCannotHang()
    {
        QFETCH(QString, family);
        QFETCH(int, devices);
        QFETCH(int, microbatches);
        const Family& found = *findFamily(family.toStdString());
        const Schedule s = makeSchedule(found.name, possibleParameters(found, devices, microbatches));
        for (const int outstanding : {1, 2, 5}) {
            CompileOptions options;
            options.outstandingSends = outstanding;
            const Program program = compile(s, unitCosts(s.stages()), {}, options);
            QCOMPARE(checkLifetimes(program), QString());
            QVERIFY(checkDeadlock(program).empty());
            QCOMPARE(program.computeCount(), s.blocks());
        }
    }

    void noTransferWithinADevice()
    {
        // V placement: the middle boundary is local.
        const Program program = compile(chain(4, {0, 1, 1, 0}, 3), unitCosts(4));
        QCOMPARE(program.transferCount(), std::int64_t{2 * 3 * 2});
        QCOMPARE(checkLifetimes(program), QString());
    }

    void aSkipToTwoDevicesIsSentTwiceAndToOneDeviceOnce()
    {
        // JaxPP case (b): the value of stage 0 is used by stages 1 and 3.
        const auto transfersOfStage0 = [](const Program& program) {
            std::map<int, int> perMicrobatch;
            for (const Task& t : program.tasks)
                if (t.kind == TaskKind::Transfer && t.op == Op::F && t.stage == 0)
                    ++perMicrobatch[t.microbatch()];
            return perMicrobatch;
        };
        const Dataflow dataflow{{{0, 1, 64}, {0, 3, 64}}, {}};
        const Program apart = compile(chain(4, {0, 1, 2, 3}, 2), unitCosts(4), dataflow);
        QCOMPARE(transfersOfStage0(apart), (std::map<int, int>{{0, 2}, {1, 2}}));
        const Program together = compile(chain(4, {0, 1, 2, 1}, 2), unitCosts(4), dataflow);
        QCOMPARE(transfersOfStage0(together), (std::map<int, int>{{0, 1}, {1, 1}}));
        for (const Program* program : {&apart, &together}) {
            QCOMPARE(checkLifetimes(*program), QString());
            QVERIFY(checkDeadlock(*program).empty());
        }
    }

    void valuesOfOneBlockForOneDeviceTravelTogether()
    {
        const Dataflow dataflow{{{0, 1, 64}}, {}};
        const Program program = compile(chain(2, {0, 1}, 1), unitCosts(2), dataflow);
        QCOMPARE(program.transferCount(), std::int64_t{2});
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            if (program.tasks[t].kind == TaskKind::Transfer)
                QCOMPARE(program.reads(t).size(), std::size_t{2});
    }

    void aSkipDelaysItsConsumer()
    {
        Costs costs = unitCosts(3);
        costs.linkOfPair[{0, 2}].latency = 50'000;
        Design design;
        design.schedule = chain(3, {0, 1, 2}, 1);
        design.costs = costs;
        const Nanoseconds without = predict(design).metrics.makespan;
        design.dataflow.skips = {{0, 2, 8}};
        QCOMPARE(without, Nanoseconds{9'000});
        QCOMPARE(predict(design).metrics.makespan, Nanoseconds{1'000 + 50'000 + 1'000 + 6'000});
    }

    void aSharedParameterIsReducedOnceAfterTheLoop()
    {
        const int microbatches = 5;
        const Dataflow tied{{}, {{0, 2, 4096}}};
        const Schedule s = chain(3, {0, 1, 2}, microbatches);
        const Program once = compile(s, unitCosts(3), tied);
        const auto count = [](const Program& p, auto test) {
            return std::count_if(p.tasks.begin(), p.tasks.end(), test);
        };
        QCOMPARE(count(once, [](const Task& t) { return isReduction(t.kind); }), 1);
        QCOMPARE(once.transferCount(), std::int64_t{2 * microbatches * 2});
        QCOMPARE(checkLifetimes(once), QString());

        CompileOptions options;
        options.commuteSharedGradients = false;
        const Program each = compile(s, unitCosts(3), tied, options);
        QCOMPARE(count(each, [](const Task& t) { return isReduction(t.kind); }), 0);
        const auto toRoot = [](const Task& t) {
            return t.kind == TaskKind::Transfer && t.device == 2 && t.destination() == 0;
        };
        QCOMPARE(count(each, toRoot), microbatches);
        QCOMPARE(checkLifetimes(each), QString());
    }

    void reductionsComeBeforeTheUpdatesOfTheirOwners()
    {
        const Program program = compile(chain(2, {0, 1}, 2), unitCosts(2), {{}, {{0, 1, 64}}});
        Timeline timeline;
        Costs costs = unitCosts(2);
        costs.reduce = 500;
        costs.stages[0].update = costs.stages[1].update = 100;
        Evaluator(program, costs).evaluate(timeline);
        QCOMPARE(*std::max_element(timeline.end.begin(), timeline.end.end()), Nanoseconds{3 * 3000 + 500 + 100});
    }

    void aSentBufferOutlivesItsSend()
    {
        // JaxPP case (d): the value is sent, and freed only behind its own later use and the send.
        const Program program = compile(chain(2, {0, 1}, 1), unitCosts(2), {{{0, 1, 8}}, {}});
        for (const Program::Device& device : program.devices)
            for (std::size_t i = 0; i < device.instructions.size(); ++i) {
                const Instruction& free = device.instructions[i];
                if (free.kind != InstructionKind::Free || free.task == none)
                    continue;
                const auto send =
                    std::find_if(device.instructions.begin(), device.instructions.end(), [&](const Instruction& s) {
                        return s.kind == InstructionKind::Send && s.task == free.task;
                    });
                QVERIFY(send < device.instructions.begin() + static_cast<std::ptrdiff_t>(i));
            }
        QCOMPARE(checkLifetimes(program), QString());
    }

    void everyDevicesListIsAProjectionOfTheGlobalOrder()
    {
        FamilyParameters parameters;
        parameters.devices = 4;
        const Schedule s = makeSchedule("zb-h2", parameters);
        const Program program = compile(s, unitCosts(4));
        for (const Program::Device& device : program.devices) {
            TaskId previous = 0;
            for (const Instruction& i : device.instructions)
                if (i.kind != InstructionKind::Free) {
                    QVERIFY(i.task >= previous);
                    previous = i.task;
                }
        }
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            QVERIFY(program.afterOnDevice[t] == none || program.afterOnDevice[t] < t);
            QVERIFY(program.afterData[t] == none || program.afterData[t] < t);
        }
    }

    void theListsAreTheSameForAnyNumberOfThreads()
    {
        for (const char* family :
             {"dualpipe", "seq1f1b", "v-half", "pipedream-2bw"}) { // overlaps, pieces, a V, updates
            FamilyParameters parameters = sized(6, 12);
            const Schedule s = makeSchedule(family, parameters);
            Costs costs = unitCosts(s.stages());
            for (StageCosts& stage : costs.stages) {
                stage.savedUntilInputGrad = 5;
                stage.savedUntilWeightGrad = 3;
                stage.savedFromInputGrad = stage.workspaceForward = 2;
                stage.output = stage.gradients = stage.parameters = 7;
            }
            Dataflow dataflow;
            if (parameters.devices == s.stages())
                dataflow.skips = {{0, 3, 11}, {0, 5, 11}};
            const Program one = compile(s, costs, dataflow);
            for (const int threads : {1, 2, 3, 6, 50}) {
                Program several = one;
                projectOntoDevices(several, s.devices(), CompileOptions{}.outstandingSends, threads);
                for (std::size_t d = 0; d < one.devices.size(); ++d) {
                    const Program::Device &expected = one.devices[d], &device = several.devices[d];
                    QVERIFY(std::equal(device.instructions.begin(), device.instructions.end(),
                                       expected.instructions.begin(), expected.instructions.end(),
                                       [](const Instruction& a, const Instruction& b) {
                                           return a.kind == b.kind && a.task == b.task && a.buffer == b.buffer;
                                       }));
                    QCOMPARE(device.liveBytes, expected.liveBytes);
                    QCOMPARE(device.persistentBytes, expected.persistentBytes);
                    QCOMPARE(device.peakBytes, expected.peakBytes);
                    QCOMPARE(device.peakActivations, expected.peakActivations);
                }
            }
        }
    }

    void exchangedSendsOnOneChannelAreACycle()
    {
        FamilyParameters parameters = sized(2, 4);
        Program program = compile(makeSchedule("gpipe", parameters), unitCosts(2));
        std::vector<std::size_t> sends;
        auto& list = program.devices[0].instructions;
        for (std::size_t i = 0; i < list.size(); ++i)
            if (list[i].kind == InstructionKind::Send)
                sends.push_back(i);
        std::swap(list[sends[0]].task, list[sends[1]].task);
        const Diagnostics d = checkDeadlock(program);
        QCOMPARE(d.size(), std::size_t{1});
        const QString text = QString::fromStdString(toString(d.front()));
        QVERIFY2(text.contains("F0.0") && text.contains("F0.1") && text.contains("waits for"), qPrintable(text));
    }

    void blockingSendsThatCrossAreACycleAndOverlappedOnesAreNot()
    {
        // Both devices send before they receive: fine when posted, a hang when each call blocks.
        FamilyParameters parameters = sized(2, 8);
        const Program program = compile(makeSchedule("1f1b", parameters), unitCosts(2));
        QVERIFY(checkDeadlock(program, Communication::Overlapped).empty());
        Program crossed = program;
        // Let device 1 post its first gradient before it takes the second activation and device 0 likewise.
        bool moved = false;
        auto& list = crossed.devices[1].instructions;
        for (std::size_t i = 0; i + 1 < list.size() && !moved; ++i)
            for (std::size_t j = i + 1; j < list.size() && !moved; ++j)
                if (list[i].kind == InstructionKind::Receive && list[j].kind == InstructionKind::Send) {
                    std::rotate(list.begin() + static_cast<std::ptrdiff_t>(i),
                                list.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                list.begin() + static_cast<std::ptrdiff_t>(j) + 1);
                    moved = true;
                }
        QVERIFY(moved);
        QVERIFY(!checkDeadlock(crossed, Communication::Blocking).empty());
    }

    void costsMustFitTheSchedule()
    {
        QVERIFY_THROWS_EXCEPTION(Error, compile(chain(2, {0, 1}, 1), unitCosts(3)));
        Costs negative = unitCosts(2);
        negative.stages[1].forward = -1;
        QVERIFY_THROWS_EXCEPTION(Error, compile(chain(2, {0, 1}, 1), negative));
        QVERIFY_THROWS_EXCEPTION(Error, compile(chain(2, {0, 1}, 1), unitCosts(2), {{}, {{0, 7, 1}}}));
        QVERIFY_THROWS_EXCEPTION(Error, compile(chain(2, {0, 1}, 1), unitCosts(2), {{{1, 0, 1}}, {}}));
    }

    void zeroDurationsStillCompile()
    {
        FamilyParameters parameters;
        const Schedule s = makeSchedule("zb-h1", parameters);
        Costs costs = unitCosts(4);
        for (StageCosts& stage : costs.stages)
            stage.forward = stage.inputGrad = stage.weightGrad = stage.backward = 0;
        const Program program = compile(s, costs);
        QCOMPARE(checkLifetimes(program), QString());
        QVERIFY(checkDeadlock(program).empty());
    }

    void anIncompleteScheduleCanBeShownButNotCompiledForReal()
    {
        Design design;
        design.schedule = schedule(2, {0, 1}, {"F0.0 F0.1", "F1.1"});
        design.costs = unitCosts(2);
        QVERIFY_THROWS_EXCEPTION(Error, predict(design));
        const Prediction shown = predictPlaced(design);
        QCOMPARE(shown.program.computeCount(), std::int64_t{3});
        QCOMPARE(shown.metrics.makespan, Nanoseconds{3'000});
        design.schedule.order.assign(2, {});
        QCOMPARE(predictPlaced(design).metrics.makespan, Nanoseconds{0});
    }
};

PIPEWRIGHT_TEST(CompileTest, NoApplication)
#include "tst_compile.moc"
