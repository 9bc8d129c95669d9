// SPDX-License-Identifier: GPL-3.0-or-later
// The order of blocks of one device, copied and pasted on others by key and menu.
#include "gui/timeline/lanestrip.h"
#include "gui/timeline/timelinestage.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QClipboard>
#include <QSignalSpy>

using namespace pipewright;
using namespace pipewright::testing;

namespace {

/// The first blocks of a device's order.
std::vector<Block> firstOf(const Stage& stage, int device, int count)
{
    const std::vector<Block>& order = stage.document.design().schedule.order[device];
    return {order.begin(), order.begin() + count};
}

QString lastOf(const QSignalSpy& spy)
{
    return spy.isEmpty() ? QString() : spy.back().front().toString();
}

void copyWarmUpOfTheFirst(Stage& stage)
{
    stage.view->selectBlocks(firstOf(stage, 0, 4)); // 1F1B on four devices: F0 to F3, then backwards
    QTest::keyClick(stage.view.get(), Qt::Key_C, Qt::ControlModifier);
}

void paste(Stage& stage)
{
    QTest::keyClick(stage.view.get(), Qt::Key_V, Qt::ControlModifier);
}

} // namespace

class PatternPasteTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { QGuiApplication::clipboard()->clear(); }

    void aWarmUpIsPastedOnTheDeviceOfTheSelectedBlockInOneStep()
    {
        Stage stage(test::familyDesign("1f1b"));
        const Design before = stage.document.design();
        QSignalSpy said(stage.view.get(), &TimelineView::hovered);
        copyWarmUpOfTheFirst(stage);
        QVERIFY2(lastOf(said).contains("4 blocks of GPU 0"), qPrintable(lastOf(said)));
        QCOMPARE(QGuiApplication::clipboard()->text(), QStringLiteral("F0.0 F0.1 F0.2 F0.3"));
        stage.document.select(Block{Op::F, 1, 1, 0});
        paste(stage);
        const std::vector<Block>& order = stage.document.design().schedule.order[1];
        for (int m = 0; m < 4; ++m)
            QVERIFY(order[m] == (Block{Op::F, 1, m, 0}));
        QVERIFY(makesInputGrad(order[4].op) && order[4].microbatch == 0);
        QVERIFY2(lastOf(said).contains("Order of 4 blocks on GPU 1"), qPrintable(lastOf(said)));
        QCOMPARE(stage.document.undoStack()->count(), 1);
        QVERIFY(stage.document.undoStack()->undoText().contains("Paste the order of 4 blocks on GPU 1"));
        stage.document.undoStack()->undo();
        QCOMPARE(stage.document.design(), before);
    }

    void itIsPastedOnSeveralDevicesAtOnce()
    {
        Stage stage(test::familyDesign("1f1b"));
        copyWarmUpOfTheFirst(stage);
        stage.view->selectBlocks({{Op::F, 1, 0, 0}, {Op::F, 2, 0, 0}, {Op::F, 3, 0, 0}});
        paste(stage);
        QCOMPARE(stage.document.undoStack()->count(), 1);
        for (int device = 1; device < 4; ++device)
            QVERIFY(stage.document.design().schedule.order[device][3] == (Block{Op::F, device, 3, 0}));
    }

    void aChosenLaneCountsBeforeTheSelection()
    {
        Stage stage(test::familyDesign("1f1b"));
        copyWarmUpOfTheFirst(stage); // whose blocks stay selected
        stage.click({40, stage.view->rectOfLane(1).top() + 8});
        QCOMPARE(stage.view->chosenLane(), 1);
        paste(stage);
        QVERIFY(stage.document.design().schedule.order[1][3] == (Block{Op::F, 1, 3, 0}));
    }

    void theMenuShowsWhatItWouldChangeBeforeItIsChosen()
    {
        Stage stage(test::familyDesign("1f1b"));
        stage.view->setLargeFrom(1e9); // however slow the machine
        const Design before = stage.document.design();
        copyWarmUpOfTheFirst(stage);
        const Block target{Op::F, 1, 0, 0};
        stage.document.select(target);
        stage.rightClick(stage.centre(target));
        QMenu* const menu = openMenu();
        QVERIFY(menu);
        QAction* const chosen = entry(menu, QStringLiteral("Paste the copied order"));
        QVERIFY(chosen);
        menu->setActiveAction(chosen);
        QVERIFY(stage.view->isPreviewing());
        QVERIFY(stage.view->preview());
        QVERIFY(stage.view->preview()->metrics.devices[1].peakBytes
                > stage.document.prediction()->metrics.devices[1].peakBytes);
        QCOMPARE(stage.document.design(), before);
        menu->setActiveAction(menu->actions().front());
        QVERIFY(!stage.view->isPreviewing());
        menu->setActiveAction(chosen);
        menu->close();
        QVERIFY(!stage.view->isPreviewing());
        QCOMPARE(stage.document.design(), before);
        QCOMPARE(stage.document.undoStack()->count(), 0);
    }

    void theMenuOfALaneNamesWhatUnfoldsBelowIt()
    {
        Stage stage;
        stage.rightClick({40, stage.view->rectOfLane(1).top() + 8});
        QMenu* menu = openMenu();
        QVERIFY(menu);
        for (const char* name : {"Show the lane's transfers", "Show the lane's kernels", "Unfold the lane into"})
            QVERIFY2(entry(menu, QLatin1String(name)), name);
        menu->close();
    }

    void aRefusalNamesTheBlockAndWhatItWaitsFor()
    {
        Stage stage(test::familyDesign("1f1b"));
        const Design before = stage.document.design();
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        copyWarmUpOfTheFirst(stage);
        // GPU 2 runs F2.3 behind its first backward, which waits for that of GPU 3.
        stage.document.select(Block{Op::F, 3, 0, 0});
        paste(stage);
        QCOMPARE(refused.count(), 1);
        QVERIFY2(lastOf(refused).contains("F3.") && lastOf(refused).contains("F2."), qPrintable(lastOf(refused)));
        QCOMPARE(stage.document.design(), before);
        QCOMPARE(stage.document.undoStack()->count(), 0);
        // On both they can.
        stage.view->selectBlocks({{Op::F, 1, 0, 0}, {Op::F, 2, 0, 0}, {Op::F, 3, 0, 0}});
        paste(stage);
        QCOMPARE(refused.count(), 1);
        QCOMPARE(stage.document.undoStack()->count(), 1);
    }

    void whatCannotBeCopiedOrPastedSaysWhy()
    {
        Stage stage(test::familyDesign("1f1b"));
        QSignalSpy refused(stage.view.get(), &TimelineView::editRefused);
        paste(stage);
        QVERIFY2(lastOf(refused).contains("No order was copied"), qPrintable(lastOf(refused)));
        stage.document.select(Block{Op::F, 0, 0, 0});
        QTest::keyClick(stage.view.get(), Qt::Key_C, Qt::ControlModifier);
        QVERIFY2(lastOf(refused).contains("two blocks or more"), qPrintable(lastOf(refused)));
        stage.view->selectBlocks({{Op::F, 0, 0, 0}, {Op::F, 1, 0, 0}});
        QTest::keyClick(stage.view.get(), Qt::Key_C, Qt::ControlModifier);
        QVERIFY2(lastOf(refused).contains("F0.0 is on GPU 0, and F1.0 on GPU 1"), qPrintable(lastOf(refused)));
        copyWarmUpOfTheFirst(stage);
        paste(stage);
        QVERIFY2(lastOf(refused).contains("GPU 0 has the copied order already"), qPrintable(lastOf(refused)));
        stage.document.select(std::nullopt);
        paste(stage);
        QVERIFY2(lastOf(refused).contains("Select a block of the device"), qPrintable(lastOf(refused)));
        QGuiApplication::clipboard()->setText(QStringLiteral("something else"));
        paste(stage);
        QVERIFY2(lastOf(refused).contains("No order was copied"), qPrintable(lastOf(refused)));
        QCOMPARE(stage.document.undoStack()->count(), 0);
    }

    void blocksThatADeviceDoesNotHaveAreNamedAndLeftOut()
    {
        Stage stage(test::familyDesign("zb-h1"));
        QSignalSpy said(stage.view.get(), &TimelineView::hovered);
        stage.view->selectBlocks(firstOf(stage, 0, 6));
        QTest::keyClick(stage.view.get(), Qt::Key_C, Qt::ControlModifier);
        // GPU 2 no longer has what the fifth copied block is.
        const Block fifth = stage.document.design().schedule.order[0][4];
        QVERIFY(!hasErrors(stage.document.apply(UnplaceBlocks{{{fifth.op, 2, fifth.microbatch, 0}}})));
        stage.document.select(Block{Op::F, 2, 0, 0});
        paste(stage);
        QVERIFY2(lastOf(said).contains(QStringLiteral("GPU 2 has no %1 of microbatch %2")
                                           .arg(QLatin1Char(letter(fifth.op)))
                                           .arg(fifth.microbatch)),
                 qPrintable(lastOf(said)));
        QCOMPARE(stage.document.undoStack()->count(), 2);
    }
};

PIPEWRIGHT_TEST(PatternPasteTest, QApplication)
#include "tst_patternpaste.moc"
