// SPDX-License-Identifier: GPL-3.0-or-later
// What somebody sees who opens the designer for the first time: the example, legend, hints, and the title that opens
// what it names.
#include "core/families/family.h"
#include "gui/designer/breadcrumb.h"
#include "gui/designer/designfiles.h"
#include "gui/designer/familylist.h"
#include "gui/designer/firsthints.h"
#include "gui/designer/legend.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/designer/otherwindows.h"
#include "gui/designer/topbar.h"
#include "gui/designer/windowactions.h"
#include "gui/document/namededits.h"
#include "gui/model/modelwindow.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QAction>
#include <QApplication>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QSettings>
#include <QTabWidget>
#include <QTest>
#include <QToolButton>
#include <QTreeWidget>

using namespace pipewright;
using Fixture = MainWindowFixture;

class TestFirstMinute : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::light().apply(*qApp); }

    void theDesignerOpensOnAKnownModelPredictedAndClean()
    {
        Fixture fixture;
        fixture.window.openExample();
        const Design& design = fixture.document().design();
        QVERIFY(design.workload);
        QCOMPARE(design.workload->shape.name, std::string("llama-3-8b"));
        QCOMPARE(design.cluster.devices.size(), std::size_t(4));
        QVERIFY(design.cluster.devices.front().name.find("H200") != std::string::npos);
        QVERIFY(fixture.document().prediction());
        QVERIFY(!fixture.document().overlay());
        QVERIFY(fixture.document().undoStack()->isClean());
        QVERIFY(!fixture.window.isWindowModified());
    }

    void aRecordedRunIsOneClickAway_data()
    {
        QTest::addColumn<QSize>("size");
        for (const QSize size : {QSize(1024, 640), QSize(1280, 800), QSize(1440, 900), QSize(2560, 1440)})
            QTest::addRow("%d x %d", size.width(), size.height()) << size;
    }

    void aRecordedRunIsOneClickAway()
    {
        QFETCH(QSize, size);
        Fixture fixture;
        fixture.window.resize(size);
        QTest::qWait(0);
        QToolButton* see = fixture.window.hints().recordedButton();
        QVERIFY(see->isVisible() && fixture.window.hints().rect().contains(see->geometry()));
        QTest::mouseClick(see, Qt::LeftButton);
        QVERIFY(fixture.document().overlay());
        QVERIFY(fixture.document().undoStack()->isClean());
        QVERIFY(!see->isVisible()); // one is seen
        fixture.window.openExample();
        QVERIFY(see->isVisible());
    }

    void theRecordedExampleIsWithinThreePercentOfItsPrediction()
    {
        Fixture fixture;
        fixture.window.files().openRecordedExample();
        QVERIFY(fixture.document().overlay());
        for (const int step : {Document::medianStep, Document::typicalStep}) {
            fixture.document().setOverlay(fixture.document().overlayPath(), step);
            const Comparison& comparison = fixture.document().overlay()->comparison;
            const auto predicted = double(fixture.document().prediction()->metrics.makespan);
            const double off = std::abs(double(comparison.measuredMakespan) - predicted) / predicted;
            QVERIFY2(off <= 0.03, qPrintable(QString::number(100 * off)));
            for (const Comparison::Device& device : comparison.devices) {
                QVERIFY(device.measuredPeak && device.peakError);
                QVERIFY(std::abs(*device.peakError) <= 0.03);
            }
        }
    }

    void familiesSayTheirPeakInOneUnitAndInRedAboveTheLimit()
    {
        Fixture fixture;
        fixture.window.openExample();
        Design smaller = fixture.document().design(); // GPipe fits into the example's 141 GiB by a little
        for (DeviceSpec& device : smaller.cluster.devices)
            device.memory = Bytes{130} << 30;
        fixture.document().reset(smaller);
        FamilyList& list = fixture.window.families();
        const auto row = [](const char* name) {
            std::size_t family = 0;
            while (families()[family].name != name)
                ++family;
            return family;
        };
        const auto captions = [&list] {
            QStringList texts;
            for (int column = 0; column < 3; ++column)
                texts << list.list()->headerItem()->text(column);
            return texts;
        };
        const std::size_t gpipe = row("gpipe"), present = row("zb-h1");
        QTRY_VERIFY_WITH_TIMEOUT(list.estimates()[gpipe].has_value(), 60'000);
        const Bytes limit = fixture.document().design().cluster.devices.front().memory;
        QVERIFY(list.estimates()[gpipe]->peakBytes > limit);
        QVERIFY(captions().contains(QStringLiteral("peak GiB")));
        const Bytes peak = fixture.document().prediction()->metrics.devices[3].peakBytes; // the fullest
        const auto text = [&list](std::size_t family) { return list.row(family)->text(2); };
        QCOMPARE(text(present) + QStringLiteral("\u00a0GiB"), sizeText(peak));
        QCOMPARE(text(gpipe) + QStringLiteral("\u00a0GiB"),
                 sizeText(list.estimates()[gpipe]->peakBytes.value(), Bytes{100} << 30));
        const auto isRed = [&list](std::size_t family) {
            const QTreeWidgetItem* item = list.row(family);
            list.list()->scrollToItem(item);
            const QImage picture = list.list()->viewport()->grab(list.list()->visualItemRect(item)).toImage();
            const QColor bad = Theme::of(list).bad;
            for (int x = 0; x < picture.width(); ++x)
                for (int y = 0; y < picture.height(); ++y)
                    if (const QColor c = picture.pixelColor(x, y); std::abs(c.hslHue() - bad.hslHue()) < 12
                                                                   && c.hslSaturation() > bad.hslSaturation() / 2
                                                                   && std::abs(c.lightness() - bad.lightness()) < 30)
                        return true;
            return false;
        };
        QVERIFY(isRed(gpipe));
        QVERIFY(!isRed(present));
        // A small model's are in a small unit, however much memory there is.
        fixture.window.files().openRecordedExample();
        QVERIFY(captions().contains(QStringLiteral("peak MiB")));
        QVERIFY(text(present).toDouble() > 10);
    }

    void theFamiliesOfALargeDesignWaitToBeAskedFor()
    {
        Fixture fixture;
        FamilyList& list = fixture.window.families();
        auto* const ask = list.findChild<QPushButton*>();
        const auto known = [&] {
            return std::any_of(list.estimates().begin(), list.estimates().end(), [](const auto& e) { return bool(e); });
        };
        QTRY_VERIFY_WITH_TIMEOUT(known(), 60'000);
        QVERIFY(ask->isHidden());
        fixture.document().reset(test::familyDesign("1f1b", 64, 1'600)); // 204,800 blocks
        QVERIFY(ask->isVisible() && !known());
        QTest::qWait(300);
        QVERIFY(!known()); // nothing is under way
        ask->click();
        QVERIFY(ask->isHidden());
        QTRY_VERIFY_WITH_TIMEOUT(known(), 60'000);
        fixture.document().reset(exampleDesign());
        QVERIFY(ask->isHidden());
    }

    void theTitleNamesModelClusterAndFamilyAndOpensThem()
    {
        Fixture fixture;
        const Breadcrumb& crumbs = fixture.window.topBar().breadcrumb();
        QCOMPARE(crumbs.text(Breadcrumb::Model), QStringLiteral("llama-3-8b · 8k · bf16"));
        QVERIFY2(crumbs.text(Breadcrumb::Cluster).startsWith(QStringLiteral("4 × H200")),
                 qPrintable(crumbs.text(Breadcrumb::Cluster)));
        QVERIFY(crumbs.text(Breadcrumb::Cluster).endsWith(QLatin1String("NVLink 4")));
        QCOMPARE(crumbs.text(Breadcrumb::Family), QStringLiteral("ZB-H1 · 8 microbatches"));
        // The menu of each: what it can be switched to, and its page.
        const auto open = [&](Breadcrumb::Part part) {
            QMenu* menu = crumbs.button(part)->menu();
            Q_EMIT menu->aboutToShow();
            QVERIFY(menu->actions().size() > 5);
            menu->actions().front()->trigger();
        };
        open(Breadcrumb::Cluster);
        QVERIFY(fixture.window.others().find<ModelWindow>()
                && fixture.window.others().find<ModelWindow>()->isVisible());
        QTabWidget* tabs = fixture.window.others().find<ModelWindow>()->tabs();
        QCOMPARE(tabs->tabText(tabs->currentIndex()), QStringLiteral("Devices"));
        open(Breadcrumb::Model);
        QCOMPARE(tabs->tabText(tabs->currentIndex()), QStringLiteral("Model"));
        fixture.window.others().find<ModelWindow>()->close();
        fixture.window.activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
        fixture.window.windowActions().familiesPanel->setChecked(false);
        open(Breadcrumb::Family);
        QVERIFY(fixture.window.families().isVisible());
        QVERIFY(fixture.window.families().list()->hasFocus());
    }

    void theLegendExplainsWhatIsThereAndStaysHidden()
    {
        Fixture fixture;
        const Legend& legend = fixture.window.legend();
        QStringList texts = legend.texts();
        for (const char* word : {"forward", "input gradient", "weight gradient", "transfer", "idle"})
            QVERIFY2(texts.contains(QLatin1String(word)), word);
        QVERIFY(!texts.contains(QLatin1String("full backward"))); // the design has none
        QVERIFY(!texts.contains(QLatin1String("predicted")));
        const Block w{Op::W, 1, 3, 0}, i{Op::I, 1, 3, 0};
        QVERIFY(!hasErrors(fixture.document().apply(MergeBackwards{{i, w}})));
        QVERIFY(legend.texts().contains(QLatin1String("full backward")));

        fixture.document().undoStack()->undo();
        fixture.window.files().openRecordedExample();
        texts = legend.texts();
        QVERIFY(texts.contains(QLatin1String("predicted")) && texts.contains(QLatin1String("late")));

        auto* cross = legend.findChild<QToolButton*>();
        QTest::mouseClick(cross, Qt::LeftButton);
        QVERIFY(!legend.isVisible());
        QVERIFY(!fixture.window.windowActions().legend->isChecked());
        MainWindow next(fixture.options());
        next.show();
        QVERIFY(!next.legend().isVisible());
        next.windowActions().legend->trigger();
        QVERIFY(next.legend().isVisible());
    }

    void aHintGoesWhenItsThingIsDoneAndStaysAway()
    {
        Fixture fixture;
        FirstHints& hints = fixture.window.hints();
        for (const auto hint : {FirstHints::Drag, FirstHints::Idle, FirstHints::Run})
            QVERIFY2(hints.isShown(hint), qPrintable(QString::number(hint)));
        TimelineView& timeline = fixture.window.timeline();
        const QRect rect = timeline.rectOfBlock({Op::F, 2, 0, 0});
        QTest::mouseClick(timeline.viewport(), Qt::LeftButton, {}, QPoint(rect.left() - 8, rect.center().y()));
        QVERIFY(!hints.isShown(FirstHints::Idle));
        QVERIFY(hints.isShown(FirstHints::Drag));
        hints.finish(FirstHints::Run);
        QVERIFY(!hints.isShown(FirstHints::Run) && hints.isVisible());
        QCOMPARE(QSettings(fixture.options().settingsFile, QSettings::IniFormat)
                     .value(QStringLiteral("hints/done"))
                     .toStringList(),
                 (QStringList{QStringLiteral("idle"), QStringLiteral("run")}));
        MainWindow next(fixture.options());
        next.openExample();
        next.resize(1440, 860);
        next.show();
        QVERIFY(next.hints().isShown(FirstHints::Drag) && !next.hints().isShown(FirstHints::Idle));
        next.windowActions().hints->trigger();
        for (const auto hint : {FirstHints::Drag, FirstHints::Idle, FirstHints::Run})
            QVERIFY(next.hints().isShown(hint));
    }

    void aDragEndsItsHint()
    {
        Fixture fixture;
        TimelineView& view = fixture.window.timeline();
        const QPoint from = view.rectOfBlock({Op::W, 1, 3, 0}).center();
        const QPoint to = view.rectOfBlock({Op::W, 1, 5, 0}).center();
        const auto mouse = [&view](QEvent::Type type, QPoint at, Qt::MouseButton button, Qt::MouseButtons buttons) {
            QMouseEvent event(type, at, view.viewport()->mapToGlobal(at), button, buttons, Qt::NoModifier);
            QApplication::sendEvent(view.viewport(), &event);
        };
        mouse(QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton);
        for (const int part : {1, 2, 3, 4})
            mouse(QEvent::MouseMove, from + (to - from) * part / 4, Qt::NoButton, Qt::LeftButton);
        QVERIFY(view.isPreviewing());
        QVERIFY(fixture.window.hints().isShown(FirstHints::Drag)); // nothing is done yet
        mouse(QEvent::MouseButtonRelease, to, Qt::LeftButton, Qt::NoButton);
        QTRY_COMPARE(fixture.document().undoStack()->count(), 1);
        QVERIFY(!fixture.window.hints().isShown(FirstHints::Drag));
    }
};

PIPEWRIGHT_TEST(TestFirstMinute, QApplication)
#include "tst_firstminute.moc"
