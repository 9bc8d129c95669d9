// SPDX-License-Identifier: GPL-3.0-or-later
// The bar of numbers: what a design reaches and moves, what the last edit changed, and what its tips say.
#include "core/design/redesign.h"
#include "core/predict/throughput.h"
#include "gui/designer/numberbar.h"
#include "gui/widgets/words.h"
#include "mainwindowfixture.h"
#include "testmain.h"

#include <QApplication>
#include <QLabel>
#include <QTest>

using namespace pipewright;
using Fixture = MainWindowFixture;

class TestNumberBar : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatIsReachedAndWhatIsMoved()
    {
        Fixture fixture;
        const Prediction& prediction = *fixture.document().prediction();
        NumberBar& bar = fixture.window.numbers();
        QCOMPARE(bar.value(QStringLiteral("MFU")),
                 percentText(modelFlopsUtilization(fixture.document().design(), prediction.metrics.makespan)));
        QCOMPARE(bar.value(QStringLiteral("moved")), sizeText(transferBytes(prediction.program)));
        Design unknown = fixture.document().design();
        unknown.workload.reset();
        fixture.document().reset(unknown);
        QVERIFY(bar.value(QStringLiteral("MFU")).isEmpty());
    }

    void aShareAboveThePeakSaysThatDevicesWereFaster()
    {
        Fixture fixture;
        NumberBar& bar = fixture.window.numbers();
        const auto saysFaster = [&] {
            const QList<QWidget*> all = bar.findChildren<QWidget*>();
            return std::any_of(all.begin(), all.end(), [](QWidget* each) {
                return each->toolTip().contains(QStringLiteral("More than 100 %"));
            });
        };
        QVERIFY(!saysFaster());
        Design slow = fixture.document().design();
        for (DeviceSpec& device : slow.cluster.devices)
            device.peakFlops /= 1000; // the costs stay
        fixture.document().reset(slow);
        QVERIFY(saysFaster());
    }

    void whatTransfersShareIsSaidBesideWhatTheyMove()
    {
        Fixture fixture;
        const auto tip = [&] {
            for (const QLabel* label : fixture.window.numbers().findChildren<QLabel*>())
                if (label->text() == QLatin1String("moved"))
                    return label->toolTip();
            return QString();
        };
        QVERIFY(!tip().isEmpty() && !tip().contains(QLatin1String("share")));
        Design design = fixture.document().design();
        design.cluster.link.bus = "switch";
        fixture.document().replaceDesign(withCluster(design, design.cluster), QStringLiteral("One switch"));
        QVERIFY2(tip().contains(QLatin1String("transfers share switch: ")), qPrintable(tip()));
    }

    void whatTheLastEditChangedAndNothingOfAnUnfinishedStep()
    {
        Fixture fixture;
        NumberBar& bar = fixture.window.numbers();
        const QString makespan = QStringLiteral("makespan"), bubble = QStringLiteral("bubble");
        QVERIFY(bar.change(makespan).isEmpty());
        Design slower = fixture.document().design();
        for (StageCosts& stage : slower.costs.stages)
            stage.forward *= 2;
        fixture.document().replaceDesign(slower, QStringLiteral("Slower"));
        QVERIFY2(bar.change(makespan).startsWith(QLatin1Char('+')), qPrintable(bar.change(makespan)));
        fixture.document().undoStack()->undo();
        QVERIFY(bar.change(makespan).isEmpty());
        // Taken apart, there is no rate of a whole step, and less work is no improvement.
        (void)fixture.document().apply(UnplaceBlocks{{fixture.document().design().schedule.order[0].back()}});
        QVERIFY(bar.value(makespan).endsWith(QStringLiteral("so far")));
        QCOMPARE(bar.value(bubble), QStringLiteral("–"));
        QVERIFY(bar.value(QStringLiteral("throughput")).isEmpty());
        QVERIFY(bar.change(makespan).isEmpty());
        fixture.document().undoStack()->undo();
        QVERIFY(!bar.value(makespan).contains(QStringLiteral("so far")));
    }
};

PIPEWRIGHT_TEST(TestNumberBar, QApplication)
#include "tst_numberbar.moc"
