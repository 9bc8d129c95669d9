// SPDX-License-Identifier: GPL-3.0-or-later
// The overview of many devices: a row and numbers for each, a range dragged over it, and what is said about the range.
#include "gui/inspector/rangefacts.h"
#include "gui/timeline/minimap.h"
#include "gui/timeline/timelinestage.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "testmain.h"

#include <QHelpEvent>
#include <QToolTip>

using namespace pipewright;
using namespace pipewright::testing;

namespace {

struct Overview : Stage {
    explicit Overview(Design design, int width = 1128) : Stage(std::move(design)), map(*view)
    {
        view->resize(width, 350);
        map.resize(width, map.height());
        map.show();
        view->showAll();
    }
    void drag(int from, int to, Qt::KeyboardModifiers modifiers)
    {
        const int y = map.height() / 2;
        const auto send = [&](QEvent::Type type, int x, Qt::MouseButton button, Qt::MouseButtons buttons) {
            QMouseEvent event(type, QPointF(x, y), map.mapToGlobal(QPointF(x, y)), button, buttons, modifiers);
            QApplication::sendEvent(&map, &event);
        };
        send(QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton);
        if (to != from)
            send(QEvent::MouseMove, to, Qt::NoButton, Qt::LeftButton);
        send(QEvent::MouseButtonRelease, to, Qt::LeftButton, Qt::NoButton);
    }
    Minimap map;
};

QString busyAndPeak(double busy, Bytes peak)
{
    return QStringLiteral("busy %1 · peak %2, predicted").arg(percentText(busy), sizeText(peak));
}

} // namespace

class TestOverview : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::light().apply(*qApp); }

    void aDragWithShiftMeasuresARangeAndAClickRemovesIt()
    {
        Overview overview(test::familyDesign());
        TimelineView& view = *overview.view;
        const TimeAxis before = view.axis();
        const int left = TimelineView::plotLeft(), room = view.plotWidth() - 20; // a margin at both ends
        overview.drag(left + 10 + room / 4, left + 10 + room / 2, Qt::ShiftModifier);
        QVERIFY(view.range());
        const double pixel = double(view.total()) / room;
        QVERIFY(std::abs(double(view.range()->first) - double(view.total()) / 4) <= 1.5 * pixel);
        QVERIFY(std::abs(double(view.range()->second) - double(view.total()) / 2) <= 1.5 * pixel);
        QVERIFY(view.axis() == before); // nothing was panned
        overview.drag(left + 10 + room, 5000, Qt::ShiftModifier);
        QCOMPARE(view.range()->second, view.total()); // never beyond the schedule
        overview.drag(left + 300, left + 300, Qt::ShiftModifier);
        QVERIFY(!view.range());
        // Without Shift it pans, as ever.
        view.showRange(0, view.total() / 4);
        const double start = view.axis().start;
        overview.drag(overview.map.frame().center().x(), overview.map.frame().center().x() + 200, Qt::NoModifier);
        QVERIFY(!view.range() && view.axis().start > start);
    }

    void aRangeIsMarkedInTheOverview()
    {
        Overview overview(test::familyDesign());
        const QImage without = overview.map.grab().toImage();
        overview.view->setRange(std::pair(overview.view->total() / 4, overview.view->total() / 2));
        const QImage with = overview.map.grab().toImage();
        const int left = TimelineView::plotLeft(), room = overview.view->plotWidth() - 20;
        const QPoint inside(left + 10 + room * 3 / 8, 2), outside(left + 10 + room * 3 / 4, 2);
        QVERIFY(with.pixelColor(inside) != without.pixelColor(inside));
        QVERIFY(with.pixelColor(outside) == without.pixelColor(outside));
    }

    void theFactsOfARangeAreThoseOfItsTime()
    {
        Overview overview(test::familyDesign("zb-h1", 2, 2));
        RangeFacts facts(*overview.view);
        QVERIFY(facts.isHidden());
        // Both devices compute or wait in the first 10 ms: GPU 0 has F0.0, GPU 1 nothing yet.
        overview.view->setRange(std::pair<Nanoseconds, Nanoseconds>(2'000'000, 8'000'000));
        QVERIFY(!facts.isHidden());
        const FactList& list = facts.facts();
        QCOMPARE(facts.heading(), QStringLiteral("Range · predicted"));
        QCOMPARE(list.value(QStringLiteral("length")), durationText(6'000'000));
        QCOMPARE(list.value(QStringLiteral("busy")), percentText(0.5));
        QCOMPARE(list.value(QStringLiteral("F, forward")), percentText(0.5));
        QCOMPARE(list.value(QStringLiteral("idle")), percentText(0.5));
        QCOMPARE(list.value(QStringLiteral("warm-up and cool-down")), percentText(0.5));
        QVERIFY(list.value(QStringLiteral("I, input gradient")).isEmpty());
        QCOMPARE(list.value(QStringLiteral("busiest")), percentText(1) + QStringLiteral(" GPU 0"));
        QCOMPARE(list.value(QStringLiteral("least busy")), percentText(0) + QStringLiteral(" GPU 1"));
        QVERIFY(list.value(QStringLiteral("peak")).endsWith(QLatin1String("GPU 0")));
        // They follow an edit, and go with the range.
        Design slower = overview.document.design();
        slower.costs.stages[0].forward = 5'000'000;
        overview.document.replaceDesign(slower, QStringLiteral("faster"));
        QVERIFY(list.value(QStringLiteral("busy")) != percentText(0.5));
        overview.view->setRange(std::nullopt);
        QVERIFY(facts.isHidden());
    }

    void aRangeOnTheRulerSaysHowBusyTheDevicesAre()
    {
        Overview overview(test::familyDesign("zb-h1", 2, 2));
        TimelineView& view = *overview.view;
        const auto x = [&view](Nanoseconds time) { return int(view.axis().xOf(double(time))); };
        overview.press({x(10'000'000), 8}, Qt::AltModifier);
        overview.move({x(20'000'000), 8}, Qt::AltModifier);
        overview.release({x(20'000'000), 8}, Qt::AltModifier);
        QVERIFY(view.range());
        const Document::Range range = overview.document.statistics(view.range()->first, view.range()->second);
        QVERIFY(range.predicted && !range.measured);
        QVERIFY(range.predicted->busyShare() > 0.5);
        RangeFacts facts(view);
        QCOMPARE(facts.facts().value(QStringLiteral("busy")), percentText(range.predicted->busyShare()));
    }

    void everyDeviceHasARowWithItsNumbers_data()
    {
        QTest::addColumn<int>("devices");
        for (const int devices : {2, 4, 33, 64})
            QTest::addRow("%d devices", devices) << devices;
    }

    void everyDeviceHasARowWithItsNumbers()
    {
        QFETCH(int, devices);
        Overview overview(test::familyDesign("1f1b", devices, 8));
        const OverviewRows rows = overview.map.rows();
        QCOMPARE(rows.count(), devices);
        QCOMPARE(overview.map.height(), std::max(Minimap::stripHeight, devices + 9));
        const Metrics& metrics = overview.document.prediction()->metrics;
        const QImage picture = overview.map.grab().toImage();
        for (int d = 0; d < devices; ++d) {
            const DeviceMetrics& device = metrics.devices[std::size_t(d)];
            const double busy = double(device.busy) / double(metrics.makespan);
            const QRect row = rows.rect(d);
            QCOMPARE(rows.at(row.center().y()), d);
            QCOMPARE(rows.textAt(row.center().y()),
                     QStringLiteral("GPU %1 · %2").arg(d).arg(busyAndPeak(busy, device.peakBytes)));
            // The bar of the busy share: filled at its left, and not at its right end.
            const auto at = [&](int x) { return picture.pixelColor(x, row.center().y()); };
            QVERIFY(at(OverviewRows::barsLeft) == Theme::light().accent);
            QVERIFY(busy > 0.9 || at(OverviewRows::barsLeft + 14) != Theme::light().accent);
        }
        QVERIFY(rows.textAt(overview.map.height() - 1).isEmpty());
    }

    void moreDevicesThanRowsAllCount()
    {
        Overview overview(test::familyDesign("1f1b", 128, 2), 4000);
        const OverviewRows rows = overview.map.rows();
        QCOMPARE(rows.count(), 64);
        const Metrics& metrics = overview.document.prediction()->metrics;
        double busy = 0;
        for (int row = 0; row < rows.count(); ++row) {
            const auto [first, last] = rows.devicesOf(row);
            QCOMPARE(std::pair(first, last), std::pair(2 * row, 2 * row + 2));
            busy += 2 * rows.numbers(row, false).busy;
            Bytes peak = std::max(metrics.devices[std::size_t(first)].peakBytes,
                                  metrics.devices[std::size_t(first) + 1].peakBytes);
            QVERIFY(rows.textAt(rows.rect(row).center().y()).contains(QStringLiteral("peak ") + sizeText(peak)));
        }
        double all = 0;
        for (const DeviceMetrics& device : metrics.devices)
            all += double(device.busy) / double(metrics.makespan);
        QVERIFY(std::abs(busy - all) < 1e-9);
        // GPU 0 computes F0.0 for 10 ms while GPU 1 waits for it: the row is half forward and half idle.
        const Theme& theme = Theme::light();
        const double pixel = double(overview.view->total()) / (overview.view->plotWidth() - 20);
        const int x = TimelineView::plotLeft() + 10 + int(5'000'000 / pixel);
        overview.view->showRange(0, overview.view->total());
        const QColor found = overview.map.grab().toImage().pixelColor(x, rows.rect(0).center().y());
        const QColor forward = theme.fill(Op::F), idle = theme.background;
        const auto half = [](int a, int b) { return (a + b) / 2; };
        QVERIFY2(std::abs(found.red() - half(forward.red(), idle.red())) <= 6
                     && std::abs(found.blue() - half(forward.blue(), idle.blue())) <= 6,
                 qPrintable(found.name()));
    }

    void theToolTipOfARowHasItsNumbersAndThoseOfTheRange()
    {
        Overview overview(test::familyDesign());
        const auto tip = [&overview](int x, int row) {
            const QPoint at(x, overview.map.rows().rect(row).center().y());
            QHelpEvent help(QEvent::ToolTip, at, overview.map.mapToGlobal(at));
            QApplication::sendEvent(&overview.map, &help);
            return QToolTip::text();
        };
        QVERIFY2(tip(500, 1).startsWith(QStringLiteral("GPU 1 · busy ")), qPrintable(tip(500, 1)));
        QVERIFY(!tip(500, 1).contains(QLatin1String("range")));
        QCOMPARE(tip(20, 1), overview.map.toolTip()); // at its name: how it is used
        overview.view->setRange(std::pair<Nanoseconds, Nanoseconds>(0, 8'000'000));
        QVERIFY2(tip(500, 1).contains(QStringLiteral("in the range: busy %1").arg(percentText(0))),
                 qPrintable(tip(500, 1)));
        QVERIFY(tip(500, 0).contains(QStringLiteral("in the range: busy %1").arg(percentText(1))));
    }
};

PIPEWRIGHT_TEST(TestOverview, QApplication)
#include "tst_overview.moc"
