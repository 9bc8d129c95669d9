// SPDX-License-Identifier: GPL-3.0-or-later
// The states that copies of a pipeline share out, chosen in the model window.
#include "core/design/designbuilder.h"
#include "core/design/newdesign.h"
#include "core/predict/stagememory.h"
#include "core/presets/presets.h"
#include "gui/model/modelwindowfixture.h"
#include "gui/widgets/valuetable.h"
#include "gui/widgets/words.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QComboBox>
#include <QTest>
#include <QUndoStack>

using namespace pipewright;
using namespace pipewright::test;

class ZeroFieldsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void replicasShareTheOptimizersState()
    {
        ModelWindowFixture fixture(ModelWindow::Stages);
        auto* share = named<QComboBox>(*fixture.window, "States that copies share out");
        QVERIFY(share && share->isVisible() && share->currentIndex() == 0);
        // One replica: refused with the reason, and the field says what is.
        QTest::keyClick(share, Qt::Key_Down);
        QVERIFY2(fixture.window->fault().contains(QLatin1String("nobody to share")),
                 qPrintable(fixture.window->fault()));
        QCOMPARE(share->currentIndex(), 0);
        QCOMPARE(fixture.document.undoStack()->count(), 0);

        NewDesign choice;
        const PresetLibrary presets;
        choice.workload = presets.workload("llama-3-8b");
        choice.cluster = presets.cluster("h200-node", 4);
        choice.replicas = 2;
        fixture.document.reset(designFromModel(choice));
        const Design before = fixture.document.design();
        const Bytes whole = before.costs.stages[0].optimizerState;
        QCOMPARE(fixture.window->stages().text(0, 8), sizeText(whole));
        QVERIFY2(share->itemText(1).contains(QLatin1String("would save ") + sizeText(savedByShardedOptimizer(before))),
                 qPrintable(share->itemText(1)));
        const Bytes peak = memoryBreakdown(before, *fixture.document.prediction()).devices[0].optimizer;
        QTest::keyClick(share, Qt::Key_Down);
        QVERIFY2(fixture.window->fault().isEmpty(), qPrintable(fixture.window->fault()));
        QVERIFY(share->currentIndex() == 1 && fixture.document.design().schedule.sharesOptimizer());
        QCOMPARE(fixture.window->stages().text(0, 8), sizeText(whole / 2));
        QCOMPARE(memoryBreakdown(fixture.document.design(), *fixture.document.prediction()).devices[0].optimizer,
                 peak / 2);
        QCOMPARE(fixture.document.undoStack()->undoText(), QStringLiteral("Share the optimizer state among copies"));
        // Their gradients too, which drawn replicas sum once; and back.
        QTest::keyClick(share, Qt::Key_Down);
        QVERIFY2(fixture.window->fault().isEmpty(), qPrintable(fixture.window->fault()));
        QVERIFY(share->currentIndex() == 2 && fixture.document.design().schedule.sharesGradientsOfReplicas());
        auto* reduce = named<QComboBox>(*fixture.window, "When gradients are summed over the copies");
        QTest::keyClick(reduce, Qt::Key_Down);
        QVERIFY2(fixture.window->fault().contains(QLatin1String("sum their gradients once")),
                 qPrintable(fixture.window->fault()));
        QCOMPARE(reduce->currentIndex(), 0);
        QTest::keyClick(share, Qt::Key_Up);
        QTest::keyClick(share, Qt::Key_Up);
        QCOMPARE(fixture.document.design(), before);
        QCOMPARE(fixture.document.undoStack()->count(), 4);
        for (const int level : {1, 2, 1}) {
            fixture.document.undoStack()->undo();
            QCOMPARE(share->currentIndex(), level);
        }
        fixture.document.undoStack()->undo();
        QCOMPARE(share->currentIndex(), 0);
        QCOMPARE(fixture.document.design(), before);
    }

    /// ZeRO 3 of copies that are only counted: what it adds is chosen beside it, and seen in the memory.
    void gatheredParametersAreKeptOrFreed()
    {
        ModelWindowFixture fixture(ModelWindow::Stages);
        DesignRequest request = test::requestFor("interleaved-1f1b", 2, 8);
        request.model = "llama-3-8b";
        request.cluster = "h100-nodes";
        request.chunks = 3;
        request.parallel = Parallelism{1, false, 1, 1, 4};
        fixture.document.reset(makeDesign(request));
        auto* level = named<QComboBox>(*fixture.window, "States that copies share out");
        auto* reshard = named<QComboBox>(*fixture.window, "When gathered parameters are freed");
        auto* reduce = named<QComboBox>(*fixture.window, "When gradients are summed over the copies");
        QVERIFY(!reshard->isVisibleTo(fixture.window.get()) && !reduce->isVisibleTo(fixture.window.get()));
        for (int more = 0; more < 3; ++more)
            QTest::keyClick(level, Qt::Key_Down);
        QCOMPARE(fixture.document.design().schedule.zero.level, 3);
        QVERIFY(reshard->isVisibleTo(fixture.window.get()) && reduce->isVisibleTo(fixture.window.get()));
        const auto gathered = [&] {
            return memoryBreakdown(fixture.document.design(), *fixture.document.prediction()).devices[0].gathered;
        };
        const Bytes kept = gathered();
        QTest::keyClick(reshard, Qt::Key_Down);
        QVERIFY(fixture.document.design().schedule.zero.reshard.every);
        QVERIFY2(gathered() < kept, qPrintable(sizeText(gathered()) + " and " + sizeText(kept)));
        QTest::keyClick(reduce, Qt::Key_Down);
        QVERIFY(fixture.document.design().schedule.zero.reduce == Zero::Reduce::Each);
        for (int undo = 0; undo < 5; ++undo)
            fixture.document.undoStack()->undo();
        QCOMPARE(fixture.document.design().schedule.zero, Zero{});
    }
};

PIPEWRIGHT_TEST(ZeroFieldsTest, QApplication)
#include "tst_zerofields.moc"
