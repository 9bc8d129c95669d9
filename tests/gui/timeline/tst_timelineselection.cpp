// SPDX-License-Identifier: GPL-3.0-or-later
// Several blocks at once: how they are chosen, and the edits that are one undo step each.
#include "core/schedule/warmup.h"
#include "gui/document/timelinelayout.h"
#include "gui/inspector/inspector.h"
#include "gui/timeline/lanestrip.h"
#include "gui/timeline/timelinestage.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QAction>
#include <QApplication>
#include <QSignalSpy>
#include <QSpinBox>

#include <numeric>

using namespace pipewright;
using namespace pipewright::testing;

namespace {

std::vector<Block> sorted(std::vector<Block> blocks)
{
    std::sort(blocks.begin(), blocks.end());
    return blocks;
}

} // namespace

class TimelineSelectionTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aRubberBandSelectsTheBlocksItTouchesAndNoBubble()
    {
        Stage stage;
        QSignalSpy gaps(stage.view.get(), &TimelineView::gapClicked);
        const QRect first = stage.view->rectOfBlock(f10), second = stage.view->rectOfBlock(f11);
        const QPoint from(first.left() - 8, first.top() - 2);
        stage.press(from);
        stage.move(QPoint(second.center().x(), second.bottom() + 2));
        QVERIFY(stage.view->selectedBlocks().empty());
        stage.release(QPoint(second.center().x(), second.bottom() + 2));
        QCOMPARE(stage.view->selectedBlocks(), (std::vector<Block>{f10, f11}));
        QVERIFY(stage.document.selection() == f10);
        QCOMPARE(gaps.count(), 0);
        QCOMPARE(stage.document.undoStack()->count(), 0);
        QTest::keyClick(stage.view.get(), Qt::Key_Escape);
        QVERIFY(stage.view->selectedBlocks().empty());
    }

    void escapeEndsARubberBand()
    {
        Stage stage;
        const QRect first = stage.view->rectOfBlock(f10);
        stage.press(first.topLeft() - QPoint(8, 2));
        stage.move(first.center());
        QTest::keyClick(stage.view.get(), Qt::Key_Escape);
        stage.release(first.center());
        QVERIFY(stage.view->selectedBlocks().empty());
    }

    void controlClickAddsAndTakesAwayShiftClickChoosesAllBetween()
    {
        Stage stage;
        stage.click(stage.centre(f10));
        stage.click(stage.centre(w13), Qt::ControlModifier);
        QCOMPARE(sorted(stage.view->selectedBlocks()), sorted({f10, w13}));
        stage.click(stage.centre(w13), Qt::ControlModifier);
        QCOMPARE(stage.view->selectedBlocks(), (std::vector<Block>{f10}));
        stage.click(stage.centre(f10));
        stage.click(stage.centre(i13), Qt::ShiftModifier);
        const int between = stage.indexOf(i13) - stage.indexOf(f10) + 1;
        QCOMPARE(stage.view->selectedBlocks().size(), static_cast<std::size_t>(between));
        stage.click(stage.centre(f11)); // a plain click chooses one again
        QCOMPARE(stage.view->selectedBlocks(), (std::vector<Block>{f11}));
    }

    void keysSelectWhatSharesTheMicrobatchTheStageOrTheOperation()
    {
        Stage stage;
        stage.document.select(f10);
        QTest::keyClick(stage.view.get(), Qt::Key_M, Qt::ShiftModifier);
        QCOMPARE(stage.view->selectedBlocks().size(), std::size_t(12)); // F, I, W on each of 4 stages
        for (const Block& block : stage.view->selectedBlocks())
            QCOMPARE(block.microbatch, 0);
        QTest::keyClick(stage.view.get(), Qt::Key_S, Qt::ShiftModifier);
        QCOMPARE(stage.view->selectedBlocks().size(), std::size_t(24));
        QTest::keyClick(stage.view.get(), Qt::Key_O, Qt::ShiftModifier);
        QCOMPARE(stage.view->selectedBlocks().size(), std::size_t(8));
        QVERIFY(stage.document.selection() == f10);
        stage.document.select(w10); // chosen elsewhere
        QCOMPARE(stage.view->selectedBlocks(), std::vector<Block>{w10});
    }

    void anyBlocksOfADeviceAreChosenByKey()
    {
        Stage stage;
        const std::vector<Block> order = stage.document.design().schedule.order[1];
        stage.document.select(order[2]);
        const auto key = [&stage](Qt::Key key, Qt::KeyboardModifiers modifiers = {}) {
            QTest::keyClick(stage.view.get(), key, modifiers);
        };
        key(Qt::Key_Greater);
        QCOMPARE(stage.view->selectedBlocks(), (std::vector<Block>{order[2], order[3]}));
        QVERIFY(stage.document.selection() == order[3]);
        key(Qt::Key_Period, Qt::ControlModifier);
        key(Qt::Key_Period, Qt::ControlModifier);
        QCOMPARE(stage.view->selectedBlocks(), (std::vector<Block>{order[2], order[5]}));
        key(Qt::Key_Less);
        QCOMPARE(stage.view->selectedBlocks(), (std::vector<Block>{order[2], order[4], order[5]}));
        key(Qt::Key_Comma, Qt::ControlModifier);
        QCOMPARE(stage.view->selectedBlocks(), (std::vector<Block>{order[2], order[3], order[5]}));
        key(Qt::Key_Period); // a plain step out of them chooses one again
        QCOMPARE(stage.view->selectedBlocks(), (std::vector<Block>{order[4]}));
    }

    void aBlockIsPinnedWhereItStartsByKey()
    {
        Stage stage;
        stage.document.select(w13);
        const LaneBlock* block = stage.view->layout().blockOf(w13);
        const Nanoseconds start = block->start;
        QTest::keyClick(stage.view.get(), Qt::Key_P, Qt::ShiftModifier);
        QCOMPARE(stage.document.design().schedule.pins, (std::vector<Pin>{{w13, start}}));
        QTest::keyClick(stage.view.get(), Qt::Key_P, Qt::ShiftModifier);
        QVERIFY(stage.document.design().schedule.pins.empty());
        QCOMPARE(stage.document.undoStack()->count(), 2);
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        stage.document.select(Block{Op::F, 0, 0, 0});
        QTest::keyClick(stage.view.get(), Qt::Key_P, Qt::ShiftModifier);
        QCOMPARE(refused.count(), 1);
        QVERIFY(!stage.view->lanes().isPinned(0)); // that is P alone
    }

    void theInspectorsPositionTakesTheGroupAlong()
    {
        Stage stage;
        ShownInspector inspector(stage);
        const Block w11{Op::W, 1, 1, 0};
        stage.view->selectBlocks({w10, w11});
        const int first = stage.indexOf(w10), second = stage.indexOf(w11);
        QSpinBox* position = inspector.field("Position in lane");
        QVERIFY(position);
        QCOMPARE(position->value(), first + 1);
        QTest::keyClick(position, Qt::Key_Up);
        QCOMPARE(stage.indexOf(w10), first + 1);
        QCOMPARE(stage.indexOf(w11), second + 1);
        QCOMPARE(position->value(), first + 2);
        QCOMPARE(stage.document.undoStack()->count(), 1);
    }

    void aDragMovesAllSelectedBlocksOfItsDeviceAsOneStep()
    {
        Stage stage;
        const Design before = stage.document.design();
        const Block w11{Op::W, 1, 1, 0};
        stage.click(stage.centre(w10));
        stage.click(stage.centre(w11), Qt::ControlModifier);
        const int first = stage.indexOf(w10), second = stage.indexOf(w11);
        // One place further: behind the block that comes next.
        const Block next = before.schedule.order[1][second + 1];
        const QRect nextRect = stage.view->rectOfBlock(next);
        stage.press(stage.centre(w11));
        const QPoint target(nextRect.left() + nextRect.width() * 3 / 4, nextRect.center().y());
        stage.move(target, Qt::AltModifier);
        QVERIFY(stage.view->preview() != nullptr);
        stage.release(target, Qt::AltModifier);
        QCOMPARE(stage.document.undoStack()->count(), 1);
        QCOMPARE(stage.document.undoStack()->undoText(), QStringLiteral("Move 2 blocks on GPU 1"));
        QCOMPARE(stage.indexOf(w10), first + 1);
        QCOMPARE(stage.indexOf(w11), second + 1);
        QCOMPARE(sorted(stage.view->selectedBlocks()), sorted({w10, w11}));
        stage.document.undoStack()->undo();
        QVERIFY(stage.document.design() == before);
    }

    void theKeyboardMovesAGroupToo()
    {
        Stage stage;
        const Block w11{Op::W, 1, 1, 0};
        stage.view->selectBlocks({w10, w11});
        const int first = stage.indexOf(w10), second = stage.indexOf(w11);
        QTest::keyClick(stage.view.get(), Qt::Key_Right, Qt::AltModifier);
        QCOMPARE(stage.indexOf(w10), first + 1);
        QCOMPARE(stage.indexOf(w11), second + 1);
        QCOMPARE(stage.document.undoStack()->count(), 1);
        QTest::keyClick(stage.view.get(), Qt::Key_Delete);
        QCOMPARE(sorted(unplacedBlocks(stage.document.design().schedule)), sorted({w10, w11}));
        QCOMPARE(stage.document.undoStack()->count(), 2);
    }

    void twoBlocksChangePlacesByKeyAndByDraggingWithShift()
    {
        Stage stage;
        const Design before = stage.document.design();
        const Block w11{Op::W, 1, 1, 0}, w12{Op::W, 1, 2, 0};
        stage.view->selectBlocks({w11, w12});
        const int first = stage.indexOf(w11), second = stage.indexOf(w12);
        const auto isLegal = [&] {
            std::vector<std::uint32_t> positions(before.schedule.order[1].size());
            std::iota(positions.begin(), positions.end(), 0u);
            std::swap(positions[first], positions[second]);
            return !hasErrors(stage.document.tryEdit(ReorderDevice{1, positions, {}}).diagnostics);
        };
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        QTest::keyClick(stage.view.get(), Qt::Key_X, Qt::ShiftModifier);
        QCOMPARE(refused.isEmpty(), isLegal());
        if (stage.document.undoStack()->count() > 0) {
            QCOMPARE(stage.indexOf(w11), second);
            QCOMPARE(stage.indexOf(w12), first);
            stage.document.undoStack()->undo();
        }
        // Two forwards of the last device, whose inputs come early enough for either order.
        const Block f10b{Op::F, 0, 0, 0}, f11b{Op::F, 0, 1, 0};
        stage.press(stage.centre(f10b));
        stage.move(stage.centre(f11b), Qt::ShiftModifier);
        QVERIFY(stage.view->preview() != nullptr);
        const QPoint target = stage.centre(f11b);
        stage.release(target, Qt::ShiftModifier);
        stage.document.undoStack()->undo();
        QVERIFY(stage.document.design() == before);
    }

    void theEdgeOfTheWarmUpIsDraggedAndHasKeys()
    {
        Stage stage(test::familyDesign("1f1b", 4, 8));
        const auto forwards = [&] { return warmUp(stage.document.design().schedule.order[1]); };
        QCOMPARE(forwards(), 3);
        const QRect last = stage.view->rectOfBlock({Op::F, 1, 2, 0});
        const QPoint edge(last.right() + 1, last.center().y());
        const int block = last.width() + 1;
        stage.press(edge);
        stage.move(edge + QPoint(block, 0));
        QVERIFY(stage.view->preview() != nullptr);
        stage.release(edge + QPoint(block, 0));
        QCOMPARE(forwards(), 4);
        QCOMPARE(stage.document.undoStack()->count(), 1);
        QCOMPARE(stage.document.undoStack()->undoText(), QStringLiteral("Warm-up of 4 on GPU 1"));
        stage.document.select(Block{Op::F, 1, 0, 0});
        QTest::keyClick(stage.view.get(), Qt::Key_Left, Qt::ShiftModifier);
        QCOMPARE(forwards(), 3);
        QTest::keyClick(stage.view.get(), Qt::Key_Right, Qt::ShiftModifier);
        QCOMPARE(forwards(), 4);
    }

    void theMenuOfABlockActsOnIt()
    {
        Stage stage;
        stage.rightClick(stage.centre(w10));
        QVERIFY(stage.document.selection() == w10);
        QMenu* menu = openMenu();
        QVERIFY(menu);
        QMenu* devices = entry(menu, QStringLiteral("Move stage 1"))->menu();
        QVERIFY(devices);
        QVERIFY(!entry(devices, QStringLiteral("GPU 1"))->isEnabled());
        entry(devices, QStringLiteral("GPU 3"))->trigger();
        QCOMPARE(stage.document.design().schedule.deviceOfStage[1], 3);
        entry(menu, QStringLiteral("this microbatch"))->trigger();
        QCOMPARE(stage.view->selectedBlocks().size(), std::size_t(12));
        menu->close();
    }
};

PIPEWRIGHT_TEST(TimelineSelectionTest, QApplication)
#include "tst_timelineselection.moc"
