// SPDX-License-Identifier: GPL-3.0-or-later
// Where a file for PyTorch gathers parameters that copies of the pipeline share out, beside where PyTorch 2.15's own
// schedules do for the same order of computations (_add_unshard_reshard of torch.distributed.pipelining).
#include "core/base/textfile.h"
#include "core/exchange/pytorchcsv.h"
#include "core/program/gatheredits.h"
#include "makers/designs.h"
#include "makers/schedules.h"
#include "testmain.h"
#include "testpaths.h"

#include <QTest>

#include <random>

using namespace pipewright;

namespace {

Design interleaved(int prefetch, bool every = true)
{
    FamilyParameters parameters = test::possibleParameters(*findFamily("interleaved-1f1b"), 2, 4);
    parameters.chunks = 3;
    Design design = test::evenDesign({.saved = 1 << 20}, makeSchedule("interleaved-1f1b", parameters));
    design.schedule.zero = {.level = 3, .reshard = {every, {}}, .prefetch = prefetch};
    for (StageCosts& stage : design.costs.stages) {
        stage.gatheredParameters = 1 << 20;
        stage.gather = 1000;
    }
    return design;
}

/// Of every rank, the computations, UNSHARD and RESHARD; a pair's cells and the last RESHARD of each stage are not
/// touched.
QString gathersOf(const std::string& text)
{
    QString all;
    for (const QString& line : QString::fromStdString(text).split('\n')) {
        QStringList kept;
        for (const QString& cell : line.split(','))
            if (!cell.contains("SEND") && !cell.contains("RECV") && !cell.contains("REDUCE")
                && !cell.contains("RESHARD"))
                kept << cell;
        all += kept.join(' ') + '\n';
    }
    return all;
}

QString messages(const Diagnostics& diagnostics)
{
    QStringList all;
    for (const Diagnostic& each : diagnostics)
        all << QString::fromStdString(toString(each));
    return all.join('\n');
}

/// The first rank's computations, UNSHARD and RESHARD.
QString firstRank(const Design& design)
{
    QStringList kept;
    for (const QString& cell : QString::fromStdString(pytorchCommsCsv(design).text).split('\n').front().split(','))
        if (!cell.contains("SEND") && !cell.contains("RECV") && !cell.contains("REDUCE"))
            kept << cell;
    return kept.join(' ');
}

} // namespace

class PytorchGathersTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void parametersAreGatheredAndFreedWherePyTorchDoesIt()
    {
        QCOMPARE(firstRank(interleaved(0)),
                 QString("0UNSHARD 0F0 0F1 0RESHARD 2UNSHARD 2F0 2F1 2RESHARD 4UNSHARD 4F0 4F1 4RESHARD 0UNSHARD "
                         "0F2 0RESHARD 4UNSHARD 4B0 4RESHARD 0UNSHARD 0F3 0RESHARD 4UNSHARD 4B1 4RESHARD 2UNSHARD "
                         "2F2 2B0 2F3 2B1 2RESHARD 4UNSHARD 4F2 4RESHARD 0UNSHARD 0B0 0RESHARD 4UNSHARD 4F3 "
                         "4RESHARD 0UNSHARD 0B1 0RESHARD 4UNSHARD 4B2 4B3 4RESHARD 2UNSHARD 2B2 2B3 2RESHARD "
                         "0UNSHARD 0B2 0B3 0RESHARD"));
        QCOMPARE(firstRank(interleaved(1)),
                 QString("0UNSHARD 2UNSHARD 0F0 0F1 0RESHARD 4UNSHARD 2F0 2F1 2RESHARD 0UNSHARD 4F0 4F1 0F2 4B0 "
                         "0F3 0RESHARD 2UNSHARD 4B1 2F2 2B0 2F3 2B1 2RESHARD 0UNSHARD 4F2 0B0 4F3 0B1 0RESHARD "
                         "2UNSHARD 4B2 4B3 4RESHARD 0UNSHARD 2B2 2B3 2RESHARD 0B2 0B3 0RESHARD"));
        QCOMPARE(firstRank(interleaved(2)),
                 QString("0UNSHARD 2UNSHARD 4UNSHARD 0F0 0F1 2F0 2F1 4F0 4F1 0F2 4B0 0F3 4B1 2F2 2B0 2F3 2B1 4F2 "
                         "0B0 4F3 0B1 4B2 4B3 4RESHARD 2B2 2B3 2RESHARD 0B2 0B3 0RESHARD"));
    }

    /// What stays gathered is gathered before its first use, and freed when its stage is done.
    void keptParametersAreGatheredOnce()
    {
        const QString row = firstRank(interleaved(0, false));
        QVERIFY2(row.startsWith("0UNSHARD 0F0 0F1 2UNSHARD 2F0 2F1 4UNSHARD 4F0 4F1 0F2"), qPrintable(row));
        QCOMPARE(row.count("UNSHARD"), 3);
        QCOMPARE(row.count("RESHARD"), 3);
        QVERIFY2(row.endsWith("4B3 4RESHARD 2B2 2B3 2RESHARD 0B2 0B3 0RESHARD"), qPrintable(row));
    }

    /// PyTorch's own file, with its default of 3 stages at once.
    void whatPyTorchGathersIsRead()
    {
        const std::string text =
            readTextFile(PIPEWRIGHT_SOURCE_DIR "/tests/core/exchange/pytorch/interleaved-2x4-five-chunks.comms.csv");
        const Imported imported = importPytorchCsv(text, "five.csv");
        const Schedule& schedule = imported.design.schedule;
        QCOMPARE(schedule.zero, (Zero{.level = 3, .reshard = {true, {}}, .prefetch = 2}));
        QVERIFY(schedule.gathers.empty());
        QVERIFY2(messages(imported.diagnostics)
                     .contains("parameters are shared out (ZeRO 3 over data and context, parameters freed after each "
                               "visit, 2 stages ahead): 28 gathers, 0 of them stated"),
                 qPrintable(messages(imported.diagnostics)));
        QCOMPARE(gathersOf(pytorchCommsCsv(imported.design).text), gathersOf(text));
    }

    void whatStandsElsewhereIsStated()
    {
        const std::string text =
            "0UNSHARD,0F0,0F1,0RESHARD,2UNSHARD,2F0,2F1,2B0,2RESHARD,0UNSHARD,2UNSHARD,0B0,0RESHARD,2B1,2REDUCE_GRAD,"
            "2RESHARD,0UNSHARD,0B1,0REDUCE_GRAD,0RESHARD\n"
            "1UNSHARD,1F0,1F1,1RESHARD,3UNSHARD,3F0,3B0,3F1,3B1,3RESHARD,1UNSHARD,1B0,1B1,1RESHARD\n";
        const Imported imported = importPytorchCsv(text, "s.csv");
        const Schedule& schedule = imported.design.schedule;
        QCOMPARE(schedule.zero.level, 3);
        QCOMPARE(schedule.zero, (Zero{.level = 3, .reshard = {true, {}}, .prefetch = 0}));
        QCOMPARE(schedule.gathers, (std::vector<StatedGather>{{*parseBlock("B2.1"), *parseBlock("B0.0")}}));
        QCOMPARE(gathersOf(pytorchCommsCsv(imported.design).text), gathersOf(text));
    }

    void filesThatGatherOnceSayNothingOfCopies()
    {
        const Imported once = importPytorchCsv("0UNSHARD,0F0,0B0,0RESHARD,0REDUCE_GRAD\n", "s.csv");
        QCOMPARE(once.design.schedule.zero, Zero{});
        QVERIFY(messages(once.diagnostics).contains("--zero 3 --reshard never"));
        const QString odd =
            messages(importPytorchCsv("0UNSHARD,0F0,0REDUCE_GRAD,0B0,0RESHARD,0UNSHARD\n", "s.csv").diagnostics);
        QVERIFY2(odd.contains("1 UNSHARD actions of what is there already, or that no computation reads, are left out"),
                 qPrintable(odd));
        QVERIFY2(odd.contains("1 of 1 REDUCE_GRAD actions stand before"), qPrintable(odd));
        const QString gone = messages(importPytorchCsv("0UNSHARD,0UNSHARD,0F0,0RESHARD,0B0\n", "s.csv").diagnostics);
        QVERIFY2(gone.contains("warning: 1 computations stand behind the RESHARD"), qPrintable(gone));
        QVERIFY2(gone.contains("1 UNSHARD actions of what is there already"), qPrintable(gone));
        const QString late =
            messages(importPytorchCsv(
                         "0UNSHARD,0F0,0RESHARD,0UNSHARD,0F1,1UNSHARD,1F0,1F1,1B0,0RESHARD,1B1,1RESHARD,0UNSHARD,0B0,"
                         "0B1,0RESHARD\n",
                         "s.csv")
                         .diagnostics);
        QVERIFY2(late.contains("1 RESHARD actions come later"), qPrintable(late));
    }

    /// Random orders of one rank's visits: what is written is read back, and has the same places.
    void statedGathersGoThereAndBack()
    {
        std::mt19937 random(7);
        int stated = 0;
        for (int round = 0; round < 60; ++round) {
            Design design = interleaved(round % 3);
            const std::vector<Block>& order = design.schedule.order[static_cast<std::size_t>(round % 2)];
            for (int k = 0; k < 4; ++k) {
                const EditResult moved =
                    placeGather(design, order[random() % order.size()], order[random() % order.size()]);
                if (moved.legal())
                    design.schedule = moved.schedule;
            }
            const std::string text = pytorchCommsCsv(design).text;
            const Imported imported = importPytorchCsv(text, "s.csv");
            stated += static_cast<int>(imported.design.schedule.gathers.size());
            QCOMPARE(gathersOf(pytorchCommsCsv(imported.design).text), gathersOf(text));
        }
        QVERIFY2(stated > 30, qPrintable(QString::number(stated)));
    }

    /// PyTorch places gathers itself where a file holds computations alone; tests/torch compares with PyTorch.
    void whereAFileOfComputationsIsGatheredElsewhereIsSaid()
    {
        const auto said = [](const Design& design) { return messages(pytorchCsv(design).diagnostics); };
        QVERIFY(!said(interleaved(2)).contains("PyTorch keeps"));
        QVERIFY(!said(interleaved(2, false)).contains("PyTorch keeps")); // three stages of a rank are all
        const QString sooner = said(interleaved(0));
        QVERIFY2(sooner.contains(
                     "3 stages of a rank gathered and frees the others: 6 gathers a step, and the design has 28"),
                 qPrintable(sooner));
        QVERIFY2(
            sooner.contains("--reshard always --prefetch 2, or make the schedule with max_active_stages=1 (PyTorch"),
            qPrintable(sooner));
        const QString later = said(interleaved(1, false));
        QVERIFY2(later.contains("the design has 6, before other blocks"), qPrintable(later));
        QVERIFY2(later.contains("max_active_stages=3, unshard_lookahead=(2, 2)"), qPrintable(later));
        Design some = interleaved(2);
        some.schedule.zero.reshard = {false, {0}};
        some.schedule.zero.prefetch = 0;
        QVERIFY2(said(some).contains("the file of pytorch-comms-csv, which states every gather"),
                 qPrintable(said(some)));
        some.schedule.zero.level = 2;
        QVERIFY(!said(some).contains("PyTorch keeps"));
    }

    void sumsAfterEachMicrobatchAreWarnedOf()
    {
        Design design = interleaved(1);
        const auto saysSo = [&] {
            for (const Diagnostic& each : pytorchCommsCsv(design).diagnostics)
                if (each.where == "schedule.zero")
                    return true;
            return false;
        };
        QVERIFY(!saysSo());
        design.schedule.zero.reduce = Zero::Reduce::Each;
        QVERIFY(saysSo());
    }
};

PIPEWRIGHT_TEST(PytorchGathersTest, NoApplication)
#include "tst_pytorchgathers.moc"
