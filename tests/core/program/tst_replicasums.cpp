// SPDX-License-Identifier: GPL-3.0-or-later
// Gradients of replicas are summed while earlier stages are still at work, and hold up none of their blocks.
#include "core/predict/predict.h"
#include "core/program/deadlock.h"
#include "core/program/replicasums.h"
#include "lifetimes.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <map>

using namespace pipewright;

namespace {

/// A millisecond per pass of a device; a sum of a stage's gradients takes `sum`.
Design copies(const std::string& family, int replicas, Nanoseconds sum)
{
    FamilyParameters parameters = test::sized(4 * replicas, 8 * replicas);
    parameters.replicas = replicas;
    Design design =
        test::evenDesign({.saved = 1 << 20, .savedForWeightGrad = 1 << 19}, makeSchedule(family, parameters));
    design.costs.link = {0, 1e9}; // a byte takes a nanosecond
    for (StageCosts& stage : design.costs.stages) {
        stage.output = 0;
        stage.gradients = sum;
    }
    return design;
}

Nanoseconds endOfBlocks(const Prediction& prediction)
{
    Nanoseconds end = 0;
    for (TaskId t = 0; t < prediction.program.tasks.size(); ++t)
        if (prediction.program.tasks[t].kind == TaskKind::Compute)
            end = std::max(end, prediction.timeline.end[t]);
    return end;
}

} // namespace

class ReplicaSumsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void sumsBeginWithTheLastGradientAndDelayNoBlock_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<int>("replicas");
        for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "v-half", "gpipe", "seq1f1b", "chimera"})
            for (const int replicas : {2, 3, 4})
                QTest::addRow("%s, %d", family, replicas) << QByteArray(family) << replicas;
    }
    void sumsBeginWithTheLastGradientAndDelayNoBlock()
    {
        QFETCH(QByteArray, family);
        QFETCH(int, replicas);
        constexpr Nanoseconds length = 100'000;
        const Design design = copies(family.toStdString(), replicas, length);
        const Prediction prediction = predict(design), free = predict(copies(family.toStdString(), replicas, 0));
        QCOMPARE(endOfBlocks(prediction), endOfBlocks(free));
        const Program& program = prediction.program;
        const QString fault = test::checkLifetimes(program);
        QVERIFY2(fault.isEmpty(), qPrintable(fault));
        QVERIFY(checkDeadlock(program, Communication::Overlapped).empty());
        std::size_t sums = 0, amid = 0;
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            const Task& sum = program.tasks[t];
            if (sum.kind != TaskKind::ReplicaSum)
                continue;
            ++sums;
            const int root = rootOfPair(program, sum.stage, sum.device, sum.replica);
            const auto isOfPair = [&](int replica) { return replica == root || replica == sum.replica; };
            const auto uses = [&](const Task& task, int device) {
                return task.device == device || (joinsDevices(task.kind) && task.otherDevice() == device);
            };
            Nanoseconds ready = 0;
            std::vector<std::pair<Nanoseconds, Nanoseconds>> busy;
            for (TaskId b = 0; b < program.tasks.size(); ++b) {
                const Task& other = program.tasks[b];
                const bool isBlock = other.kind == TaskKind::Compute, isSum = other.kind == TaskKind::ReplicaSum;
                if (other.stage == sum.stage
                    && ((isBlock && makesWeightGrad(other.op) && isOfPair(other.replica))
                        || (isSum && b < t
                            && (isOfPair(other.replica)
                                || isOfPair(rootOfPair(program, other.stage, other.device, other.replica))))))
                    ready = std::max(ready, prediction.timeline.end[b]);
                if (b != t && (isBlock || isSum) && (uses(other, sum.device) || uses(other, sum.otherDevice())))
                    busy.emplace_back(prediction.timeline.start[b], prediction.timeline.end[b]);
            }
            const Nanoseconds start = prediction.timeline.start[t], takes = sum.joinsTwoDevices() ? length : 0;
            QVERIFY(start >= ready);
            QCOMPARE(prediction.timeline.end[t] - start, takes);
            // There was no time for it before, in which neither device did anything else.
            std::sort(busy.begin(), busy.end());
            for (Nanoseconds free = ready; const auto& [from, until] : busy) {
                QVERIFY2(takes == 0 || free >= start || std::min(from, start) - free < takes, program.label(t).c_str());
                free = std::max(free, until);
            }
            amid += prediction.timeline.end[t] <= endOfBlocks(prediction);
        }
        QCOMPARE(sums, replicaPairs(program.replicas()).size() * static_cast<std::size_t>(program.stages()));
        // Under ZB-H1 all devices end together.
        QVERIFY2(amid > 0 || family == "zb-h1", "all sums wait for the end of the step");
    }

    /// What a step of N copies takes longer than one of a single pipeline is the sums of the stage that ends last.
    void onlyTheLastStagesSumsAreSeen()
    {
        constexpr Nanoseconds length = 100'000;
        for (const int replicas : {2, 4}) {
            const Prediction prediction = predict(copies("1f1b", replicas, length));
            const Prediction one = predict(copies("1f1b", 1, length));
            const int rounds = replicas == 2 ? 1 : 2;
            QCOMPARE(prediction.metrics.makespan, one.metrics.makespan + rounds * length);
        }
    }

    /// Device 0 holds stages 0 and 2; while device 1 is at B1 it has nothing to do but the sum of stage 2.
    void aSumStandsBetweenBlocksWhereTheDeviceIsIdle()
    {
        const Schedule one = test::schedule(1, {0, 1, 0}, {"F0.0 F2.0 B2.0 B0.0", "F1.0 B1.0"});
        Design design = test::evenDesign({}, withReplicas(one, 2));
        design.costs.link = {0, 1e9};
        for (StageCosts& stage : design.costs.stages) {
            stage.output = 0;
            stage.gradients = 100'000;
        }
        const Prediction prediction = predict(design);
        const auto timeOf = [&](TaskKind kind, Op op, int stage) {
            for (TaskId t = 0; t < prediction.program.tasks.size(); ++t)
                if (const Task& task = prediction.program.tasks[t];
                    task.kind == kind && task.stage == stage && (kind == TaskKind::ReplicaSum || task.op == op))
                    return std::pair(prediction.timeline.start[t], prediction.timeline.end[t]);
            return std::pair(notRun, notRun);
        };
        const auto sum = timeOf(TaskKind::ReplicaSum, Op::U, 2);
        QCOMPARE(sum.first, timeOf(TaskKind::Compute, Op::B, 2).second);
        QVERIFY(sum.second <= timeOf(TaskKind::Compute, Op::B, 0).first);
        QCOMPARE(timeOf(TaskKind::Compute, Op::B, 0).first, timeOf(TaskKind::Compute, Op::B, 1).second);
        const QString fault = test::checkLifetimes(prediction.program);
        QVERIFY2(fault.isEmpty(), qPrintable(fault));
    }

    /// Replica 2 of 3 gives its gradients to replica 0 and gets the sum of all back.
    void whoIsLeftOverIsSentTheSum()
    {
        Design design = copies("1f1b", 3, 100'000);
        design.costs.stages[1].framework = 4096; // held besides the states, and listed before them
        const Program program = predict(design).program;
        int copied = 0;
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            const Task& task = program.tasks[t];
            if (task.kind != TaskKind::Transfer || task.op != Op::U)
                continue;
            ++copied;
            QCOMPARE(program.tasks[program.afterData[t]].kind, TaskKind::ReplicaSum);
            const Buffer& from = program.buffers[program.reads(t).front()];
            const Buffer& to = program.buffers[program.writes(t).front()];
            QVERIFY(from.kind == BufferKind::Gradients && to.kind == BufferKind::Gradients);
            QCOMPARE(from.replica, std::uint16_t{0});
            QCOMPARE(to.replica, std::uint16_t{2});
            const auto waits = [&](TaskId update) {
                return program.tasks[update].kind == TaskKind::Update && program.afterData[update] == t;
            };
            int waiting = 0;
            for (TaskId u = t; u < program.tasks.size(); ++u)
                waiting += waits(u);
            QCOMPARE(waiting, 1);
        }
        QCOMPARE(copied, program.stages());
    }

    void sharesOfTheOptimizerAreUpdatedAndSentWhileEarlierStagesCompute_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<int>("replicas");
        for (const char* family : {"1f1b", "interleaved-1f1b", "chimera", "zb-h1"})
            for (const int replicas : {2, 3, 4})
                QTest::addRow("%s, %d", family, replicas) << QByteArray(family) << replicas;
    }
    void sharesOfTheOptimizerAreUpdatedAndSentWhileEarlierStagesCompute()
    {
        QFETCH(QByteArray, family);
        QFETCH(int, replicas);
        Design design = copies(family.toStdString(), replicas, 4 * 25'000);
        for (StageCosts& stage : design.costs.stages) {
            stage.parameters = 50'000;
            stage.optimizerState = 200'000;
            stage.update = 120'000;
        }
        for (const bool blocking : {false, true}) {
            design.costs.communication = blocking ? Communication::Blocking : Communication::Overlapped;
            design.schedule.zero.level = 0;
            const Prediction whole = predict(design);
            design.schedule.zero.level = 1;
            const Prediction prediction = predict(design);
            const Program& program = prediction.program;
            const QString fault = test::checkLifetimes(program);
            QVERIFY2(fault.isEmpty(), qPrintable(fault));
            QVERIFY(checkDeadlock(program, Communication::Overlapped).empty());
            QVERIFY(endOfBlocks(prediction) <= endOfBlocks(whole)); // shorter sums fit between blocks
            const int all = program.replicas();
            Bytes state = 0;
            std::map<int, Bytes> put; // per replica: what others updated
            int updates = 0, amid = 0;
            for (const Buffer& buffer : program.buffers)
                state += buffer.kind == BufferKind::OptimizerState ? buffer.bytes : 0;
            QCOMPARE(state, Bytes{200'000} * program.stages());
            for (TaskId t = 0; t < program.tasks.size(); ++t) {
                const Task& task = program.tasks[t];
                if (task.kind == TaskKind::Update) {
                    ++updates;
                    amid += prediction.timeline.end[t] <= endOfBlocks(prediction);
                    QCOMPARE(prediction.timeline.end[t] - prediction.timeline.start[t], Nanoseconds{120'000 / all});
                } else if (task.kind == TaskKind::CopyWeightsIn) {
                    put[task.replica] += program.buffers[program.reads(t).front()].bytes;
                    QVERIFY(prediction.timeline.start[t] >= prediction.timeline.end[program.afterData[t]]);
                }
            }
            QCOMPARE(updates, all * program.stages());
            // Of the gradients everyone is sent what it updates with, or sums up for others: half at the most.
            Bytes exchanged = 0, sentOn = 0, shares = 0;
            for (const Buffer& buffer : program.buffers)
                exchanged += buffer.kind == BufferKind::ReduceInbox ? buffer.bytes : 0;
            QCOMPARE(exchanged, Bytes{4 * 25'000} * (all - 1) * program.stages());
            for (TaskId t = 0; t < program.tasks.size(); ++t)
                if (program.tasks[t].kind == TaskKind::Transfer
                    && program.buffers[program.writes(t).front()].kind == BufferKind::Gradients)
                    sentOn += movedBytes(program, t);
            for (const ReplicaCopy& copy : replicaCopies(all))
                shares += 4 * shareOfReplica(25'000, copy.to, all).count();
            QCOMPARE(sentOn, shares * program.stages());
            Bytes before = 0;
            for (const Buffer& buffer : whole.program.buffers)
                before += buffer.kind == BufferKind::ReduceInbox ? buffer.bytes : 0;
            QVERIFY(2 * exchanged <= before);
            QCOMPARE(put.size(), static_cast<std::size_t>(all));
            for (const auto& [replica, bytes] : put) {
                Bytes own = 0;
                for (int stage = 0; stage < program.stages(); ++stage)
                    own += shareOfBytes(50'000, design.costs.stages[std::size_t(stage)], replica, all);
                QCOMPARE(bytes + own, Bytes{50'000} * program.stages());
            }
            QVERIFY(blocking || amid > 0 || family == "zb-h1");
        }
    }

    /// Of the gradients' sums a replica keeps its share, and the whole is there from the first backward to the last
    /// sum.
    void sharesOfGradientsAreKeptBehindTheLastSum()
    {
        for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "chimera"})
            for (const int replicas : {2, 3, 4}) {
                Design design = copies(family, replicas, 4 * 25'000);
                for (StageCosts& stage : design.costs.stages)
                    stage.parameters = 50'000;
                design.schedule.zero.level = 1;
                const Prediction whole = predict(design);
                design.schedule.zero.level = 2;
                const Prediction prediction = predict(design);
                const Program& program = prediction.program;
                QCOMPARE(prediction.metrics.makespan, whole.metrics.makespan);
                for (const int level : {2, 3}) {
                    design.schedule.zero.level = level;
                    const Program shared = predict(design).program;
                    const QString fault = test::checkLifetimes(shared);
                    QVERIFY2(fault.isEmpty(), qPrintable(fault));
                    QVERIFY(checkDeadlock(shared, Communication::Overlapped).empty());
                }
                Bytes kept = 0;
                for (const Buffer& buffer : program.buffers)
                    kept += buffer.kind == BufferKind::KeptGradients ? buffer.bytes : 0;
                for (std::size_t d = 0; d < program.devices.size(); ++d) {
                    QVERIFY(program.devices[d].persistentBytes < whole.program.devices[d].persistentBytes);
                    QVERIFY(program.devices[d].peakBytes <= whole.program.devices[d].peakBytes);
                }
                QCOMPARE(kept, Bytes{4 * 25'000} * program.stages());
                for (std::size_t d = 0; d < program.devices.size(); ++d) {
                    std::map<std::pair<int, int>, bool> live; // by stage and replica
                    for (const Instruction& instruction : program.devices[d].instructions) {
                        if (instruction.kind == InstructionKind::Free) {
                            if (instruction.buffer != none
                                && program.buffers[instruction.buffer].kind == BufferKind::WholeGradients)
                                live[{program.buffers[instruction.buffer].stage,
                                      program.buffers[instruction.buffer].replica}] = false;
                            continue;
                        }
                        const Task& task = program.tasks[instruction.task];
                        bool& there = live[{task.stage, task.replica}];
                        if (task.kind == TaskKind::Compute && isBackward(task.op))
                            there = true;
                        const auto sendsOn = replicaCopies(program.replicas()); // and holds it until then
                        QVERIFY2(task.kind != TaskKind::Update || task.replica < std::ssize(sendsOn) || !there,
                                 program.label(instruction.task).c_str());
                    }
                    for (const auto& [of, there] : live)
                        QVERIFY(!there);
                }
            }
    }

    /// Pairs of a stated order leave what is put in place behind its arrival.
    void transfersOfSharesMayBeReordered()
    {
        Design design = copies("1f1b", 2, 4'000);
        for (StageCosts& stage : design.costs.stages)
            stage.parameters = 4'000;
        design.schedule.zero.level = 1;
        design.schedule.transferOrder = {{*parseTransfer("F0.2 to 1"), *parseTransfer("F0.1 to 1")}};
        const Program program = predict(design).program;
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            if (program.tasks[t].kind == TaskKind::CopyWeightsIn)
                QVERIFY(program.afterData[t] < t && program.tasks[program.afterData[t]].kind == TaskKind::Transfer);
        const QString fault = test::checkLifetimes(program);
        QVERIFY2(fault.isEmpty(), qPrintable(fault));
        QVERIFY(checkDeadlock(program, Communication::Overlapped).empty());
    }

    void gradientsOfSharedParametersAreSummedWithinAReplicaFirst()
    {
        Design design = copies("1f1b", 2, 100'000);
        design.dataflow.shared.push_back({0, 3, 64});
        const Program program = predict(design).program;
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            const Task& sum = program.tasks[t];
            if (sum.kind == TaskKind::ReplicaSum && (sum.stage == 0 || sum.stage == 3))
                for (TaskId later = t; later < program.tasks.size(); ++later)
                    QVERIFY(program.tasks[later].kind != TaskKind::Reduce);
        }
    }
};

PIPEWRIGHT_TEST(ReplicaSumsTest, NoApplication)
#include "tst_replicasums.moc"
