// SPDX-License-Identifier: GPL-3.0-or-later
// Time <-> pixels, and what a lane looks like, without a window.
#include "gui/timeline/lanegeometry.h"
#include "gui/timeline/timelinepainter.h"
#include "gui/widgets/timecoordinates.h"
#include "gui/widgets/timetext.h"
#include "testmain.h"

#include <QTest>

#include <random>

using namespace pipewright;

namespace {

// One device that runs `count` blocks F, I, W in turn, `length` ns each, `gap` ns apart.
TimelineLayout laneOf(int count, Nanoseconds length, Nanoseconds gap = 0)
{
    Program program;
    Timeline timeline;
    const Op ops[] = {Op::F, Op::I, Op::W};
    for (int i = 0; i < count; ++i) {
        program.tasks.emplace_back(TaskKind::Compute, ops[i % 3], 0, 0, i / 3, 0);
        timeline.start.push_back(i * (length + gap));
        timeline.end.push_back(i * (length + gap) + length);
    }
    program.deviceOfStage = {0};
    return TimelineLayout(program, timeline, 1);
}

const QRectF area(0, 50, 0, 40);

} // namespace

class TimelineGeometryTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void pixelsAndTimesAreInversesWithinRounding()
    {
        std::mt19937 random(7);
        for (int i = 0; i < 1000; ++i) {
            TimeAxis axis;
            axis.left = 112;
            axis.width = 900;
            axis.start = static_cast<double>(random() % 1'000'000'000);
            axis.nsPerPixel = 0.1 + static_cast<double>(random() % 1'000'000);
            const double time = axis.start + static_cast<double>(random() % 900) * axis.nsPerPixel;
            QVERIFY(std::abs(axis.timeAt(axis.xOf(time)) - time) < 1e-3 * axis.nsPerPixel);
        }
    }

    void zoomingKeepsTheTimeUnderTheAnchor()
    {
        const TimeAxis axis{123'456'789, 54'321, 112, 900};
        for (const double factor : {0.5, 1.25, 10.0, 1000.0}) {
            const TimeAxis after = zoomed(axis, factor, 700);
            QVERIFY(std::abs(after.timeAt(700) - axis.timeAt(700)) < 1e-3);
            QCOMPARE(after.nsPerPixel, axis.nsPerPixel / factor);
        }
    }

    void zoomingInStopsAtTheFinestStep() { QCOMPARE(zoomed({0, 1, 112, 900}, 1e9, 300).nsPerPixel, finestNsPerPixel); }

    void theViewCannotLeaveTheSchedule()
    {
        const TimeAxis whole = fitted({0, 1, 112, 900}, 0, 1'000'000, 10);
        QCOMPARE(clamped(panned(whole, 500), 1'000'000, 10), whole);
        QCOMPARE(clamped(zoomed(whole, 0.1, 300), 1'000'000, 10), whole);
        const TimeAxis close = clamped(panned(zoomed(whole, 8, 112), 1e6), 1'000'000, 10);
        QVERIFY(std::abs(close.xOf(1'000'000) - (close.right() - 10)) < 1e-6);
    }

    void anEmptyScheduleStillHasAnAxis()
    {
        const TimeAxis axis = clamped(fitted({0, 1, 112, 900}, 0, 0, 10), 0, 10);
        QVERIFY(axis.nsPerPixel > 0);
        QVERIFY(std::isfinite(axis.xOf(0)));
    }

    void ticksAreOneTwoFiveAndFarEnoughApart_data()
    {
        QTest::addColumn<double>("nsPerPixel");
        QTest::addColumn<double>("step");
        QTest::newRow("a millisecond per pixel") << 1e6 << 1e8;
        QTest::newRow("exactly a decade") << 10.0 << 1000.0;
        QTest::newRow("just above a decade") << 10.1 << 2000.0;
        QTest::newRow("three") << 30.0 << 5000.0;
        QTest::newRow("never below a nanosecond") << 0.001 << 1.0;
    }
    void ticksAreOneTwoFiveAndFarEnoughApart()
    {
        QFETCH(double, nsPerPixel);
        QFETCH(double, step);
        QCOMPARE(tickStep({0, nsPerPixel, 0, 900}, 100), step);
    }

    void tickLabelsShareOneUnitAndAreExact()
    {
        QCOMPARE(tickLabel(20e6, 20e6, 260e6), QStringLiteral("20\u00a0ms"));
        QCOMPARE(tickLabel(0, 20e6, 260e6), QStringLiteral("0\u00a0ms"));
        QCOMPARE(tickLabel(2.5e9, 5e8, 6e9), QStringLiteral("2.5\u00a0s"));
        QCOMPARE(tickLabel(1200, 200, 1500), QStringLiteral("1.2\u00a0µs"));
        QCOMPARE(tickLabel(3, 1, 20), QStringLiteral("3\u00a0ns"));
    }

    void touchingBlocksShareAColumnBoundaryAtEveryScale()
    {
        for (const double scale : {1.0, 1.25, 1.5, 2.0}) {
            const TimeAxis axis{17, 0.37, 112, 900};
            for (int i = 0; i < 300; ++i)
                QCOMPARE(columns(axis, i, i + 1, scale).second, columns(axis, i + 1, i + 2, scale).first);
        }
    }

    void aBlockIsFoundAtEveryTimeItCoversAndAtNoOther()
    {
        const TimelineLayout layout = laneOf(30, 10, 5);
        const Lane& lane = layout.lanes()[0];
        for (int time = 0; time < 30 * 15; ++time) {
            const auto found = lane.at(time);
            QCOMPARE(found.has_value(), time % 15 < 10);
            if (found)
                QCOMPARE(*found, static_cast<std::size_t>(time / 15));
        }
        QVERIFY(!lane.at(1e9));
    }

    void unmeasuredTasksAreLeftOut()
    {
        Program program;
        program.tasks.resize(2);
        program.tasks[1].setMicrobatch(1);
        program.deviceOfStage = {0};
        Timeline timeline;
        timeline.start = {notRun, 5};
        timeline.end = {notRun, 9};
        const TimelineLayout layout(program, timeline, 1);
        QCOMPARE(layout.blocks(), std::size_t{1});
        QVERIFY(!layout.find(Block{Op::F, 0, 0, 0}));
        QCOMPARE(layout.makespan(), Nanoseconds{9});
    }

    void wideBlocksAreDrawnOneByOneWithTheGapsBetweenThem()
    {
        const TimelineLayout layout = laneOf(6, 100, 50);
        const LaneGeometry geometry = laneGeometry(layout.lanes()[0], {0, 1, 100, 1000}, area, 1000, 1);
        QCOMPARE(geometry.blocks.size(), std::size_t{6});
        QCOMPARE(geometry.blocks[1].rect, QRectF(250, 50, 99, 40));
        QCOMPARE(geometry.blocks[1].label, BlockLabel::LetterAndNumber);
        QCOMPARE(geometry.idle.size(), std::size_t{6}); // five between, one after the last
        QCOMPARE(geometry.idle[0], QRectF(200, 50, 49, 40));
        QCOMPARE(geometry.idle.back().right(), 1099.0);
    }

    void textGivesWayAsBlocksNarrow()
    {
        const auto textAt = [](double nsPerPixel) {
            const TimelineLayout layout = laneOf(36, 100); // microbatches up to 11
            return laneGeometry(layout.lanes()[0], {0, nsPerPixel, 0, 1000}, area, 3600, 1).blocks.front().label;
        };
        QCOMPARE(textAt(4), BlockLabel::LetterAndNumber);
        QCOMPARE(textAt(7), BlockLabel::Letter);
        QCOMPARE(textAt(20), BlockLabel::None);
    }

    void blocksOfOneLengthAreLabelledAlike()
    {
        const TimelineLayout layout = laneOf(12, 100, 1);
        const QRectF low(0, 50, 0, 24);
        for (double nsPerPixel = 2; nsPerPixel < 12; nsPerPixel += 0.13) // widths that fall on unequal pixels
            for (const QRectF& place : {area, low}) {
                const LaneGeometry geometry = laneGeometry(layout.lanes()[0], {0, nsPerPixel, 0, 1000}, place, 1300, 1);
                for (const BlockRect& item : geometry.blocks)
                    QCOMPARE(item.label, geometry.blocks.front().label);
            }
        // A lane that is too low for two lines writes the name on one.
        const auto textAt = [&](double nsPerPixel) {
            return laneGeometry(layout.lanes()[0], {0, nsPerPixel, 0, 1000}, low, 1300, 1).blocks.front().label;
        };
        QCOMPARE(textAt(2), BlockLabel::Name);
        QCOMPARE(textAt(4), BlockLabel::Letter);
    }

    void aTimeIsAsPreciseAsWhatItIsToldApartFrom()
    {
        QCOMPARE(timeText(1'813'042'000, 1e6), QStringLiteral("1.813\u00a0s"));
        QCOMPARE(timeText(1'813'042'000, 1e3), QStringLiteral("1.813042\u00a0s"));
        QVERIFY(timeText(1'813'042'000, 500) != timeText(1'813'043'000, 500));
        QCOMPARE(timeText(12'000'000, 100'000), QStringLiteral("12\u00a0ms"));
        QCOMPARE(timeText(0, 0.1), QStringLiteral("0\u00a0ns"));
    }

    void twoHundredThousandBlocksCostPixelsNotBlocks()
    {
        const TimelineLayout layout = laneOf(200'000, 1000, 100);
        const int width = 1000;
        const TimeAxis axis = fitted({0, 1, 0, width}, 0, static_cast<double>(layout.makespan()));
        const LaneGeometry geometry = laneGeometry(layout.lanes()[0], axis, area, layout.makespan(), 1);
        QVERIFY2(geometry.primitives() <= 2 * width, qPrintable(QString::number(geometry.primitives())));
        QVERIFY2(geometry.visited <= 2 * width, qPrintable(QString::number(geometry.visited)));
        QVERIFY(geometry.blocks.empty());

        // At every zoom in between, too.
        for (double factor = 1; factor < 1e6; factor *= 1.7) {
            const TimeAxis close = zoomed(axis, factor, 500);
            const LaneGeometry part = laneGeometry(layout.lanes()[0], close, area, layout.makespan(), 1);
            QVERIFY2(part.primitives() <= 2 * width, qPrintable(QString::number(part.primitives())));
            QVERIFY2(part.visited <= 2 * width, qPrintable(QString::number(part.visited)));
        }
    }

    void mergedColumnsShowTheShareOfEveryOperationAndOfIdleTime()
    {
        // F, I and W of equal length, busy three quarters of the time.
        const TimelineLayout layout = laneOf(90'000, 300, 100);
        const TimeAxis axis = fitted({0, 1, 0, 1000}, 0, static_cast<double>(layout.makespan()));
        const LaneGeometry geometry = laneGeometry(layout.lanes()[0], axis, area, layout.makespan(), 1);
        const auto areaOf = [&](Op op) {
            double sum = 0;
            for (const QRectF& rect : geometry.merged[static_cast<std::size_t>(op)])
                sum += rect.width() * rect.height();
            return sum / (1000 * area.height());
        };
        for (const Op op : {Op::F, Op::I, Op::W})
            QVERIFY2(std::abs(areaOf(op) - 0.25) < 0.02, qPrintable(QString::number(areaOf(op))));
        QCOMPARE(areaOf(Op::B), 0.0);
    }

    void mergedColumnsLeaveNoHoleWhereNothingIsIdle()
    {
        const TimelineLayout layout = laneOf(3000, 1000);
        for (int nsPerPixel = 340; nsPerPixel < 1000; nsPerPixel += 7) {
            const TimeAxis axis{0, double(nsPerPixel), 112, 600};
            const LaneGeometry geometry = laneGeometry(layout.lanes()[0], axis, area, layout.makespan(), 1);
            QVERIFY(geometry.blocks.empty());
            QVERIFY2(geometry.idle.empty(), qPrintable(QString::number(nsPerPixel)));
        }
    }

    void aWideBlockAmongTinyOnesStaysVisibleByItself()
    {
        Program program;
        Timeline timeline;
        Nanoseconds time = 0;
        for (int i = 0; i < 3000; ++i) {
            program.tasks.emplace_back(TaskKind::Compute, Op::F, 0, 0, i, 0);
            timeline.start.push_back(time);
            time += i == 1500 ? 300 : 1;
            timeline.end.push_back(time);
        }
        program.deviceOfStage = {0};
        const TimelineLayout layout(program, timeline, 1);
        const TimeAxis axis = fitted({0, 1, 0, 1000}, 0, static_cast<double>(time));
        const LaneGeometry geometry = laneGeometry(layout.lanes()[0], axis, area, time, 1);
        QCOMPARE(geometry.blocks.size(), std::size_t{1});
        QCOMPARE(geometry.blocks[0].index, std::size_t{1500});
    }

    void everyVisibleBlockIsDrawnWhereItsRectangleIs()
    {
        const TimelineLayout layout = laneOf(200, 13, 3);
        const TimeAxis axis{400, 0.8, 112, 700};
        const Lane& lane = layout.lanes()[0];
        const LaneGeometry geometry = laneGeometry(lane, axis, area, layout.makespan(), 1.5);
        QVERIFY(!geometry.blocks.empty());
        for (const BlockRect& item : geometry.blocks)
            QCOMPARE(item.rect, blockRect(lane.blocks()[item.index], axis, area, 1.5));
        for (std::size_t i = 1; i < geometry.blocks.size(); ++i)
            QVERIFY(geometry.blocks[i].rect.left() >= geometry.blocks[i - 1].rect.right());
    }
};

PIPEWRIGHT_TEST(TimelineGeometryTest, NoApplication)
#include "tst_timelinegeometry.moc"
