// SPDX-License-Identifier: GPL-3.0-or-later
// Looking at the timeline: zooming, panning, walking, marks and ranges, what is painted and how it is named,
// through real mouse, wheel and key events.
#include "core/predict/criticalpath.h"
#include "gui/document/timelinelayout.h"
#include "gui/timeline/laneplaces.h"
#include "gui/timeline/minimap.h"
#include "gui/timeline/timelinepainter.h"
#include "gui/timeline/timelinestage.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QAccessible>
#include <QAction>
#include <QApplication>
#include <QPainter>
#include <QScrollBar>
#include <QSignalSpy>

using namespace pipewright;
using namespace pipewright::testing;

namespace {

/// The greatest difference of any channel of any pixel.
int mostApart(const QImage& a, const QImage& b)
{
    int most = 0;
    for (int y = 0; y < a.height(); ++y)
        for (int x = 0; x < a.width(); ++x) {
            const QRgb one = a.pixel(x, y), other = b.pixel(x, y);
            most = std::max({most, std::abs(qRed(one) - qRed(other)), std::abs(qGreen(one) - qGreen(other)),
                             std::abs(qBlue(one) - qBlue(other))});
        }
    return most;
}

} // namespace

class TimelineViewTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void marksAreSetAndTakenAwayByKeyAtTheCursor()
    {
        Stage stage;
        QCursor::setPos(stage.view->viewport()->mapToGlobal(QPoint(500, 100)));
        QTest::keyClick(stage.view.get(), Qt::Key_M);
        QCOMPARE(stage.view->marks().size(), std::size_t(1));
        QTest::keyClick(stage.view.get(), Qt::Key_M);
        QVERIFY(stage.view->marks().empty());
        QTest::keyClick(stage.view.get(), Qt::Key_M);
        QTest::keyClick(stage.view.get(), Qt::Key_Escape);
        QVERIFY(stage.view->marks().empty());
    }

    void aDoubleClickOnTheRulerMarksATime()
    {
        Stage stage;
        const QPoint at(500, 12);
        for (const std::size_t expected : {std::size_t(1), std::size_t(0)}) {
            stage.click(at);
            stage.mouse(QEvent::MouseButtonDblClick, at, Qt::LeftButton, Qt::LeftButton);
            stage.release(at);
            QCOMPARE(stage.view->marks().size(), expected);
        }
        QVERIFY(!stage.view->range());
    }

    void theSelectionBecomesAMeasuredRange()
    {
        Stage stage;
        stage.document.select(f10);
        QTest::keyClick(stage.view.get(), Qt::Key_R);
        QVERIFY(stage.view->range());
        QCOMPARE(stage.view->range()->first, Nanoseconds(11'000'000));
        QCOMPARE(stage.view->range()->second, Nanoseconds(21'000'000));
        QTest::keyClick(stage.view.get(), Qt::Key_R);
        QVERIFY(!stage.view->range());
    }

    void aDragOnTheRulerMeasuresFromEdgeToEdgeAndEscapeEndsIt()
    {
        Stage stage;
        const QRect rect = stage.view->rectOfBlock(f10);
        stage.press(QPoint(rect.left() + 2, 12));
        stage.move(QPoint(rect.right() - 2, 12));
        stage.release(QPoint(rect.right() - 2, 12));
        QVERIFY(stage.view->range());
        QVERIFY(stage.view->range()->second > stage.view->range()->first);
        const auto isEdge = [&](Nanoseconds time) {
            for (const Lane& lane : stage.view->layout().lanes())
                for (const LaneBlock& block : lane.blocks())
                    if (block.start == time || block.end == time)
                        return true;
            return false;
        };
        QVERIFY(isEdge(stage.view->range()->first) && isEdge(stage.view->range()->second));
        QCOMPARE(stage.document.undoStack()->count(), 0);
        QTest::keyClick(stage.view.get(), Qt::Key_Escape);
        QVERIFY(!stage.view->range());
        stage.press(QPoint(400, 12));
        stage.release(QPoint(400, 12));
        QVERIFY(!stage.view->range());
    }

    void shadingBySlackPalesWhatCouldWait()
    {
        Stage stage;
        const Block roomy = stage.document.design().schedule.order[3].front();
        Block loose = roomy;
        Nanoseconds most = 0;
        const Prediction& prediction = *stage.document.prediction();
        const std::vector<Nanoseconds> room = slack(prediction.program, prediction.timeline);
        for (TaskId t = 0; t < prediction.program.tasks.size(); ++t)
            if (prediction.program.tasks[t].kind == TaskKind::Compute && room[t] > most) {
                most = room[t];
                loose = prediction.program.tasks[t].block();
            }
        QVERIFY(most > 0);
        const QPoint at = stage.view->rectOfBlock(loose).topLeft() + QPoint(4, 4);
        const QColor before = stage.view->viewport()->grab().toImage().pixelColor(at);
        QTest::keyClick(stage.view.get(), Qt::Key_X);
        QVERIFY(stage.view->showsSlack());
        const QColor after = stage.view->viewport()->grab().toImage().pixelColor(at);
        QVERIFY(before != after);
        QTest::keyClick(stage.view.get(), Qt::Key_X);
        QVERIFY(stage.view->viewport()->grab().toImage().pixelColor(at) == before);
        QTest::keyClick(stage.view.get(), Qt::Key_C);
        QVERIFY(stage.view->showsCriticalPath());
    }

    void theOverviewsFramePansAndZooms()
    {
        Stage stage;
        Minimap map(*stage.view);
        map.resize(stage.view->width(), Minimap::stripHeight);
        map.show();
        const Nanoseconds total = stage.view->total();
        stage.view->showRange(0, total / 4);
        const QRect frame = map.frame();
        const int y = map.height() / 2;
        QTest::mousePress(&map, Qt::LeftButton, {}, frame.center());
        QMouseEvent move(QEvent::MouseMove, QPointF(frame.center().x() + 300, y),
                         map.mapToGlobal(QPointF(frame.center().x() + 300, y)), Qt::NoButton, Qt::LeftButton, {});
        QApplication::sendEvent(&map, &move);
        QTest::mouseRelease(&map, Qt::LeftButton, {}, QPoint(frame.center().x() + 300, y));
        QVERIFY(std::abs(map.frame().left() - frame.left() - 300) <= 1);
        QVERIFY(std::abs(map.frame().width() - frame.width()) <= 1);
        QTest::mouseClick(&map, Qt::LeftButton, {}, QPoint(frame.center().x(), y)); // beside the frame: goes there
        QVERIFY(std::abs(map.frame().center().x() - frame.center().x()) <= 12);     // not past the beginning
        const double detail = stage.view->axis().nsPerPixel;
        const QRect now = map.frame();
        QTest::mousePress(&map, Qt::LeftButton, {}, QPoint(now.right(), y));
        QMouseEvent widen(QEvent::MouseMove, QPointF(now.right() + 100, y),
                          map.mapToGlobal(QPointF(now.right() + 100, y)), Qt::NoButton, Qt::LeftButton, {});
        QApplication::sendEvent(&map, &widen);
        QTest::mouseRelease(&map, Qt::LeftButton, {}, QPoint(now.right() + 100, y));
        QVERIFY(stage.view->axis().nsPerPixel > detail);
        QTest::mouseDClick(&map, Qt::LeftButton, {}, QPoint(500, y));
        QVERIFY(stage.view->axis().end() > static_cast<double>(total));
    }

    void theOverviewsFrameMovesByKey()
    {
        Stage stage;
        Minimap map(*stage.view);
        map.resize(stage.view->width(), Minimap::stripHeight);
        map.show();
        map.activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(&map));
        const auto pixel = [&map] { return map.grab().toImage().pixelColor(1, 0); };
        const QColor unfocused = pixel();
        map.setFocus(Qt::TabFocusReason);
        QVERIFY(pixel() != unfocused);
        const double total = static_cast<double>(stage.view->total());
        const auto near = [total](double a, double b) { return std::abs(a - b) < 1e-6 * total; };
        const auto axis = [&stage] { return stage.view->axis(); };
        stage.view->showRange(stage.view->total() / 4, stage.view->total() / 2);
        const double start = axis().start, end = axis().end(), shown = end - start;
        const auto key = [&map](Qt::Key key, Qt::KeyboardModifiers modifiers = {}) {
            QTest::keyClick(&map, key, modifiers);
        };
        key(Qt::Key_Right);
        QVERIFY(near(axis().start, start + shown / 10) && near(axis().end(), end + shown / 10));
        key(Qt::Key_Left);
        key(Qt::Key_Left, Qt::ControlModifier);
        QVERIFY(near(axis().start, start - shown / 10) && near(axis().end(), end));
        key(Qt::Key_Left, Qt::ShiftModifier);
        QVERIFY(near(axis().start, start - shown / 10) && near(axis().end(), end - 0.11 * shown));
        key(Qt::Key_Plus);
        QVERIFY(near(axis().end() - axis().start, 0.99 * shown / 1.25));
        key(Qt::Key_Home);
        QVERIFY(axis().start <= 0);
        key(Qt::Key_PageDown);
        QVERIFY(axis().start > 0);
        key(Qt::Key_End);
        QVERIFY(axis().end() >= total && axis().start > 0);
        // Beyond the end there is nothing: the left edge stays where it is.
        const double left = axis().start;
        key(Qt::Key_Right, Qt::ShiftModifier);
        QVERIFY(near(axis().start, left));
        key(Qt::Key_0);
        QVERIFY(axis().start <= 0 && axis().end() >= total);
        QVERIFY(map.accessibleDescription().contains(durationText(stage.view->total())));
    }

    void controlWheelZoomsAroundTheTimeUnderTheCursor()
    {
        Stage stage;
        QSignalSpy ranges(stage.view.get(), &TimelineView::viewRangeChanged);
        const QPoint at(700, 120);
        const double time = stage.view->axis().timeAt(700);
        const double detail = stage.view->axis().nsPerPixel;
        for (int i = 1; i <= 6; ++i) {
            stage.wheel(at, 1, Qt::ControlModifier);
            QVERIFY(std::abs(stage.view->axis().xOf(time) - 700) < 0.01);
        }
        QVERIFY(stage.view->axis().nsPerPixel < detail / 3);
        QCOMPARE(ranges.count(), 6);
        stage.wheel(at, -20, Qt::ControlModifier);
        QCOMPARE(stage.view->axis().nsPerPixel, detail); // the whole schedule, and no further
    }

    void shiftWheelAndMiddleDragPan()
    {
        Stage stage;
        stage.view->zoomBy(8, 600);
        const double before = stage.view->axis().start;
        stage.wheel({700, 120}, -1, Qt::ShiftModifier);
        const double panned = stage.view->axis().start;
        QVERIFY(panned > before);
        stage.mouse(QEvent::MouseButtonPress, {500, 120}, Qt::MiddleButton, Qt::MiddleButton);
        stage.mouse(QEvent::MouseMove, {540, 120}, Qt::NoButton, Qt::MiddleButton);
        stage.mouse(QEvent::MouseButtonRelease, {540, 120}, Qt::MiddleButton, Qt::NoButton);
        QVERIFY(std::abs(stage.view->axis().start - (panned - 40 * stage.view->axis().nsPerPixel)) < 1e-3);
    }

    void keysZoomPanAndFrame()
    {
        Stage stage;
        const TimeAxis whole = stage.view->axis();
        QTest::keyClick(stage.view.get(), Qt::Key_W);
        QVERIFY(stage.view->axis().nsPerPixel < whole.nsPerPixel);
        const double start = stage.view->axis().start;
        QTest::keyClick(stage.view.get(), Qt::Key_D);
        QVERIFY(stage.view->axis().start > start);
        QTest::keyClick(stage.view.get(), Qt::Key_Home);
        QCOMPARE(stage.view->axis(), whole);
        stage.document.select(w10);
        QTest::keyClick(stage.view.get(), Qt::Key_F);
        QVERIFY(stage.view->axis().nsPerPixel < whole.nsPerPixel);
        QVERIFY(stage.view->viewport()->rect().contains(stage.view->rectOfBlock(w10)));
        QTest::keyClick(stage.view.get(), Qt::Key_F);
        QCOMPARE(stage.view->axis(), whole);
    }

    void commaPeriodAndBracketsWalkTheSchedule()
    {
        Stage stage;
        stage.document.select(f10);
        QTest::keyClick(stage.view.get(), Qt::Key_Period);
        QVERIFY(stage.document.selection() == f11);
        QTest::keyClick(stage.view.get(), Qt::Key_Comma);
        QVERIFY(stage.document.selection() == f10);
        QTest::keyClick(stage.view.get(), Qt::Key_BracketLeft);
        QVERIFY(stage.document.selection() == (Block{Op::F, 0, 0, 0}));
        QTest::keyClick(stage.view.get(), Qt::Key_BracketRight);
        QVERIFY(stage.document.selection() == f10);
        stage.document.select(Block{Op::I, 1, 0, 0});
        QTest::keyClick(stage.view.get(), Qt::Key_BracketLeft);
        QVERIFY(stage.document.selection() == (Block{Op::I, 2, 0, 0})); // the gradient came last, not its own F
    }

    void theTooltipNamesTheBlockItsTimesItsSourceAndItsSlack()
    {
        Stage stage;
        const QString text = stage.view->describe(f10);
        for (const char* part :
             {"F1.0", "forward", "GPU 1", "11\u00a0ms", "10\u00a0ms", "given", "slack", "1\u00a0GiB"})
            QVERIFY2(text.contains(QString::fromUtf8(part)), qPrintable(QString::fromUtf8(part) + text));
    }

    void everyShortcutHasAnActionWithAText()
    {
        Stage stage;
        QSet<QKeySequence> keys;
        for (const QAction* action : stage.view->actions()) {
            QVERIFY(!action->text().isEmpty());
            QVERIFY(!action->shortcuts().isEmpty());
            for (const QKeySequence& key : action->shortcuts()) {
                QVERIFY2(!keys.contains(key), qPrintable(key.toString()));
                keys.insert(key);
            }
        }
        QVERIFY(stage.view->actions().size() >= 18);
    }

    void blocksPutTogetherLookLikeEachDrawnByItself()
    {
        const Design design = test::familyDesign("zb-h1", 4, 24);
        const Prediction prediction = predict(design);
        const TimelineLayout layout(prediction.program, prediction.timeline, 4);
        const Lane& lane = layout.lanes()[1];
        const QRectF area(20, 10, 700, 33);
        for (const Theme* theme : {&Theme::dark(), &Theme::light()})
            for (const double scale : {1.0, 1.5, 2.0})
                for (const double nsPerPixel :
                     {1'350'000.0, 120'000.0}) { // 4 to 7 pixels a block; 50 to 80, the first cut off
                    const TimelinePainter painter(*theme, scale);
                    TimeAxis axis;
                    axis.left = 20;
                    axis.width = 700;
                    axis.nsPerPixel = nsPerPixel;
                    axis.start = nsPerPixel < 1e6 ? static_cast<double>(lane.blocks()[20].start) + 2'000'000 : 0;
                    LaneGeometry geometry = laneGeometry(lane, axis, area, layout.makespan(), scale);
                    geometry.idle.clear();
                    for (BlockRect& item : geometry.blocks)
                        item.label = BlockLabel::None; // letters stand on whole pixels, which need not be the same ones
                    QVERIFY(geometry.blocks.size() > 8);
                    QImage together((QSizeF(740, 60) * scale).toSize(), QImage::Format_RGB32), single = together;
                    for (QImage* image : {&together, &single}) {
                        image->fill(theme->lane);
                        image->setDevicePixelRatio(scale);
                        QPainter on(image);
                        on.setClipRect(area);
                        if (image == &together)
                            painter.blocks(on, axis, {QRect(0, 0, 740, 60), false, std::nullopt, {}}, {}, area, lane,
                                           geometry);
                        else
                            for (const BlockRect& item : geometry.blocks) {
                                const LaneBlock& block = lane.blocks()[item.index];
                                painter.block(on, item.rect, block.block, block.chunk, item.label);
                            }
                    }
                    const int apart = mostApart(together, single);
                    QVERIFY2(apart <= 16,
                             qPrintable(QStringLiteral("%1 of 255 at scale %2, %3 ns a pixel")
                                            .arg(apart)
                                            .arg(scale)
                                            .arg(nsPerPixel))); // a texture fades once, not twice, at a rounded corner
                }
    }

    void blocksPutTogetherCarryTheirLetterAndNumber()
    {
        const Design design = test::familyDesign("zb-h1", 4, 24);
        const Prediction prediction = predict(design);
        const TimelineLayout layout(prediction.program, prediction.timeline, 4);
        const Theme& theme = Theme::light();
        const TimelinePainter painter(theme, 1);
        TimeAxis axis;
        axis.width = 700;
        axis.nsPerPixel = 120'000;
        const QRectF area(0, 10, 700, 44);
        const LaneGeometry geometry = laneGeometry(layout.lanes()[0], axis, area, layout.makespan(), 1);
        QVERIFY(!geometry.blocks.empty());
        QImage image(700, 64, QImage::Format_RGB32);
        image.fill(theme.lane);
        {
            QPainter on(&image);
            painter.blocks(on, axis, {QRect(0, 0, 700, 64), false, std::nullopt, {}}, {}, area, layout.lanes()[0],
                           geometry);
        }
        const auto inked = [&](QRectF part) {
            int count = 0;
            for (int y = int(part.top()); y < int(part.bottom()); ++y)
                for (int x = int(part.left()); x < int(part.right()); ++x)
                    count += qGray(image.pixel(x, y)) < qGray(theme.ink.rgb()) + 40;
            return count;
        };
        for (const BlockRect& item : geometry.blocks) {
            if (item.rect.right() > 700 || item.label < BlockLabel::LetterAndNumber)
                continue;
            const QPointF middle = item.rect.center();
            QVERIFY(inked(QRectF(middle.x() - 6, middle.y() - 16, 12, 14)) > 8);
            QVERIFY(inked(QRectF(middle.x() - 10, middle.y() + 2, 20, 14)) > 4);
            QCOMPARE(inked(QRectF(item.rect.left() + 1, item.rect.top() + 4, 4, item.rect.height() - 8)),
                     0); // beside them
        }
    }

    void chartsBelowSeeTheSameAxisAsTheLanes()
    {
        Stage stage;
        stage.view->zoomBy(3, 500);
        const LaneBlockProbe probe{stage.view->axis(), 11'000'000};
        QCOMPARE(stage.view->rectOfBlock(f10).left(), probe.x());
        QCOMPARE(stage.view->axis().left, TimelineView::plotLeft());
        QCOMPARE(stage.view->axis().right(),
                 stage.view->viewport()->width() - LanePlaces::idleWidth(stage.view->viewport()->width()));
    }

    void lanesAndVisibleBlocksAreNamedForAssistiveTechnology()
    {
        Stage stage;
        QAccessibleInterface* view = QAccessible::queryAccessibleInterface(stage.view.get());
        QVERIFY(view);
        QCOMPARE(view->childCount(), 4);
        QAccessibleInterface* lane = view->child(1);
        QCOMPARE(lane->text(QAccessible::Name), QStringLiteral("GPU 1, H200, stage 1"));
        QCOMPARE(lane->childCount(), 24);
        QAccessibleInterface* block = lane->child(0);
        QVERIFY2(block->text(QAccessible::Name)
                     .startsWith(QStringLiteral("F1.0, forward of microbatch 0, stage 1 on GPU 1, 11")),
                 qPrintable(block->text(QAccessible::Name)));
        QVERIFY(block->rect().contains(stage.view->viewport()->mapToGlobal(stage.centre(f10))));
        QCOMPARE(block->parent(), lane);
        QCOMPARE(lane->indexOfChild(block), 0);
        QVERIFY(!block->state().selected);
        stage.document.select(f10);
        QVERIFY(block->state().selected);
        QCOMPARE(view->focusChild(), block);
        // Only what is in sight.
        stage.view->showRange(0, 15'000'000);
        QCOMPARE(lane->childCount(), 1);
    }

    void chipsOfTransfersAreNamedForAssistiveTechnologyWhileTheyAreShown()
    {
        Stage stage;
        QAccessibleInterface* lane = QAccessible::queryAccessibleInterface(stage.view.get())->child(0);
        const int blocks = lane->childCount();
        stage.view->action(QStringLiteral("allTransfers"))->trigger();
        const std::vector<Transfer> shown = stage.view->visibleTransfers(0);
        QVERIFY(!shown.empty());
        QCOMPARE(lane->childCount(), blocks + int(shown.size()));
        QAccessibleInterface* chip = lane->child(blocks);
        QVERIFY(chip);
        QVERIFY2(chip->text(QAccessible::Name).startsWith(QStringLiteral("GPU 0 sends as number 1 of ")),
                 qPrintable(chip->text(QAccessible::Name)));
        const QPoint centre =
            stage.view->viewport()->mapToGlobal(stage.view->rectOfTransfer(0, shown.front()).center());
        QVERIFY(chip->rect().contains(centre));
        QCOMPARE(lane->childAt(centre.x(), centre.y()), chip);
        QCOMPARE(chip->parent(), lane);
        QCOMPARE(lane->indexOfChild(chip), blocks);
        QVERIFY(!chip->state().selected);
        stage.view->selectTransfer(0, shown.front());
        QVERIFY(chip->state().selected);
    }

    void aPaintOfALongScheduleIssuesNoMoreThanItsPixelsAskFor()
    {
        // 96 000 blocks; names for assistive technology are bounded as well.
        Stage stage(test::familyDesign("zb-h1", 4, 8000));
        const int width = stage.view->plotWidth();
        for (int device = 0; device < 4; ++device)
            QVERIFY(stage.view->visibleBlocks(device).size() <= static_cast<std::size_t>(width) + 1);
        QVERIFY(!stage.view->grab().isNull());
    }

    void manyLanesScrollAndOnlyThen()
    {
        Stage stage;
        QCOMPARE(stage.view->verticalScrollBar()->maximum(), 0);
        Stage tall(test::familyDesign("1f1b", 16, 16));
        QVERIFY(tall.view->verticalScrollBar()->maximum() > 0);
        const Block last{Op::F, 15, 0, 0};
        tall.document.select(last);
        tall.view->ensureVisible(last);
        QVERIFY(tall.view->viewport()->rect().contains(tall.view->rectOfBlock(last).center()));
    }

    void bothLooksPaintEveryStateWithoutComplaint()
    {
        for (const Theme* theme : {&Theme::dark(), &Theme::light()}) {
            theme->apply(*qApp);
            Stage stage;
            stage.document.select(w10);
            stage.press(stage.centre(w10));
            stage.move(stage.before(i13));
            const QImage image = stage.view->grab().toImage();
            QVERIFY(!image.isNull());
            // The lane's ground comes from the look in force.
            const QRect lane = stage.view->rectOfLane(0);
            QCOMPARE(image.pixelColor(3, lane.center().y()), theme->lane);
        }
    }

private:
    struct LaneBlockProbe {
        TimeAxis axis;
        double time;
        int x() const { return static_cast<int>(std::floor(axis.xOf(time) + 0.5)); }
    };
};

PIPEWRIGHT_TEST(TimelineViewTest, QApplication)
#include "tst_timelineview.moc"
