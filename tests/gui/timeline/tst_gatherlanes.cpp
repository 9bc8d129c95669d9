// SPDX-License-Identifier: GPL-3.0-or-later
// Gathers of parameters that copies share out (ZeRO 3): dragged in the row below a device's transfers, by key, and by
// the inspector's number.
#include "core/program/transferorder.h"
#include "core/schedule/statedgather.h"
#include "gui/timeline/timelinestage.h"
#include "makers/schedules.h"
#include "testmain.h"

#include <QUndoStack>

using namespace pipewright;
using namespace pipewright::testing;

namespace {

/// Stages 0 and 2 on device 0; each visit gathers, right before it, for half as long as a forward takes.
Design interleaved()
{
    FamilyParameters parameters = test::possibleParameters(*findFamily("interleaved-1f1b"), 2, 4);
    parameters.chunks = 2;
    Design design = test::evenDesign({.saved = 1 << 20}, makeSchedule("interleaved-1f1b", parameters));
    design.schedule.zero = {.level = 3, .reshard = {true, {}}, .prefetch = 0};
    for (StageCosts& stage : design.costs.stages) {
        stage.gatheredParameters = 1 << 20;
        stage.gather = stage.forward / 2;
    }
    return design;
}

Block block(const char* text)
{
    return *parseBlock(text);
}

Transfer gatherFor(const char* reader)
{
    return {block(reader), Transfer::gathers};
}

Nanoseconds startOf(const Prediction& prediction, const Transfer& gather)
{
    for (const IssuedTransfer& issued : collectivesOf(prediction.program, 0))
        if (issued.transfer == gather)
            return prediction.timeline.start[issued.task];
    return -1;
}

/// A stage whose gathers are shown wide enough to be dragged.
struct Gathers : Stage {
    Gathers() : Stage(interleaved())
    {
        view->setLaneHeight(0, 60);
        view->action(QStringLiteral("allTransfers"))->trigger();
    }
    QPoint chip(const char* reader) const { return view->rectOfTransfer(0, gatherFor(reader)).center(); }
    /// Presses a chip and moves it so that its left edge comes to where a block begins.
    void carry(const char* reader, const char* to)
    {
        const QRect from = view->rectOfTransfer(0, gatherFor(reader));
        press(from.center());
        move(from.center() - QPoint(12, 0));
        move(QPoint(view->rectOfBlock(block(to)).left() + from.width() / 2, from.center().y()));
    }
    const std::vector<StatedGather>& stated() const { return document.design().schedule.gathers; }
};

} // namespace

class GatherLanesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aGatherIsDraggedAmongTheBlocksOfItsDevice()
    {
        Gathers stage;
        const Nanoseconds before = startOf(*stage.document.prediction(), gatherFor("F2.0"));
        const QPoint at = stage.chip("F2.0");
        QVERIFY(stage.view->transferAt(at) == std::pair(0, gatherFor("F2.0")));
        stage.carry("F2.0", "F0.1");
        QVERIFY(stage.view->preview()); // live numbers
        QVERIFY(startOf(*stage.view->preview(), gatherFor("F2.0")) < before);
        QVERIFY(stage.stated().empty());
        stage.release(at);
        QCOMPARE(stage.stated(), (std::vector<StatedGather>{{block("F2.0"), block("F0.1")}}));
        QVERIFY(startOf(*stage.document.prediction(), gatherFor("F2.0")) < before);
        QVERIFY(stage.view->selectedTransfer() == gatherFor("F2.0"));
        QVERIFY(stage.view->nameOfTransfer(0, gatherFor("F2.0")).contains("2UNSHARD@F0"));
        stage.document.undoStack()->undo();
        QVERIFY(stage.stated().empty());
        stage.document.undoStack()->redo();
        QCOMPARE(stage.stated().size(), std::size_t{1});
        // Where the rule puts it.
        stage.view->action(QStringLiteral("transferFree"))->trigger();
        QVERIFY(stage.stated().empty());
    }

    void leftOfWhatReadsTheSameItIsHeld()
    {
        Gathers stage;
        const Bytes peak = stage.document.prediction()->metrics.devices[0].peakBytes;
        const QPoint at = stage.chip("B2.0");
        stage.carry("B2.0", "F2.1");
        stage.release(at);
        QCOMPARE(stage.stated(), (std::vector<StatedGather>{{block("B2.0"), std::nullopt}}));
        QVERIFY(stage.view->rectOfTransfer(0, gatherFor("B2.0")).isNull());
        QVERIFY(stage.document.prediction()->metrics.devices[0].peakBytes >= peak);
    }

    void escapeRestoresIt()
    {
        Gathers stage;
        const Design before = stage.document.design();
        stage.carry("F2.0", "F0.0");
        QTest::keyClick(stage.view.get(), Qt::Key_Escape);
        stage.release(stage.chip("F2.0"));
        QVERIFY(stage.document.design() == before);
        QVERIFY(!stage.view->preview());
    }

    void keysAndTheInspectorsNumberDoTheSame()
    {
        Gathers stage;
        ShownInspector inspector(stage);
        stage.view->selectTransfer(0, gatherFor("F2.0"));
        stage.view->action(QStringLiteral("transferEarlier"))->trigger();
        QCOMPARE(stage.stated(), (std::vector<StatedGather>{{block("F2.0"), block("F0.1")}}));
        stage.view->action(QStringLiteral("transferLater"))->trigger();
        QVERIFY(stage.stated().empty());
        QString refused;
        QObject::connect(stage.view.get(), &TimelineView::editRefused, [&](const QString& why) { refused = why; });
        QSpinBox* number = inspector.field("Place among the transfers of its device");
        QVERIFY(number && number->isVisible());
        QCOMPARE(number->value(), 3); // before F2.0, the third block
        QCOMPARE(number->maximum(), 3);
        number->setValue(1);
        QCOMPARE(stage.stated(), (std::vector<StatedGather>{{block("F2.0"), block("F0.0")}}));
        const Program& program = stage.document.prediction()->program;
        const Transfer sum = collectivesOf(program, 0).back().transfer;
        QCOMPARE(sum.destination, Transfer::sums);
        stage.view->selectTransfer(0, sum);
        QVERIFY(!number->isVisible());
        stage.view->action(QStringLiteral("transferEarlier"))->trigger();
        QVERIFY2(refused.contains("Gradients are summed behind"), qPrintable(refused));
    }
};

PIPEWRIGHT_TEST(GatherLanesTest, QApplication)
#include "tst_gatherlanes.moc"
