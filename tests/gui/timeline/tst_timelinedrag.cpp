// SPDX-License-Identifier: GPL-3.0-or-later
// Editing one block at a time in the timeline, by real mouse, key and drop events.
#include "gui/timeline/refusalnote.h"
#include "gui/timeline/timelinestage.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QApplication>
#include <QSignalSpy>

using namespace pipewright;
using namespace pipewright::testing;

class TimelineDragTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aClickSelectsTheBlockUnderIt()
    {
        Stage stage;
        for (const std::vector<Block>& order : stage.document.design().schedule.order) {
            for (const Block& block : order) {
                stage.press(stage.centre(block));
                stage.release(stage.centre(block));
                QVERIFY(stage.document.selection() == block);
            }
        }
        QCOMPARE(stage.document.undoStack()->count(), 0);
    }

    void aClickOnIdleTimeNamesTheBubbleAndClearsTheSelection()
    {
        Stage stage;
        stage.document.select(f10);
        QSignalSpy gaps(stage.view.get(), &TimelineView::gapClicked);
        const QPoint at(stage.view->rectOfBlock(f10).left() - 6, stage.centre(f10).y());
        stage.press(at);
        stage.release(at);
        QVERIFY(!stage.document.selection());
        QCOMPARE(gaps.count(), 1);
        QCOMPARE(gaps[0][0].toInt(), 1);
        QCOMPARE(gaps[0][1].toLongLong(), 0);
        QCOMPARE(gaps[0][2].toLongLong(), 11'000'000); // F0.0 and its transfer
    }

    void aDragReordersWithOneUndoStepThatRestoresExactly()
    {
        Stage stage;
        const Design before = stage.document.design();
        const Nanoseconds makespan = stage.document.prediction()->metrics.makespan;
        const QPoint target = stage.before(i13);
        stage.press(stage.centre(w10));
        stage.move(target);
        QVERIFY(stage.view->preview() != nullptr);
        QVERIFY(stage.document.design() == before); // the Document is untouched until release
        const Nanoseconds promised = stage.view->preview()->metrics.makespan;
        // The preview has moved the picture; the same pixel still means the same place.
        stage.release(target);
        QVERIFY(stage.view->preview() == nullptr);
        QCOMPARE(stage.document.undoStack()->count(), 1);
        QCOMPARE(stage.document.undoStack()->undoText(), QStringLiteral("Move W1.0 on GPU 1"));
        QCOMPARE(stage.indexOf(w10) + 1, stage.indexOf(i13));
        QCOMPARE(stage.document.prediction()->metrics.makespan, promised);
        QVERIFY(stage.document.selection() == w10);
        stage.document.undoStack()->undo();
        QVERIFY(stage.document.design() == before);
        QCOMPARE(stage.document.prediction()->metrics.makespan, makespan);
    }

    void aSmallTwitchIsAClickAndNoEdit()
    {
        Stage stage;
        stage.press(stage.centre(w10));
        stage.move(stage.centre(w10) + QPoint(3, 2));
        QVERIFY(stage.view->preview() == nullptr);
        stage.release(stage.centre(w10) + QPoint(3, 2));
        QCOMPARE(stage.document.undoStack()->count(), 0);
    }

    void aHandThatSlipsBelowTheLaneMovesNoStage()
    {
        Stage stage;
        const Design before = stage.document.design();
        const QPoint from = stage.centre(w10), slipped(from.x() + 20, stage.view->rectOfLane(1).bottom() + 8);
        stage.press(from);
        stage.move(slipped);
        stage.release(slipped);
        QCOMPARE(stage.document.design().schedule.deviceOfStage, before.schedule.deviceOfStage);
        // In the other lane's blocks it is meant.
        const QPoint other(from.x(), stage.centre(Block{Op::F, 2, 0, 0}).y());
        stage.press(from);
        stage.move(other);
        QVERIFY(stage.view->previewDesign().schedule.deviceOfStage[1] == 2 || stage.view->isPreviewing());
        stage.view->cancel();
        stage.release(other);
    }

    void anIllegalDropIsExplainedAndChangesNothing()
    {
        Stage stage;
        const Design before = stage.document.design();
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        const QPoint target = stage.centre(f11);
        stage.press(stage.centre(w10));
        stage.move(target, Qt::AltModifier); // no snapping to somewhere legal
        QVERIFY(stage.view->preview() == nullptr);
        stage.release(target, Qt::AltModifier);
        QVERIFY(stage.document.design() == before);
        QCOMPARE(stage.document.undoStack()->count(), 0);
        QCOMPARE(refused.count(), 1);
        QVERIFY2(refused[0][0].toString().contains(QStringLiteral("I1.0")), qPrintable(refused[0][0].toString()));
    }

    void aWOfAFirstStageThatMayNotSplitIsRefusedWithItsRemedyAsAButton()
    {
        Stage stage;
        const Block w00{Op::W, 0, 0, 0}, target{Op::F, 0, 6, 0};
        const Design before = stage.document.design();
        QVERIFY(!before.schedule.firstStageMaySplit && stage.indexOf(w00) + 1 < stage.indexOf(target));
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        auto* note = stage.view->findChild<RefusalNote*>();
        auto* remedy = note->findChild<RemedyButton*>();
        const auto dragIt = [&] {
            stage.press(stage.centre(w00));
            stage.move(stage.before(target));
            QVERIFY(!stage.view->preview());
            stage.release(stage.before(target));
        };
        dragIt();
        QVERIFY(stage.document.design() == before);
        QCOMPARE(refused.count(), 1);
        const QString why = refused[0][0].toString();
        QVERIFY2(why.startsWith(QStringLiteral("I0.0: the first stage may not split")), qPrintable(why));
        QVERIFY2(!why.contains(QStringLiteral("first_stage")), qPrintable(why));
        QVERIFY(note->isVisible() && remedy->isVisible());
        QVERIFY(stage.view->viewport()->rect().contains(note->geometry()));
        QCOMPARE(remedy->text(), QStringLiteral("Allow the first stage to split"));
        // Escape and a press elsewhere take it away; the selection stays.
        QTest::keyClick(stage.view.get(), Qt::Key_Escape);
        QVERIFY(note->isHidden());
        QVERIFY(stage.document.selection() == w00);
        dragIt();
        QVERIFY(note->isVisible());
        QTest::mouseClick(remedy, Qt::LeftButton);
        QVERIFY(stage.view->hasFocus() || stage.view->viewport()->hasFocus()); // the keys stay with the lanes
        QVERIFY(note->isHidden());
        QCOMPARE(stage.document.undoStack()->count(), 1);
        QVERIFY(stage.document.design().schedule.firstStageMaySplit);
        QCOMPARE(stage.indexOf(w00) + 1, stage.indexOf(target));
        QCOMPARE(stage.document.undoStack()->undoText(),
                 QStringLiteral("Allow the first stage to split · Move W0.0 on GPU 0"));
        stage.document.undoStack()->undo();
        QVERIFY(stage.document.design() == before);
    }

    void aRefusedKeyOffersTheSameRemedyAndNoOtherRefusalDoes()
    {
        Stage stage;
        auto* note = stage.view->findChild<RefusalNote*>();
        stage.document.select(Block{Op::W, 0, 0, 0});
        stage.view->moveSelection(2);
        QVERIFY(note->isVisible());
        stage.document.select(w10); // behind its I1.0
        QVERIFY(note->isHidden());
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        stage.view->moveSelection(-stage.indexOf(w10));
        QCOMPARE(refused.count(), 1);
        QVERIFY(note->isHidden());
    }

    void theFieldOfThePositionOffersTheRemedyBesideIt()
    {
        Stage stage;
        stage.document.select(Block{Op::W, 0, 0, 0});
        ShownInspector inspector(stage);
        const Design before = stage.document.design();
        auto* remedy = inspector.findChild<RemedyButton*>();
        QVERIFY(remedy->isHidden());
        QSpinBox* position = inspector.field("Position in lane");
        const int wanted = position->value() + 3;
        type(position, QByteArray::number(wanted).constData());
        QVERIFY(remedy->isVisible());
        QVERIFY(stage.document.design() == before);
        QTest::mouseClick(remedy, Qt::LeftButton);
        QVERIFY(remedy->isHidden());
        QCOMPARE(position->value(), wanted);
        QCOMPARE(stage.document.undoStack()->count(), 1);
        stage.document.undoStack()->undo();
        QVERIFY(stage.document.design() == before);
    }

    void aBlockDroppedJustBesideALegalGapSnapsIntoItUnlessAltIsHeld()
    {
        Stage stage;
        // W1.3 just before its own I1.3: illegal there, legal one place later is where it stands or behind.
        const int place = stage.indexOf(i13);
        const QPoint target = stage.before(i13);
        stage.press(stage.centre(w13));
        stage.move(target, Qt::AltModifier);
        QVERIFY(stage.view->preview() == nullptr);
        stage.move(target);
        stage.release(target);
        QVERIFY(stage.indexOf(w13) > stage.indexOf(i13));
        QCOMPARE(stage.indexOf(i13), place);
    }

    void escapeDuringADragRestoresExactlyAndTheReleaseThenDoesNothing()
    {
        Stage stage;
        const Design before = stage.document.design();
        QSignalSpy previews(stage.view.get(), &TimelineView::previewChanged);
        const QPoint target = stage.before(i13);
        stage.press(stage.centre(w10));
        stage.move(target);
        QVERIFY(stage.view->preview() != nullptr);
        QTest::keyClick(stage.view.get(), Qt::Key_Escape);
        QVERIFY(stage.view->preview() == nullptr);
        QCOMPARE(previews.count(), 2);
        stage.move(target + QPoint(9, 0));
        stage.release(target);
        QVERIFY(stage.document.design() == before);
        QCOMPARE(stage.document.undoStack()->count(), 0);
        QVERIFY(stage.document.selection() == w10); // the first Escape ends the drag, the next clears
        QTest::keyClick(stage.view.get(), Qt::Key_Escape);
        QVERIFY(!stage.document.selection());
    }

    void droppingOnAnotherLaneMovesTheWholeStage()
    {
        Stage stage;
        const Design before = stage.document.design();
        const QPoint target(stage.centre(w10).x(), stage.view->rectOfLane(2).center().y());
        stage.press(stage.centre(w10));
        stage.move(target);
        stage.release(target);
        QCOMPARE(stage.document.undoStack()->count(), 1);
        QCOMPARE(stage.document.undoStack()->undoText(), QStringLiteral("Move stage 1 to GPU 2"));
        QCOMPARE(stage.document.design().schedule.deviceOfStage[1], 2);
        QVERIFY(stage.document.design().schedule.order[1].empty());
        // The empty lane stays, and takes a stage back.
        const QPoint back(stage.centre(w10).x(), stage.view->rectOfLane(1).center().y());
        stage.press(stage.centre(w10));
        stage.move(back);
        stage.release(back);
        QCOMPARE(stage.document.design().schedule.deviceOfStage[1], 1);
        stage.document.undoStack()->undo();
        stage.document.undoStack()->undo();
        QVERIFY(stage.document.design() == before);
    }

    void droppingOutsideOfTheLanesDoesNothing()
    {
        Stage stage;
        stage.press(stage.centre(w10));
        stage.move(QPoint(600, 10));
        stage.release(QPoint(600, 10));
        QCOMPARE(stage.document.undoStack()->count(), 0);
    }

    void aDragHasAKeyboardTwin()
    {
        Stage stage;
        const Design before = stage.document.design();
        const int place = stage.indexOf(w10);
        stage.document.select(w10);
        QTest::keyClick(stage.view.get(), Qt::Key_Right, Qt::AltModifier);
        QCOMPARE(stage.indexOf(w10), place + 1);
        QTest::keyClick(stage.view.get(), Qt::Key_Left, Qt::AltModifier);
        QCOMPARE(stage.indexOf(w10), place);
        QTest::keyClick(stage.view.get(), Qt::Key_Down, Qt::AltModifier);
        QCOMPARE(stage.deviceOf(w10), 2);
        QTest::keyClick(stage.view.get(), Qt::Key_Up, Qt::AltModifier);
        QCOMPARE(stage.deviceOf(w10), 1);
        QCOMPARE(stage.document.undoStack()->count(), 4);
        for (int i = 0; i < 4; ++i)
            stage.document.undoStack()->undo();
        QVERIFY(stage.document.design() == before);
    }

    void aKeyboardMoveThatIsIllegalIsExplained()
    {
        Stage stage;
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        stage.document.select(w10);
        int moves = 0;
        while (refused.isEmpty() && moves < 10) {
            QTest::keyClick(stage.view.get(), Qt::Key_Left, Qt::AltModifier);
            ++moves;
        }
        QCOMPARE(refused.count(), 1);
        QCOMPARE(stage.document.undoStack()->count(), moves - 1);
    }

    void deleteReturnsABlockToTheTrayAndADropPlacesItAgain()
    {
        Stage stage;
        const Design before = stage.document.design();
        const QPoint hole = stage.centre(w10);
        stage.document.select(w10);
        QTest::keyClick(stage.view.get(), Qt::Key_Delete);
        QCOMPARE(unplacedBlocks(stage.document.design().schedule), std::vector<Block>{w10});
        QVERIFY(stage.document.prediction() != nullptr); // the rest is still predicted
        QVERIFY(stage.drop(w10, hole));
        QVERIFY(unplacedBlocks(stage.document.design().schedule).empty());
        QCOMPARE(stage.document.undoStack()->count(), 2);
        QCOMPARE(stage.document.undoStack()->undoText(), QStringLiteral("Place W1.0 on GPU 1"));
        stage.document.undoStack()->undo();
        stage.document.undoStack()->undo();
        QVERIFY(stage.document.design() == before);
    }

    void aBlockFromTheTrayIsPlacedByItsNumber()
    {
        Stage stage;
        const Design before = stage.document.design();
        const int index = stage.indexOf(w10);
        stage.document.apply(UnplaceBlocks{{w10}});
        ShownInspector inspector(stage);
        stage.document.select(w10);
        QSpinBox* position = inspector.field("Position in lane");
        QCOMPARE(position->text(), QStringLiteral("tray"));
        QVERIFY(position->isVisible() && !inspector.field("Device of the stage")->isVisible());
        type(position, "1"); // ahead of its own forward
        QCOMPARE(position->text(), QStringLiteral("tray"));
        QCOMPARE(stage.document.undoStack()->count(), 1);
        type(position, qPrintable(QString::number(index + 1)));
        QCOMPARE(stage.document.design().schedule.order, before.schedule.order);
        QCOMPARE(stage.document.undoStack()->count(), 2);
        QCOMPARE(position->text(), QString::number(index + 1));
        QVERIFY(inspector.field("Device of the stage")->isVisible());
    }

    void aBlockFromTheTrayOnTheWrongLaneIsRefused()
    {
        Stage stage;
        stage.document.apply(UnplaceBlocks{{w10}});
        const int steps = stage.document.undoStack()->count();
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        QVERIFY(!stage.drop(w10, QPoint(500, stage.view->rectOfLane(3).center().y())));
        QCOMPARE(stage.document.undoStack()->count(), steps);
        QCOMPARE(refused.count(), 1);
        QVERIFY(refused[0][0].toString().contains(QStringLiteral("GPU 1")));
    }

    void anEmptyScheduleTakesItsFirstBlock()
    {
        Design design = test::familyDesign();
        for (std::vector<Block>& order : design.schedule.order)
            order.clear();
        Stage stage(design);
        const Block first{Op::F, 0, 0, 0};
        QVERIFY(stage.drop(first, QPoint(400, stage.view->rectOfLane(0).center().y())));
        QCOMPARE(stage.document.design().schedule.order[0], std::vector<Block>{first});
    }

    void aForeignDragIsNotAccepted()
    {
        Stage stage;
        QMimeData data;
        data.setText(QStringLiteral("F0.0"));
        QDragEnterEvent enter(QPoint(400, 80), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(stage.view->viewport(), &enter);
        QVERIFY(!enter.isAccepted());
    }
};

PIPEWRIGHT_TEST(TimelineDragTest, QApplication)
#include "tst_timelinedrag.moc"
