// SPDX-License-Identifier: GPL-3.0-or-later
// Sums of gradients over replicas stand in the lanes of both devices, at their times, and say what they are.
#include "core/schedule/replicas.h"
#include "gui/document/timelinelayout.h"
#include "gui/timeline/timelinestage.h"
#include "gui/widgets/theme.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QHelpEvent>
#include <QToolTip>

using namespace pipewright;
using namespace pipewright::testing;

namespace {

/// Two pipelines of two devices; a pass takes 10 ms and a sum 8 ms.
Design twoCopies()
{
    Design design = test::familyDesign("1f1b", 2, 4);
    design.schedule = withReplicas(design.schedule, 2);
    test::addDevices(design);
    design.costs.link = {0, 1e9};
    for (StageCosts& stage : design.costs.stages) {
        stage.output = 0;
        stage.gradients = 8'000'000;
    }
    return design;
}

} // namespace

class GradientSumsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void sumsAreDrawnWhereTheyRunAndNowhereElse()
    {
        Stage stage(twoCopies());
        const Prediction& prediction = *stage.document.prediction();
        const TimelineLayout layout(prediction.program, prediction.timeline, 4);
        const QImage picture = stage.view->viewport()->grab().toImage();
        const double scale = picture.devicePixelRatio();
        const auto colourAt = [&](QPoint at) { return picture.pixelColor((QPointF(at) * scale).toPoint()); };
        const QColor fill = Theme::of(*stage.view).control;
        for (int device = 0; device < 4; ++device) {
            const std::vector<LaneSum>& sums = layout.lanes()[std::size_t(device)].gradientSums();
            QCOMPARE(sums.size(), std::size_t{1});
            QCOMPARE(sums[0].end - sums[0].start, Nanoseconds{8'000'000});
            // The device's last block ends where its sum begins: the later stage's stands beside the earlier one's
            // blocks.
            QCOMPARE(sums[0].start, layout.lanes()[std::size_t(device)].blocks().back().end);
            const QRect lane = stage.view->rectOfLane(device);
            const auto x = [&](double time) { return int(stage.view->axis().xOf(time)); };
            const QRect last = stage.view->rectOfBlock(layout.lanes()[std::size_t(device)].blocks().back().block);
            const QPoint inside(x(double(sums[0].start)) + 4, last.center().y());
            QVERIFY(lane.contains(QPoint(lane.left() + 1, inside.y())));
            QCOMPARE(colourAt(inside).name(), fill.name());
            QVERIFY(colourAt({x(double(sums[0].end)) + 4, inside.y()}) != fill);

            QHelpEvent help(QEvent::ToolTip, inside, stage.view->viewport()->mapToGlobal(inside));
            QApplication::sendEvent(stage.view->viewport(), &help);
            const QString words = QToolTip::text();
            QVERIFY2(words.contains(QString("gradients of stage %1 of replicas 0 and 1").arg(device % 2)),
                     qPrintable(words));
            QVERIFY2(words.contains("predicted"), qPrintable(words));
        }
        QVERIFY(layout.lanes()[1].gradientSums()[0].start < layout.lanes()[0].blocks().back().end);
        QCOMPARE(layout.makespan(), prediction.metrics.makespan);
    }

    void withoutReplicasThereAreNone()
    {
        const Stage stage(test::familyDesign("1f1b", 2, 4));
        const Prediction& prediction = *stage.document.prediction();
        for (const Lane& lane : TimelineLayout(prediction.program, prediction.timeline, 2).lanes())
            QVERIFY(lane.gradientSums().empty());
    }
};

PIPEWRIGHT_TEST(GradientSumsTest, QApplication)
#include "tst_gradientsums.moc"
