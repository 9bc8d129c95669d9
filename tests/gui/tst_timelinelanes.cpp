// SPDX-License-Identifier: GPL-3.0-or-later
// Lanes that are resized, folded, pinned and put in another order, and the crosshair, by mouse and by key.
#include "gui/panels/inspector.h"
#include "gui/timeline/lanestrip.h"
#include "gui/timeline/timelinelayout.h"
#include "gui/timelinestage.h"

#include <QAction>
#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QLoggingCategory>
#include <QMenu>
#include <QScrollBar>
#include <QSignalSpy>
#include <QSpinBox>
#include <QToolTip>

using namespace pipewright;
using namespace pipewright::testing;

class TimelineLanesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void rowsHeightsAndPinsAreConsistentWhateverIsDone()
    {
        LaneStrip strip;
        strip.setLanes(5);
        strip.setCommonHeight(50);
        QCOMPARE(strip.total(), 250);
        strip.setHeight(1, 80);
        strip.setFolded(2, true);
        strip.setPinned(3, true);
        QCOMPARE(strip.deviceAt(0), 3);
        QCOMPARE(strip.total(), 50 + 50 + 80 + LaneStrip::foldedHeight + 50);
        QCOMPARE(strip.pinnedTotal(), 50);
        strip.move(4, 0); // pinned lanes stay above
        QCOMPARE(strip.rowOf(4), 1);
        int y = 0;
        for (int row = 0; row < 5; ++row) {
            const int device = strip.deviceAt(row);
            QCOMPARE(strip.top(device), y);
            QCOMPARE(strip.laneAt(y), device);
            QCOMPARE(strip.laneAt(y + strip.height(device) - 1), device);
            y += strip.height(device);
        }
        QCOMPARE(strip.laneAt(y), -1);
        QCOMPARE(strip.laneAt(-1), -1);
        strip.setHeight(2, 1000);
        QCOMPARE(strip.height(2), LaneStrip::greatestHeight);
        QVERIFY(!strip.isFolded(2) && !strip.isAsGiven());
        strip.reset();
        QVERIFY(strip.isAsGiven());
        QCOMPARE(strip.total(), 250);
    }

    void draggingTheLineBelowALabelResizesTheLaneWithShiftAll()
    {
        Stage stage;
        QSignalSpy changes(stage.view.get(), &TimelineView::lanesChanged);
        const QRect lane = stage.view->rectOfLane(1);
        const QPoint line(40, lane.bottom());
        stage.press(line);
        stage.move(line + QPoint(0, 31));
        stage.release(line + QPoint(0, 31));
        QCOMPARE(stage.view->rectOfLane(1).height(), lane.height() + 31);
        QCOMPARE(stage.view->rectOfLane(2).top(), stage.view->rectOfLane(1).bottom() + 1);
        QVERIFY(changes.count() > 0);
        QCOMPARE(stage.document.undoStack()->count(), 0);
        const QPoint next(40, stage.view->rectOfLane(0).bottom());
        const int height = stage.view->rectOfLane(0).height();
        stage.press(next, Qt::ShiftModifier);
        stage.move(next - QPoint(0, 14));
        stage.release(next - QPoint(0, 14));
        for (int device = 0; device < 4; ++device)
            QCOMPARE(stage.view->rectOfLane(device).height(), height - 14);
    }

    void draggingALabelPutsTheLaneElsewhereAndEscapePutsItBack()
    {
        Stage stage;
        const auto label = [&](int device) { return QPoint(40, stage.view->rectOfLane(device).center().y()); };
        const QPoint from = label(0), to = label(2) + QPoint(0, 12);
        stage.press(from);
        stage.move(label(1) + QPoint(0, 12));
        stage.move(to);
        QCOMPARE(stage.view->lanes().rowOf(0), 2);
        QTest::keyClick(stage.view.get(), Qt::Key_Escape);
        QCOMPARE(stage.view->lanes().rowOf(0), 0);
        stage.release(to);
        QCOMPARE(stage.view->lanes().rowOf(0), 0);
        stage.press(from);
        stage.move(label(1) + QPoint(0, 12));
        stage.move(to);
        stage.release(to);
        QCOMPARE(stage.view->lanes().rowOf(0), 2);
        QVERIFY(stage.view->rectOfLane(0).top() > stage.view->rectOfLane(2).top());
        // What is under the cursor is what is drawn there.
        stage.click(stage.centre(f10));
        QVERIFY(stage.document.selection() == f10);
        const Block f00{Op::F, 0, 0, 0};
        stage.click(stage.centre(f00));
        QVERIFY(stage.document.selection() == f00);
    }

    void keysPinFoldMoveAndResizeTheSelectionsLane()
    {
        Stage stage;
        stage.document.select(f10);
        QTest::keyClick(stage.view.get(), Qt::Key_P);
        QVERIFY(stage.view->lanes().isPinned(1));
        QCOMPARE(stage.view->rectOfLane(1).top(), stage.view->rectOfLane(0).top() - stage.view->rectOfLane(1).height());
        QTest::keyClick(stage.view.get(), Qt::Key_P);
        QVERIFY(!stage.view->lanes().isPinned(1));
        QTest::keyClick(stage.view.get(), Qt::Key_Down, Qt::ControlModifier);
        QCOMPARE(stage.view->lanes().rowOf(1), 1);
        QTest::keyClick(stage.view.get(), Qt::Key_Up, Qt::ControlModifier);
        QCOMPARE(stage.view->lanes().rowOf(1), 0);
        QTest::keyClick(stage.view.get(), Qt::Key_L);
        QCOMPARE(stage.view->rectOfLane(1).height(), LaneStrip::foldedHeight);
        QVERIFY(stage.view->rectOfBlock(f10).height() > 0);
        QTest::keyClick(stage.view.get(), Qt::Key_Down, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(stage.view->rectOfLane(1).height(), LaneStrip::foldedHeight + 10);
        QTest::keyClick(stage.view.get(), Qt::Key_Home, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(stage.view->lanes().isAsGiven());
    }

    void theInspectorsFieldsSetRowAndHeightOfTheChosenLane()
    {
        Stage stage;
        ShownInspector inspector(stage);
        QSpinBox *row = inspector.field("Row of the lane"), *height = inspector.field("Height of the lane");
        const auto type = [](QSpinBox* spin, const char* text) {
            spin->setFocus();
            spin->selectAll();
            QTest::keyClicks(spin, QLatin1String(text));
            QTest::keyClick(spin, Qt::Key_Return);
        };
        QVERIFY(row && height && !height->isVisible()); // no lane is meant
        stage.document.select(f10);
        QVERIFY(height->isVisible());
        QCOMPARE(height->value(), stage.view->rectOfLane(1).height());
        type(height, "90");
        QCOMPARE(stage.view->rectOfLane(1).height(), 90);
        QTest::keyClick(height, Qt::Key_Up);
        QCOMPARE(stage.view->rectOfLane(1).height(), 100);
        type(height, "20");
        QVERIFY(stage.view->lanes().isFolded(1));
        QCOMPARE(height->text(), QStringLiteral("folded"));
        type(height, "22"); // lower than a lane that shows its blocks
        QCOMPARE(stage.view->rectOfLane(1).height(), LaneStrip::leastHeight);
        QCOMPARE(height->value(), LaneStrip::leastHeight);
        // A lane whose label was pressed is meant instead, and follows the mouse.
        const QPoint line(40, stage.view->rectOfLane(2).bottom());
        stage.press(line);
        QCOMPARE(height->value(), stage.view->rectOfLane(2).height());
        stage.move(line + QPoint(0, 25));
        stage.release(line + QPoint(0, 25));
        QCOMPARE(height->value(), stage.view->rectOfLane(2).height());
        QCOMPARE(row->value(), 3);
        type(row, "1");
        QCOMPARE(stage.view->lanes().rowOf(2), 0);
        // Lanes without a height of their own share the window's.
        const Block f00{Op::F, 0, 0, 0};
        stage.document.select(f00);
        const int before = height->value();
        stage.view->resize(1128, 420);
        QVERIFY(height->value() > before);
        QCOMPARE(height->value(), stage.view->rectOfLane(0).height());
        QCOMPARE(stage.document.undoStack()->count(), 0);
    }

    void aPinnedLaneStaysWhileTheOthersScrollUnderIt()
    {
        Stage stage(testing::design("1f1b", 16, 16));
        stage.document.select(Block{Op::F, 9, 0, 0});
        QTest::keyClick(stage.view.get(), Qt::Key_P);
        const QRect pinned = stage.view->rectOfLane(9);
        stage.view->verticalScrollBar()->setValue(stage.view->verticalScrollBar()->maximum());
        QCOMPARE(stage.view->rectOfLane(9), pinned);
        QVERIFY(stage.view->rectOfLane(0).bottom() < pinned.top());
        // A click there means the pinned lane.
        const Block block{Op::F, 9, 0, 0};
        stage.document.select(std::nullopt);
        stage.click(stage.centre(block));
        QVERIFY(stage.document.selection() == block);
        // A block of another lane is scrolled out from below it.
        const Block first{Op::F, 0, 0, 0};
        stage.document.select(first);
        stage.view->ensureVisible(first);
        QVERIFY(stage.view->rectOfLane(0).top() > pinned.bottom());
    }

    void aDoubleClickOnALabelFoldsAndItsMenuDoesTheRest()
    {
        Stage stage;
        const QPoint label(40, stage.view->rectOfLane(2).center().y());
        stage.mouse(QEvent::MouseButtonDblClick, label, Qt::LeftButton, Qt::LeftButton);
        QVERIFY(stage.view->lanes().isFolded(2));
        const QPoint folded(40, stage.view->rectOfLane(2).center().y());
        QContextMenuEvent event(QContextMenuEvent::Mouse, folded, stage.view->viewport()->mapToGlobal(folded));
        QApplication::sendEvent(stage.view->viewport(), &event);
        QMenu* menu = nullptr;
        for (QWidget* widget : QApplication::topLevelWidgets())
            if (auto* open = qobject_cast<QMenu*>(widget); open && open->isVisible())
                menu = open;
        QVERIFY(menu);
        for (QAction* action : menu->actions())
            if (action->objectName() == QLatin1String("lanePin"))
                action->trigger();
        QVERIFY(stage.view->lanes().isPinned(2));
        menu->close();
    }

    void aLabelsTipNamesTheGpuThatTheDeviceRunsOn()
    {
        Design design = testing::design();
        design.cluster.gpus = {{0, 32}, {0, 32}, {1, 0}, {1, 0}};
        Stage stage(design);
        const auto tip = [&stage](int device) {
            const QPoint label(40, stage.view->rectOfLane(device).center().y());
            QHelpEvent event(QEvent::ToolTip, label, stage.view->viewport()->mapToGlobal(label));
            QApplication::sendEvent(stage.view->viewport(), &event);
            return QToolTip::text();
        };
        QVERIFY2(tip(1).contains(QLatin1String("runs on 32 multiprocessors of the machine's GPU 0")), qPrintable(tip(1)));
        QVERIFY2(tip(2).contains(QLatin1String("runs on the machine's GPU 1")), qPrintable(tip(2)));
        design.cluster.gpus.clear();
        stage.document.reset(design);
        QVERIFY(!tip(1).contains(QLatin1String("runs on")));
    }

    void lanesKeepHowTheyStandThroughAnEdit()
    {
        Stage stage;
        stage.document.select(w10);
        QTest::keyClick(stage.view.get(), Qt::Key_L);
        QTest::keyClick(stage.view.get(), Qt::Key_Right, Qt::AltModifier);
        QCOMPARE(stage.document.undoStack()->count(), 1);
        QVERIFY(stage.view->lanes().isFolded(1));
    }

    void theCrosshairNamesWhatIsUnderTheCursor()
    {
        Stage stage;
        const QImage before = stage.view->viewport()->grab().toImage();
        QTest::keyClick(stage.view.get(), Qt::Key_H);
        const QPoint at = stage.centre(f10);
        stage.mouse(QEvent::MouseMove, at, Qt::NoButton, Qt::NoButton);
        const QString text = stage.view->crosshairText();
        for (const char* part : {"GPU 1", "F1.0", "GiB live"})
            QVERIFY2(text.contains(QLatin1String(part)), qPrintable(text));
        QVERIFY(stage.view->viewport()->grab().toImage() != before);
        stage.mouse(QEvent::MouseMove, QPoint(stage.view->rectOfBlock(f10).left() - 6, at.y()), Qt::NoButton, Qt::NoButton);
        QVERIFY(stage.view->crosshairText().contains(QStringLiteral("idle")));
        QTest::keyClick(stage.view.get(), Qt::Key_H);
        QVERIFY(stage.view->crosshairText().isEmpty());
    }

    void frameTimesAreOfferedOnlyWhileDebugging()
    {
        const auto debugMenu = [](const TimelineView& view) {
            for (const QAction* action : view.actions())
                if (action->menu())
                    return action->menu();
            return static_cast<QMenu*>(nullptr);
        };
        QVERIFY(debugMenu(*Stage().view) == nullptr);
        QLoggingCategory::setFilterRules(QStringLiteral("pipewright.timeline.frametime=true"));
        Stage stage;
        QMenu* menu = debugMenu(*stage.view);
        QLoggingCategory::setFilterRules(QString());
        QVERIFY(menu);
        QVERIFY(menu->actions().front()->isChecked());
        menu->actions().front()->trigger();
        QVERIFY(!menu->actions().front()->isChecked());
    }
};

QTEST_MAIN(TimelineLanesTest)
#include "tst_timelinelanes.moc"
