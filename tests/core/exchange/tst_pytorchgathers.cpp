// SPDX-License-Identifier: GPL-3.0-or-later
// Where a file for PyTorch gathers parameters that copies of the pipeline share out, beside where PyTorch 2.15's own
// schedules do for the same order of computations (_add_unshard_reshard of torch.distributed.pipelining).
#include "core/exchange/pytorchcsv.h"
#include "makers/designs.h"
#include "makers/schedules.h"
#include "testmain.h"

#include <QTest>

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
