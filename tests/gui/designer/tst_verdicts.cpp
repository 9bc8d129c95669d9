// SPDX-License-Identifier: GPL-3.0-or-later
// The five verdicts and the line at the bottom: what a design reaches and moves, against which baseline it is compared,
// and what the tips say.
#include "core/design/redesign.h"
#include "core/predict/throughput.h"
#include "core/presets/presets.h"
#include "gui/designer/baseline.h"
#include "gui/designer/breadcrumb.h"
#include "gui/designer/designfiles.h"
#include "gui/designer/designmenus.h"
#include "gui/designer/topbar.h"
#include "gui/trace/recordedruns.h"
#include "gui/widgets/words.h"
#include "mainwindowfixture.h"
#include "testmain.h"

#include <QApplication>
#include <QFile>
#include <QLabel>
#include <QMessageBox>
#include <QSignalSpy>
#include <QTest>

using namespace pipewright;
using Fixture = MainWindowFixture;

class TestVerdicts : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatIsReachedAndWhatIsMoved()
    {
        Fixture fixture;
        const Prediction& prediction = *fixture.document().prediction();
        const VerdictStrip& strip = fixture.window.verdicts();
        QCOMPARE(strip.value(VerdictStrip::Mfu),
                 percentText(modelFlopsUtilization(fixture.document().design(), prediction.metrics.makespan)));
        QCOMPARE(fixture.window.foot().value(QStringLiteral("moved")), sizeText(transferBytes(prediction.program)));
        const int fullest = fullestDevice(prediction.metrics);
        QCOMPARE(strip.value(VerdictStrip::Peak),
                 QStringLiteral("%1 of %2")
                     .arg(sizeText(prediction.metrics.devices[fullest].peakBytes).section(QChar(0x00A0), 0, 0),
                          sizeText(fixture.document().design().cluster.devices[fullest].memory)));
        QVERIFY(strip.caption(VerdictStrip::Peak).endsWith(deviceLabel(fixture.document().design(), fullest)));
        Design unknown = fixture.document().design();
        unknown.workload.reset();
        fixture.document().reset(unknown);
        QCOMPARE(strip.value(VerdictStrip::Mfu), QStringLiteral("–"));
        QCOMPARE(strip.value(VerdictStrip::Throughput), QStringLiteral("–"));
        QVERIFY(strip.tip(VerdictStrip::Throughput).contains(QStringLiteral("no model")));
    }

    void aShareAboveThePeakIsNotShownAndSaysWhy()
    {
        Fixture fixture;
        const VerdictStrip& strip = fixture.window.verdicts();
        QVERIFY(strip.value(VerdictStrip::Mfu).endsWith(QLatin1Char('%')));
        Design slow = fixture.document().design();
        for (DeviceSpec& device : slow.cluster.devices)
            device.peakFlops /= 1000; // the costs stay
        fixture.document().reset(slow);
        QCOMPARE(strip.value(VerdictStrip::Mfu), QStringLiteral("–"));
        QVERIFY(strip.tip(VerdictStrip::Mfu).contains(QStringLiteral("more than 100 %")));
    }

    void whatIsNotShownHasNoDifferenceEither()
    {
        Fixture fixture;
        // Devices that work at their peak nearly, and a run that is faster.
        Design design = fixture.document().design();
        const double share = modelFlopsUtilization(design, fixture.document().prediction()->metrics.makespan);
        for (DeviceSpec& device : design.cluster.devices)
            device.peakFlops *= share * 1.001; // the costs stay
        fixture.document().reset(design);
        const QString trace = fixture.folder.filePath(QStringLiteral("run.db"));
        recordRun(fixture.document(), trace, 0.1);
        fixture.document().setOverlay(trace);
        fixture.document().setSide(Side::Both);
        QTest::qWait(0);
        const VerdictStrip& strip = fixture.window.verdicts();
        QCOMPARE(strip.value(VerdictStrip::Mfu), QStringLiteral("–"));
        QVERIFY(!strip.change(VerdictStrip::Mfu).isEmpty()); // it is known, and misleads
        for (const QLabel* label : strip.findChildren<QLabel*>())
            QVERIFY2(!label->accessibleName().startsWith(QLatin1String("MFU: +")), qPrintable(label->accessibleName()));
    }

    void bothSidesOfEveryNumberAreLegibleInANarrowWindow()
    {
        Fixture fixture;
        recordRun(fixture.document(), fixture.folder.filePath(QStringLiteral("run.db")), 1.1);
        fixture.document().setOverlay(fixture.folder.filePath(QStringLiteral("run.db")));
        fixture.document().setSide(Side::Both);
        fixture.window.resize(1024, 640);
        QTest::qWait(0);
        const VerdictStrip& strip = fixture.window.verdicts();
        for (const QLabel* label : strip.findChildren<QLabel*>())
            QVERIFY2(!label->text().contains(QChar(0x2026)), qPrintable(label->text()));
        QVERIFY(strip.value(VerdictStrip::Step).contains(QStringLiteral(" → ")));
    }

    void whatTransfersShareIsSaidBesideWhatTheyMove()
    {
        Fixture fixture;
        const auto tip = [&] {
            for (const QLabel* label : fixture.window.foot().findChildren<QLabel*>())
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
        const VerdictStrip& strip = fixture.window.verdicts();
        const auto step = VerdictStrip::Step, bubble = VerdictStrip::Bubble, throughput = VerdictStrip::Throughput;
        QVERIFY(strip.change(step).isEmpty());
        fixture.document().replaceDesign(slower(fixture.document().design()), QStringLiteral("Slower"));
        QVERIFY2(strip.change(step).startsWith(QLatin1Char('+')), qPrintable(strip.change(step)));
        QVERIFY2(strip.change(throughput).startsWith(QChar(0x2212)), qPrintable(strip.change(throughput)));
        fixture.document().undoStack()->undo();
        QVERIFY(strip.change(step).isEmpty());
        // Taken apart, there is no rate of a whole step, and less work is no improvement.
        (void)fixture.document().apply(UnplaceBlocks{{fixture.document().design().schedule.order[0].back()}});
        QVERIFY(strip.value(step).endsWith(QStringLiteral("so far")));
        QCOMPARE(strip.value(bubble), QStringLiteral("–"));
        QCOMPARE(strip.value(throughput), QStringLiteral("–"));
        QVERIFY(strip.change(step).isEmpty());
        fixture.document().undoStack()->undo();
        QVERIFY(!strip.value(step).contains(QStringLiteral("so far")));
    }

    void aPinnedScheduleAndTheSavedOneStayWhatTheyWere()
    {
        Fixture fixture;
        Document& document = fixture.document();
        Baseline& baseline = fixture.window.baseline();
        const VerdictStrip& strip = fixture.window.verdicts();
        baseline.pin();
        QVERIFY(baseline.against() == Baseline::Against::Pinned);
        QCOMPARE(baseline.name(Baseline::Against::Pinned), QStringLiteral("ZB-H1, pinned"));
        const auto first = static_cast<double>(document.prediction()->metrics.makespan);
        document.replaceDesign(slower(document.design()), QStringLiteral("Slower"));
        document.replaceDesign(slower(document.design()), QStringLiteral("Slower still"));
        const auto now = static_cast<double>(document.prediction()->metrics.makespan);
        QCOMPARE(strip.change(VerdictStrip::Step), signedPercent((now - first) / first));
        baseline.setAgainst(Baseline::Against::Saved);
        QCOMPARE(strip.change(VerdictStrip::Step), signedPercent((now - first) / first));
        baseline.setAgainst(Baseline::Against::LastEdit);
        QVERIFY(strip.change(VerdictStrip::Step) != signedPercent((now - first) / first));
        document.save(fixture.folder.filePath(QStringLiteral("saved.json")));
        baseline.setAgainst(Baseline::Against::Saved);
        QVERIFY(strip.change(VerdictStrip::Step).isEmpty());
        QVERIFY(!baseline.has(Baseline::Against::Run));
    }

    /// Another model or cluster is another question: nothing of the answer is a gain.
    void anotherClusterIsNotComparedWithTheOneBefore()
    {
        Fixture fixture;
        Document& document = fixture.document();
        const VerdictStrip& strip = fixture.window.verdicts();
        fixture.window.menus().takeCluster(QStringLiteral("h100-node"));
        QCOMPARE(document.undoStack()->count(), 1);
        QVERIFY(document.design().cluster.devices.front().name.find("H100") != std::string::npos);
        for (const auto verdict : {VerdictStrip::Step, VerdictStrip::Peak, VerdictStrip::Mfu})
            QVERIFY2(strip.change(verdict).isEmpty(), qPrintable(strip.change(verdict)));
        fixture.window.menus().takeModel(QStringLiteral("qwen3-8b"));
        QCOMPARE(document.undoStack()->count(), 2);
        QVERIFY(strip.change(VerdictStrip::Step).isEmpty());
        document.undoStack()->undo();
        document.undoStack()->undo();
        QVERIFY(document.design() == exampleDesign());
    }

    void aModelOrClusterThatCannotBeChangesNothingAndSaysWhy()
    {
        Fixture fixture;
        QSignalSpy failed(&fixture.window.menus(), &DesignMenus::failed);
        const QString broken = fixture.folder.filePath(QStringLiteral("config.json"));
        QFile file(broken);
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write("{\"hidden_size\": ") > 0);
        file.close();
        fixture.window.menus().takeModel(broken);
        fixture.window.menus().takeModel(fixture.folder.filePath(QStringLiteral("missing.json")));
        fixture.window.menus().takeCluster(fixture.folder.filePath(QStringLiteral("missing.json")));
        QCOMPARE(failed.count(), 3);
        for (const QList<QVariant>& each : failed)
            QVERIFY(!each.front().toString().isEmpty());
        QVERIFY(fixture.document().design() == exampleDesign());
        QCOMPARE(fixture.document().undoStack()->count(), 0);
        for (QWidget* box : QApplication::topLevelWidgets()) // what the window said
            if (qobject_cast<QMessageBox*>(box))
                box->close();
    }

    void theRunIsABaselineOfItsOwn()
    {
        Fixture fixture;
        fixture.window.files().openRecordedExample();
        Baseline& baseline = fixture.window.baseline();
        QVERIFY(baseline.has(Baseline::Against::Run));
        baseline.setAgainst(Baseline::Against::Run);
        const Document::Overlay& overlay = *fixture.document().overlay();
        const auto measured = static_cast<double>(overlay.comparison.measuredMakespan),
                   predicted = static_cast<double>(fixture.document().prediction()->metrics.makespan);
        QCOMPARE(fixture.window.verdicts().change(VerdictStrip::Step),
                 signedPercent((measured - predicted) / predicted));
        fixture.document().clearOverlay();
        QVERIFY(baseline.against() == Baseline::Against::LastEdit);
    }

    void aRecordingOfAGpuNamesIt()
    {
        Fixture fixture;
        const std::string path = PresetLibrary().directory() + "/experiments/gpu/h100/1f1b-four-slices.db";
        QVERIFY(fixture.window.files().openFile(QString::fromStdString(path)));
        const Breadcrumb& crumbs = fixture.window.topBar().breadcrumb();
        QVERIFY2(crumbs.text(Breadcrumb::Cluster).startsWith(QStringLiteral("4 × GPU 0 (NVIDIA H100")),
                 qPrintable(crumbs.text(Breadcrumb::Cluster)));
        QVERIFY(crumbs.text(Breadcrumb::Cluster).contains(QStringLiteral("32 multiprocessors")));
        QVERIFY(!crumbs.text(Breadcrumb::Cluster).contains(QStringLiteral("device 0"))); // one of the four
        for (int device = 0; device < 4; ++device)
            QCOMPARE(deviceLabel(fixture.document().design(), device), QStringLiteral("GPU %1").arg(device));
    }

private:
    static Design slower(Design design)
    {
        for (StageCosts& stage : design.costs.stages)
            stage.forward *= 2;
        return design;
    }
};

PIPEWRIGHT_TEST(TestVerdicts, QApplication)
#include "tst_verdicts.moc"
