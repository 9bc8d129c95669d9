// SPDX-License-Identifier: GPL-3.0-or-later
// The frame of the main window: how small it gets, what folds, what can be hidden and stays where it was put.
#include "core/families/family.h"
#include "gui/designer/breadcrumb.h"
#include "gui/designer/designfiles.h"
#include "gui/designer/familylist.h"
#include "gui/designer/findfield.h"
#include "gui/designer/firsthints.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/designer/otherwindows.h"
#include "gui/designer/sideswitch.h"
#include "gui/designer/topbar.h"
#include "gui/designer/windowactions.h"
#include "gui/inspector/suggestionlist.h"
#include "gui/memory/memorypanel.h"
#include "gui/search/searchwindow.h"
#include "gui/timeline/lanestrip.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/theme.h"
#include "testmain.h"

#include <QAction>
#include <QApplication>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSplitter>
#include <QTest>
#include <QToolButton>

#include <functional>

using namespace pipewright;
using Fixture = MainWindowFixture;

namespace {

QList<QWidget*> buttonsOf(const TopBar& bar)
{
    QList<QWidget*> all;
    for (QWidget* widget : bar.findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly))
        if (widget->isVisible())
            all << widget;
    return all;
}

/// So many devices with one layer of work each.
Design designOn(int devices)
{
    FamilyParameters parameters;
    parameters.devices = devices;
    parameters.microbatches = devices;
    Design design;
    design.schedule = makeSchedule("1f1b", parameters);
    design.costs =
        uniformCosts({10'000'000, 10'000'000, 10'000'000, 0, Bytes{1} << 30, Bytes{1} << 29, false}, devices, 1);
    return design;
}

} // namespace

class TestFrame : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void theWindowGetsAsSmallAsASmallScreen()
    {
        Fixture fixture;
        fixture.window.files().openRecordedExample(); // the most that there is to show
        const QSize least = fixture.window.minimumSizeHint();
        QVERIFY2(least.width() <= 960 && least.height() <= 600,
                 qPrintable(QStringLiteral("%1 × %2").arg(least.width()).arg(least.height())));
        fixture.window.resize(960, 600);
        QTest::qWait(0);
        QCOMPARE(fixture.window.size(), QSize(960, 600));
        QVERIFY(fixture.window.timeline().height() >= 110);
    }

    void thePanelAtTheRightIsNoWiderThanItsPlaceAndTheSwitchIsAlwaysSeen()
    {
        Fixture fixture;
        fixture.window.files().openRecordedExample();
        for (const QSize size : {QSize(960, 600), QSize(1024, 640), QSize(1280, 780), QSize(1440, 900)}) {
            fixture.window.resize(size);
            fixture.document().select(Block{Op::F, 1, 0, 0});
            QTest::qWait(0);
            auto* scroll = fixture.window.findChild<QScrollArea*>(QStringLiteral("inspectorScroll"));
            QVERIFY(scroll);
            const QWidget* column = scroll->widget();
            for (const FactList* facts : column->findChildren<FactList*>())
                QVERIFY(facts->minimumSizeHint().width() <= 250); // whatever the values are
            QVERIFY2(column->width() <= scroll->viewport()->width(),
                     qPrintable(QStringLiteral("%1 in %2").arg(column->width()).arg(scroll->viewport()->width())));
            scroll->verticalScrollBar()->setValue(scroll->verticalScrollBar()->maximum());
            SideSwitch& sides = fixture.window.sideSwitch();
            QVERIFY(!sides.visibleRegion().isEmpty());
            QCOMPARE(sides.visibleRegion().boundingRect(), sides.rect());
        }
    }

    void suggestionsFitTheirCardsInASmallWindow()
    {
        Fixture fixture;
        fixture.window.resize(1024, 640);
        fixture.document().select(Block{Op::F, 0, 4, 0});
        SuggestionList& list = fixture.window.suggestions();
        QTRY_VERIFY_WITH_TIMEOUT(!list.isSearching() && !list.cards().empty(), 60'000);
        QTest::qWait(0);
        int sentences = 0;
        for (const auto* text : list.findChildren<Paragraph*>()) {
            if (!text->isVisible() || text->text().contains(QLatin1String("more move")))
                continue;
            ++sentences; // one line each
            QVERIFY2(text->fontMetrics().horizontalAdvance(text->text()) <= text->width(), qPrintable(text->text()));
        }
        QVERIFY(sentences > 0);
        for (const QPushButton* button : list.tryButtons())
            QVERIFY(button->parentWidget()->rect().contains(button->geometry()));
    }

    void noNameEndsInDots()
    {
        Fixture fixture;
        for (const QSize size : {QSize(1024, 640), QSize(1440, 900)}) {
            fixture.window.resize(size);
            QTest::qWait(0);
            for (const Breadcrumb::Part part : {Breadcrumb::Model, Breadcrumb::Cluster, Breadcrumb::Family}) {
                const QString shown = fixture.window.topBar().breadcrumb().button(part)->text();
                QVERIFY2(!shown.isEmpty() && !shown.contains(QChar(0x2026)), qPrintable(shown));
            }
            const auto* families = fixture.window.findChild<FamilyList*>();
            QVERIFY(families->width() >= families->widthOfNames(size.width() < 1200));
        }
    }

    void hintsStandInALineOfTheirOwnAndCoverNothing()
    {
        Fixture fixture;
        for (const QSize size : {QSize(1024, 640), QSize(1440, 900)}) {
            fixture.window.resize(size);
            fixture.window.hints().startOver();
            QTest::qWait(20);
            const FirstHints& hints = fixture.window.hints();
            QVERIFY(hints.isVisible() && !hints.visibleRegion().isEmpty());
            QCOMPARE(hints.visibleRegion().boundingRect(), hints.rect());
            const int lanes = fixture.window.timeline().height();
            QTest::mouseClick(hints.cross(), Qt::LeftButton);
            QTest::qWait(20);
            QVERIFY(!hints.isVisible());
            QVERIFY(fixture.window.timeline().height() >= lanes); // its room is given back
        }
    }

    void nothingInTheBarOverlapsOrLeavesIt_data()
    {
        QTest::addColumn<int>("width");
        for (const int width : {960, 1024, 1180, 1280, 1440, 1920, 2560})
            QTest::addRow("%d", width) << width;
    }
    void nothingInTheBarOverlapsOrLeavesIt()
    {
        QFETCH(int, width);
        Fixture fixture;
        fixture.window.resize(width, 700);
        QTest::qWait(0);
        const TopBar& bar = fixture.window.topBar();
        const QList<QWidget*> shown = buttonsOf(bar);
        for (const QWidget* widget : shown) {
            QVERIFY2(bar.rect().contains(widget->geometry()), qPrintable(widget->accessibleName()));
            for (const QWidget* other : shown)
                QVERIFY2(other == widget || !other->geometry().intersects(widget->geometry()),
                         qPrintable(widget->accessibleName() + other->accessibleName()));
        }
        QVERIFY(bar.runButton()->isVisible());
        QCOMPARE(bar.runButton()->geometry().right(), bar.width() - 15);
        const VerdictStrip& strip = fixture.window.verdicts();
        for (const auto* label : strip.findChildren<QLabel*>()) // none is cut
            QVERIFY2(!label->isVisible() || label->sizeHint().width() <= label->parentWidget()->width(),
                     qPrintable(label->text()));
    }

    void everyCommandIsInTheOneMenu()
    {
        Fixture fixture;
        std::vector<QAction*> all;
        const std::function<void(const QMenu&)> collect = [&](const QMenu& menu) {
            for (QAction* action : menu.actions())
                action->menu() ? collect(*action->menu()) : all.push_back(action);
        };
        collect(*fixture.window.topBar().menuButton()->menu());
        const WindowActions& actions = fixture.window.windowActions();
        for (const QAction* wanted : {actions.newSchedule, actions.find, actions.recordedRun, actions.openOverlay,
                                      actions.run, actions.diagnostics, actions.theme})
            QVERIFY2(std::find(all.begin(), all.end(), wanted) != all.end(), qPrintable(wanted->text()));
    }

    void buttonsStayWhereTheyAreWhenNamesChange()
    {
        Fixture fixture;
        const TopBar& bar = fixture.window.topBar();
        const auto places = [&bar] {
            QList<QPair<QWidget*, QRect>> all;
            for (QWidget* widget : buttonsOf(bar))
                all << qMakePair(widget, widget->geometry());
            return all;
        };
        const auto before = places();
        Design other = fixture.document().design();
        other.workload->shape.name = "a-model-with-a-name-that-is-longer-than-any-that-comes-with-the-program";
        other.schedule.family = "";
        other.cluster.devices.front().name = "another";
        fixture.document().replaceDesign(other, QStringLiteral("Rename"));
        fixture.document().apply(UnplaceBlocks{{{Op::W, 0, 7, 0}, {Op::W, 1, 7, 0}}});
        QTest::qWait(0);
        QCOMPARE(places(), before);
    }

    void panelsHideByActionAndStayHidden()
    {
        Fixture fixture;
        WindowActions& actions = fixture.window.windowActions();
        const int centre = fixture.window.timeline().width(), lanes = fixture.window.timeline().height();
        actions.familiesPanel->trigger();
        actions.inspectorPanel->trigger();
        QTest::qWait(0);
        QVERIFY(fixture.window.timeline().width() > centre + 400);
        QTest::keyClick(&fixture.window, Qt::Key_3, Qt::AltModifier);
        QVERIFY(!fixture.window.memory().isVisible());
        QTest::qWait(0);
        QVERIFY(fixture.window.timeline().height() > lanes);
        MainWindow next(fixture.options());
        next.openExample();
        next.show();
        QVERIFY(!next.memory().isVisible() && next.timeline().isVisible());
        QVERIFY(!next.windowActions().familiesPanel->isChecked());
        next.windowActions().dockPanel->trigger();
        QVERIFY(next.memory().isVisible());
    }

    void aDraggedBorderStaysWhereItIsAndReturnsNextTime()
    {
        Fixture fixture;
        QSplitter& columns = fixture.window.columns();
        QWidget* border = columns.handle(2);
        const QPoint grip(border->width() / 2, border->height() / 2);
        QTest::mousePress(border, Qt::LeftButton, {}, grip);
        QTest::mouseMove(border, grip - QPoint(60, 0));
        QTest::mouseRelease(border, Qt::LeftButton, {}, grip - QPoint(60, 0));
        const int right = columns.sizes().at(2);
        QVERIFY(right > 340);
        fixture.document().apply(UnplaceBlocks{{{Op::W, 0, 7, 0}}});
        QCOMPARE(columns.sizes().at(2), right);
        fixture.document().undoStack()->undo();
        fixture.window.close();
        MainWindow next(fixture.options());
        next.openExample();
        next.show();
        QTest::qWait(0);
        QCOMPARE(next.columns().sizes().at(2), right);
    }

    void bordersOfOtherWindowsReturnToo()
    {
        Fixture fixture;
        fixture.window.others().open<SearchWindow>();
        auto* window = static_cast<QWidget*>(fixture.window.others().find<SearchWindow>());
        window->resize(1000, 620);
        QTest::qWait(0);
        auto* splitter = window->findChild<QSplitter*>();
        QVERIFY(splitter);
        const QList<int> before = splitter->sizes();
        splitter->setSizes({before[0] - 80, before[1] + 80});
        const QList<int> dragged = splitter->sizes();
        QVERIFY(dragged != before);
        window->hide();
        MainWindow next(fixture.options());
        next.openExample();
        next.show();
        next.others().open<SearchWindow>();
        QTest::qWait(0);
        QCOMPARE(next.others().find<SearchWindow>()->findChild<QSplitter*>()->sizes(), dragged);
    }

    void manyDevicesAreStripsThatAllFit()
    {
        Fixture fixture;
        fixture.document().reset(designOn(64));
        fixture.window.resize(1440, 900);
        QTest::qWait(0);
        TimelineView& view = fixture.window.timeline();
        QCOMPARE(view.laneCount(), 64);
        const QRect last = view.rectOfLane(63);
        QVERIFY2(last.bottom() <= view.viewport()->height(),
                 qPrintable(QStringLiteral("%1 of %2").arg(last.bottom()).arg(view.viewport()->height())));
        QVERIFY(last.height() >= 6);
        QVERIFY(fixture.window.memory().height() >= 90);
        // What is drawn there is the lane's own: a block is found where the lane is.
        const QRect block = view.rectOfBlock({Op::F, 63, 0, 0});
        QVERIFY(last.contains(block.center()));
        QVERIFY(view.blockAt(block.center()).has_value());
        fixture.document().reset(exampleDesign());
        QTest::qWait(0);
        QVERIFY(view.rectOfLane(0).height() >= 44); // few devices have their room
    }

    void theMemoryOfAFewDevicesIsThereAtEverySize_data()
    {
        QTest::addColumn<QSize>("size");
        for (const QSize size : {QSize(1024, 640), QSize(1280, 720), QSize(1440, 900), QSize(2560, 1440)})
            QTest::addRow("%d x %d", size.width(), size.height()) << size;
    }

    void theMemoryOfAFewDevicesIsThereAtEverySize()
    {
        QFETCH(QSize, size);
        Fixture fixture;
        fixture.window.openExample();
        fixture.window.resize(size);
        QTest::qWait(0);
        QVERIFY(fixture.window.memory().height() >= 90); // of one in large
        const TimelineView& view = fixture.window.timeline();
        const int high = view.rectOfLane(0).height();
        QVERIFY2(high >= 36, qPrintable(QString::number(high))); // the lanes can be read
        if (size.height() < 800)
            return;
        // Each with its own below its blocks.
        for (int device = 0; device < 4; ++device) {
            const QRect lane = view.rectOfLane(device);
            const Block block = view.visibleBlocks(device).front();
            QVERIFY(lane.bottom() - view.rectOfBlock(block).bottom() >= 30);
            QVERIFY(!view.blockAt(QPoint(view.rectOfBlock(block).center().x(), lane.bottom() - 12)));
        }
    }

    /// With fewer devices the lanes need less; none is cut, and what they cannot use goes to memory and bubbles.
    void lanesAreWholeAfterARunOfFewerDevicesOpened()
    {
        for (const QSize size : {QSize(1280, 700), QSize(2560, 1400)}) {
            Fixture fixture;
            fixture.window.resize(size);
            QTest::qWait(0);
            fixture.window.windowActions().recordedRun->trigger();
            QTest::qWait(0);
            const TimelineView& view = fixture.window.timeline();
            QCOMPARE(view.laneCount(), 2);
            QVERIFY(view.rectOfLane(1).bottom() <= view.viewport()->height());
            QVERIFY(view.geometry().bottom() < view.parentWidget()->height());
            QVERIFY(view.parentWidget()->height() <= view.greatestHeight() + 60); // overview and legend
        }
    }

    void afewLanesStayLegibleInALowWindow()
    {
        Fixture fixture;
        fixture.window.resize(960, 600);
        QTest::qWait(0);
        TimelineView& view = fixture.window.timeline();
        QVERIFY(view.rectOfLane(0).height() >= 24);
        QVERIFY(view.rectOfLane(3).bottom() <= view.viewport()->height());
    }
};

PIPEWRIGHT_TEST(TestFrame, QApplication)
#include "tst_frame.moc"
