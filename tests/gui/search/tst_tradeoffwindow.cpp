// SPDX-License-Identifier: GPL-3.0-or-later
// Memory against bubble as points: drawn as they come, cancelled, and taken by mouse and by key.
#include "gui/compare/noisefields.h"
#include "gui/search/tradeoffplot.h"
#include "gui/search/tradeoffwindow.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QApplication>
#include <QPushButton>
#include <QRegularExpression>
#include <QSemaphore>
#include <QSet>
#include <QSignalSpy>
#include <QTest>
#include <QThreadPool>
#include <QTreeWidget>
#include <QWheelEvent>

#include <algorithm>

using namespace pipewright;

namespace {

struct TradeoffFixture {
    Document document;
    std::unique_ptr<TradeOffWindow> window;
    std::unique_ptr<QSignalSpy> finished;

    explicit TradeoffFixture(int devices = 4, int microbatches = 8)
    {
        document.reset(test::familyDesign("1f1b", devices, microbatches));
        window = std::make_unique<TradeOffWindow>(document);
        finished = std::make_unique<QSignalSpy>(window.get(), &TradeOffWindow::finished);
        window->show();
        (void)QTest::qWaitForWindowActive(window.get());
    }
    bool done()
    {
        return QTest::qWaitFor([this] { return !finished->isEmpty(); }, 120'000);
    }
    int pointOnFront()
    {
        const auto& points = window->points();
        for (int i = 0; i < int(points.size()); ++i)
            if (window->plot().isOnFront(i) && points[std::size_t(i)].candidate.family->name != "1f1b")
                return i;
        return -1;
    }
};

} // namespace

class TestTradeOffWindow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void allCandidatesAreWorkedOutAndListed()
    {
        TradeoffFixture fixture;
        QVERIFY(fixture.done());
        QCOMPARE(fixture.window->points().size(), tradeOffCandidates(fixture.document.design()).size());
        QCOMPARE(fixture.window->list()->topLevelItemCount(), int(fixture.window->points().size()));
        QVERIFY(!fixture.window->isRunning());
        QVERIFY2(fixture.window->state().contains(QLatin1String("schedules")), qPrintable(fixture.window->state()));
        // Sorted by memory, least first.
        const auto memory = [&](int row) {
            return fixture.window->list()->topLevelItem(row)->data(1, Qt::UserRole + 1).toDouble();
        };
        for (int row = 1; row < fixture.window->list()->topLevelItemCount(); ++row)
            QVERIFY(memory(row - 1) <= memory(row));
        // By the step of which one in twenty is slower, when blocks vary.
        fixture.window->list()->sortByColumn(4, Qt::AscendingOrder);
        double before = 0;
        Nanoseconds longest = 0;
        for (const TradeOff& point : fixture.window->points())
            longest = std::max(longest, point.possible ? point.noisy.p95 : 0);
        for (int row = 0; row < fixture.window->list()->topLevelItemCount(); ++row) {
            const QTreeWidgetItem* item = fixture.window->list()->topLevelItem(row);
            const TradeOff& point =
                fixture.window->points()[static_cast<std::size_t>(item->data(0, Qt::UserRole + 1).toInt())];
            if (!point.possible)
                break;
            QVERIFY(point.noisy.p95 > point.makespan);
            QVERIFY(double(point.noisy.p95) >= before);
            QCOMPARE(item->text(4), durationText(point.noisy.p95, longest));
            QCOMPARE(item->text(3), durationText(point.noisy.median, longest));
            before = double(point.noisy.p95);
        }
        QVERIFY(before > 0);
    }

    void theNoiseIsTypedAndSaysWhichScheduleSuffersLeast()
    {
        TradeoffFixture fixture;
        QVERIFY(fixture.done());
        const std::vector<TradeOff> usual = fixture.window->points();
        QCOMPARE(fixture.window->noise().block().value(), usualSpread * 100);
        const auto type = [](ShareField& field, const char* text) {
            field.setFocus();
            field.selectAll();
            QTest::keyClicks(&field, QString::fromLatin1(text));
            QTest::keyClick(&field, Qt::Key_Return);
        };
        fixture.finished->clear();
        type(fixture.window->noise().device(), "20");
        QVERIFY(fixture.done());
        const std::vector<TradeOff>& slow = fixture.window->points();
        QCOMPARE(slow.size(), usual.size());
        for (std::size_t i = 0; i < slow.size(); ++i)
            if (slow[i].possible) {
                QVERIFY(slow[i].noisy.p95 > usual[i].noisy.p95);
                const Design design = fixture.document.design();
                const SpreadOptions noise = shownNoise(design.costs, fixture.window->noise().value());
                QCOMPARE(noise.device, 0.2);
                QCOMPARE(slow[i].noisy, evaluateTradeOff(design, slow[i].candidate, {}, noise).noisy);
                break;
            }
        // By what its slow step is longer than the step without noise.
        QTreeWidget* list = fixture.window->list();
        list->sortByColumn(5, Qt::AscendingOrder);
        const auto pointOf = [&](int row) {
            return slow[std::size_t(list->topLevelItem(row)->data(0, Qt::UserRole + 1).toInt())];
        };
        const auto loss = [](const TradeOff& point) { return double(point.noisy.p95) / double(point.makespan) - 1; };
        double before = -1;
        for (int row = 0; row < list->topLevelItemCount() && pointOf(row).possible; ++row) {
            QVERIFY(loss(pointOf(row)) >= before);
            QCOMPARE(list->topLevelItem(row)->text(5), signedPercent(loss(pointOf(row))));
            before = loss(pointOf(row));
        }
        QVERIFY(before > 0);
        // Without any, there is nothing to lose.
        fixture.finished->clear();
        type(fixture.window->noise().device(), "0");
        type(fixture.window->noise().block(), "0");
        QVERIFY(fixture.done());
        for (const TradeOff& point : fixture.window->points())
            QVERIFY(!point.possible || (point.noisy.p95 == point.makespan && point.noisy.median == point.makespan));
    }

    void decimalPointsOfAColumnStandBelowEachOther()
    {
        TradeoffFixture fixture;
        QVERIFY(fixture.done());
        for (const int column : {1, 2, 3, 4}) { // memory, bubble, median, slow step
            QSet<QString> endings;
            for (int row = 0; row < fixture.window->list()->topLevelItemCount(); ++row) {
                const QString text = fixture.window->list()->topLevelItem(row)->text(column);
                if (!text.isEmpty() && text.front().isDigit())
                    endings << QString(text)
                                   .replace(QRegularExpression(QStringLiteral("\\d")), QStringLiteral("0"))
                                   .section(QLatin1Char('.'), 1);
            }
            QVERIFY2(endings.size() == 1 && !endings.contains(QString()), qPrintable(endings.values().join(u'|')));
        }
    }

    void aClickedPointBecomesTheScheduleAndGivesWhatWasDrawn()
    {
        TradeoffFixture fixture;
        QVERIFY(fixture.done());
        const Design before = fixture.document.design();
        const int point = fixture.pointOnFront();
        QVERIFY(point >= 0);
        TradeOffPlot& plot = fixture.window->plot();
        // Several points may share a place; the click takes one of them.
        QTest::mouseMove(&plot, plot.positionOf(point).toPoint());
        QTest::mouseClick(&plot, Qt::LeftButton, {}, plot.positionOf(point).toPoint());
        const TradeOff& taken = fixture.window->points()[std::size_t(plot.current())];
        QTRY_COMPARE(fixture.document.undoStack()->index(), 1);
        QCOMPARE(fixture.document.design().schedule.family, std::string(taken.candidate.family->name));
        QCOMPARE(fixture.document.prediction()->metrics.rateMakespan, taken.bubble);
        QCOMPARE(fixture.document.prediction()->metrics.makespan, taken.makespan);
        fixture.document.undoStack()->undo();
        QCOMPARE(fixture.document.design(), before);
    }

    void theFrontHasNamesThatHideNothing()
    {
        TradeoffFixture fixture;
        QVERIFY(fixture.done());
        TradeOffPlot& plot = fixture.window->plot();
        const auto names = plot.namesOnFront();
        QVERIFY(names.size() >= 2);
        for (std::size_t i = 0; i < names.size(); ++i) {
            QVERIFY2(QRectF(plot.rect()).contains(names[i].place), qPrintable(names[i].text));
            for (std::size_t other = 0; other < i; ++other)
                QVERIFY2(!names[i].place.intersects(names[other].place), qPrintable(names[i].text));
            for (int point = 0; point < int(fixture.window->points().size()); ++point)
                QVERIFY2(!plot.isOnFront(point) || !names[i].place.contains(plot.positionOf(point)),
                         qPrintable(names[i].text));
        }
        // Each is of a schedule on the front.
        for (const auto& name : names) {
            bool found = false;
            for (int point = 0; point < int(fixture.window->points().size()); ++point)
                found = found
                        || (plot.isOnFront(point)
                            && name.text.startsWith(QString::fromStdString(
                                fixture.window->points()[std::size_t(point)].candidate.label())));
            QVERIFY2(found, qPrintable(name.text));
        }
    }

    void theWheelZoomsAtTheCursorAndTheGroundIsDragged()
    {
        TradeoffFixture fixture;
        QVERIFY(fixture.done());
        TradeOffPlot& plot = fixture.window->plot();
        const QRectF all = plot.shown();
        const int point = fixture.pointOnFront();
        const QPointF at = plot.positionOf(point);
        const auto turn = [&](int notches) {
            QWheelEvent wheel(at, plot.mapToGlobal(at), {}, {0, 120 * notches}, Qt::NoButton, Qt::NoModifier,
                              Qt::NoScrollPhase, false);
            QApplication::sendEvent(&plot, &wheel);
        };
        turn(4);
        QVERIFY(plot.shown().width() < all.width() / 2);
        QVERIFY(all.contains(plot.shown()));
        QVERIFY((plot.positionOf(point) - at).manhattanLength() < 1); // what is under the cursor stays there
        // An empty place is held and dragged; the points go with it.
        QPoint ground;
        for (int x = 80; x < plot.width() - 60 && ground.isNull(); x += 10)
            if (plot.pointAt(QPointF(x, plot.height() / 2)) < 0)
                ground = {x, plot.height() / 2};
        const QRectF before = plot.shown();
        const double room = std::min(before.left(), all.right() - before.right());
        QTest::mousePress(&plot, Qt::LeftButton, {}, ground);
        QMouseEvent move(QEvent::MouseMove, ground + QPoint(0, 20), plot.mapToGlobal(ground + QPoint(0, 20)),
                         Qt::NoButton, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(&plot, &move);
        QTest::mouseRelease(&plot, Qt::LeftButton, {}, ground + QPoint(0, 20));
        QVERIFY(plot.shown() != before || room == 0);
        QVERIFY(all.contains(plot.shown()) && plot.shown().size() == before.size());
        QCOMPARE(fixture.document.undoStack()->index(), 0); // nothing was taken
        QTest::keyClick(&plot, Qt::Key_Home);
        QCOMPARE(plot.shown(), all);
        QTest::keyClick(&plot, Qt::Key_Minus);
        QCOMPARE(plot.shown(), all); // there is no more than all
    }

    void ofTwoPointsTakenOneAfterTheOtherTheLastBecomesTheSchedule()
    {
        TradeoffFixture fixture;
        QVERIFY(fixture.done());
        std::vector<int> possible;
        for (int i = 0; i < int(fixture.window->points().size()); ++i)
            if (fixture.window->points()[std::size_t(i)].possible
                && fixture.window->points()[std::size_t(i)].candidate.family->name != "1f1b")
                possible.push_back(i);
        QVERIFY(possible.size() >= 2);
        fixture.window->take(possible[0]);
        fixture.window->take(possible.back());
        QTRY_COMPARE(fixture.document.undoStack()->index(), 1);
        QCOMPARE(fixture.document.prediction()->metrics.makespan,
                 fixture.window->points()[std::size_t(possible.back())].makespan);
        QTest::qWait(50);
        QCOMPARE(fixture.document.undoStack()->index(), 1);
    }

    void pointsAreWalkedByArrowsAndTakenByReturn()
    {
        TradeoffFixture fixture;
        QVERIFY(fixture.done());
        TradeOffPlot& plot = fixture.window->plot();
        QVERIFY(plot.hasFocus());
        QTest::keyClick(&plot, Qt::Key_Right);
        const int first = plot.current();
        for (const TradeOff& point : fixture.window->points())
            QVERIFY(!point.possible || memoryOf(point) >= memoryOf(fixture.window->points()[std::size_t(first)]));
        QTest::keyClick(&plot, Qt::Key_Right);
        QVERIFY(plot.current() != first);
        QTest::keyClick(&plot, Qt::Key_Left);
        QCOMPARE(plot.current(), first);
        QTest::keyClick(&plot, Qt::Key_Return);
        QTRY_COMPARE(fixture.document.undoStack()->index(), 1);
        QCOMPARE(fixture.document.prediction()->metrics.makespan,
                 fixture.window->points()[std::size_t(first)].makespan);
    }

    void aListedScheduleIsTakenByReturn()
    {
        TradeoffFixture fixture;
        QVERIFY(fixture.done());
        QTreeWidget* list = fixture.window->list();
        list->setFocus();
        list->setCurrentItem(list->topLevelItem(2));
        const int point = list->topLevelItem(2)->data(0, Qt::UserRole + 1).toInt();
        QCOMPARE(fixture.window->plot().current(), point);
        QTest::keyClick(list, Qt::Key_Return);
        QTRY_COMPARE(fixture.document.undoStack()->index(), 1);
        QCOMPARE(fixture.document.prediction()->metrics.makespan,
                 fixture.window->points()[std::size_t(point)].makespan);
    }

    void thePresentOrderIsTakenWithStagesThatOffload()
    {
        Document document;
        Design design = test::presetDesign();
        design.costs.hostLink = LinkCosts{1000, 1e13};
        document.reset(design);
        TradeOffWindow window(document);
        QSignalSpy finished(&window, &TradeOffWindow::finished);
        window.show();
        QVERIFY(QTest::qWaitFor([&] { return !finished.isEmpty(); }, 120'000));
        QTreeWidgetItem* row = nullptr;
        for (int i = 0; i < window.list()->topLevelItemCount(); ++i)
            if (window.list()->topLevelItem(i)->text(0).endsWith(QLatin1String(" as it is, 2 stages offload")))
                row = window.list()->topLevelItem(i);
        QVERIFY(row != nullptr);
        window.list()->setCurrentItem(row);
        QTest::keyClick(window.list(), Qt::Key_Return);
        QTRY_COMPARE(document.undoStack()->index(), 1);
        QCOMPARE(document.design().schedule.order, design.schedule.order);
        const std::vector<bool>& offload = document.design().schedule.offload;
        QCOMPARE(std::count(offload.begin(), offload.end(), true), 2);
    }

    void cancelKeepsWhatThereIsAndTheRestCanBeWorkedOutAgain()
    {
        TradeoffFixture fixture;
        QVERIFY(QTest::qWaitFor([&] { return !fixture.window->points().empty(); }, 60'000));
        if (fixture.window->isRunning())
            QTest::mouseClick(fixture.window->button(), Qt::LeftButton);
        QVERIFY(!fixture.window->isRunning());
        const std::size_t kept = fixture.window->points().size();
        QTest::qWait(50);
        QCOMPARE(fixture.window->points().size(), kept);
        QVERIFY(kept >= 1);
        fixture.finished->clear();
        QTest::mouseClick(fixture.window->button(), Qt::LeftButton);
        QVERIFY(fixture.done());
        QCOMPARE(fixture.window->points().size(), tradeOffCandidates(fixture.document.design()).size());
    }

    void theListIsReadInTheLookThatItIsSwitchedTo()
    {
        TradeoffFixture fixture;
        QVERIFY(fixture.done());
        Theme::light().apply(*qApp);
        for (int row = 0; row < fixture.window->list()->topLevelItemCount(); ++row) {
            const QColor text = fixture.window->list()->topLevelItem(row)->foreground(0).color();
            QVERIFY(text == Theme::light().text || text == Theme::light().dim);
        }
    }

    void closingWaitsForNoWorkUnderWay()
    {
        // All threads are held up: a window that waited for its work would never be gone.
        QThreadPool& pool = *QThreadPool::globalInstance();
        QSemaphore go, held;
        const int threads = pool.maxThreadCount();
        for (int i = 0; i < threads; ++i)
            pool.start([&] {
                held.release();
                go.acquire();
            });
        held.acquire(threads);
        {
            TradeoffFixture fixture;
            QVERIFY(fixture.window->isRunning());
        }
        go.release(threads);
        pool.waitForDone();
        QCoreApplication::processEvents(); // nothing is delivered to what is gone
    }

    void anotherDesignMakesThePointsStale()
    {
        TradeoffFixture fixture;
        QVERIFY(fixture.done());
        fixture.document.reset(test::familyDesign("1f1b", 4, 12));
        QVERIFY2(fixture.window->state().contains(QLatin1String("changed")), qPrintable(fixture.window->state()));
        fixture.finished->clear();
        fixture.window->close();
        fixture.window->show();
        QVERIFY(fixture.done());
        QCOMPARE(fixture.window->points().size(), tradeOffCandidates(fixture.document.design()).size());
    }
};

PIPEWRIGHT_TEST(TestTradeOffWindow, QApplication)
#include "tst_tradeoffwindow.moc"
