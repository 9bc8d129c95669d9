// SPDX-License-Identifier: GPL-3.0-or-later
// PyTorch CSV: what is read back is what was written, the communication order really runs (on a small machine
// that does what PyTorch's runtime does).
#include "core/exchange/pytorchcsv.h"
#include "core/exchange/pytorchmachine.h"
#include "core/families/family.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/schedule/validate.h"
#include "makers/designs.h"
#include "pytorchcsvmessage.h"
#include "testmain.h"

#include <QElapsedTimer>
#include <QRegularExpression>
#include <QTest>

#include <map>

using namespace pipewright;
using namespace pipewright::test;

namespace {

Design designOf(const Schedule& schedule)
{
    return test::designOf(schedule, uniformCosts({}, schedule.stages(), 1));
}

enum class Replicas { One, Any };

/// What is left of an order in a tool that updates after the step alone.
Schedule withoutUpdates(Schedule schedule)
{
    for (std::vector<Block>& lane : schedule.order)
        std::erase_if(lane, [](const Block& block) { return block.op == Op::U; });
    schedule.weightPolicy = {};
    schedule.pins.clear();
    return schedule;
}

/// Every family at a few sizes that its preconditions allow; PyTorch runs those of one replica.
std::vector<std::pair<std::string, Schedule>> allSchedules(Replicas replicas = Replicas::One)
{
    std::vector<std::pair<std::string, Schedule>> result;
    for (const Family& family : families())
        for (const auto& [devices, microbatches] :
             {std::pair(2, 4), std::pair(4, 8), std::pair(4, 16), std::pair(6, 24)}) {
            FamilyParameters parameters = sized(devices, microbatches);
            if (hasErrors(family.check(parameters))
                || (family.updates && microbatches > 8)) // without updates they are 1F1B or less
                continue;
            Schedule schedule = makeSchedule(family.name, parameters);
            if (replicas == Replicas::Any || schedule.replicas() == 1)
                result.emplace_back(std::string(family.name) + " " + std::to_string(devices) + " "
                                        + std::to_string(microbatches),
                                    std::move(schedule));
        }
    return result;
}

} // namespace

class TstPytorchCsv : public QObject {
    Q_OBJECT

private slots:
    void everyFamilyKeepsItsOrderThroughComputeOnly()
    {
        for (const auto& [name, schedule] : allSchedules(Replicas::Any)) {
            const ExportedText csv = pytorchCsv(designOf(schedule));
            const Imported back = importPytorchCsv(csv.text, "s.csv", PytorchLetters::Current, PytorchCsv::ComputeOnly);
            QVERIFY2(back.design.schedule.order == withoutUpdates(schedule).order, name.c_str());
            QVERIFY2(back.design.schedule.deviceOfStage == schedule.deviceOfStage, name.c_str());
            QVERIFY2(back.design.schedule.replicaPlacements == schedule.replicaPlacements, name.c_str());
            QVERIFY2(back.design.schedule.overlaps == schedule.overlaps, name.c_str());
            QCOMPARE(back.design.schedule.microbatches, schedule.microbatches);
            QVERIFY2(back.design.schedule.backward == schedule.backward, name.c_str());
            QVERIFY(validate(back.design.schedule).empty());
            for (const Diagnostic& d : back.diagnostics) // what PyTorch's own order of transfers would cost
                QVERIFY2(d.severity == Severity::Note && d.what.starts_with("as PyTorch lowers it: "),
                         toString(d).c_str());
        }
    }

    void updatesAmidTheRunAreLeftOutAndNamed()
    {
        FamilyParameters parameters = sized(2, 4);
        const Schedule updating = makeSchedule("pipedream", parameters);
        const ExportedText csv = pytorchCsv(designOf(updating));
        QVERIFY(std::any_of(csv.diagnostics.begin(), csv.diagnostics.end(), [](const Diagnostic& d) {
            return d.severity == Severity::Warning && d.what.find("8 update blocks (U0.0, …)") == 0;
        }));
        const Imported back = importPytorchCsv(csv.text, "s.csv");
        QVERIFY(back.diagnostics.empty() && back.design.schedule.order == withoutUpdates(updating).order);
        // Workers with a device each: no other tool lets two ranks hold one stage.
        parameters.layout = WorkerLayout::Workers;
        try {
            (void)pytorchCsv(designOf(makeSchedule("dp", parameters)));
            QFAIL("a stage on two ranks");
        } catch (const Error& error) {
            QVERIFY2(QString::fromUtf8(error.what()).contains("schedule.in_turn"), error.what());
        }
    }

    void everyFamilyKeepsItsOrderThroughComputeComms()
    {
        for (const auto& [name, schedule] : allSchedules()) {
            const ExportedText csv = pytorchCommsCsv(designOf(schedule));
            const Imported back =
                importPytorchCsv(csv.text, "s.csv", PytorchLetters::Current, PytorchCsv::ComputeComms);
            QVERIFY2(back.design.schedule.order == withoutUpdates(schedule).order, name.c_str());
            QVERIFY2(!hasErrors(back.diagnostics), name.c_str());
            for (const Diagnostic& d : back.diagnostics)
                QVERIFY2(d.severity == Severity::Note, toString(d).c_str());
        }
    }

    void everyCommunicationOrderRunsToItsEnd()
    {
        for (const auto& [name, schedule] : allSchedules())
            for (const PytorchVersion version : {PytorchVersion::V2_9, PytorchVersion::V2_10, PytorchVersion::V2_15})
                for (const bool blocking : {false, true}) {
                    const QString fault = Machine(pytorchCommsCsv(designOf(schedule), version).text).run(blocking);
                    QVERIFY2(fault.isEmpty(), qPrintable(QString::fromStdString(name) + ": " + fault));
                }
    }

    void oneTransferStreamPerRankReachesThePredictedTime()
    {
        for (const auto& [name, schedule] : allSchedules())
            for (const int unevenness : {0, 1, 7}) {
                Design design = designOf(withoutUpdates(schedule)); // pins are not exported
                for (int stage = 0; stage < schedule.stages(); ++stage) {
                    StageCosts& costs = design.costs.stages[stage];
                    costs.forward = 1000 + 531 * unevenness * ((stage * 5) % 3);
                    costs.inputGrad = 1200 + 317 * unevenness * ((stage * 7) % 4);
                    costs.weightGrad = 700 + 213 * unevenness * (stage % 2);
                    costs.backward = costs.inputGrad + costs.weightGrad;
                }
                const Machine machine(pytorchCommsCsv(design).text);
                QVERIFY2(machine.makespan(design.costs, 0) == predict(design).metrics.makespan, name.c_str());
                QVERIFY2(machine.makespan(design.costs, 10) >= predict(design).metrics.makespan, name.c_str());
            }
    }

    void theMachineOfThisTestNoticesAHangAndAMismatch()
    {
        QCOMPARE(Machine("0F0,0RECV_B0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n").run(false), QString("rank 0 hangs"));
        QCOMPARE(Machine("0F0,0F1,0SEND_F1,0SEND_F0\n1RECV_F0,1F0,1RECV_F1,1F1\n").run(false),
                 QString("rank 0 sends something else than rank 1 receives"));
        QCOMPARE(Machine("0F0,0WAIT_SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n").run(false),
                 QString("0WAIT_SEND_F0 without a send"));
        QCOMPARE(Machine("0F0,0SEND_F0,0F1,0SEND_F1,0WAIT_SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                         "1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n")
                     .run(false),
                 QString("rank 0 hangs"));
        QCOMPARE(Machine("0F0,0F1,0B0,0REDUCE_GRAD,0B1\n").run(false), QString("0REDUCE_GRAD-1 too early"));
        QCOMPARE(Machine("0F0,1F0,1B0,1REDUCE_GRAD,0B0,0WAIT_REDUCE_GRAD\n").run(false),
                 QString("0WAIT_REDUCE_GRAD-1 without its reduction"));
        QCOMPARE(Machine("0F0,0RECV_B0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n").makespan(uniformCosts({}, 2, 1), 0),
                 Nanoseconds{-1});
    }

    void computeOnlyIsWrittenAsInTheReference()
    {
        const Schedule s = schedule(2, {0, 1}, {"F0.0 F0.1 B0.0 B0.1", "F1.0 I1.0 W1.0 F1.1 B1.1"});
        QCOMPARE(QString::fromStdString(pytorchCsv(designOf(s)).text),
                 QString("0F0,0F1,0B0,0B1\n1F0,1I0,1W0,1F1,1B1\n"));
    }

    void communicationIsWrittenAsEachVersionOfPytorchWantsIt()
    {
        const Design design = designOf(schedule(1, {0, 1}, {"F0.0 B0.0", "F1.0 I1.0 W1.0"}));
        const auto text = [&](PytorchVersion version) {
            return QString::fromStdString(pytorchCommsCsv(design, version).text);
        };
        QCOMPARE(text(PytorchVersion::V2_9), QString("0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0RESHARD\n"
                                                     "1UNSHARD,1RECV_F0,1F0,1I0,1SEND_B0,1W0,1RESHARD\n"));
        QCOMPARE(text(PytorchVersion::V2_10),
                 QString("0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
                         "1UNSHARD,1RECV_F0,1F0,1I0,1SEND_B0,1W0,1REDUCE_GRAD,1RESHARD\n"));
        QCOMPARE(
            text(PytorchVersion::V2_15),
            QString("0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD\n"
                    "1UNSHARD,1RECV_F0,1F0,1I0,1SEND_B0,1W0,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1RESHARD,1WAIT_SEND_B0\n"));
        // What 2.9 forgets is said, where it matters.
        QVERIFY(pytorchCommsCsv(design, PytorchVersion::V2_9).diagnostics.front().hint.find("scale_grads=False")
                != std::string::npos);
        QVERIFY(pytorchCommsCsv(design, PytorchVersion::V2_10).diagnostics.empty());
        QVERIFY(pytorchCommsCsv(designOf(makeSchedule("1f1b", {})), PytorchVersion::V2_9).diagnostics.empty());
    }

    void aGradientIsSentBeforeTheReductionAndTheWait()
    {
        const QString csv = QString::fromStdString(
            pytorchCommsCsv(designOf(schedule(1, {0, 1, 2}, {"F0.0 B0.0", "F1.0 B1.0", "F2.0 B2.0"}))).text);
        QVERIFY2(csv.contains("1B0,1SEND_B0,1WAIT_SEND_F0,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1RESHARD,1WAIT_SEND_B0\n"),
                 qPrintable(csv));
    }

    void whatWasSentIsLetGoOfOnceTheReceiverAnswered()
    {
        const Schedule s = schedule(3, {0, 1}, {"F0.0 F0.1 B0.0 F0.2 B0.1 B0.2", "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2"});
        const QString csv = QString::fromStdString(pytorchCommsCsv(designOf(s)).text);
        // Rank 0 sends its third output when it has used the first gradient.
        QVERIFY2(csv.contains("1F2,1WAIT_SEND_B0,"), qPrintable(csv));
        QVERIFY2(csv.endsWith("1WAIT_SEND_B1,1WAIT_SEND_B2\n"), qPrintable(csv)); // nothing answers these
        QVERIFY2(csv.contains("0B1,0WAIT_SEND_F1,"), qPrintable(csv));
    }

    /// Of what one rank sends another, as much is held as the Program holds, and its memory counts.
    void noMoreSendsAreUnderWayThanTheProgramHolds()
    {
        for (const auto& [name, schedule] : allSchedules()) {
            const Machine machine(pytorchCommsCsv(designOf(schedule)).text);
            for (const std::vector<Machine::Action>& row : machine.rows) {
                std::map<int, int> underWay; // by receiver
                for (const Machine::Action& a : row) {
                    if (a.type.starts_with("SEND") || Machine::isWait(a))
                        underWay[machine.rankOfStage.at(a.stage + (a.type.ends_with("_B") ? -1 : 1))] +=
                            Machine::isWait(a) ? -1 : 1;
                    for (const auto& [receiver, count] : underWay) // what a block allocates comes on top
                        QVERIFY2(a.type.size() > 1 || count <= CompileOptions{}.outstandingSends, name.c_str());
                }
            }
        }
    }

    void forwardsInARowDoNotHoldAllThatTheySent()
    {
        const Schedule s =
            schedule(4, {0, 1}, {"F0.0 F0.1 F0.2 F0.3 B0.0 B0.1 B0.2 B0.3", "F1.0 F1.1 F1.2 F1.3 B1.0 B1.1 B1.2 B1.3"});
        const QString csv = QString::fromStdString(pytorchCommsCsv(designOf(s)).text);
        QVERIFY2(csv.startsWith("0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0F2,0WAIT_SEND_F0,0SEND_F2,0F3,0WAIT_SEND_F1,"
                                "0SEND_F3,"),
                 qPrintable(csv));
    }

    void neighbouringStagesOfOneRankSendNothing()
    {
        const Schedule s = schedule(1, {0, 1, 1, 0}, {"F0.0 F3.0 B3.0 B0.0", "F1.0 F2.0 B2.0 B1.0"});
        const QString csv = QString::fromStdString(pytorchCommsCsv(designOf(s)).text);
        QVERIFY(!csv.contains("1SEND_F") && !csv.contains("2RECV_F") && !csv.contains("2SEND_B"));
        QVERIFY(Machine(csv.toStdString()).run(true).isEmpty());
    }

    void thereAreNoEmptyCellsAndNoUpdates()
    {
        const QRegularExpression known(
            R"(^\d+(F|I|B|W|(WAIT_)?SEND_[FB]|RECV_[FB])\d+$|^\(\d+F\d+;\d+B\d+\)OVERLAP_F_B$|)"
            R"(^\d+((WAIT_)?REDUCE_GRAD|UNSHARD|RESHARD)$)"),
            between("[,\n]");
        for (const auto& [name, schedule] : allSchedules()) {
            Design design = designOf(schedule);
            for (StageCosts& stage : design.costs.stages)
                stage.update = 5'000'000;
            const QString csv = QString::fromStdString(pytorchCommsCsv(design).text);
            QVERIFY(!csv.contains(",,") && !csv.contains(",\n"));
            for (const char* once : {",%1REDUCE_GRAD,", ",%1WAIT_REDUCE_GRAD,", ",%1RESHARD"})
                for (int stage = 0; stage < schedule.stages(); ++stage)
                    QCOMPARE(csv.count(QString(once).arg(stage)), 1);
            for (const char* transfer : {"F", "B"})
                QCOMPARE(csv.count(QString("WAIT_SEND_%1").arg(transfer)), csv.count(QString("RECV_%1").arg(transfer)));
            for (const QString& cell : csv.split(between, Qt::SkipEmptyParts))
                QVERIFY2(known.match(cell).hasMatch(), qPrintable(cell));
        }
    }

    void costsOfZeroStillGiveAnOrderThatRuns()
    {
        Design design = designOf(makeSchedule("zb-h1", {}));
        for (StageCosts& stage : design.costs.stages)
            stage.forward = stage.inputGrad = stage.weightGrad = stage.backward = 0;
        const QString fault = Machine(pytorchCommsCsv(design).text).run(true);
        QVERIFY2(fault.isEmpty(), qPrintable(fault));
    }

    void idleCellsBlanksQuotesAndCarriageReturnsAreFine()
    {
        const Imported i = importPytorchCsv("\xEF\xBB\xBF 0F0 ,,\"0F1\",0B0,0B1,\r\n,1F0,1B0,1F1,1B1\r\n", "s.csv");
        QVERIFY(i.design.schedule == schedule(2, {0, 1}, {"F0.0 F0.1 B0.0 B0.1", "F1.0 B1.0 F1.1 B1.1"}));
        QCOMPARE(i.design.name, std::string("s"));
        QCOMPARE(i.design.costs.stages.size(), std::size_t{2});
        QCOMPARE(i.design.costs.stages[1].forward, Nanoseconds{1'000'000});
    }

    void overlapsArePairsAndLargerOnesAreTakenApartWithAWarning()
    {
        const Imported pair = importPytorchCsv("0F0,(0F1; 0B0)OVERLAP_F_B,0B1\n", "s.csv");
        QVERIFY(pair.design.schedule.order == schedule(2, {0}, {"F0.0 F0.1 B0.0 B0.1"}).order);
        QVERIFY(pair.design.schedule.overlaps == std::vector<Overlap>({{block("F0.1"), block("B0.0")}}));
        QVERIFY(pair.diagnostics.empty());
        QCOMPARE(QString::fromStdString(pytorchCsv(pair.design).text), QString("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"));
        QVERIFY(pytorchCommsCsv(pair.design).text.find("(0F1;0B0)OVERLAP_F_B") != std::string::npos);

        const Imported three = importPytorchCsv("0F0,0F1,(0F2;0B0;0B1)OVERLAP_F_B,0B2\n", "s.csv");
        QVERIFY(three.design.schedule.overlaps.empty());
        QCOMPARE(three.diagnostics.size(), std::size_t{1});
        QVERIFY(three.diagnostics[0].severity == Severity::Warning);
        QVERIFY(messageOf("0F0,0F1,(0F2;0F3)OVERLAP_F_B,0B0,0B1,0B2,0B3,\n").isEmpty());
        QVERIFY(messageOf("(0F0;0B0)OVERLAP_F_B\n").contains("same microbatch"));
    }

    void aSecondReplicaIsWrittenAsFurtherStagesAndReadBack()
    {
        FamilyParameters parameters = sized(2, 2);
        const Design design = designOf(makeSchedule("chimera", parameters));
        const ExportedText csv = pytorchCsv(design);
        QCOMPARE(QString::fromStdString(csv.text), QString("0F0,3F1,3B1,0B0\n2F1,1F0,1B0,2B1\n"));
        QVERIFY(toString(csv.diagnostics).find("no replicas") != std::string::npos);
        QVERIFY_THROWS_EXCEPTION(Error, pytorchCommsCsv(design));
    }

    void rowsOfActionsAreWrittenAsTheyAreRead()
    {
        for (const char* line :
             {"0F0,(0F1;0B0)OVERLAP_F_B,0B1", "(0F4;7I1;3W2)OVERLAP_F_B",
              "2SEND_F0,2WAIT_SEND_F0,1WAIT_SEND_B12,0WAIT_REDUCE_GRAD",
              "(0F1;0B0)OVERLAP_F_B,(0F2;0B1)OVERLAP_F_B,0UNSHARD,0RESHARD,0REDUCE_GRAD,1RECV_B3,0SEND_B1"}) {
            std::vector<PytorchAction> row;
            for (const QString& cell : QString(line).split(','))
                QVERIFY(!parsePytorchCell(cell.toStdString(), PytorchLetters::Current, row));
            std::string text;
            appendRow(text, row);
            QCOMPARE(QString::fromStdString(text), QString(line));
        }
        std::vector<PytorchAction> pair;
        QVERIFY(!parsePytorchCell("(0F4; 7B1)OVERLAP_F_B", PytorchLetters::Current, pair));
        QVERIFY((pair
                 == std::vector<PytorchAction>{{PytorchAction::Type::F, 0, 4, true},
                                               {PytorchAction::Type::B, 7, 1, false}}));
        QVERIFY(parsePytorchCell("(0F4;0B1;0SEND_F0)OVERLAP_F_B", PytorchLetters::Current, pair) && pair.size() == 2);
    }

    void waitsForReductionsAloneMakeNoFileWithCommunication()
    {
        // As PyTorch describes its schedules of one stage per rank.
        const Imported i = importPytorchCsv(
            "0F0,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\n,1F0,1B0,1REDUCE_GRAD,1WAIT_REDUCE_GRAD\n", "s.csv");
        QCOMPARE(i.design.schedule.stages(), 2);
        QVERIFY(messageOf("0F0,0WAIT_SEND_F0,0B0\n1F0,1B0\n")
                    .contains("cell 2 (0WAIT_SEND_F0): there is no 0SEND_F0 to wait for"));
    }

    void aWaitThatHangsIsFoundInTheFile()
    {
        // Rank 0 waits for its second send before it takes the gradient that rank 1 must get rid of first.
        const QString said =
            messageOf("0F0,0SEND_F0,0F1,0SEND_F1,0WAIT_SEND_F0,0WAIT_SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                      "1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1WAIT_SEND_B1\n");
        QVERIFY2(said.contains("waits in a circle"), qPrintable(said));
    }

    void lossesThatPytorchWouldMixUpAreRefused()
    {
        const Design design = designOf(schedule(2, {0, 1}, {"F0.1 F0.0 B0.1 B0.0", "F1.1 B1.1 F1.0 B1.0"}));
        try {
            pytorchCommsCsv(design);
            QFAIL("written");
        } catch (const Error& error) {
            QVERIFY2(QString(error.what()).contains("device 1 (F1.1)"), error.what());
        }
        const Diagnostics said = pytorchCsv(design).diagnostics; // the order alone is written, with a warning
        QVERIFY(said.size() == 1 && said[0].severity == Severity::Warning
                && said[0].what.starts_with("F1.1 does not come in the order"));
        QVERIFY(importPytorchCsv("0F0,0F1,0B0,0B1\n", "s.csv").diagnostics.empty());
        const Imported i = importPytorchCsv("0F1,0F0,0B0,0B1\n", "s.csv");
        QVERIFY(i.diagnostics.size() == 1 && i.diagnostics[0].severity == Severity::Warning);
        // Any order of the other forwards, and of the last stage's backwards, is fine.
        QVERIFY(
            !pytorchCsv(designOf(schedule(2, {0, 1}, {"F0.1 F0.0 B0.0 B0.1", "F1.0 F1.1 B1.1 B1.0"}))).text.empty());
    }

    void legacyLettersAreReadOnRequest()
    {
        const std::string text = "0F0,0F1,0BW0,0BW1\n1F0,1B0,1F1,1W0,1B1,1W1\n";
        QVERIFY(messageOf(text).contains(
            "s.csv:1: error: cell 3, \"0BW0\": BW is a legacy letter (import with --legacy-letters"));
        const Imported i = importPytorchCsv(text, "s.csv", PytorchLetters::Legacy);
        QVERIFY(i.design.schedule.order
                == schedule(2, {0, 1}, {"F0.0 F0.1 B0.0 B0.1", "F1.0 I1.0 F1.1 W1.0 I1.1 W1.1"}).order);
        QVERIFY(i.design.schedule.backward == BackwardStyle::Split);
        QVERIFY(messageOf("0F0,0I0,0W0\n", PytorchLetters::Legacy).contains("cell 2"));
        // Legacy letters without the request: B beside W cannot be meant.
        const QString hint = messageOf("0F0,0B0,0W0\n");
        QVERIFY2(hint.contains("cell 2") && hint.contains("--legacy-letters"), qPrintable(hint));
    }

    void aSplitFirstStageIsRecognised()
    {
        QVERIFY(!importPytorchCsv("0F0,0I0,0W0\n", "s.csv").design.schedule.firstStageMaySplit);
        QVERIFY(importPytorchCsv("0F0,0I0,0F1,0W0,0I1,0W1\n", "s.csv").design.schedule.firstStageMaySplit);
    }

    void whatCannotBeExportedIsRefused()
    {
        Design design = designOf(schedule(1, {0, 1}, {"F0.0 B0.0", "F1.0"}));
        QVERIFY_THROWS_EXCEPTION(Error, pytorchCsv(design));
        QVERIFY_THROWS_EXCEPTION(Error, pytorchCommsCsv(design));
        Schedule replicas = schedule(1, {0}, {"F0.0 B0.0"});
        replicas.order[0].push_back({Op::F, 0, 0, 1});
        QVERIFY_THROWS_EXCEPTION(Error, pytorchCsv(designOf(replicas)));
        QVERIFY_THROWS_EXCEPTION(Error, pytorchCsv(designOf(schedule(1, {0, 1}, {"F0.0 R0.0 B0.0", "F1.0 B1.0"}))));
        QVERIFY_THROWS_EXCEPTION(Error, pytorchCsv(designOf(schedule(1, {0}, {"F0.0 B0.0", ""}))));
        design = designOf(schedule(1, {0, 1, 2}, {"F0.0 B0.0", "F1.0 B1.0", "F2.0 B2.0"}));
        design.dataflow.skips.push_back({0, 2, 16});
        QVERIFY_THROWS_EXCEPTION(Error, pytorchCommsCsv(design));
        QVERIFY(pytorchCsv(design).diagnostics.size() == 1);
    }

    void largeFilesAreReadAtOnce()
    {
        FamilyParameters parameters = sized(16, 4096);
        const Schedule schedule = makeSchedule("zb-h1", parameters); // 196,608 blocks
        const std::string text = pytorchCsv(designOf(schedule)).text;
        QElapsedTimer timer;
        timer.start();
        const Imported back = importPytorchCsv(text, "s.csv");
        qInfo("compute_only: %lld cells, %.0f KiB in %lld ms", static_cast<long long>(schedule.blocks()),
              static_cast<double>(text.size()) / 1024, static_cast<long long>(timer.elapsed()));
        QVERIFY(back.design.schedule.order == schedule.order);
        timer.restart();
        const std::string comms = pytorchCommsCsv(designOf(schedule)).text;
        qInfo("compute_comms written and proved: %lld ms", static_cast<long long>(timer.elapsed()));
        timer.restart();
        QVERIFY(importPytorchCsv(comms, "s.csv").design.schedule.order == schedule.order);
        qInfo("compute_comms read and proved: %lld ms", static_cast<long long>(timer.elapsed()));
    }
};

PIPEWRIGHT_TEST(TstPytorchCsv, NoApplication)
#include "tst_pytorchcsv.moc"
