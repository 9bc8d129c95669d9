// SPDX-License-Identifier: GPL-3.0-or-later
// Lanes that are resized, folded, pinned and moved, crosshair, measured range and menus, by mouse, key and number.
#include "gui/document/timelinelayout.h"
#include "gui/inspector/inspector.h"
#include "gui/timeline/lanegeometry.h"
#include "gui/timeline/lanestrip.h"
#include "gui/timeline/timelinepainter.h"
#include "gui/timeline/timelinestage.h"
#include "gui/timeline/timelinetext.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QApplication>
#include <QCheckBox>
#include <QHelpEvent>
#include <QLabel>
#include <QLineEdit>
#include <QLoggingCategory>
#include <QPainter>
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
        row->setFocus();
        row->selectAll();
        QTest::keyClicks(row, QStringLiteral("1"));
        QTest::keyClick(row, Qt::Key_Escape);
        QCOMPARE(row->text(), QStringLiteral("row 3"));
        type(row, "1");
        QCOMPARE(stage.view->lanes().rowOf(2), 0);
        auto* all = inspector.named<QCheckBox>("Height of all lanes");
        QTest::keyClick(all, Qt::Key_Space);
        type(height, "64");
        for (int device = 0; device < 4; ++device)
            QCOMPARE(stage.view->rectOfLane(device).height(), 64);
        type(height, "20");
        for (int device = 0; device < 4; ++device)
            QVERIFY(stage.view->lanes().isFolded(device));
        // Lanes without a height of their own share the window's.
        stage.view->action(QStringLiteral("lanesReset"))->trigger();
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
        Stage stage(test::familyDesign("1f1b", 16, 16));
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
        stage.rightClick(folded);
        QMenu* menu = openMenu();
        QVERIFY(menu);
        for (QAction* action : menu->actions())
            if (action->objectName() == QLatin1String("lanePin"))
                action->trigger();
        QVERIFY(stage.view->lanes().isPinned(2));
        menu->close();
    }

    void theMeasuredRangeIsFollowedAndSetByItsFields()
    {
        Stage stage;
        const Block f00{Op::F, 0, 0, 0};
        ShownInspector inspector(stage);
        auto* from = inspector.named<QLineEdit>("Start of the measured range");
        auto* to = inspector.named<QLineEdit>("End of the measured range");
        auto* length = inspector.named<QLineEdit>("Length of the measured range");
        auto* fault = inspector.named<QLabel>("Why the edit was refused");
        QVERIFY(from && to && length && fault && !from->isVisible());
        const auto range = [&stage] {
            return stage.view->range().value_or(std::pair(Nanoseconds{-1}, Nanoseconds{-1}));
        };
        const auto between = [](Nanoseconds start, Nanoseconds end) {
            return std::pair(start * 500'000, end * 500'000);
        }; // in half milliseconds
        // A drag on the ruler is followed while it lasts, and Escape brings back what was there.
        stage.view->setRange(between(10, 18));
        QVERIFY(from->isVisible());
        const QRect rect = stage.view->rectOfBlock(f10);
        stage.press(QPoint(rect.left(), 12));
        QCOMPARE(to->text(), QStringLiteral("9\u00a0ms"));
        stage.move(QPoint(rect.right() + 1, 12));
        QCOMPARE(from->text(), QStringLiteral("11\u00a0ms"));
        QCOMPARE(to->text(), QStringLiteral("21\u00a0ms"));
        QCOMPARE(length->text(), QStringLiteral("10\u00a0ms"));
        stage.view->action(QStringLiteral("cancel"))->trigger();
        QCOMPARE(range(), between(10, 18));
        stage.release(QPoint(rect.right() + 1, 12));
        type(to, "30 ms");
        QCOMPARE(range(), between(10, 60));
        type(length, "2.5ms");
        QCOMPARE(range(), between(10, 15));
        QCOMPARE(to->text(), QStringLiteral("7.5\u00a0ms"));
        type(from, "0s");
        QCOMPARE(range(), between(0, 15));
        for (const char* wrong : {"5 apples", "8ms", "7"}) {
            type(from, wrong);
            QVERIFY2(fault->isVisible() && !fault->text().isEmpty(), wrong);
            QCOMPARE(range(), between(0, 15));
        }
        QTest::keyClick(from, Qt::Key_Escape);
        QVERIFY(!fault->isVisible());
        QCOMPARE(from->text(), QStringLiteral("0\u00a0ms"));
        type(to, "2min");
        QVERIFY2(fault->text().contains(QStringLiteral("the schedule ends before 120\u00a0s")),
                 qPrintable(fault->text()));
        QCOMPARE(to->text(), QStringLiteral("7.5\u00a0ms"));
        from->clear();
        QTest::keyClick(from, Qt::Key_Return);
        QVERIFY(!stage.view->range() && !from->isVisible());
        // By key: over what is in sight, which has fields of its own; then to the fields.
        auto* begin = inspector.named<QLineEdit>("Start of the visible range");
        type(begin, "20ms");
        type(inspector.named<QLineEdit>("End of the visible range"), "60ms");
        QCOMPARE(stage.view->visibleRange(), between(40, 120));
        stage.view->action(QStringLiteral("measureByNumbers"))->trigger();
        QCOMPARE(range(), between(40, 120));
        QVERIFY(from->hasFocus() && from->selectedText() == QStringLiteral("20\u00a0ms"));
        stage.view->action(QStringLiteral("measure"))->trigger();
        QVERIFY(!stage.view->range());
        stage.view->selectBlocks({f00, f10});
        stage.view->action(QStringLiteral("measure"))->trigger();
        QCOMPARE(range(), between(0, 42));
        stage.view->action(QStringLiteral("frameRange"))->trigger();
        QCOMPARE(stage.view->visibleRange(), between(0, 42));
        begin->clear();
        QTest::keyClick(begin, Qt::Key_Return);
        QVERIFY(stage.view->visibleRange() == std::pair(Nanoseconds{0}, stage.view->total()));
        QCOMPARE(stage.document.undoStack()->count(), 0);
    }

    void theMenuKeyOpensTheMenuOfWhatWasChosenLast()
    {
        Stage stage;
        // What is opened by the key has the entry, and stands there.
        const auto opens = [&stage](const QString& text, const QRect& at) {
            QTest::keyClick(stage.view.get(), Qt::Key_F10, Qt::ShiftModifier);
            QMenu* menu = openMenu();
            const bool has = menu && entry(menu, text);
            const QPoint place = menu ? stage.view->viewport()->mapFromGlobal(menu->pos()) : QPoint(-1, -1);
            if (menu)
                menu->close();
            if (!at.contains(place))
                qWarning("%s stands at %d, %d", qPrintable(text), place.x(), place.y());
            return has && at.contains(place);
        };
        const QRect ruler(0, 0, stage.view->width(), 36), all = stage.view->viewport()->rect();
        QVERIFY(opens(QStringLiteral("Measure the selection"), ruler)); // nothing is chosen
        stage.document.select(f10);
        QVERIFY(opens(QStringLiteral("Frame the selection"),
                      all.adjusted(0, -all.height(), 0, 0))); // it is higher than what is below
        QTest::keyClick(stage.view.get(), Qt::Key_U);
        QVERIFY(opens(QStringLiteral("Transfer one place later"), stage.view->rectOfLane(1)));
        stage.view->showReason({1, 0, 11'000'000, {}, f10});
        QVERIFY(opens(QStringLiteral("GPU 1 is idle for 11"), stage.view->rectOfLane(1)));
        QTest::keyClick(stage.view.get(), Qt::Key_Down, Qt::ShiftModifier);
        QCOMPARE(stage.view->chosenLane(), 2);
        QVERIFY(opens(QStringLiteral("Fold the lane"), stage.view->rectOfLane(2)));
        QTest::keyClick(stage.view.get(), Qt::Key_Up, Qt::ShiftModifier);
        QCOMPARE(stage.view->chosenLane(), 1);
        QTest::keyClick(stage.view.get(), Qt::Key_R);
        QVERIFY(opens(QStringLiteral("Remove the measured range"), ruler));
        // The menu key itself arrives as an event.
        QContextMenuEvent event(QContextMenuEvent::Keyboard, QPoint(1, 1), stage.view->mapToGlobal(QPoint(1, 1)));
        QApplication::sendEvent(stage.view.get(), &event);
        QVERIFY(openMenu() && entry(openMenu(), QStringLiteral("Remove the measured range"))->isEnabled());
        openMenu()->close();
        QTest::keyClick(stage.view.get(), Qt::Key_Comma);
        QTest::keyClick(stage.view.get(), Qt::Key_Period);
        QVERIFY(opens(QStringLiteral("Frame the selection"), all.adjusted(0, -all.height(), 0, 0)));
    }

    void theRulerAndIdleTimeHaveMenus()
    {
        Stage stage;
        const QRect rect = stage.view->rectOfBlock(f10);
        stage.rightClick(QPoint(rect.left(), 12));
        QMenu* menu = openMenu();
        QVERIFY(menu && entry(menu, QStringLiteral("Set a mark at 11"))
                && !entry(menu, QStringLiteral("Remove the measured range"))->isEnabled());
        entry(menu, QStringLiteral("Set a mark at 11"))->trigger();
        menu->close();
        QCOMPARE(stage.view->marks(), std::vector<Nanoseconds>{11'000'000});
        stage.rightClick(QPoint(rect.left() + 1, 12));
        entry(openMenu(), QStringLiteral("Remove the mark at 11"))->trigger();
        openMenu()->close();
        QVERIFY(stage.view->marks().empty());
        QSignalSpy gaps(stage.view.get(), &TimelineView::gapClicked);
        stage.rightClick(QPoint(rect.left() - 8, rect.center().y()));
        menu = openMenu();
        QVERIFY(menu);
        entry(menu, QStringLiteral("Explain"))->trigger();
        QCOMPARE(gaps.value(0), (QVariantList{1, qint64{0}, qint64{11'000'000}}));
        entry(menu, QStringLiteral("Measure it"))->trigger();
        QVERIFY(stage.view->range() == std::pair(Nanoseconds{0}, Nanoseconds{11'000'000}));
        menu->close();
    }

    void twoSizesOfALaneShareTheirUnit()
    {
        Stage stage;
        const Prediction& prediction = *stage.document.prediction();
        Comparison recording;
        recording.devices.resize(1);
        recording.devices[0].predictedPeak = Bytes{77} << 30;
        recording.devices[0].measuredPeak = Bytes{794} << 20; // of a run that held a hundredth
        QCOMPARE(laneHeaders(stage.document.design(), &prediction, &recording, Side::Both)[0].memory,
                 QStringLiteral("77 → 0.775 GiB"));
    }

    void aLabelsTipNamesTheGpuThatTheDeviceRunsOn()
    {
        Design design = test::familyDesign();
        design.cluster.gpus = {{0, 32}, {0, 32}, {1, 0}, {1, 0}};
        Stage stage(design);
        const auto tip = [&stage](int device) {
            const QPoint label(40, stage.view->rectOfLane(device).center().y());
            QHelpEvent event(QEvent::ToolTip, label, stage.view->viewport()->mapToGlobal(label));
            QApplication::sendEvent(stage.view->viewport(), &event);
            return QToolTip::text();
        };
        QVERIFY2(tip(1).contains(QLatin1String("runs on 32 multiprocessors of the machine's GPU 0")),
                 qPrintable(tip(1)));
        QVERIFY2(tip(2).contains(QLatin1String("runs on the machine's GPU 1")), qPrintable(tip(2)));
        design.cluster.gpus.clear();
        stage.document.reset(design);
        QVERIFY(!tip(1).contains(QLatin1String("runs on")));
    }

    void aLabelOfTheRulerIsWholeWhereItsTickIsAtTheLeftEdge()
    {
        const TimelinePainter painter(Theme::light(), 1);
        // How many pixels wide the first label is, and where it begins, with its tick so far from the left edge.
        const auto inked = [&](double pixels) {
            const TimeAxis axis{200e6 - pixels * 1e6, 1e6, 112, 300};
            QImage image(412, TimelinePainter::rulerHeight, QImage::Format_RGB32);
            QPainter on(&image);
            painter.ruler(on, axis, image.rect(), {200e6, 400e6});
            on.end();
            const QRgb ground = image.pixel(0, 0);
            int first = image.width(), last = -1;
            for (int x = 0; x < 112 + int(pixels) + 60; ++x)
                for (int y = 0; y < TimelinePainter::rulerHeight - 10; ++y)
                    if (image.pixel(x, y) != ground) {
                        first = std::min(first, x);
                        last = x;
                    }
            return std::pair(first, last - first);
        };
        const auto [inside, width] = inked(100);
        QVERIFY(width > 20 && inside < 112 + 100);
        const auto [edge, there] = inked(2);
        QVERIFY2(edge >= 112 && std::abs(there - width) <= 2,
                 qPrintable(QStringLiteral("%1, %2").arg(edge).arg(there)));
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
        stage.mouse(QEvent::MouseMove, QPoint(stage.view->rectOfBlock(f10).left() - 6, at.y()), Qt::NoButton,
                    Qt::NoButton);
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

    void aLabelStandsInTheMiddleOfWhatIsSeenOfItsBlock()
    {
        const Design design = test::familyDesign("zb-h1", 4, 24);
        const Prediction prediction = predict(design);
        const TimelineLayout layout(prediction.program, prediction.timeline, 4);
        const Theme& theme = Theme::light();
        const TimelinePainter painter(theme, 1);
        const LaneBlock& first = layout.lanes()[0].blocks().front();
        TimeAxis axis;
        axis.width = 300;
        axis.nsPerPixel = static_cast<double>(first.end - first.start) / 1000;
        axis.start = static_cast<double>(first.end) - 80 * axis.nsPerPixel; // its last 80 pixels are seen
        const QRectF area(0, 10, 300, 44);
        const LaneGeometry geometry = laneGeometry(layout.lanes()[0], axis, area, layout.makespan(), 1);
        QImage image(300, 64, QImage::Format_RGB32);
        image.fill(theme.lane);
        {
            QPainter on(&image);
            painter.blocks(on, axis, {QRect(0, 0, 300, 64), false, std::nullopt, {}}, {}, area, layout.lanes()[0],
                           geometry);
        }
        int inked = 0;
        for (int y = 14; y < 50; ++y)
            for (int x = 32; x < 48; ++x)
                inked += qGray(image.pixel(x, y)) < qGray(theme.ink.rgb()) + 40;
        QVERIFY(inked > 12);
    }
};

PIPEWRIGHT_TEST(TimelineLanesTest, QApplication)
#include "tst_timelinelanes.moc"
