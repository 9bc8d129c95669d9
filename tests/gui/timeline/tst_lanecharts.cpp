// SPDX-License-Identifier: GPL-3.0-or-later
// What the lanes show besides blocks: a device's memory below them, and its idle time by cause at their right.
#include "core/predict/predict.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/timeline/idlebars.h"
#include "gui/timeline/laneplaces.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "testmain.h"

#include <QApplication>
#include <QImage>
#include <QMouseEvent>
#include <QPainter>
#include <QTest>

#include <cmath>

using namespace pipewright;
using Fixture = MainWindowFixture;

class TestLaneCharts : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void anIdleBarIsAsLongAsItsShare()
    {
        const Design design = exampleDesign();
        const Prediction prediction = predict(design);
        IdleBars bars;
        bars.show(design, &prediction, nullptr, Side::Predicted);
        const QRectF area(20, 10, 110, 60);
        const auto& devices = prediction.metrics.devices;
        for (int d = 0; d < std::ssize(devices); ++d) {
            QImage image(150, 80, QImage::Format_RGB32);
            image.fill(Theme::dark().lane);
            QPainter painter(&image);
            bars.paint(painter, d, area, Theme::dark(), 1);
            painter.end();
            const int y = static_cast<int>(area.center().y()) - 8; // in the bar
            const double share = double(devices[d].idle) / double(prediction.metrics.makespan);
            const int end = static_cast<int>(std::lround(bars.xOf(share, area.left(), area.width())));
            const QRgb ground = Theme::dark().lane.rgb();
            QVERIFY(end > 21);
            QCOMPARE(image.pixel(19, y), ground);
            QVERIFY(image.pixel(20, y) != ground && image.pixel(end - 1, y) != ground);
            QCOMPARE(image.pixel(end, y), ground);
            QCOMPARE(bars.percentLabel(d), percentText(share));
            QVERIFY(!bars.mainCause(d).isEmpty());
        }
    }

    void theIdleTimeOfALaneSaysAllOfItsCauses()
    {
        Fixture fixture;
        const TimelineView& view = fixture.window.timeline();
        const IdleCauses& idle = fixture.document().prediction()->metrics.idleCauses[1];
        const Nanoseconds makespan = fixture.document().prediction()->metrics.makespan;
        const QString text = view.idleText(1);
        QVERIFY2(text.contains(QStringLiteral("waits for gradient: %1")
                                   .arg(percentText(double(idle.waitGradient) / double(makespan)))),
                 qPrintable(text));
        QVERIFY(view.axis().right() < view.viewport()->width()); // it has a column of its own
    }

    /// What is said under the mouse is the predicted curve, and no block is found there.
    void theMemoryBelowTheBlocksIsThePredictedCurve()
    {
        Fixture fixture;
        TimelineView& view = fixture.window.timeline();
        const QRect lane = view.rectOfLane(1);
        const QPoint at(view.axis().left + view.axis().width / 2, lane.bottom() - 14);
        QVERIFY(!view.blockAt(at));
        QMouseEvent move(QEvent::MouseMove, at, view.viewport()->mapToGlobal(at), Qt::NoButton, Qt::NoButton,
                         Qt::NoModifier);
        QApplication::sendEvent(view.viewport(), &move);
        const double time = view.axis().timeAt(at.x() + 0.5);
        const std::vector<MemorySample>& curve = fixture.document().prediction()->timeline.memory[1];
        Bytes bytes = curve.front().bytes;
        for (const MemorySample& sample : curve)
            if (static_cast<double>(sample.time) <= time)
                bytes = sample.bytes;
        QVERIFY2(fixture.window.foot().hint().contains(sizeText(bytes) + QStringLiteral(", predicted")),
                 qPrintable(fixture.window.foot().hint()));
    }

    /// A curve above the limit is red; lanes that are too low have none, and get it back.
    void aCurveAboveTheLimitIsRedAndLowLanesHaveNone()
    {
        Fixture fixture;
        TimelineView& view = fixture.window.timeline();
        const auto hasRed = [&view](int device) {
            const QRect lane = view.rectOfLane(device);
            const QImage image = view.viewport()->grab().toImage();
            const QColor bad = Theme::dark().bad;
            int pixels = 0;
            for (int x = view.axis().left + 40; x < view.axis().left + 200; ++x)
                for (int y = lane.bottom() - 26; y < lane.bottom() - 4; ++y)
                    pixels += image.pixelColor(x, y) == bad;
            return pixels > 40;
        };
        QVERIFY(!hasRed(1));
        Design small = fixture.document().design();
        for (DeviceSpec& device : small.cluster.devices)
            device.memory = device.memory / 3;
        fixture.document().replaceDesign(small, QStringLiteral("Smaller devices"));
        QVERIFY(hasRed(1));
        view.setHeightOfLanes(LanePlaces::leastWithMemory - 20);
        QVERIFY(!hasRed(1));
        view.setHeightOfLanes(LanePlaces::leastWithMemory + 40);
        QVERIFY(hasRed(1));
    }
};

PIPEWRIGHT_TEST(TestLaneCharts, QApplication)
#include "tst_lanecharts.moc"
