// SPDX-License-Identifier: GPL-3.0-or-later
// The order in which imported schedules send and receive: it decides how long the step takes, it is PyTorch's own where
// that is asked for, it survives files, exports and edits, and one that hangs is found.
#include "core/base/textfile.h"
#include "core/exchange/exchange.h"
#include "core/exchange/inordersimulation.h"
#include "core/exchange/pytorchcsv.h"
#include "core/exchange/pytorchlowering.h"
#include "core/files/designfile.h"
#include "core/predict/designcheck.h"
#include "core/predict/editrequest.h"
#include "core/predict/predict.h"
#include "core/program/transferedits.h"
#include "makers/designs.h"
#include "testmain.h"
#include "testpaths.h"

#include <QTest>

#include <numeric>
#include <random>
#include <set>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// "interleaved-8x16.comms.csv": as PyTorch 2.15 lowers it; "….only.csv": what it lowers.
std::string read(const char* schedule, const char* form)
{
    return readTextFile(std::string(PIPEWRIGHT_SOURCE_DIR "/tests/core/exchange/pytorch/") + schedule + form);
}

Imported imported(const std::string& text, std::optional<TransferSource> transfers = {})
{
    return importPytorchCsv(text, "s.csv", PytorchLetters::Current, {}, transfers);
}

Nanoseconds stepOf(const Design& design)
{
    return predict(design).metrics.makespan;
}

constexpr Nanoseconds ms = 1'000'000;

QString notesOf(const Imported& imported)
{
    return QString::fromStdString(toString(imported.diagnostics));
}

/// A file in which blocks and transfers come in a random order that some one could observe: a block when its inputs
/// have arrived, a transfer at any time after its value was made.
std::string randomFile(const Schedule& schedule, std::mt19937& random)
{
    PytorchRows rows(schedule.order.size());
    std::vector<std::size_t> next(rows.size(), 0);
    std::vector<Transfer> waiting;                   // made and not sent
    std::set<std::tuple<bool, int, int, int>> there; // gradient, stage that made it, microbatch, device
    const auto last = schedule.stages() - 1;
    const auto ready = [&](const Block& block, int device) {
        if (block.op == Op::F)
            return block.stage == 0 || there.contains({false, block.stage - 1, block.microbatch, device});
        return !makesInputGrad(block.op) || block.stage == last
               || there.contains({true, block.stage + 1, block.microbatch, device});
    };
    std::size_t left = static_cast<std::size_t>(schedule.blocks());
    while (left > 0 || !waiting.empty()) {
        const auto device = static_cast<int>(random() % rows.size());
        if (random() % 2 == 0 && !waiting.empty()) {
            const auto at = waiting.begin() + static_cast<std::ptrdiff_t>(random() % waiting.size());
            const auto& [op, stage, microbatch, replica] = at->producer;
            const bool gradient = op != Op::F;
            using Type = PytorchAction::Type;
            rows[schedule.deviceOfStage[stage]].push_back({gradient ? Type::SendB : Type::SendF, stage, microbatch});
            rows[at->destination].push_back(
                {gradient ? Type::RecvB : Type::RecvF, stage + (gradient ? -1 : 1), microbatch});
            there.insert({gradient, stage, microbatch, at->destination});
            waiting.erase(at);
        } else if (next[device] < schedule.order[device].size()) {
            const Block& block = schedule.order[device][next[device]];
            if (!ready(block, device))
                continue;
            ++next[device];
            --left;
            rows[device].push_back({computeType(block.op), block.stage, block.microbatch});
            const int to = block.op == Op::F ? block.stage + 1 : block.stage - 1;
            if ((block.op != Op::F && !makesInputGrad(block.op)) || to < 0 || to > last)
                continue;
            there.insert({block.op != Op::F, block.stage, block.microbatch, device});
            if (schedule.deviceOfStage[to] != device)
                waiting.push_back({block, schedule.deviceOfStage[to]});
        }
    }
    std::string text;
    for (const auto& row : rows) {
        appendRow(text, row);
        text += '\n';
    }
    return text;
}

/// Two neighbouring sends or receives of one rank change places.
std::string withTwoSwapped(const std::string& csv, std::mt19937& random)
{
    QStringList lines = QString::fromStdString(csv).split('\n', Qt::SkipEmptyParts);
    QString& line = lines[static_cast<int>(random() % static_cast<unsigned>(lines.size()))];
    QStringList cells = line.split(',');
    QList<int> transfers;
    for (int i = 0; i < cells.size(); ++i)
        if (cells[i].contains("SEND") || cells[i].contains("RECV"))
            transfers << i;
    if (transfers.size() > 1) {
        const auto at = static_cast<int>(random() % static_cast<unsigned>(transfers.size() - 1));
        cells.swapItemsAt(transfers[at], transfers[at + 1]);
    }
    line = cells.join(',');
    return (lines.join('\n') + '\n').toStdString();
}

void setTimes(Costs& costs, std::mt19937& random)
{
    for (StageCosts& stage : costs.stages) {
        stage.forward = 1 + static_cast<Nanoseconds>(random() % 1000);
        stage.inputGrad = 1 + static_cast<Nanoseconds>(random() % 1000);
        stage.weightGrad = 1 + static_cast<Nanoseconds>(random() % 1000);
        stage.backward = stage.inputGrad + stage.weightGrad;
    }
    costs.link.latency = static_cast<Nanoseconds>(random() % 400);
    costs.linkOfPair[{0, 1}].latency = static_cast<Nanoseconds>(random() % 900);
}

} // namespace

class TstImportedTransfers : public QObject {
    Q_OBJECT

private slots:
    void theOrderOfAFileDecidesHowLongTheStepTakes_data()
    {
        QTest::addColumn<QByteArray>("schedule");
        QTest::addColumn<int>("inOrder");
        QTest::addColumn<int>("own");
        QTest::newRow("interleaved, 8 ranks, 16 microbatches") << QByteArray("interleaved-8x16") << 174 << 117;
        QTest::newRow("interleaved, 4 ranks, 8 microbatches") << QByteArray("interleaved-4x8") << 70 << 57;
        QTest::newRow("interleaved zero bubble") << QByteArray("interleaved-zb-4x8") << 59 << 51;
        QTest::newRow("zero bubble in a V") << QByteArray("zbv-4x8") << 55 << 51;
    }
    void theOrderOfAFileDecidesHowLongTheStepTakes()
    {
        QFETCH(QByteArray, schedule);
        QFETCH(int, inOrder);
        QFETCH(int, own);
        const std::string comms = read(schedule, ".comms.csv"), only = read(schedule, ".only.csv");
        const Imported given = imported(comms);
        QVERIFY(given.design.costs.communication == Communication::OneStream);
        QCOMPARE(stepOf(given.design), inOrder * ms);
        QCOMPARE(*InOrderSimulation(comms).step(given.design.costs), inOrder * ms);
        QCOMPARE(stepOf(imported(only, TransferSource::Pytorch).design), inOrder * ms);
        for (const Design& design : {imported(only).design, imported(comms, TransferSource::Own).design}) {
            QVERIFY(design.costs.communication == Communication::OneStream);
            QVERIFY(design.schedule.transferOrder.empty());
            QCOMPARE(stepOf(design), own * ms);
        }
        Design overlapped = given.design;
        overlapped.costs.communication = Communication::Overlapped;
        overlapped.schedule.transferOrder.clear();
        QCOMPARE(stepOf(overlapped), own * ms);
        // Both figures are told, whichever order was taken.
        const QString both = QString("the step takes %1 ms; with this program's own order of transfers %2 ms");
        for (const Imported& each : {given, imported(only), imported(only, TransferSource::Pytorch)})
            QVERIFY2(notesOf(each).contains(both.arg(inOrder).arg(own)), qPrintable(notesOf(each)));
        QVERIFY2(!notesOf(given).contains("agree with the computations"), qPrintable(notesOf(given)));
    }

    void computationsAreLoweredAsPytorchLowersThem_data()
    {
        QTest::addColumn<QByteArray>("schedule");
        for (const char* schedule : {"interleaved-8x16", "interleaved-4x8", "interleaved-zb-4x8", "zbv-4x8",
                                     "dualpipe-v-4x8", "interleaved-2x4-five-chunks"})
            QTest::newRow(schedule) << QByteArray(schedule);
    }
    void computationsAreLoweredAsPytorchLowersThem()
    {
        QFETCH(QByteArray, schedule);
        Imported lowered = imported(read(schedule, ".only.csv"), TransferSource::Pytorch);
        const Imported expected = imported(read(schedule, ".comms.csv"));
        QVERIFY(lowered.design.schedule.zero == Zero{});
        lowered.design.schedule.zero = expected.design.schedule.zero; // which computations do not say
        QVERIFY(!expected.design.schedule.transferOrder.empty());
        QVERIFY(lowered.design.schedule == expected.design.schedule);
        // Not only the order among transfers: every cell that is not for bookkeeping stands where PyTorch has it.
        std::string rows;
        for (const std::vector<PytorchAction>& row : loweredByPytorch(lowered.design.schedule)) {
            appendRow(rows, row);
            rows += '\n';
        }
        QString wanted = QString::fromStdString(read(schedule, ".comms.csv"));
        wanted.remove(QRegularExpression("\\d+(WAIT_SEND_[FB]\\d+|(WAIT_)?REDUCE_GRAD|UNSHARD|RESHARD),?"));
        wanted.replace(",\n", "\n");
        QCOMPARE(QString::fromStdString(rows), wanted);
    }

    void randomOrdersTakeAsLongAsRanksThatFollowThem()
    {
        std::mt19937 random(5);
        int delayed = 0, hung = 0, swapped = 0;
        for (int round = 0; round < 300; ++round) {
            const char* const families[] = {"1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "gpipe"};
            const Schedule schedule = possibleSchedule(families[random() % 5], 2 + static_cast<int>(random() % 3),
                                                       4 * (1 + static_cast<int>(random() % 2)));
            std::string text = randomFile(schedule, random);
            if (round % 3 == 0)
                text = withTwoSwapped(text, random);
            Imported given;
            try {
                given = imported(text);
            } catch (const Error&) {
                continue; // swapped into something that PyTorch would refuse or mix up
            }
            swapped += round % 3 == 0;
            Design& design = given.design;
            setTimes(design.costs, random);
            const std::optional<Nanoseconds> expected = InOrderSimulation(text).step(design.costs);
            if (!expected) {
                ++hung;
                QVERIFY2(notesOf(given).contains("waits in a circle"), text.c_str());
                const Diagnostics found = checkDesign(design);
                QVERIFY2(toString(found).find("the communication waits in a circle") != std::string::npos,
                         text.c_str());
                continue;
            }
            QVERIFY2(stepOf(design) == *expected, text.c_str());
            Design own = design;
            own.schedule.transferOrder.clear();
            delayed += stepOf(own) < *expected;
        }
        QVERIFY2(delayed > 50 && hung > 5 && swapped > hung,
                 qPrintable(QString("%1 delayed, %2 hung of %3 swapped").arg(delayed).arg(hung).arg(swapped)));
    }

    void theOrderSurvivesTheDesignFileAndTheExport_data() { theOrderOfAFileDecidesHowLongTheStepTakes_data(); }
    void theOrderSurvivesTheDesignFileAndTheExport()
    {
        QFETCH(QByteArray, schedule);
        const std::string comms = read(schedule, ".comms.csv");
        const Design design = imported(comms).design;
        const Design back = designFromJson(designToJson(design), "again.json");
        QVERIFY(back == design);
        const std::string exported = pytorchCommsCsv(back).text;
        const InOrderSimulation before(comms), after(exported);
        for (std::size_t rank = 0; rank < before.ranks(); ++rank)
            QCOMPARE(after.transfersOf(rank), before.transfersOf(rank));
        const Design again = imported(exported).design;
        QVERIFY(again.schedule == design.schedule);
        QCOMPARE(pytorchCommsCsv(again).text, exported);
        // Computations alone cannot carry it, and that is told.
        QVERIFY(toString(pytorchCsv(design).diagnostics).find("the stated order of transfers is left out")
                != std::string::npos);
    }

    void anOrderThatHangsIsImportedWithAWarningAndFoundByTheCheck()
    {
        // Rank 0 sends two values before it takes the first gradient, rank 1 gives that back before it takes the
        // second.
        const Imported hangs = imported("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                                        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
        QVERIFY(hangs.diagnostics.front().severity == Severity::Warning);
        QVERIFY2(notesOf(hangs).contains("on one stream of each rank: the communication waits in a circle: "),
                 qPrintable(notesOf(hangs)));
        const QString found = QString::fromStdString(toString(checkDesign(hangs.design)));
        QVERIFY2(found.contains("error: the communication waits in a circle: ")
                     && found.contains("F0.1 from device 0 to device 1")
                     && found.contains("I1.0 from device 1 to device 0"),
                 qPrintable(found));
        QVERIFY_THROWS_EXCEPTION(Error, predict(hangs.design));
        // Transfers beside each other let it run.
        Design free = hangs.design;
        free.schedule.transferOrder.clear();
        QVERIFY(checkDesign(free).empty());
    }

    void whatIsAskedForAndNotThereIsRefused()
    {
        try {
            (void)imported(read("zbv-4x8", ".only.csv"), TransferSource::File);
            QFAIL("there is no order in it");
        } catch (const Error& error) {
            QVERIFY2(QString(error.what()).contains("there are no sends and receives"), error.what());
        }
        ImportOptions options;
        options.transfers = TransferSource::Pytorch;
        QVERIFY_THROWS_EXCEPTION(Error, importDesign("F0 B0\nF0 B0\n", "lines", options));
    }

    void editsKeepTheOrderOrAreRefusedWithTheCircle()
    {
        const auto design = std::make_shared<const Design>(imported(read("interleaved-4x8", ".comms.csv")).design);
        const Prediction prediction = predict(*design);
        int kept = 0, refused = 0;
        for (int device = 0; device < 4; ++device)
            for (int at = 0; at + 1 < static_cast<int>(design->schedule.order[device].size()); ++at) {
                std::vector<std::uint32_t> positions(design->schedule.order[device].size());
                std::iota(positions.begin(), positions.end(), 0U);
                std::swap(positions[at], positions[at + 1]);
                const EditedDesign edited = apply(ReorderDevice{device, positions, {}}, design, &prediction);
                if (hasErrors(edited.diagnostics)) {
                    ++refused;
                    QVERIFY(edited.design == design);
                    continue;
                }
                ++kept;
                QVERIFY(edited.design->schedule.transferOrder == design->schedule.transferOrder);
                QVERIFY(stepOf(*edited.design) > 0);
            }
        QVERIFY2(kept > 20 && refused > 0, qPrintable(QString("%1 kept, %2 refused").arg(kept).arg(refused)));
        // A stage elsewhere has other transfers. What was stated of the old ones is kept for its return, and counted.
        const EditedDesign moved = apply(MoveStage{4, 1, 0}, design, &prediction);
        QVERIFY2(!hasErrors(moved.diagnostics), toString(moved.diagnostics).c_str());
        const Diagnostics notes = notesOnStatedPairs(predict(*moved.design).program, design->schedule.transferOrder);
        QCOMPARE(notes.size(), std::size_t{4});
        QVERIFY(notes.back().what.ends_with("more pairs have no effect either"));
    }

    void oneTransferMovesAndTheOthersOfItsListStayInOrder()
    {
        Design design = imported(read("interleaved-4x8", ".comms.csv")).design;
        int moved = 0;
        for (const int from : {3, 10, 17, 30})
            for (const int to : {from - 2, from - 1, from + 1, from + 3}) {
                const Program program = predict(design).program;
                std::vector<IssuedTransfer> wanted = transfersOf(program, 1);
                const EditResult edit = moveTransfer(design, program, 1, from, to);
                if (!edit.legal())
                    continue;
                ++moved;
                const IssuedTransfer it = wanted[from];
                wanted.erase(wanted.begin() + from);
                wanted.insert(wanted.begin() + to, it);
                Design changed = design;
                changed.schedule = edit.schedule;
                const std::vector<IssuedTransfer> now = transfersOf(predict(changed).program, 1);
                for (std::size_t i = 0; i < now.size(); ++i)
                    QCOMPARE(textOf(now[i].transfer), textOf(wanted[i].transfer));
            }
        QVERIFY2(moved > 3, qPrintable(QString::number(moved)));
        // Without its own pairs a transfer goes where the data puts it, and its old neighbours keep their order.
        const Program program = predict(design).program;
        const std::vector<IssuedTransfer> list = transfersOf(program, 1);
        design.schedule = withoutStatedOrder(design.schedule, list[10].transfer);
        std::vector<IssuedTransfer> now = transfersOf(predict(design).program, 1);
        std::vector<std::string> before, after;
        for (const IssuedTransfer& each : list)
            if (each.transfer != list[10].transfer)
                before.push_back(textOf(each.transfer));
        for (const IssuedTransfer& each : now)
            if (each.transfer != list[10].transfer)
                after.push_back(textOf(each.transfer));
        QVERIFY(before == after);
    }
};

PIPEWRIGHT_TEST(TstImportedTransfers, NoApplication)
#include "tst_importedtransfers.moc"
