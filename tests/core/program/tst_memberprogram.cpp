// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks of groups taken apart: every member's parts and the collectives between them, in the groups' order.
#include "core/design/stageplans.h"
#include "core/predict/designcheck.h"
#include "core/predict/evaluator.h"
#include "core/predict/predict.h"
#include "core/program/collectiveorder.h"
#include "core/program/compile.h"
#include "core/program/deadlock.h"
#include "core/program/memberprogram.h"
#include "core/program/transferorder.h"
#include "core/schedule/replicas.h"
#include "lifetimes.h"
#include "makers/groups.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <map>
#include <numeric>

using namespace pipewright;
using namespace pipewright::test;

namespace {

struct CompiledGroups {
    Program groups;
    GroupStages stages;
    MemberProgram members;
};

CompiledGroups compiledGroups(const Design& design)
{
    CompiledGroups found;
    found.groups = compile(design.schedule, design.costs, design.dataflow);
    found.stages = groupStages(design);
    found.members = memberProgram(found.groups, found.stages, design.costs, design.schedule.transferOrder);
    return found;
}

Timeline timelineOf(const MemberProgram& members)
{
    Evaluator evaluator(members.program);
    evaluator.setDurations(members.durations);
    Timeline timeline;
    evaluator.evaluate(timeline);
    return timeline;
}

/// The groups' transfer by its name, as the members do it.
std::vector<TaskId> piecesOf(const CompiledGroups& of, const char* name)
{
    std::vector<TaskId> pieces;
    for (TaskId t = 0; t < of.members.program.tasks.size(); ++t)
        if (const TaskId block = of.members.blockOfTask[t]; of.members.program.tasks[t].kind == TaskKind::Transfer
                                                            && of.groups.tasks[block].kind == TaskKind::Transfer
                                                            && nameOf(of.groups, block) == *parseTransfer(name))
            pieces.push_back(t);
    return pieces;
}

TaskId labelled(const CompiledGroups& of, const std::string& label)
{
    for (TaskId t = 0; t < of.members.program.tasks.size(); ++t)
        if (of.members.program.label(t) == label)
            return t;
    return none;
}

/// Data-parallel members, whose gradients are summed after every backward; a pair is stated.
Design withPair(const char* first, const char* second)
{
    Design design = withStrategy(groupDesign("gpipe", {{1e9, 5e8}, {1e9, 1e9}}, 4), sharding::Strategy::DataParallel);
    design.schedule.transferOrder = {{*parseTransfer(first), *parseTransfer(second)}};
    return design;
}

Nanoseconds lastEnd(const Timeline& timeline)
{
    return *std::max_element(timeline.end.begin(), timeline.end.end());
}

} // namespace

class MemberProgramTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyMemberDoesItsPartsAndAllMeetBetweenThem()
    {
        const Design design = groupDesign("zb-h1", {{1e9, 5e8}, {1e9, 1e9, 1e9}}, 4);
        const CompiledGroups found = compiledGroups(design);
        const Program& program = found.members.program;
        QCOMPARE(program.devices.size(), std::size_t{5});
        QCOMPARE(program.groupOfDevice, (std::vector<std::int32_t>{0, 0, 1, 1, 1}));
        std::size_t collectives = 0;
        for (TaskId t = 0; t < found.groups.tasks.size(); ++t) {
            const Task& block = found.groups.tasks[t];
            if (block.kind != TaskKind::Compute)
                continue;
            const PassParts& pass =
                found.stages.stages[static_cast<std::size_t>(block.stage)].passes[indexOf(block.op)];
            const auto members =
                static_cast<std::size_t>(found.stages.membersOfDevice[static_cast<std::size_t>(block.device)]);
            QCOMPARE(pass.parts.size(), pass.collectives.size() + 1);
            std::map<int, std::size_t> parts;
            std::size_t meetings = 0;
            for (TaskId m = 0; m < program.tasks.size(); ++m) {
                if (found.members.blockOfTask[m] != t || program.tasks[m].kind == TaskKind::Transfer)
                    continue;
                if (program.tasks[m].kind == TaskKind::Collective)
                    ++meetings;
                else
                    ++parts[program.tasks[m].device];
            }
            QCOMPARE(meetings, pass.collectives.size());
            QCOMPARE(parts.size(), members);
            for (const auto& [device, count] : parts)
                QCOMPARE(count, pass.parts.size());
            collectives += meetings;
        }
        QVERIFY(collectives > 0);
        // Every member issues each collective of its group.
        std::size_t issued = 0;
        for (const Program::Device& device : program.devices)
            issued += static_cast<std::size_t>(
                std::count_if(device.instructions.begin(), device.instructions.end(),
                              [](const Instruction& one) { return one.kind == InstructionKind::Collective; }));
        std::size_t expected = 0;
        for (const Task& task : program.tasks)
            if (task.kind == TaskKind::Collective)
                expected += static_cast<std::size_t>(task.memberCount());
        QCOMPARE(issued, expected);
    }

    void nothingWaitsInACircleAndEveryBufferIsFreed_data()
    {
        QTest::addColumn<QString>("family");
        for (const char* family : {"gpipe", "1f1b", "zb-h1", "zb-h2", "v-half", "interleaved-1f1b"})
            QTest::newRow(family) << family;
    }
    void nothingWaitsInACircleAndEveryBufferIsFreed()
    {
        QFETCH(QString, family);
        const CompiledGroups found = compiledGroups(
            groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9}, {1e9, 1e9}, {5e8, 1e9}}, 8, groupShape(6)));
        const Program& program = found.members.program;
        QVERIFY(checkDeadlock(program).empty());
        QCOMPARE(checkLifetimes(program), QString());
        for (const Program::Device& device : program.devices)
            QCOMPARE(device.liveBytes.back(), device.persistentBytes);
    }

    void aWrongOrderOfCollectivesIsFoundBeforeItRuns()
    {
        CompiledGroups found = compiledGroups(groupDesign("1f1b", {{1e9, 5e8}, {1e9}}, 4));
        auto& instructions = found.members.program.devices.front().instructions;
        const auto isCollective = [](const Instruction& one) { return one.kind == InstructionKind::Collective; };
        const auto first = std::find_if(instructions.begin(), instructions.end(), isCollective);
        const auto second = std::find_if(first + 1, instructions.end(), isCollective);
        QVERIFY(second != instructions.end());
        std::swap(first->task, second->task); // the other member meets in the right order
        const Diagnostics why = checkDeadlock(found.members.program);
        QVERIFY(hasErrors(why));
        const std::string text = toString(why);
        for (const auto& meeting : {first, second})
            QVERIFY2(text.find(found.members.program.label(meeting->task)) != std::string::npos, text.c_str());
    }

    void aStatedOrderOfTransfersIsThatOfTheMembers()
    {
        Design design = groupDesign("gpipe", {{1e9, 5e8}, {1e9, 1e9}}, 4);
        // Microbatches whose outputs cross from group to group, in order.
        const auto sent = [](const CompiledGroups& of) {
            std::vector<int> order;
            for (const Task& task : of.members.program.tasks)
                if (task.kind == TaskKind::Transfer && task.op == Op::F
                    && (order.empty() || order.back() != task.microbatch()))
                    order.push_back(task.microbatch());
            return order;
        };
        QCOMPARE(sent(compiledGroups(design)), (std::vector<int>{0, 1, 2, 3}));
        const Nanoseconds before = lastEnd(timelineOf(compiledGroups(design).members));
        design.schedule.transferOrder = {{*parseTransfer("F0.2 to 1"), *parseTransfer("F0.1 to 1")}};
        const CompiledGroups found = compiledGroups(design);
        QCOMPARE(sent(found), (std::vector<int>{0, 2, 1, 3}));
        QVERIFY(checkDeadlock(found.members.program).empty());
        QCOMPARE(checkLifetimes(found.members.program), QString());
        // What waits for a later block than its own is late.
        QVERIFY(lastEnd(timelineOf(found.members)) > before);
    }

    void aSendWaitsForACollectiveOfALaterBlock_data()
    {
        QTest::addColumn<bool>("blocking");
        QTest::newRow("beside what devices compute") << false;
        QTest::newRow("blocking") << true;
    }
    void aSendWaitsForACollectiveOfALaterBlock()
    {
        QFETCH(bool, blocking);
        Design design = withStrategy(withPair("F0.2 collective 0", "F0.1 to 1"), sharding::Strategy::Megatron);
        design.costs.communication = blocking ? Communication::Blocking : Communication::Overlapped;
        const CompiledGroups found = compiledGroups(design);
        const Program& program = found.members.program;
        const TaskId collective = labelled(found, "F0.2 collective 0"), part = labelled(found, "F0.2 part 1");
        QVERIFY(collective != none && part != none);
        const Timeline timeline = timelineOf(found.members);
        const std::vector<TaskId> pieces = piecesOf(found, "F0.1 to 1");
        QVERIFY(!pieces.empty());
        for (const TaskId piece : pieces) {
            QVERIFY(timeline.start[piece] >= timeline.end[collective]);
            // Amid the block, and not behind it.
            std::vector<TaskId> issued;
            for (const Instruction& one : program.devices[program.tasks[piece].device].instructions)
                if (one.kind != InstructionKind::Free)
                    issued.push_back(one.task);
            const auto at = std::find(issued.begin(), issued.end(), piece);
            QVERIFY(std::find(issued.begin(), at, collective) != at);
            const auto isLater = [&](TaskId t) {
                return program.tasks[t].block() == program.tasks[part].block() && program.partOfTask[t] == 1
                       && program.tasks[t].kind == TaskKind::Compute;
            };
            QVERIFY(std::none_of(issued.begin(), at, isLater) && std::any_of(at, issued.end(), isLater));
        }
        QVERIFY(checkDeadlock(program, program.communication).empty());
        QCOMPARE(checkLifetimes(program), QString());
        QVERIFY(!hasErrors(checkDesign(design)));
    }

    void anInputGradientLeavesBeforeWhatMembersDoForTheWeights_data() { aSendWaitsForACollectiveOfALaterBlock_data(); }
    void anInputGradientLeavesBeforeWhatMembersDoForTheWeights()
    {
        QFETCH(bool, blocking);
        Design design = withPair("B1.3 to 0", "B1.3 collective 0");
        const GroupStages stages = groupStages(design);
        const std::size_t whole = stages.stages[1].passes[indexOf(Op::I)].collectives.size();
        QVERIFY(stages.stages[1].passes[indexOf(Op::B)].collectives.size() > whole);
        const std::vector<TransferPrecedence> none;
        std::vector<TransferPrecedence> stated = design.schedule.transferOrder;
        stated.front().second.collective = static_cast<std::int32_t>(whole);
        design.costs.communication = blocking ? Communication::Blocking : Communication::Overlapped;
        const auto made = [&](const std::vector<TransferPrecedence>& order) {
            design.schedule.transferOrder = order;
            return compiledGroups(design);
        };
        const CompiledGroups before = made(none), after = made(stated);
        const auto startOf = [](const CompiledGroups& of) {
            return timelineOf(of.members).start[piecesOf(of, "B1.3 to 0").front()];
        };
        QVERIFY(startOf(after) < startOf(before));
        if (!blocking) // it was what the first stage's last backward waits for
            QVERIFY(lastEnd(timelineOf(after.members)) < lastEnd(timelineOf(before.members)));
        const TaskId sum = labelled(after, textOf(stated.front().second));
        QVERIFY(sum != pipewright::none);
        for (const TaskId piece : piecesOf(after, "B1.3 to 0"))
            QVERIFY(piece < sum && after.members.program.afterData[piece] < sum);
        QVERIFY(checkDeadlock(after.members.program, after.members.program.communication).empty());
        QCOMPARE(checkLifetimes(after.members.program), QString());
        QVERIFY(!hasErrors(checkDesign(design)));
    }

    void anOrderOfCollectivesThatCannotBeIsRefusedWithItsReason_data()
    {
        QTest::addColumn<sharding::Strategy>("strategy");
        QTest::addColumn<QByteArray>("first");
        QTest::addColumn<QByteArray>("second");
        QTest::addColumn<QString>("reason");
        const auto row = [](const char* name, const char* first, const char* second, const char* reason,
                            sharding::Strategy strategy = sharding::Strategy::DataParallel) {
            QTest::newRow(name) << strategy << QByteArray(first) << QByteArray(second) << QString(reason);
        };
        row("two collectives", "B0.1 collective 0", "B0.0 collective 0", "both collectives");
        row("another group's send", "F0.2 to 1", "B1.0 collective 0", "not of the same group");
        row("none of that number", "B1.3 to 0", "B1.3 collective 900", "collectives, counted from 0");
        row("none at all", "F0.2 to 1", "F0.2 collective 0", "by the plan of stage 0 the block has no collective");
        row("of an earlier block", "B1.3 to 0", "B1.2 collective 0", "waits in a circle");
        row("behind what needs it", "B0.1 collective 0", "F0.1 to 1", "waits in a circle");
        row("before it is made", "F0.2 to 1", "F0.2 collective 0", "is made behind the last collective of its block",
            sharding::Strategy::Megatron);
        row("before it is whole", "B1.3 to 0", "B1.3 collective 0", "the input gradient is whole behind collective",
            sharding::Strategy::Megatron);
    }
    void anOrderOfCollectivesThatCannotBeIsRefusedWithItsReason()
    {
        QFETCH(sharding::Strategy, strategy);
        QFETCH(QByteArray, first);
        QFETCH(QByteArray, second);
        QFETCH(QString, reason);
        const Design design = withStrategy(withPair(first, second), strategy);
        const QString found = QString::fromStdString(toString(checkDesign(design)));
        QVERIFY2(found.contains(reason), qPrintable(found));
        try {
            (void)compiledGroups(design);
            QFAIL("it is made");
        } catch (const Error& error) {
            const QString why = QString::fromStdString(toString(error.diagnostics()));
            QVERIFY2(why.contains(reason), qPrintable(why));
            QVERIFY(!error.diagnostics().front().hint.empty());
        }
    }

    void anEarlyGradientDoesNotWaitForWhatComesLater()
    {
        Design design = withPair("B1.2 to 0", "B1.2 collective 0");
        const GroupStages stages = groupStages(design);
        auto& pairs = design.schedule.transferOrder;
        pairs.front().second.collective =
            static_cast<std::int32_t>(stages.stages[1].passes[indexOf(Op::I)].collectives.size());
        pairs.push_back({*parseTransfer("B1.3 to 0"), *parseTransfer("B1.2 to 0")});
        QVERIFY_THROWS_EXCEPTION(Error, compiledGroups(design));
        pairs.back() = {*parseTransfer("B1.1 to 0"), *parseTransfer("B1.2 to 0")};
        QCOMPARE(checkLifetimes(compiledGroups(design).members.program), QString());
    }

    void aCollectiveIsMovedPastWhatItsGroupSends()
    {
        Design design = withPair("B1.3 to 0", "B1.3 collective 0");
        const TransferPrecedence early = design.schedule.transferOrder.front();
        const auto whole =
            static_cast<std::int32_t>(groupStages(design).stages[1].passes[indexOf(Op::I)].collectives.size());
        design.schedule.transferOrder.clear();
        Transfer collective = early.second;
        collective.collective = whole;
        const EditResult later = moveCollective(design, collective, {early.first}, true);
        QVERIFY2(!hasErrors(later.diagnostics), toString(later.diagnostics).c_str());
        QCOMPARE(later.schedule.transferOrder, (std::vector<TransferPrecedence>{{early.first, collective}}));
        Design moved = design;
        moved.schedule = later.schedule;
        // Back, where nothing need be stated.
        QVERIFY(moveCollective(moved, collective, {early.first}, false).schedule == design.schedule);
        QVERIFY(hasErrors(moveCollective(design, collective, {}, true).diagnostics));
        const EditResult wrong = moveCollective(design, *parseTransfer("B1.2 collective 0"), {early.first}, true);
        QVERIFY(hasErrors(wrong.diagnostics) && wrong.schedule == design.schedule);
    }

    void pinsHoldForEveryMember()
    {
        Design design = groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, 4);
        constexpr Nanoseconds late = 5'000'000'000;
        design.schedule.pins = {{{Op::F, 1, 2}, late}};
        const CompiledGroups found = compiledGroups(design);
        const Timeline timeline = timelineOf(found.members);
        int parts = 0;
        for (TaskId t = 0; t < found.members.program.tasks.size(); ++t) {
            const Task& task = found.members.program.tasks[t];
            if (task.kind != TaskKind::Compute || task.op != Op::F || task.stage != 1 || task.microbatch() != 2)
                continue;
            QVERIFY(timeline.start[t] >= late);
            ++parts;
        }
        QVERIFY(parts >= 2);
    }

    void timesAndBytesThatTheDesignStatesAreThoseOfTheMembers()
    {
        const Design planned = groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, 4);
        Design stated = planned;
        stated.costs.stages[0].forward *= 3;
        stated.costs.stages[0].savedUntilWeightGrad *= 2;
        const GroupStages before = groupStages(planned), after = groupStages(stated);
        const PassParts &was = before.stages[0].passes[indexOf(Op::F)], &is = after.stages[0].passes[indexOf(Op::F)];
        for (std::size_t part = 0; part < was.parts.size(); ++part)
            for (std::size_t m = 0; m < 2; ++m)
                QVERIFY(std::abs(is.parts[part][m] - 3 * was.parts[part][m]) <= 2);
        for (std::size_t i = 0; i < was.collectives.size(); ++i)
            QVERIFY(std::abs(is.collectives[i] - 3 * was.collectives[i]) <= 2);
        for (std::size_t m = 0; m < 2; ++m)
            QVERIFY(std::abs(after.stages[0].members[m].savedUntilWeightGrad
                             - 2 * before.stages[0].members[m].savedUntilWeightGrad)
                    <= 2);
        QCOMPARE(after.stages[1].passes[indexOf(Op::F)].parts, before.stages[1].passes[indexOf(Op::F)].parts);
    }

    void membersWaitForEachOtherAtCollectivesOnly()
    {
        // The groups' prediction has all members wait for the slowest at every instruction: it is never the faster one,
        // and the same where all are alike.
        const Design uneven = groupDesign("1f1b", {{1e9, 4e8}, {1e9, 7e8}}, 6);
        const CompiledGroups found = compiledGroups(uneven);
        Timeline groups;
        Evaluator(found.groups, uneven.costs).evaluate(groups);
        const Nanoseconds members = lastEnd(timelineOf(found.members));
        QVERIFY2(members <= lastEnd(groups) + 100, qPrintable(QString("%1 %2").arg(members).arg(lastEnd(groups))));
        QVERIFY(members > lastEnd(groups) / 2);
    }

    void aGroupOfOneIsTheDeviceItself()
    {
        const Design design = groupDesign("zb-h1", {{1e9}, {1e9}, {1e9}}, 6);
        const CompiledGroups found = compiledGroups(design);
        Timeline groups;
        Evaluator(found.groups, design.costs).evaluate(groups);
        const Timeline members = timelineOf(found.members);
        QCOMPARE(found.members.program.tasks.size(), found.groups.tasks.size());
        for (TaskId t = 0; t < found.members.program.tasks.size(); ++t)
            QCOMPARE(members.end[t], groups.end[found.members.blockOfTask[t]]);
    }

    void copiesSumTheirGradientsWhateverTheirNumber_data()
    {
        QTest::addColumn<int>("copies");
        QTest::addColumn<bool>("sharded");
        QTest::addColumn<bool>("blocking");
        for (const int copies : {2, 3, 5, 6})
            for (const bool sharded : {false, true})
                for (const bool blocking : {false, true})
                    QTest::addRow("%d%s%s", copies, sharded ? ", sharing the optimizer's state" : "",
                                  blocking ? ", transfers that block" : "")
                        << copies << sharded << blocking;
    }
    void copiesSumTheirGradientsWhateverTheirNumber()
    {
        QFETCH(int, copies);
        QFETCH(bool, sharded);
        QFETCH(bool, blocking);
        Design design = copiesOf(groupDesign("1f1b", {{1e9, 5e8}, {1e9, 7e8, 3e8}}, 2), copies);
        design.schedule.zero.level = sharded ? 1 : 0;
        design.costs.communication = blocking ? Communication::Blocking : Communication::Overlapped;
        const CompiledGroups found = compiledGroups(design);
        const Program& program = found.members.program;
        QVERIFY(checkDeadlock(program, blocking ? Communication::Blocking : Communication::Overlapped).empty());
        QCOMPARE(checkLifetimes(program), QString());
        // An update waits for all sums of its stage, and for the one that is sent to it.
        std::vector<int> updates(program.devices.size(), 0);
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            const Task& task = program.tasks[t];
            if (task.kind == TaskKind::Update)
                ++updates[static_cast<std::size_t>(task.device)];
            if (task.kind == TaskKind::ReplicaSum)
                QCOMPARE(updates[static_cast<std::size_t>(task.device)], 0); // a stage to each device
        }
        QCOMPARE(updates, std::vector<int>(program.devices.size(), 1));
        Bytes state = 0, whole = 0;
        for (const Buffer& buffer : program.buffers)
            state += buffer.kind == BufferKind::OptimizerState ? buffer.bytes : 0;
        for (int stage = 0; stage < found.stages.perReplica; ++stage)
            for (const StageCosts& member : found.stages.stages[static_cast<std::size_t>(stage)].members)
                whole += member.optimizerState;
        QVERIFY(whole > 0);
        QCOMPARE(state, sharded ? whole : copies * whole);
        const auto copiedIn = std::count_if(program.tasks.begin(), program.tasks.end(),
                                            [](const Task& task) { return task.kind == TaskKind::CopyWeightsIn; });
        QCOMPARE(copiedIn, sharded ? copies * (copies - 1) * 5 : 0);
    }

    void whatGroupsDoNotRunIsNamed()
    {
        Design design = groupDesign("1f1b", {{1e9, 5e8}, {1e9}}, 4);
        design.schedule.recompute = {Recompute::BlockSelective, Recompute::None};
        const Diagnostics why = whyNoMembers(design);
        QCOMPARE(why.size(), std::size_t{1});
        QCOMPARE(why.front().where, std::string("schedule.recompute"));
        QVERIFY_THROWS_EXCEPTION(Error, groupStages(design));
        design.schedule.recompute.clear();
        QVERIFY(whyNoMembers(design).empty());
        design.schedule.partOrders.push_back({}); // meaningless without pairs, and known
        QVERIFY(whyNoMembers(design).empty());
        design.schedule.sequencePieces = 2; // of a model whose sequences are whole
        QCOMPARE(whyNoMembers(design).front().where, std::string("schedule.sequence_pieces"));
        design.schedule.sequencePieces = 1;
        Design copied = design;
        copied.schedule = withReplicas(design.schedule, 2);
        copied.schedule.zero.level = 3;
        const Diagnostics states = whyNoMembers(copied);
        QVERIFY(std::any_of(states.begin(), states.end(), [](const Diagnostic& each) {
            return each.where == "schedule.zero" && each.what.find("optimizer's state alone") != std::string::npos;
        }));
        design.schedule.shardedStates = true; // on no list, as a field that somebody adds
        QCOMPARE(whyNoMembers(design).size(), std::size_t{1});
    }
};

PIPEWRIGHT_TEST(MemberProgramTest, NoApplication)
#include "tst_memberprogram.moc"
