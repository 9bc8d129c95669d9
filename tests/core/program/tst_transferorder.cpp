// SPDX-License-Identifier: GPL-3.0-or-later
// Transfers in a stated order: what holds of every Program that comes out, what is refused and how, and the edit
// that a person makes of it.
#include "core/families/family.h"
#include "core/files/designfile.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/program/deadlock.h"
#include "core/program/transferedits.h"
#include "lifetimes.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>
#include <rapidcheck.h>

using namespace pipewright;
using namespace pipewright::test;

namespace {

Program compiled(const Design& design)
{
    return compile(design.schedule, design.costs, design.dataflow);
}

Transfer transfer(const char* text)
{
    const auto read = parseTransfer(text);
    if (!read)
        throw std::logic_error(text);
    return *read;
}

/// "+F0.0>1 -B1.0>0": what device `device` sends and receives.
QString listOf(const Program& program, int device)
{
    QStringList words;
    for (const IssuedTransfer& issued : transfersOf(program, device))
        words << QString("%1%2>%3")
                     .arg(issued.sends ? "+" : "-")
                     .arg(QString::fromStdString(toString(issued.transfer.producer)))
                     .arg(issued.transfer.destination);
    return words.join(' ');
}

std::vector<Block> computeOrder(const Program& program, int device)
{
    std::vector<Block> blocks;
    for (const Instruction& instruction : program.devices[device].instructions)
        if (instruction.kind == InstructionKind::Compute)
            blocks.push_back(program.tasks[instruction.task].block());
    return blocks;
}

/// GPipe on two devices: both ways there are several transfers behind one another.
Design twoDevices()
{
    return designOf(schedule(3, {0, 1}, {"F0.0 F0.1 F0.2 B0.0 B0.1 B0.2", "F1.0 F1.1 F1.2 B1.0 B1.1 B1.2"}),
                    unitCosts(2));
}

QString faultsOf(const Program& program, const Design& design)
{
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        for (const TaskId before : {program.afterOnDevice[t], program.afterData[t]})
            if (before != none && before >= t)
                return QString("%1 comes before what it waits for").arg(QString::fromStdString(program.label(t)));
    }
    for (std::size_t i = 0; i < program.extraDependencies.size(); ++i) {
        const auto& extra = program.extraDependencies[i];
        if (extra.after != none && extra.after >= extra.task)
            return "an extra dependency points forward";
        if (i > 0 && program.extraDependencies[i - 1].task > extra.task)
            return "extra dependencies are not sorted";
    }
    for (int d = 0; d < design.schedule.devices(); ++d) {
        if (computeOrder(program, d) != design.schedule.order[d])
            return QString("the blocks of device %1 changed their order").arg(d);
        TaskId last = 0;
        for (const Instruction& instruction : program.devices[d].instructions) {
            if (instruction.kind == InstructionKind::Free)
                continue;
            if (instruction.task < last)
                return "a device's list is no projection of the global sequence";
            last = instruction.task;
        }
    }
    for (const Communication way : {Communication::Overlapped, Communication::OneStream, Communication::Blocking})
        if (const Diagnostics stuck = checkDeadlock(program, way); !stuck.empty())
            return QString::fromStdString(toString(stuck));
    return checkLifetimes(program);
}

} // namespace

class TransferOrderTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// Whatever the compiler lets pass lies inside; so a drag may refuse everything outside without asking it.
    void theRangeOfATransferHoldsEveryPlaceThatItCanTake()
    {
        int outside = 0;
        for (const char* family : {"1f1b", "zb-h1", "chimera"}) {
            FamilyParameters parameters;
            parameters.microbatches = 4;
            const Schedule order = makeSchedule(family, parameters);
            const Design design = designOf(order, unitCosts(order.stages()));
            const Program program = compiled(design);
            for (int device = 0; device < order.devices(); ++device) {
                const int count = int(transfersOf(program, device).size());
                for (int from = 0; from < count; ++from) {
                    const TransferRange range = transferRange(program, device, from);
                    QVERIFY(range.first <= from && from <= range.last);
                    for (int to = 0; to < count; ++to) {
                        const bool inside = to >= range.first && to <= range.last;
                        outside += !inside;
                        QVERIFY2(inside || !moveTransfer(design, program, device, from, to).legal(),
                                 qPrintable(listOf(program, device)));
                    }
                }
            }
        }
        QVERIFY(outside > 100);
        QCOMPARE(transferRange(compiled(twoDevices()), 0, 99).last, -1);
    }

    void namesAreReadBackAndNothingElseIs()
    {
        for (const char* text :
             {"F0.3 to 1", "B12.0/1 to 0", "W2.2 to 4095", "B1.0 collective 0", "W2.2/1 collective 31"})
            QCOMPARE(QString::fromStdString(textOf(transfer(text))), QString(text));
        for (const char* text :
             {"", "F0.3", "F0.3 to", "F0.3 to ", "F0.3 to -1", "F0.3 to 1 ", "F0.3 to x", "X0.3 to 1",
              "F0.3 to 99999999999", "F0.3 collective", "F0.3 collective -1", "collective 1"})
            QVERIFY2(!parseTransfer(text), text);
    }

    void aStatedTransferGoesFirstAndTheOtherWaitsForWhatItCarries()
    {
        Design design = twoDevices();
        const Program before = compiled(design);
        QCOMPARE(listOf(before, 0), "+F0.0>1 +F0.1>1 +F0.2>1 -B1.0>0 -B1.1>0 -B1.2>0");
        const Timeline timeBefore = predict(design).timeline;

        design.schedule.transferOrder = {{transfer("F0.2 to 1"), transfer("F0.1 to 1")}};
        const Prediction after = predict(design);
        QCOMPARE(listOf(after.program, 0), "+F0.0>1 +F0.2>1 +F0.1>1 -B1.0>0 -B1.1>0 -B1.2>0");
        QCOMPARE(listOf(after.program, 1), "-F0.0>1 -F0.2>1 -F0.1>1 +B1.0>0 +B1.1>0 +B1.2>0");
        QCOMPARE(faultsOf(after.program, design), QString());
        // F0.1's value leaves once F0.2 has been computed, at 3 us, and F1.1 starts with it.
        for (TaskId t = 0; t < after.program.tasks.size(); ++t) {
            const std::string label = after.program.label(t);
            if (label.starts_with("F0.1 to"))
                QCOMPARE(after.timeline.start[t], Nanoseconds{3000});
            if (label == "F1.1")
                QCOMPARE(after.timeline.start[t], Nanoseconds{3000});
        }
        QVERIFY(after.metrics.makespan > *std::max_element(timeBefore.end.begin(), timeBefore.end.end()));
    }

    void aPairOfWhichOneDoesNotExistSaysNothing()
    {
        Design design = twoDevices();
        const Program before = compiled(design);
        design.schedule.transferOrder = {{transfer("F0.2 to 1"), transfer("F1.1 to 0")},
                                         {transfer("F0.2 to 0"), transfer("F0.1 to 1")}};
        const Program after = compiled(design);
        QCOMPARE(listOf(after, 0), listOf(before, 0));
        QVERIFY(after.afterData == before.afterData && after.operands == before.operands);
    }

    void splittingABackwardKeepsWhatWasStatedOfItsGradient()
    {
        Design design =
            designOf(schedule(2, {0, 1}, {"F0.0 F0.1 B0.1 B0.0", "F1.0 F1.1 I1.0 I1.1 W1.0 W1.1"}), unitCosts(2));
        design.schedule.transferOrder = {{transfer("B1.1 to 0"), transfer("B1.0 to 0")}};
        QCOMPARE(listOf(compiled(design), 0), "+F0.0>1 +F0.1>1 -I1.1>0 -I1.0>0");
    }

    void anOrderThatCannotBeIsToldAsTheCircleThatItWouldBe()
    {
        Design design = twoDevices();
        design.schedule.transferOrder = {{transfer("B1.0 to 0"), transfer("F0.0 to 1")}};
        try {
            (void)compiled(design);
            QFAIL("the gradient of microbatch 0 needs its activation");
        } catch (const Error& error) {
            const QString story = error.what();
            QVERIFY2(story.contains("F0.0 from device 0 to device 1 waits for I1.0 from device 1 to device 0, which "
                                    "waits for B1.0 on device 1"),
                     qPrintable(story));
            QVERIFY2(story.contains("go first"), qPrintable(story));
        }
        design.schedule.transferOrder = {{transfer("F0.1 to 1"), transfer("F0.0 to 1")},
                                         {transfer("F0.0 to 1"), transfer("F0.1 to 1")}};
        QVERIFY_THROWS_EXCEPTION(Error, compiled(design));
    }

    void whateverIsStatedHoldsOrIsRefusedInEveryFamily()
    {
        int held = 0, refused = 0;
        QVERIFY(rc::check("stated pairs", [&] {
            const auto all = families();
            const Family& family = all[*rc::gen::inRange(0, static_cast<int>(all.size()))];
            const FamilyParameters parameters =
                possibleParameters(family, *rc::gen::inRange(2, 5), *rc::gen::inRange(2, 9));
            Design design = designOf(makeSchedule(family.name, parameters), {});
            design.costs = unitCosts(design.schedule.stages());
            design.costs.link.latency = *rc::gen::inRange(0, 1500);
            design.costs.communication = static_cast<Communication>(*rc::gen::inRange(0, 3));
            if (*rc::gen::inRange(0, 3) == 0) {
                design.costs.link.bus = "pcie";
                design.costs.link.bytesPerSecond = 3e7;
            }
            const Program plain = compiled(design);
            const int device = *rc::gen::inRange(0, design.schedule.devices());
            const std::vector<IssuedTransfer> list = transfersOf(plain, device);
            RC_PRE(list.size() > 1 && !plain.versioned()); // there it is refused
            const int pairs = *rc::gen::inRange(1, 4);
            for (int i = 0; i < pairs; ++i) {
                const auto a = static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(list.size())));
                // Mostly near neighbours: those are often possible.
                const auto b = std::min(list.size() - 1, a + static_cast<std::size_t>(*rc::gen::inRange(1, 4)));
                if (a != b)
                    design.schedule.transferOrder.push_back({list[b].transfer, list[a].transfer});
            }
            Program program;
            try {
                program = compiled(design);
            } catch (const Error& error) {
                ++refused;
                RC_ASSERT(std::string(error.what()).find("waits for") != std::string::npos);
                return;
            }
            held += !design.schedule.transferOrder.empty();
            const QString faults = faultsOf(program, design);
            if (!faults.isEmpty())
                RC_FAIL(std::string(family.name) + ": " + faults.toStdString());
            const std::vector<IssuedTransfer> now = transfersOf(program, device);
            RC_ASSERT(now.size() == list.size());
            for (const TransferPrecedence& pair : design.schedule.transferOrder) {
                const auto place = [&](const Transfer& t) {
                    return std::find_if(now.begin(), now.end(),
                                        [&](const IssuedTransfer& i) { return i.transfer == t; })
                           - now.begin();
                };
                RC_ASSERT(place(pair.first) < place(pair.second));
            }
            const Prediction prediction = predict(design);
            RC_ASSERT(prediction.metrics.makespan > 0);
        }));
        QVERIFY2(held > 10 && refused > 5, qPrintable(QString("%1 held, %2 refused").arg(held).arg(refused)));
    }

    void transfersMoveUpAndDownTheListAndBackWithoutATrace()
    {
        Design design = twoDevices();
        const Program program = compiled(design);
        EditResult up = moveTransfer(design, program, 0, 2, 0);
        QVERIFY(up.legal());
        QCOMPARE(up.schedule.transferOrder.size(), std::size_t{2});
        Design moved = design;
        moved.schedule = up.schedule;
        QCOMPARE(listOf(compiled(moved), 0).left(26), "+F0.2>1 +F0.0>1 +F0.1>1 -B");
        // Back down by two: what was stated is forgotten, and nothing else needs stating.
        const EditResult back = moveTransfer(moved, compiled(moved), 0, 0, 2);
        QVERIFY(back.legal());
        QVERIFY(back.schedule == design.schedule);

        const EditResult down = moveTransfer(design, program, 0, 0, 2);
        QVERIFY(down.legal());
        moved.schedule = down.schedule;
        QCOMPARE(listOf(compiled(moved), 0).left(26), "+F0.1>1 +F0.2>1 +F0.0>1 -B");
        QVERIFY(withoutStatedOrder(moved.schedule, transfer("F0.0 to 1")) == design.schedule);

        const EditResult impossible = moveTransfer(design, program, 0, 3, 0);
        QVERIFY(!impossible.legal());
        QVERIFY(impossible.schedule == design.schedule);
        QVERIFY(!moveTransfer(design, program, 0, 6, 0).legal());
        QVERIFY(!moveTransfer(design, program, 7, 0, 1).legal());
    }

    void movesKeepPlacesInEveryFamily()
    {
        int exact = 0, all = 0;
        for (const Family& family : families()) {
            Design design = designOf(makeSchedule(family.name, possibleParameters(family, 3, 4)), {});
            design.costs = unitCosts(design.schedule.stages());
            design.costs.link.latency = 100;
            const Program program = compiled(design);
            for (int device = 0; device < design.schedule.devices(); ++device) {
                const std::vector<IssuedTransfer> list = transfersOf(program, device);
                for (int from = 0; from < static_cast<int>(list.size()); ++from) {
                    for (const int to : {from - 1, from + 1, from + 2}) {
                        if (to < 0 || to >= static_cast<int>(list.size()))
                            continue;
                        const EditResult edit = moveTransfer(design, program, device, from, to);
                        if (!edit.legal())
                            continue;
                        Design moved = design;
                        moved.schedule = edit.schedule;
                        const Program after = compiled(moved);
                        QCOMPARE(faultsOf(after, moved), QString());
                        const std::vector<IssuedTransfer> now = transfersOf(after, device);
                        const auto at = [&](const Transfer& t) {
                            return std::find_if(now.begin(), now.end(),
                                                [&](const IssuedTransfer& i) { return i.transfer == t; })
                                   - now.begin();
                        };
                        // It stands on the side of its new neighbour that was asked for.
                        const Transfer& it = list[from].transfer;
                        const Transfer& neighbour = list[to].transfer;
                        QVERIFY2(to < from ? at(it) < at(neighbour) : at(it) > at(neighbour), family.name.data());
                        ++all;
                        exact += at(it) == to;
                    }
                }
            }
        }
        QVERIFY2(all > 200 && exact * 10 > all * 8, qPrintable(QString("%1 of %2").arg(exact).arg(all)));
    }

    void filesKeepWhatIsStatedAndSayWhatIsWrongWithIt()
    {
        Design design = twoDevices();
        design.schedule.transferOrder = {{transfer("F0.2 to 1"), transfer("F0.1 to 1")},
                                         {transfer("B1.2 to 0"), transfer("B1.1 to 0")},
                                         {transfer("B1.1 to 0"), transfer("B1.1 collective 2")}};
        const std::string text = designToJson(design);
        QVERIFY(designFromJson(text, "a.json") == design);
        const auto faultOf = [&](const std::string& from, const std::string& to) {
            std::string changed = text;
            changed.replace(changed.find(from), from.size(), to);
            try {
                (void)designFromJson(changed, "a.json");
            } catch (const Error& error) {
                return QString(error.what());
            }
            return QString();
        };
        QVERIFY(faultOf("\"F0.2 to 1\"", "\"F0.2\"").contains("this is not a transfer"));
        QVERIFY(faultOf("\"B1.1 collective 2\"", "\"B1.1 collective -2\"").contains("this is not a transfer"));
        QVERIFY(faultOf("\"B1.1 collective 2\"", "\"B7.1 collective 2\"").contains("2 stages on 2 devices"));
        QVERIFY(faultOf("\"F0.2 to 1\"", "\"F7.2 to 1\"").contains("2 stages on 2 devices"));
        QVERIFY(faultOf("\"F0.2 to 1\"", "\"F0.2 to 2\"").contains("2 stages on 2 devices"));
        QVERIFY(faultOf("\"before\"", "\"after\"").contains("after"));
    }
};

PIPEWRIGHT_TEST(TransferOrderTest, QCoreApplication)
#include "tst_transferorder.moc"
