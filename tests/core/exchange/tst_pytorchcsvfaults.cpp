// SPDX-License-Identifier: GPL-3.0-or-later
// PyTorch CSV: every fault names its line and cell.
#include "core/exchange/pytorchcsv.h"
#include "pytorchcsvmessage.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;
using namespace pipewright::test;

class TstPytorchCsvFaults : public QObject {
    Q_OBJECT

private slots:
    void everyBadCellIsNamedByLineAndCell_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        const auto row = [](const char* text, const char* message) {
            QTest::newRow(message) << QString(text) << QString(message);
        };
        row("0F0,0X0,0B0\n", "s.csv:1: error: cell 2, \"0X0\": unknown action type \"X\"");
        row("0F0,0B0\n1F0,F1\n", "s.csv:2: error: cell 2, \"F1\": does not begin with a stage number");
        row("0F0,2BW0\n", "cell 2, \"2BW0\": BW is a legacy letter");
        row("0F0,0B0x\n", "cell 2, \"0B0x\": \"x\" stands behind the action");
        row("0F0,0B\n", "cell 2, \"0B\": has no microbatch number");
        row("0F00,0B0\n", "cell 1, \"0F00\": has no microbatch number");
        row("0F0,0B70000\n", "cell 2, \"0B70000\": microbatch number too large");
        row("99999999999999999999F0\n", "cell 1, \"99999999999999999999F0\": stage number too large");
        row("0F0,0UNSHARD3\n", "cell 2, \"0UNSHARD3\": \"3\" stands behind the action");
        row("0f0\n", "cell 1, \"0f0\": unknown action type \"\"");
        row("0F0,-1B0\n", "cell 2, \"-1B0\": does not begin with a stage number");
        row("(0F0;0B0\n", "cell 1, \"(0F0;0B0\": the bracket is not closed");
        row("(0F0;0B0)\n", "cell 1, \"(0F0;0B0)\": expected OVERLAP_F_B after the bracket");
        row("(0F0)OVERLAP_F_B\n", "an overlap of a single action");
        row("(0F0;)OVERLAP_F_B\n", "does not begin with a stage number");
        row("(0F0;0SEND_F0)OVERLAP_F_B\n", "0SEND_F0 is no computation, so it cannot overlap");
        row("()OVERLAP_F_B\n", "does not begin with a stage number");
        row("", "s.csv: error: there is no block in this file");
        row("\n\n", "there is no block in this file");
        row("0F0,0B0\n\n1F0,1B0\n", "s.csv:2: error: device 1 has no block");
        row("0F0,0B0,0F0\n",
            "s.csv:1: error: cell 3 (F0.0): the same block is placed twice (it already stands in cell 1");
        row("0F0,0B0,1F0\n1B0\n", "s.csv:2: error: cell 1 (B1.0): stage 1 is held by device 0");
        row("0F0,0B0,2F0,2B0\n", "s.csv:1: error: cell 3 (F2.0): stage 2 has blocks, stage 1 has none");
        row("0F0,0B0,0F2,0B2\n", "s.csv:1: error: missing block F0.1 (forward)");
        row("0F0,0B0,0F1\n", "s.csv:1: error: missing block B0.1 (full backward)");
        row("0F0,0I0\n", "missing block W0.0 (weight gradient)");
        row("0F0,0W0\n", "missing block I0.0 (input gradient)");
        row("0B0,0F0\n", "s.csv:1: error: cell 1 (B0.0)");
        row("0F0,0F1,0B0,0B1\n1F1,1B1,1F0,1B0,2F0\n", "s.csv:2: error: missing block F2.1");
        row("0F0,0W0,0I0\n", "s.csv:1: error: cell 2 (W0.0)");
    }
    void everyBadCellIsNamedByLineAndCell()
    {
        QFETCH(QString, text);
        QFETCH(QString, message);
        const QString said = messageOf(text.toStdString());
        QVERIFY2(said.contains(message), qPrintable(said));
    }

    void ordersThatWaitForEachOtherAreRefusedWithTheCycle()
    {
        const QString said = messageOf("0F0,0F1,0B1,0B0\n1F0,1B0,1F1,1B1\n");
        QVERIFY2(said.isEmpty(), qPrintable(said)); // reversed backwards wait, but end
        const QString cycle = messageOf("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n");
        QVERIFY2(cycle.contains("s.csv") && cycle.contains("F1.1"), qPrintable(cycle));
    }

    void badCommunicationIsNamedByLineAndCell_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        const auto row = [](const char* text, const char* message) {
            QTest::newRow(message) << QString(text) << QString(message);
        };
        row("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
            "s.csv:1: error: cell 3 (0B0): its input has not been received: 0RECV_B0 is missing");
        row("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
            "s.csv:2: error: cell 1 (1RECV_F0): rank 0 never sends it: 0SEND_F0");
        row("0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
            "s.csv:1: error: cell 1 (0SEND_F0): is sent before 0F0 has made it");
        row("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n",
            "s.csv:2: error: cell 2 (1RECV_F0): is received after 1F0 needed it");
        row("0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
            "cell 3 (0SEND_F0): the same transfer stands twice");
        row("0F0,0SEND_F0,0RECV_B0,0B0,0SEND_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
            "cell 5 (0SEND_B0): there is no stage -1");
        row("0F0,1SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
            "cell 2 (1SEND_F0): rank 0 does not hold stage 1");
        row("0F0,0SEND_F7,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
            "cell 2 (0SEND_F7): unknown microbatch 7");
        row("0F0,0SEND_F0,,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "s.csv:1: error: cell 3 is empty");
        row("0F0,0SEND_F0,0RECV_B0,0B0,\n1RECV_F0,1F0,1B0,1SEND_B0\n", "s.csv:1: error: cell 5 is empty");
        row("0F0,0SEND_F0,1F0,1B0,0B0\n", "cell 2 (0SEND_F0): stage 1 is on the same rank");
        row("0F0,0WAIT_SEND_F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0\n",
            "s.csv:1: error: cell 2 (0WAIT_SEND_F0): there is no 0SEND_F0 to wait for");
        row("0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
            "s.csv:2: error: cell 4 (1SEND_B0): is never waited for");
        row("0F0,0SEND_F0,0WAIT_SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0\n1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0\n",
            "s.csv:1: error: cell 6 (0WAIT_SEND_F0): there is no 0SEND_F0 to wait for");
        row("0F0,1F0,1B0,1REDUCE_GRAD,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,1WAIT_REDUCE_GRAD\n",
            "s.csv:1: error: cell 6 (0REDUCE_GRAD): 1REDUCE_GRAD is still in flight");
        row("0F0,1F0,1B0,1REDUCE_GRAD,0WAIT_REDUCE_GRAD,0B0\n",
            "s.csv:1: error: cell 5 (0WAIT_REDUCE_GRAD): this reduction is not in flight");
        row("0F0,1F0,1B0,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,0B0,0REDUCE_GRAD\n",
            "s.csv:1: error: cell 7 (0REDUCE_GRAD): is never waited for");
        row("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n1RECV_F1,1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_"
            "B1\n",
            "s.csv:2: error: cell 1 (1RECV_F1): is number 1 that rank 1 receives from rank 0, which sends 0SEND_F0");
    }
    void badCommunicationIsNamedByLineAndCell()
    {
        QFETCH(QString, text);
        QFETCH(QString, message);
        const QString said = messageOf(text.toStdString());
        QVERIFY2(said.contains(message), qPrintable(said));
    }

    void anOrderThatHangsOnlyWhenTransfersBlockIsAWarning()
    {
        // Both ranks send before they receive.
        const Imported i = importPytorchCsv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                                            "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n",
                                            "s.csv");
        QVERIFY(std::any_of(i.diagnostics.begin(), i.diagnostics.end(), [](const Diagnostic& d) {
            return d.severity == Severity::Warning && d.what.find("waits in a circle") != std::string::npos;
        }));
        QVERIFY(messageOf("0F0,0B0\n", PytorchLetters::Current, PytorchCsv::ComputeComms).isEmpty());
        QVERIFY(messageOf("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", PytorchLetters::Current,
                          PytorchCsv::ComputeOnly)
                    .contains("import it as pytorch-comms-csv"));
    }

    void aHundredFaultsAreCountedNotListed()
    {
        std::string text;
        for (int i = 0; i < 100; ++i)
            text += "x,";
        const QString said = messageOf(text);
        QCOMPARE(said.count("error:"), 32);
        QVERIFY(said.contains("more like these"));
    }
};

PIPEWRIGHT_TEST(TstPytorchCsvFaults, NoApplication)
#include "tst_pytorchcsvfaults.moc"
