// SPDX-License-Identifier: GPL-3.0-or-later
// One truth under an overlay: the switch Predicted | Measured | Both rules all views together, and every number says
// which side it is.
#include "core/base/beyondprediction.h"
#include "core/program/transferorder.h"
#include "gui/designer/footline.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/designer/sideswitch.h"
#include "gui/document/timelinelayout.h"
#include "gui/inspector/inspector.h"
#include "gui/inspector/rangefacts.h"
#include "gui/memory/memorypanel.h"
#include "gui/timeline/idlebars.h"
#include "gui/timeline/lanestrip.h"
#include "gui/timeline/minimap.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/causetable.h"
#include "gui/trace/recordedruns.h"
#include "gui/trace/runerrors.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/timetext.h"
#include "gui/widgets/words.h"
#include "testmain.h"
#include "traces/analysis/gapreasons.h"

#include <QAction>
#include <QApplication>
#include <QMouseEvent>
#include <QToolButton>

using namespace pipewright;
using Fixture = MainWindowFixture;

class TestSides : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void aPairSharesItsUnitAndADifferenceIsMeasuredLessPredicted()
    {
        QCOMPARE(pairText(durationText(202'100'000), durationText(954'000'000)), QStringLiteral("202.1 → 954\u00a0ms"));
        QCOMPARE(pairText(durationText(900'000), durationText(1'200'000)), QStringLiteral("900\u00a0µs → 1.2\u00a0ms"));
        QCOMPARE(comparedText(954'000'000, 202'100'000),
                 QStringLiteral("measured 954\u00a0ms, +372\u00a0% of predicted 202.1\u00a0ms"));
        QCOMPARE(comparedText(100'000'000, 200'000'000),
                 QStringLiteral("measured 100\u00a0ms, \u221250.0\u00a0% of predicted 200\u00a0ms"));
        QCOMPARE(sidedText(Side::Measured, QStringLiteral("1"), {}), QStringLiteral("not recorded"));
    }

    void withoutARecordingAllIsPredictedAndTheSwitchRests()
    {
        Fixture fixture;
        QVERIFY(fixture.document().side() == Side::Predicted);
        for (const Side side : allSides)
            QVERIFY(!fixture.window.sideSwitch().action(side)->isEnabled());
        QVERIFY(fixture.window.sideSwitch().action(Side::Predicted)->isChecked());
        fixture.document().select(Block{Op::F, 1, 0, 0});
        QVERIFY(fixture.window.inspector().whyHeading().endsWith(QStringLiteral("· predicted")));
    }

    void theSwitchRulesEveryViewTogether()
    {
        Fixture fixture;
        QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
        fixture.document().setOverlay(
            recordRun(fixture.document(), fixture.folder.filePath(QStringLiteral("run.db")), 1.25));
        TimelineView& view = fixture.window.timeline();
        const Block block{Op::W, 3, 0, 0};
        fixture.document().select(block);
        for (int lane = 0; lane < view.laneCount(); ++lane)
            if (!view.lanes().showsTransfers(lane)) {
                view.action(QStringLiteral("allTransfers"))->trigger();
                break;
            }
        const Document::Overlay& overlay = *fixture.document().overlay();
        const Timeline& predicted = fixture.document().prediction()->timeline;
        const LaneBlock& planned = *fixture.document().layout()->blockOf(block);
        const Nanoseconds began = overlay.measured.start[planned.task];
        const double precision = double(planned.end - planned.start) / 100; // as the panel writes starts
        const auto startText = [precision](Nanoseconds time) { return timeText(time, precision); };
        const QString shorter = durationText(fixture.document().prediction()->metrics.makespan);
        const QString longer = durationText(overlay.comparison.measuredMakespan);
        const QString more = signedPercent(beyondPrediction(double(overlay.comparison.measuredMakespan),
                                                            double(fixture.document().prediction()->metrics.makespan)));
        QVERIFY(more.startsWith(QLatin1Char('+')));
        const struct {
            Side side;
            Qt::Key key;
            QString makespan, start;
            double x;
        } cases[] = {
            {Side::Predicted, Qt::Key_1, shorter, startText(planned.start), double(planned.start)},
            {Side::Measured, Qt::Key_2, longer, startText(began), double(began)},
            {Side::Both, Qt::Key_3, pairText(shorter, longer), pairText(startText(planned.start), startText(began)),
             double(began)},
        };
        for (const auto& each : cases) {
            QTest::keyClick(&view, each.key); // the keyboard's way
            const QByteArray name = sideName(each.side).toUtf8();
            QVERIFY2(fixture.document().side() == each.side, name.constData());
            QVERIFY(fixture.window.sideSwitch().action(each.side)->isChecked());
            QCOMPARE(shownNumber(fixture.window, "step"), each.makespan);
            // Lanes, and what is said about a block.
            QVERIFY2(std::abs(view.rectOfBlock(block).left() - view.axis().xOf(each.x)) <= 1.5, name.constData());
            QVERIFY2(view.nameOfBlock(block).contains(sideName(each.side) + QLatin1Char(' ')),
                     qPrintable(view.nameOfBlock(block)));
            QVERIFY(view.describe(block).contains(sideName(each.side)));
            // The panel at the right.
            const Inspector& inspector = fixture.window.inspector();
            QCOMPARE(inspector.facts().value(QStringLiteral("start")), each.start);
            const bool measured = each.side != Side::Predicted;
            QVERIFY(inspector.whyHeading().endsWith(measured ? QStringLiteral("· measured")
                                                             : QStringLiteral("· predicted")));
            // Idle time and memory.
            QCOMPARE(view.idle().percentLabel(0).contains(QStringLiteral("→")), each.side == Side::Both);
            MemoryPanel& memory = fixture.window.memory();
            const QString value = memory.valueAt(memory.plotOf(memory.device()).center());
            QVERIFY2(value.endsWith(sideName(each.side)), qPrintable(value));
            // Transfers stand at the times of the side.
            const std::vector<Transfer> transfers = view.visibleTransfers(0);
            QVERIFY(!transfers.empty());
            const QRect chip = view.rectOfTransfer(0, transfers.front());
            const std::vector<IssuedTransfer> list = transfersOf(fixture.document().prediction()->program, 0);
            const Timeline& times = measured ? overlay.explanation.completed : predicted;
            QVERIFY2(std::abs(chip.left() - view.axis().xOf(double(times.start[list.front().task]))) <= 1.5,
                     name.constData());
            // The axis is as long as what is shown.
            QVERIFY(view.total() >= (measured ? overlay.comparison.measuredMakespan
                                              : fixture.document().prediction()->metrics.makespan));
            QCOMPARE(view.total() > fixture.document().prediction()->metrics.makespan, measured);
        }
        // Nothing of a drag is measured.
        fixture.document().clearOverlay();
        QVERIFY(fixture.document().side() == Side::Predicted);
        QCOMPARE(shownNumber(fixture.window, "step"), shorter);
    }

    void aRangesNumbersAreOfTheSideThatIsShown()
    {
        Fixture fixture;
        fixture.document().setOverlay(
            recordRun(fixture.document(), fixture.folder.filePath(QStringLiteral("run.db")), 1.25));
        TimelineView& view = fixture.window.timeline();
        const Document::Overlay& overlay = *fixture.document().overlay();
        view.setRange(std::pair<Nanoseconds, Nanoseconds>(0, view.total())); // of either side the whole step
        const auto busyOf = [](const Metrics& metrics) {
            double busy = 0;
            for (const DeviceMetrics& device : metrics.devices)
                busy += double(device.busy) / double(metrics.makespan) / double(metrics.devices.size());
            return percentText(busy);
        };
        const QString predicted = busyOf(fixture.document().prediction()->metrics), measured = busyOf(overlay.metrics);
        QVERIFY(predicted != measured);
        const auto* facts = fixture.window.findChild<RangeFacts*>();
        QVERIFY(facts);
        Nanoseconds late = 0;
        for (const IdleGap& gap : overlay.explanation.gaps)
            late += gap.lateData;
        const double all = double(overlay.metrics.makespan) * double(overlay.metrics.devices.size());
        for (const Side side : allSides) {
            fixture.document().setSide(side);
            QVERIFY(!facts->isHidden());
            QCOMPARE(facts->heading(), QStringLiteral("Range · %1").arg(sideName(side)));
            QCOMPARE(facts->facts().value(QStringLiteral("busy")), sidedText(side, predicted, measured));
            QCOMPARE(facts->facts().value(side == Side::Both ? QStringLiteral("late data, measured")
                                                             : QStringLiteral("late data")),
                     side == Side::Predicted ? QString() : percentText(double(late) / all));
            const OverviewRows rows = fixture.window.minimap().rows();
            const QString row = rows.textAt(rows.rect(0).center().y());
            QVERIFY2(row.contains(sideName(side)) && row.startsWith(QStringLiteral("GPU 0 · busy ")), qPrintable(row));
            QCOMPARE(row.contains(QStringLiteral("→")), side == Side::Both);
            const Bytes peak = overlay.comparison.devices[0].measuredPeak.value();
            QCOMPARE(row.contains(sizeText(peak)), side != Side::Predicted);
        }
        // Of a gap that an end of the range is amid, each side has its part.
        fixture.document().setSide(Side::Measured);
        const IdleGap& any = *std::find_if(overlay.explanation.gaps.begin(), overlay.explanation.gaps.end(),
                                           [](const IdleGap& gap) { return gap.lateData > 1; });
        const Nanoseconds amid = (any.start + any.end) / 2, end = view.total();
        const IdleGap whole = fixture.document().statistics(0, end).measuredIdle;
        const IdleGap before = fixture.document().statistics(0, amid).measuredIdle;
        const IdleGap after = fixture.document().statistics(amid, end).measuredIdle;
        for (const auto part : {&IdleGap::warmUp, &IdleGap::lateData, &IdleGap::transfer, &IdleGap::hostGap,
                                &IdleGap::memoryWait, &IdleGap::coolDown})
            QCOMPARE(before.*part + after.*part, whole.*part);
        const IdleGap only = fixture.document().statistics(any.start, amid).measuredIdle;
        QVERIFY(only.lateData > 0 && only.lateData < whole.lateData);
    }

    void theChoiceIsRememberedBetweenSessions()
    {
        Fixture fixture;
        const QString path = recordRun(fixture.document(), fixture.folder.filePath(QStringLiteral("run.db")), 1.25);
        fixture.document().setOverlay(path);
        QVERIFY(fixture.document().side() == Side::Both); // as long as nobody chose
        fixture.window.sideSwitch().action(Side::Measured)->trigger();
        MainWindow next(fixture.options());
        next.document().reset(exampleDesign());
        next.document().setOverlay(path);
        QVERIFY(next.document().side() == Side::Measured);
    }

    void whyOfAMeasuredGapComesFromTheRecords()
    {
        Fixture fixture;
        const QString path = fixture.folder.filePath(QStringLiteral("run.db"));
        recordSlowDevice(fixture.document(), path, 2, {1.6});
        fixture.document().setOverlay(path);
        const Document::Overlay& overlay = *fixture.document().overlay();
        const Program& program = fixture.document().prediction()->program;
        // The longest wait for a block of the slow device.
        const IdleGap* longest = nullptr;
        for (const IdleGap& gap : overlay.explanation.gaps) {
            const GapReasons reasons =
                reasonsOf(program, fixture.document().prediction()->timeline, overlay.explanation, gap);
            if (reasons.producer != none && program.tasks[reasons.producer].device == 2 && gap.lateData > 0
                && (!longest || gap.lateData > longest->lateData))
                longest = &gap;
        }
        QVERIFY(longest);
        fixture.document().select(program.tasks[longest->before].block());
        const Inspector& inspector = fixture.window.inspector();
        QVERIFY2(inspector.whyHeading().endsWith(QStringLiteral("· measured")), qPrintable(inspector.whyHeading()));
        const QString late = durationText(longest->lateData);
        QVERIFY2(inspector.why().contains(late), qPrintable(inspector.why()));
        QVERIFY2(inspector.why().contains(deviceLabel(fixture.document().design(), 2)), qPrintable(inspector.why()));
        QVERIFY2(inspector.why().contains(QStringLiteral("+60.0\u00a0% of its predicted")),
                 qPrintable(inspector.why()));
        fixture.document().setSide(Side::Predicted);
        QVERIFY(!inspector.why().contains(QStringLiteral("of its predicted")));
    }

    void theLastRowOfTheCausesAddsUpToTheDifference()
    {
        Fixture fixture;
        const QString path = fixture.folder.filePath(QStringLiteral("run.db"));
        recordSlowDevice(fixture.document(), path, 2, {1.6});
        fixture.document().setOverlay(path);
        const Explanation& explanation = fixture.document().overlay()->explanation;
        CauseTable& causes = *fixture.window.runErrors().causes();
        QCOMPARE(causes.headerItem()->text(1), QStringLiteral("alone"));
        const int last = causes.topLevelItemCount() - 1;
        QVERIFY(last >= int(explanation.causes.size()));
        QCOMPARE(causes.topLevelItem(last)->text(0), QStringLiteral("all together"));
        QCOMPARE(causes.topLevelItem(last)->text(1), signedDuration(explanation.measured - explanation.predicted));
        // Choosing it chooses no blocks.
        const std::vector<Block> before = fixture.window.timeline().selectedBlocks();
        causes.setCurrentItem(causes.topLevelItem(last));
        QVERIFY(fixture.window.timeline().selectedBlocks() == before);
    }

    void timeIsReadAtTheSameXInLanesMemoryAndBubbles()
    {
        Fixture fixture;
        TimelineView& view = fixture.window.timeline();
        MemoryPanel& memory = fixture.window.memory();
        memory.setAll(true);
        QVERIFY(memory.showsAll());
        const QPointF at(view.axis().left + 200, memory.plotOf(1).center().y());
        QMouseEvent move(QEvent::MouseMove, at, memory.mapToGlobal(at), Qt::NoButton, Qt::NoButton, Qt::NoModifier);
        QApplication::sendEvent(&memory, &move);
        QVERIFY(view.readings().crosshair);
        QVERIFY(std::abs(view.axis().xOf(double(*view.readings().crosshair)) - at.x()) <= 1);
        QVERIFY(fixture.window.foot().hint().startsWith(deviceLabel(fixture.document().design(), 1)));
        QEvent leave(QEvent::Leave);
        QApplication::sendEvent(&memory, &leave);
        QVERIFY(!view.readings().crosshair);
        // A measured range is seen in both.
        const QImage memoryBefore = memory.grab().toImage();
        const Nanoseconds total = view.total();
        view.setRange(std::pair(total / 4, total / 2));
        const int x = int(view.axis().xOf(double(total) / 4));
        const auto differs = [x](const QImage& before, const QImage& now) {
            return before.pixel(x, before.height() - 3) != now.pixel(x, now.height() - 3);
        };
        QVERIFY(differs(memoryBefore, memory.grab().toImage()));
    }

    void aDragShowsTheMemoryThatADropWouldGiveAndThePresentAsItsOutline()
    {
        Fixture fixture;
        fixture.document().setOverlay(
            recordRun(fixture.document(), fixture.folder.filePath(QStringLiteral("run.db")), 1.25));
        fixture.document().setSide(Side::Predicted); // where the lanes stand as they will during the drag
        TimelineView& view = fixture.window.timeline();
        MemoryPanel& memory = fixture.window.memory();
        memory.setAll(true);
        const Block block{Op::F, 1, 2, 0};
        const auto send = [&](QEvent::Type type, QPoint at, Qt::MouseButtons buttons) {
            QMouseEvent event(type, at, view.viewport()->mapToGlobal(at), Qt::LeftButton, buttons, Qt::NoModifier);
            QApplication::sendEvent(view.viewport(), &event);
        };
        const QPoint from = view.rectOfBlock(block).center(), to(from.x(), view.rectOfLane(2).center().y());
        send(QEvent::MouseButtonPress, from, Qt::LeftButton);
        fixture.document().setSide(Side::Both);
        send(QEvent::MouseMove, to, Qt::LeftButton);
        QTRY_VERIFY(view.preview());
        // Every number is a prediction as long as something is held.
        QVERIFY(!shownNumber(fixture.window, "step").contains(QStringLiteral("→")));
        const QPointF middle(memory.plotArea().center().x(), memory.plotOf(2).center().y());
        const QString held = memory.valueAt(middle);
        QVERIFY2(held.contains(QStringLiteral("if dropped here, now")), qPrintable(held));
        QTest::keyClick(&view, Qt::Key_Escape);
        QVERIFY(memory.valueAt(middle).endsWith(sideName(Side::Both)));
        QVERIFY(shownNumber(fixture.window, "step").contains(QStringLiteral("→")));
    }

    void memoryHasAScaleAndEveryDeviceARow()
    {
        Fixture fixture;
        MemoryPanel& memory = fixture.window.memory();
        const Metrics& metrics = fixture.document().prediction()->metrics;
        memory.setAll(true);
        double lower = 0;
        for (int d = 0; d < int(metrics.devices.size()); ++d) {
            const QRectF plot = memory.plotOf(d);
            QVERIFY(plot.height() > 10 && plot.top() >= lower);
            lower = plot.bottom();
            // The peak's words do not stand in the limit's line, as if they named it.
            const Bytes limit = fixture.document().design().cluster.devices[std::size_t(d)].memory;
            const double line = plot.bottom() - plot.height() * double(limit) / memory.top();
            const QRectF words = memory.peakPlace(d);
            QVERIFY(words.top() > line || words.bottom() < line);
        }
        // The button says what is shown, also where the rows do not fit.
        const auto* button = memory.findChild<QToolButton*>();
        QVERIFY(memory.showsAll() && button->text().startsWith(QLatin1String("all devices")));
        const QSize size = fixture.window.size();
        fixture.window.resize(size.width(), 600);
        QTRY_VERIFY(!memory.showsAll());
        QTRY_VERIFY(button->text().startsWith(QLatin1String("one device")));
        fixture.window.resize(size);
        QTRY_VERIFY(memory.showsAll() && button->text().startsWith(QLatin1String("all devices")));
        memory.setAll(false);
        fixture.document().select(Block{Op::F, 2, 0, 0});
        QCOMPARE(memory.device(), 2);
        QVERIFY(memory.plotOf(0).isNull() && memory.plotOf(2).height() > 60);
        const std::vector<Bytes> ticks = memory.axisTicks();
        QVERIFY(ticks.size() > 2 && ticks.front() == 0);
        QVERIFY(memory.yOf(double(ticks[0])) > memory.yOf(double(ticks[1])));
        QCOMPARE(ticks[2] - ticks[1], ticks[1] - ticks[0]);
    }
};

PIPEWRIGHT_TEST(TestSides, QApplication)
#include "tst_sides.moc"
