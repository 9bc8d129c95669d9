// SPDX-License-Identifier: GPL-3.0-or-later
// Edits that are no move of one block, by mouse, key and number: transfers, ripple moves, several blocks.
#include "core/program/transferorder.h"
#include "gui/document/namededits.h"
#include "gui/document/timelinelayout.h"
#include "gui/inspector/inspector.h"
#include "gui/timeline/lanestrip.h"
#include "gui/timeline/timelinestage.h"
#include "gui/timeline/timelinetext.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QSignalSpy>
#include <QSpinBox>

using namespace pipewright;
using namespace pipewright::testing;

namespace {

const Block f01{Op::F, 0, 1, 0}, f02{Op::F, 0, 2, 0}, i10{Op::I, 1, 0, 0};

std::vector<Transfer> listOf(const Stage& stage, int device)
{
    std::vector<Transfer> list;
    for (const IssuedTransfer& issued : transfersOf(stage.document.prediction()->program, device))
        list.push_back(issued.transfer);
    return list;
}

int placeOf(const Stage& stage, int device, const Transfer& transfer)
{
    const std::vector<Transfer> list = listOf(stage, device);
    return static_cast<int>(std::find(list.begin(), list.end(), transfer) - list.begin());
}

} // namespace

class TimelineEditsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theSubLaneUnfoldsBelowTheBlocksByKeyAndFoldsByItsLabel()
    {
        Stage stage;
        const int height = stage.view->rectOfLane(0).height();
        stage.document.select(f01);
        QTest::keyClick(stage.view.get(), Qt::Key_Y);
        QVERIFY(stage.view->lanes().showsTransfers(0));
        QVERIFY(!stage.view->lanes().showsTransfers(1));
        QVERIFY(stage.view->rectOfLane(0).height() >= stage.view->lanes().transferHeight(0) + LaneStrip::leastHeight);
        const QRect chip = stage.view->rectOfTransfer(0, {f01, 1});
        QVERIFY(chip.width() >= 10);
        QVERIFY(chip.top() > stage.view->rectOfBlock(f01).bottom());
        QVERIFY(!stage.view->blockAt(chip.center()));
        // Its chip stands where the transfer begins.
        QVERIFY(std::abs(chip.left() - stage.view->rectOfBlock(f01).right()) < 30);
        stage.click({60, chip.center().y()});
        QVERIFY(!stage.view->lanes().showsTransfers(0));
        QCOMPARE(stage.view->rectOfLane(0).height(), height);
        QTest::keyClick(stage.view.get(), Qt::Key_Y, Qt::ShiftModifier);
        for (int lane = 0; lane < 4; ++lane)
            QVERIFY(stage.view->lanes().showsTransfers(lane));
        QTest::keyClick(stage.view.get(), Qt::Key_Y, Qt::ShiftModifier);
        QVERIFY(!stage.view->lanes().showsTransfers(3));
        QCOMPARE(stage.document.undoStack()->count(), 0);
    }

    void draggingAChipStatesItsOrderAndUndoForgetsIt()
    {
        Stage stage;
        const Design before = stage.document.design();
        stage.view->action("allTransfers")->trigger();
        const Transfer first{f01, 1}, second{f02, 1};
        QVERIFY(placeOf(stage, 0, first) < placeOf(stage, 0, second));
        const QPoint from = stage.view->rectOfTransfer(0, second).center(),
                     to = stage.view->rectOfTransfer(0, first).center() - QPoint(3, 0);
        stage.press(from);
        QVERIFY(stage.document.selection() == f02);
        stage.move(from - QPoint(12, 0));
        stage.move(to);
        QVERIFY(stage.view->preview());
        QCOMPARE(stage.document.design(), before);
        stage.release(to);
        QVERIFY(placeOf(stage, 0, second) < placeOf(stage, 0, first));
        QVERIFY(placeOf(stage, 1, second) < placeOf(stage, 1, first)); // there they arrive in the same order
        QCOMPARE(stage.document.undoStack()->count(), 1);
        QVERIFY(stage.document.undoStack()->undoText().contains("F0.2"));
        QVERIFY(!stage.document.design().schedule.transferOrder.empty());
        stage.document.undoStack()->undo();
        QCOMPARE(stage.document.design(), before);
    }

    void whereAnOrderCannotBeItSaysWhyWhileHoveringAndRefuses()
    {
        Stage stage;
        stage.view->setLargeFrom(1e9); // however slow the machine: the words of a design that is worked out at once
        stage.view->action("allTransfers")->trigger();
        const Design before = stage.document.design();
        // The gradient that comes back needs the activation that went out.
        const QRect back = stage.view->rectOfTransfer(0, {i10, 0}),
                    out = stage.view->rectOfTransfer(0, {{Op::F, 0, 0, 0}, 1});
        QVERIFY(back.isValid() && out.isValid());
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        stage.press(back.center());
        stage.move(back.center() - QPoint(20, 0));
        stage.move({out.left() - 2, out.center().y()});
        QVERIFY(!stage.view->preview());
        stage.release({out.left() - 2, out.center().y()});
        QCOMPARE(refused.count(), 1);
        QVERIFY2(refused.front().front().toString().contains("waits in a circle"),
                 qPrintable(refused.front().front().toString()));
        QCOMPARE(stage.document.design(), before);
        QCOMPARE(stage.document.undoStack()->count(), 0);
    }

    void inALargeDesignTheDataDecidesWhileHoveringAndTheNumbersFollow()
    {
        Stage stage;
        stage.view->setLargeFrom(0);
        stage.view->action("allTransfers")->trigger();
        const Design before = stage.document.design();
        QRect back = stage.view->rectOfTransfer(0, {i10, 0}),
              out = stage.view->rectOfTransfer(0, {{Op::F, 0, 0, 0}, 1});
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        stage.press(back.center());
        stage.move(back.center() - QPoint(20, 0));
        stage.move({out.left() - 2, out.center().y()});
        stage.release({out.left() - 2, out.center().y()});
        QCOMPARE(refused.count(), 1);
        QVERIFY2(refused.front().front().toString().contains("cannot go that early"),
                 qPrintable(refused.front().front().toString()));
        QCOMPARE(stage.document.design(), before);
        // What can be is said at once; what it changes, when the cursor rests.
        const Transfer first{f01, 1}, second{f02, 1};
        const QPoint from = stage.view->rectOfTransfer(0, second).center(),
                     to = stage.view->rectOfTransfer(0, first).center() - QPoint(3, 0);
        stage.press(from);
        stage.move(from - QPoint(12, 0));
        stage.move(to);
        QVERIFY(!stage.view->preview());
        QTRY_VERIFY(stage.view->preview());
        const Nanoseconds promised = stage.view->preview()->metrics.makespan;
        stage.release(to);
        QVERIFY(placeOf(stage, 0, second) < placeOf(stage, 0, first));
        QCOMPARE(stage.document.prediction()->metrics.makespan, promised);
        QCOMPARE(stage.document.undoStack()->count(), 1);
    }

    void aBackwardIsSplitAndMergedByKeyAndTheSelectionGoesWithIt()
    {
        Stage stage(test::familyDesign("1f1b"));
        const Design before = stage.document.design();
        const Block whole{Op::B, 1, 2, 0}, first{Op::I, 1, 2, 0}, second{Op::W, 1, 2, 0};
        stage.document.select(whole);
        QTest::keyClick(stage.view.get(), Qt::Key_B);
        QVERIFY(stage.document.selection() == first);
        QCOMPARE(stage.indexOf(second), stage.indexOf(first) + 1);
        QCOMPARE(stage.indexOf(whole), -1);
        QVERIFY(stage.document.prediction());
        stage.document.select(second);
        QTest::keyClick(stage.view.get(), Qt::Key_B, Qt::ShiftModifier);
        QVERIFY(stage.document.selection() == whole);
        QCOMPARE(stage.document.design().schedule.order, before.schedule.order);
        QCOMPARE(stage.document.undoStack()->count(), 2);
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        stage.document.select(Block{Op::F, 1, 2, 0});
        QTest::keyClick(stage.view.get(), Qt::Key_B);
        QCOMPARE(refused.count(), 1);
        QCOMPARE(stage.document.undoStack()->count(), 2);
    }

    void theStateBeforeTheEditIsOutlined()
    {
        Stage stage;
        const auto picture = [&] { return stage.view->viewport()->grab().toImage(); };
        stage.document.select(f02);
        stage.view->moveSelection(-1);
        stage.document.select(std::nullopt);
        const QImage plain = picture();
        QTest::keyClick(stage.view.get(), Qt::Key_G);
        QVERIFY(picture() != plain);
        QTest::keyClick(stage.view.get(), Qt::Key_G);
        QCOMPARE(picture(), plain);
        stage.document.reset(test::familyDesign());
        const QImage fresh = picture();
        QTest::keyClick(stage.view.get(), Qt::Key_G);
        QCOMPARE(picture(), fresh); // there was nothing before
    }

    void escapeEndsTheDragOfAChipExactly()
    {
        Stage stage;
        stage.view->action("allTransfers")->trigger();
        const Design before = stage.document.design();
        const QPoint from = stage.view->rectOfTransfer(0, {f02, 1}).center();
        stage.press(from);
        stage.move(from - QPoint(70, 0));
        QTest::keyClick(stage.view.get(), Qt::Key_Escape);
        QVERIFY(!stage.view->preview());
        stage.release(from - QPoint(70, 0));
        QCOMPARE(stage.document.design(), before);
        QCOMPARE(stage.document.undoStack()->count(), 0);
    }

    void keysMoveTheSelectedTransferAndFreeIt()
    {
        Stage stage;
        const Design before = stage.document.design();
        stage.document.select(f02);
        const int at = placeOf(stage, 0, {f02, 1});
        QTest::keyClick(stage.view.get(), Qt::Key_Left, Qt::ControlModifier);
        QCOMPARE(placeOf(stage, 0, {f02, 1}), at - 1);
        QVERIFY(stage.view->lanes().showsTransfers(0)); // what moved is shown
        QTest::keyClick(stage.view.get(), Qt::Key_Right, Qt::ControlModifier);
        QCOMPARE(stage.document.design().schedule, before.schedule);
        QTest::keyClick(stage.view.get(), Qt::Key_Left, Qt::ControlModifier);
        QTest::keyClick(stage.view.get(), Qt::Key_Backspace, Qt::ControlModifier);
        QCOMPARE(stage.document.design().schedule, before.schedule);
        QCOMPARE(stage.document.undoStack()->count(), 4);
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        QTest::keyClick(stage.view.get(), Qt::Key_Backspace, Qt::ControlModifier);
        QCOMPARE(refused.count(), 1);
        stage.document.select(std::nullopt);
        QTest::keyClick(stage.view.get(), Qt::Key_Left, Qt::ControlModifier);
        QCOMPARE(refused.count(), 2);
        QCOMPARE(stage.document.undoStack()->count(), 4);
    }

    void aKeyChoosesAmongTheTransfersOfABlockAtBothEnds()
    {
        Stage stage;
        stage.document.select(f02);
        QTest::keyClick(stage.view.get(), Qt::Key_U);
        int device = -1;
        QVERIFY(stage.view->selectedTransfer(&device));
        QCOMPARE(device, 0);
        QTest::keyClick(stage.view.get(), Qt::Key_U);
        QVERIFY(stage.view->selectedTransfer(&device) == (Transfer{f02, 1}));
        QCOMPARE(device, 1);
        QVERIFY(stage.view->lanes().showsTransfers(1));
        const int at = placeOf(stage, 1, {f02, 1});
        QTest::keyClick(stage.view.get(), Qt::Key_Right, Qt::ControlModifier); // later in the receiver's list
        QCOMPARE(placeOf(stage, 1, {f02, 1}), at + 1);
        QTest::keyClick(stage.view.get(), Qt::Key_U);
        QVERIFY(stage.view->selectedTransfer(&device));
        QCOMPARE(device, 0); // around
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        stage.document.select(Block{Op::W, 0, 0, 0});
        QTest::keyClick(stage.view.get(), Qt::Key_U);
        QCOMPARE(refused.count(), 1);
    }

    void theInspectorMovesATransferByItsNumber()
    {
        Stage stage;
        ShownInspector inspector(stage);
        stage.document.select(f02);
        QSpinBox* field = inspector.field("Place among the transfers of its device");
        QVERIFY(field && field->isVisible());
        const int at = placeOf(stage, 0, {f02, 1});
        QCOMPARE(field->value(), at + 1);
        field->setFocus();
        field->selectAll();
        QTest::keyClicks(field, QString::number(at));
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(placeOf(stage, 0, {f02, 1}), at - 1);
        // Chosen at its receiver, it is that device's list.
        stage.view->selectTransfer(1, {f02, 1});
        const int received = placeOf(stage, 1, {f02, 1});
        QCOMPARE(field->value(), received + 1);
        QCOMPARE(placeOf(stage, 1, {f01, 1}), received + 1);
        QTest::keyClick(field, Qt::Key_Up);
        QVERIFY(placeOf(stage, 1, {f02, 1}) > placeOf(stage, 1, {f01, 1})); // what stood behind it goes ahead
        QCOMPARE(field->value(), placeOf(stage, 1, {f02, 1}) + 1);
        stage.document.select(Block{Op::W, 0, 0, 0}); // sends nothing
        QVERIFY(!field->isVisible());
    }

    void aBlockMoveThatAStatedOrderForbidsIsRefusedWithTheCircle()
    {
        Stage stage(test::familyDesign("1f1b", 2, 3));
        const Block second{Op::F, 0, 1, 0};
        const Document::Edit plain =
            stage.document.tryEdit(blockMove(stage.document.design(), second, 3)); // behind B0.0
        QVERIFY(!hasErrors(plain.diagnostics));
        stage.document.commit(stage.document.tryEdit(MoveTransfer{0, 1, 0})); // F0.1 goes out before F0.0
        QVERIFY(stage.document.prediction());
        const Design stated = stage.document.design();
        QVERIFY(!stated.schedule.transferOrder.empty());
        const Diagnostics faults = stage.document.apply(blockMove(stage.document.design(), second, 3));
        QVERIFY(hasErrors(faults));
        QVERIFY2(faults.front().what.find("waits in a circle") != std::string::npos, faults.front().what.c_str());
        QCOMPARE(stage.document.design(), stated);
    }

    void rippleTakesTheRestOfTheMicrobatchAlongByKeyAndByCtrlDrag()
    {
        Stage stage(test::familyDesign("gpipe", 3, 4));
        const Design before = stage.document.design();
        const Block held{Op::F, 0, 1, 0};
        const auto places = [&] { return stage.forwardsOf(1); };
        QVERIFY(places() == std::vector<int>({1, 1, 1}));
        stage.document.select(held);
        QTest::keyClick(stage.view.get(), Qt::Key_Right, Qt::AltModifier | Qt::ShiftModifier);
        QVERIFY(places() == std::vector<int>({2, 2, 2}));
        QCOMPARE(stage.document.undoStack()->count(), 1);
        QTest::keyClick(stage.view.get(), Qt::Key_Left, Qt::AltModifier | Qt::ShiftModifier);
        QVERIFY(places() == std::vector<int>({1, 1, 1}));
        QCOMPARE(stage.document.design().schedule.order, before.schedule.order);

        // The same drag without and with Ctrl.
        const QPoint from = stage.centre(held), to = stage.before({Op::F, 0, 3, 0});
        stage.press(from);
        stage.move(from + QPoint(10, 0));
        stage.move(to);
        stage.release(to);
        QVERIFY(places() == std::vector<int>({2, 1, 1}));
        stage.document.undoStack()->undo();
        stage.press(from);
        stage.move(from + QPoint(10, 0), Qt::ControlModifier);
        stage.move(to, Qt::ControlModifier);
        QVERIFY(stage.view->preview());
        stage.release(to, Qt::ControlModifier);
        QVERIFY(places() == std::vector<int>({2, 2, 2}));
        QVERIFY(stage.document.undoStack()->undoText().contains("rest of microbatch 1"));
    }

    void thePositionIsGivenAloneWithTheMicrobatchOrInExchange()
    {
        Stage stage(test::familyDesign("gpipe", 3, 4));
        ShownInspector inspector(stage);
        const Design before = stage.document.design();
        const Block held{Op::F, 0, 1, 0};
        stage.document.select(held);
        QSpinBox* position = inspector.field("Position in lane");
        auto* how = inspector.named<QComboBox>("How it moves");
        auto* fault = inspector.named<QLabel>("Why the edit was refused");
        QVERIFY(position && how && fault && how->isVisible());
        const auto places = [&](int microbatch) { return stage.forwardsOf(microbatch); };
        const auto undone = [&] {
            stage.document.undoStack()->undo();
            return stage.document.design() == before && stage.document.undoStack()->index() == 0;
        };
        type(position, "3");
        QCOMPARE(places(1), (std::vector<int>{2, 1, 1}));
        QVERIFY(undone());
        QTest::keyClick(how, Qt::Key_Down);
        type(position, "3");
        QCOMPARE(places(1), (std::vector<int>{2, 2, 2}));
        QCOMPARE(position->value(), 3);
        QVERIFY(undone());
        QTest::keyClick(how, Qt::Key_Down);
        type(position, "4");
        QCOMPARE(places(1), (std::vector<int>{3, 1, 1}));
        QCOMPARE(places(3), (std::vector<int>{1, 3, 3}));
        QVERIFY(undone());
        // What cannot be says why, and Escape puts back what was only typed.
        type(position, "8");
        QVERIFY(fault->isVisible() && !fault->text().isEmpty());
        QCOMPARE(position->value(), 2);
        QTest::keyClick(how, Qt::Key_Up);
        stage.document.select(Block{Op::B, 2, 0, 0});
        QVERIFY(!fault->isVisible());
        const int there = position->value();
        type(position, "1"); // before its own forward
        QVERIFY(fault->isVisible() && !fault->text().isEmpty());
        QCOMPARE(position->value(), there);
        QCOMPARE(stage.document.design(), before);
        stage.document.select(held);
        position->setFocus();
        position->selectAll();
        QTest::keyClicks(position, QStringLiteral("3"));
        QTest::keyClick(position, Qt::Key_Escape);
        QCOMPARE(position->text(), QStringLiteral("2"));
        QTest::keyClick(position, Qt::Key_Return);
        QCOMPARE(stage.document.design(), before);
    }

    void aRippleOfALargeDesignIsWorkedOutBesideTheWindow()
    {
        Stage stage(test::familyDesign("gpipe", 3, 4));
        stage.view->setLargeFrom(0);
        stage.document.setLargeFrom(0);
        const Block held{Op::F, 0, 1, 0};
        const auto places = [&] { return stage.forwardsOf(1); };
        const QPoint from = stage.centre(held), to = stage.before({Op::F, 0, 3, 0});
        stage.press(from);
        stage.move(from + QPoint(10, 0), Qt::ControlModifier);
        stage.move(to, Qt::ControlModifier);
        QVERIFY(!stage.view->preview());    // nothing was compiled under the hand …
        QTRY_VERIFY(stage.view->preview()); // … it comes when the hand rests
        stage.move(to + QPoint(0, 1), Qt::ControlModifier);
        QVERIFY(stage.view->preview()); // and stays as long as the place is the same
        stage.release(to, Qt::ControlModifier);
        QTRY_VERIFY(places() == std::vector<int>({2, 2, 2}));
        QVERIFY(stage.document.undoStack()->undoText().contains("rest of microbatch 1"));
        stage.document.undoStack()->undo();

        // Dropped before it is known, and by key: the document works it out.
        stage.press(from);
        stage.move(from + QPoint(10, 0), Qt::ControlModifier);
        stage.move(to, Qt::ControlModifier);
        stage.release(to, Qt::ControlModifier);
        QVERIFY(stage.document.isWorking());
        QVERIFY(places() == std::vector<int>({1, 1, 1}));
        QTRY_VERIFY(places() == std::vector<int>({2, 2, 2}));
        QCOMPARE(stage.document.selection(), std::optional(held));
        QTest::keyClick(stage.view.get(), Qt::Key_Left, Qt::AltModifier | Qt::ShiftModifier);
        QTRY_VERIFY(places() == std::vector<int>({1, 1, 1}));

        // What cannot be is refused with the reason, and leaves everything as it is.
        const Block first{Op::F, 2, 0, 0};
        stage.document.select(Block{Op::B, 2, 0, 0});
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        QTest::keyClick(stage.view.get(), Qt::Key_Left, Qt::AltModifier | Qt::ShiftModifier);
        for (int i = 0; i < 8 && refused.isEmpty(); ++i) { // to before its own forward
            stage.document.settle();
            QTest::keyClick(stage.view.get(), Qt::Key_Left, Qt::AltModifier | Qt::ShiftModifier);
        }
        QTRY_VERIFY(!refused.isEmpty());
        QVERIFY(stage.document.prediction());
        QVERIFY(stage.indexOf(first) < stage.indexOf({Op::B, 2, 0, 0}));
    }

    void ctrlPressedAndLetGoDuringADragSwitchesRipple()
    {
        Stage stage(test::familyDesign("gpipe", 3, 4));
        const Block held{Op::F, 0, 1, 0};
        const QPoint from = stage.centre(held), to = stage.before({Op::F, 0, 3, 0});
        stage.press(from);
        stage.move(from + QPoint(10, 0));
        stage.move(to);
        const Nanoseconds alone = stage.view->preview()->metrics.makespan;
        QTest::keyPress(stage.view.get(), Qt::Key_Control, Qt::ControlModifier);
        QVERIFY(stage.view->preview());
        QVERIFY(stage.view->preview()->metrics.makespan != alone);
        QTest::keyRelease(stage.view.get(), Qt::Key_Control);
        QCOMPARE(stage.view->preview()->metrics.makespan, alone);
        stage.release(to);
        QCOMPARE(stage.indexOf({Op::F, 1, 1, 0}), 1);
    }

    void everyBlockIsSelectedAndTakenOutInOneStep()
    {
        Stage stage;
        const Design before = stage.document.design();
        QTest::keySequence(stage.view.get(), QKeySequence::SelectAll);
        QCOMPARE(stage.view->selectedBlocks().size(), std::size_t(4 * 8 * 3));
        QTest::keyClick(stage.view.get(), Qt::Key_Delete);
        QCOMPARE(stage.document.design().schedule.blocks(), std::int64_t{0});
        QCOMPARE(stage.document.undoStack()->count(), 1);
        stage.document.undoStack()->undo();
        QCOMPARE(stage.document.design(), before);
    }

    void laneLabelsSayWhichReplicaHoldsWhat()
    {
        Stage stage(test::familyDesign("chimera", 4, 8));
        QVERIFY2(stage.view->nameOfLane(0).contains("stage 0 of replica 0")
                     && stage.view->nameOfLane(0).contains("stage 3 of replica 1"),
                 qPrintable(stage.view->nameOfLane(0)));
        QCOMPARE(laneHeaders(stage.document.design(), nullptr)[0].detail, QStringLiteral("stages 0 · 3/1"));
        // One unit for the peak and the limit, which is a round number.
        const QString memory = laneHeaders(stage.document.design(), stage.document.prediction())[0].memory;
        QVERIFY2(memory.endsWith(QStringLiteral(" / 80\u00a0GiB")) && memory.count("GiB") == 1, qPrintable(memory));
    }

    void theMenuOfAChipOffersItsEdits()
    {
        Stage stage;
        stage.view->action("allTransfers")->trigger();
        const QPoint at = stage.view->rectOfTransfer(0, {f02, 1}).center();
        stage.rightClick(at);
        QMenu* menu = openMenu();
        QVERIFY(menu && menu->actions().contains(stage.view->action("transferEarlier")));
        menu->close();
    }
};

PIPEWRIGHT_TEST(TimelineEditsTest, QApplication)
#include "tst_timelineedits.moc"
