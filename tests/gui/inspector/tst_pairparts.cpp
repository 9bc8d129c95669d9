// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of an overlapped pair in the inspector: seen, ordered by keys and mouse, undone, and shortest again.
#include "gui/inspector/pairparts.h"
#include "gui/inspector/partrows.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "makers/pairdesigns.h"
#include "testmain.h"

#include <QApplication>
#include <QPushButton>
#include <QTest>
#include <QUndoStack>

using namespace pipewright;

namespace {

struct Shown {
    Document document;
    PairParts panel{document};
    Overlap pair;

    explicit Shown(Design design = test::partedDesign())
    {
        document.reset(std::move(design));
        pair = document.design().schedule.overlaps.front();
        document.select(pair.first);
        panel.resize(360, 260);
        panel.show();
    }
    Nanoseconds length() const
    {
        const Prediction& prediction = *document.prediction();
        for (TaskId t = 0; t < prediction.program.tasks.size(); ++t)
            if (prediction.program.tasks[t].block() == pair.first
                && prediction.program.tasks[t].kind == TaskKind::Compute)
                return prediction.timeline.end[t] - prediction.timeline.start[t];
        return 0;
    }
    QPushButton& shortest() { return *panel.findChild<QPushButton*>(); }
};

} // namespace

class PairPartsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aSelectedPairShowsItsPartsOnTwoRows()
    {
        Shown shown;
        QVERIFY(shown.panel.isVisible());
        QVERIFY(shown.panel.rows().isVisible());
        QCOMPARE(shown.panel.rows().length(), shown.length());
        QVERIFY2(shown.panel.lengthText().startsWith(durationText(shown.length())),
                 qPrintable(shown.panel.lengthText()));
        QVERIFY(shown.panel.lengthText().contains(QLatin1String("No order is shorter")));
        QVERIFY(!shown.shortest().isVisible());
        // A part of each stream, each on its row, and its words.
        const QRect attention = shown.panel.rows().rectOf({0, 0}), dispatch = shown.panel.rows().rectOf({0, 1});
        QVERIFY(attention.bottom() < dispatch.top());
        QVERIFY(dispatch.left() >= attention.right() - 1);
        const Op first = shown.pair.first.op;
        QVERIFY(shown.panel.rows()
                    .describe({first == Op::F ? std::size_t{0} : 1, 1})
                    .startsWith(QLatin1String("dispatch")));
        // The other block of the pair shows the same; one without a pair shows nothing.
        shown.document.select(shown.pair.second);
        QVERIFY(shown.panel.isVisible());
        shown.document.select(shown.document.design().schedule.order[0].front());
        QVERIFY(!shown.panel.isVisible());
    }

    void keysMoveAPartAndUndoTakesItBack()
    {
        Shown shown;
        const Design before = shown.document.design();
        const Nanoseconds shortest = shown.length();
        PartRows& rows = shown.panel.rows();
        QTest::keyClick(&rows, Qt::Key_Right);
        QVERIFY(rows.chosen());
        for (int press = 0; press < 12 && shown.length() == shortest; ++press)
            QTest::keyClick(&rows, Qt::Key_Right, Qt::AltModifier);
        QVERIFY(shown.length() > shortest);
        QCOMPARE(shown.document.design().schedule.partOrders.size(), std::size_t{1});
        QCOMPARE(rows.length(), shown.length());
        QVERIFY(shown.panel.lengthText().contains(tr("the shortest takes %1").arg(durationText(shortest))));
        QVERIFY(rows.chosen());

        QVERIFY(shown.shortest().isVisible());
        shown.shortest().click();
        QCOMPARE(shown.document.design(), before);
        QCOMPARE(shown.length(), shortest);
        shown.document.undoStack()->undo();
        QVERIFY(shown.length() > shortest);
        while (shown.document.undoStack()->canUndo())
            shown.document.undoStack()->undo();
        QCOMPARE(shown.document.design(), before);
    }

    void aDragShowsWhatDroppingWouldGive()
    {
        Shown shown;
        PartRows& rows = shown.panel.rows();
        const Design before = shown.document.design();
        // The first part that computes, behind everything.
        const QPoint from = rows.rectOf({0, 0}).center(), to(rows.width() - 2, from.y());
        const auto drag = [&] {
            QTest::mousePress(&rows, Qt::LeftButton, {}, from);
            for (const QPoint& at : {from + QPoint(12, 0), to}) {
                QMouseEvent move(QEvent::MouseMove, at, rows.mapToGlobal(at), Qt::NoButton, Qt::LeftButton, {});
                QApplication::sendEvent(&rows, &move);
            }
        };
        drag();
        QVERIFY(rows.isDragging());
        QVERIFY(rows.length() > shown.length());
        QVERIFY(shown.panel.lengthText().contains(QLatin1String("longer")));
        QCOMPARE(shown.document.design(), before);
        QTest::keyClick(&rows, Qt::Key_Escape);
        QVERIFY(!rows.isDragging());
        QTest::mouseRelease(&rows, Qt::LeftButton, {}, to);
        QCOMPARE(shown.document.design(), before);

        drag();
        const Nanoseconds wanted = rows.length();
        QTest::mouseRelease(&rows, Qt::LeftButton, {}, to);
        QCOMPARE(shown.length(), wanted);
        QVERIFY(shown.document.undoStack()->undoText().startsWith(QLatin1String("Order the parts")));
    }

    void aPairWithoutPartsSaysThatItIsAssumed()
    {
        Design design = test::partedDesign();
        design.costs.overlapFactor = 0.75;
        for (StageCosts& stage : design.costs.stages)
            stage.parts = {};
        Shown shown(design);
        QVERIFY(shown.panel.isVisible());
        QVERIFY(!shown.panel.rows().isVisible());
        QVERIFY(shown.panel.lengthText().contains(QLatin1String("assumed: 0.75 times")));
    }
};

PIPEWRIGHT_TEST(PairPartsTest, QApplication)
#include "tst_pairparts.moc"
