// SPDX-License-Identifier: GPL-3.0-or-later
// Another tool's recording in a window: opened in the background, walked through by mouse and keys, measured,
// folded, and exported as a picture.
#include "gui/timeline/timelinepainter.h"
#include "gui/trace/activityview.h"
#include "gui/trace/devicetimelist.h"
#include "gui/trace/notelist.h"
#include "gui/trace/querywindow.h"
#include "gui/trace/tracewindow.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/theme.h"
#include "testmain.h"
#include "tracewindowfixture.h"

#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QHeaderView>
#include <QImage>
#include <QLineEdit>
#include <QListWidget>
#include <QPainter>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTabWidget>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeWidget>
#include <QWheelEvent>

using namespace pipewright;
using namespace pipewright::test;

class TestTraceWindow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void lanesStandUnderTheirDevicesAndProcesses()
    {
        TraceWindowFixture fixture;
        QVERIFY(fixture.isOpen());
        QStringList names;
        for (const ActivityRows::Row& row : fixture.view().rows().rows())
            names << row.name;
        const QStringList expected{"GPU 0", "stream 7", "GPU memory", "GPU 1", "stream 7", "python", "thread 1"};
        QCOMPARE(names, expected);
        QCOMPARE(fixture.view().rows().rows().back().tracks, 2u); // launches lie inside the ranges
        QVERIFY(fixture.window.state().contains(QLatin1String("24 slices")));
    }

    void aClickSelectsAndTheFactsSayWhatItIs()
    {
        TraceWindowFixture fixture;
        QVERIFY(fixture.isOpen());
        const SliceId gemm = fixture.slice("gemm", 1);
        fixture.click(gemm);
        QVERIFY(fixture.view().selection() == gemm);
        QCOMPARE(fixture.window.facts().value("name"), QString("gemm"));
        QCOMPARE(fixture.window.facts().value("duration"), QString("5\u00a0µs"));
        QCOMPARE(fixture.window.facts().value("device"), QString("GPU 0"));
        QTest::keyClick(&fixture.view(), Qt::Key_Escape);
        QVERIFY(!fixture.view().selection());
    }

    void keysWalkAndLeadFromALaunchToItsKernelAndBack()
    {
        TraceWindowFixture fixture;
        QVERIFY(fixture.isOpen());
        const SliceId launch = fixture.slice("cudaLaunchKernel");
        fixture.view().select(launch);
        QTest::keyClick(&fixture.view(), Qt::Key_BracketRight);
        QVERIFY(fixture.view().selection() == fixture.slice("gemm"));
        QTest::keyClick(&fixture.view(), Qt::Key_Period);
        QVERIFY(fixture.view().selection() == fixture.slice("gemm", 1));
        QTest::keyClick(&fixture.view(), Qt::Key_Comma);
        QTest::keyClick(&fixture.view(), Qt::Key_Comma); // there is none before the first
        QVERIFY(fixture.view().selection() == fixture.slice("gemm"));
        QTest::keyClick(&fixture.view(), Qt::Key_BracketLeft);
        QVERIFY(fixture.view().selection() == launch);
    }

    void arrowsOfTheTraceLeadOnAndBack()
    {
        TraceWindowFixture fixture;
        QVERIFY(fixture.isOpen());
        fixture.view().select(fixture.slice("gemm"));
        QTest::keyClick(&fixture.view(), Qt::Key_BracketRight);
        QVERIFY(fixture.view().selection() == fixture.slice("slow gemm", 2));
        fixture.view().select(fixture.slice("gemm", 1)); // launched as well, and without an arrow
        QTest::keyClick(&fixture.view(), Qt::Key_BracketRight);
        QVERIFY(fixture.view().selection() == fixture.slice("gemm", 1));
    }

    void aTouchpadScrollsLanesAndPansSideways()
    {
        TraceWindowFixture fixture;
        ActivityView view; // lower than its lanes
        view.resize(900, 160);
        view.setTrace(std::make_shared<const StoredActivities>(readActivities(fixture.path.toStdString())));
        view.show();
        QVERIFY(QTest::qWaitForWindowExposed(&view));
        QVERIFY(view.verticalScrollBar()->maximum() > 20);
        const auto swipe = [&](QPoint pixels) {
            const QPointF at(view.axis().left + 300, 100);
            QWheelEvent wheel(at, view.viewport()->mapToGlobal(at), pixels, pixels * 4, Qt::NoButton, Qt::NoModifier,
                              Qt::ScrollUpdate, false);
            QApplication::sendEvent(view.viewport(), &wheel);
        };
        view.showRange(10'000, 20'000);
        const double start = view.axis().start, pixel = view.axis().nsPerPixel;
        swipe({-40, 7}); // diagonal: the longer way counts
        QVERIFY(std::abs(view.axis().start - start - 40 * pixel) < pixel);
        swipe({3, -20});
        QCOMPARE(view.verticalScrollBar()->value(), 20);
    }

    void theWheelZoomsAtTheCursorAndKeysPan()
    {
        TraceWindowFixture fixture;
        QVERIFY(fixture.isOpen());
        ActivityView& view = fixture.view();
        const QPointF at(view.axis().left + 300, 200);
        const double under = view.axis().timeAt(at.x());
        QWheelEvent wheel(at, view.viewport()->mapToGlobal(at), {}, {0, 480}, Qt::NoButton, Qt::ControlModifier,
                          Qt::NoScrollPhase, false);
        QApplication::sendEvent(view.viewport(), &wheel);
        QVERIFY(view.axis().nsPerPixel < double(view.total()) / view.axis().width / 2);
        QVERIFY(std::abs(view.axis().timeAt(at.x()) - under) < view.axis().nsPerPixel);
        const double start = view.axis().start;
        QTest::keyClick(&view, Qt::Key_D);
        QVERIFY(view.axis().start > start);
        QTest::keyClick(&view, Qt::Key_0);
        QVERIFY(view.axis().end() >= double(view.total()));
    }

    void aDragOverTheRulerMeasuresAndTheTablesFollow()
    {
        TraceWindowFixture fixture;
        QVERIFY(fixture.isOpen());
        QVERIFY(fixture.isSummed());
        ActivityView& view = fixture.view();
        QCOMPARE(fixture.window.lanes()->topLevelItemCount(), 3);
        // The slowest device comes first: its stream is busy longest.
        QVERIFY2(fixture.window.lanes()->topLevelItem(0)->text(0).startsWith(QLatin1String("GPU 1")),
                 qPrintable(fixture.window.lanes()->topLevelItem(0)->text(0)));
        const int from = int(view.axis().xOf(9'000)), to = int(view.axis().xOf(16'500));
        QTest::mousePress(view.viewport(), Qt::LeftButton, {}, QPoint(from, 10));
        QTest::mouseMove(view.viewport(), QPoint((from + to) / 2, 12));
        QTest::mouseMove(view.viewport(), QPoint(to, 12));
        QTest::mouseRelease(view.viewport(), Qt::LeftButton, {}, QPoint(to, 12));
        QVERIFY(view.range().has_value());
        QVERIFY(fixture.isSummed());
        bool found = false;
        for (int i = 0; i < fixture.window.names()->topLevelItemCount(); ++i)
            if (fixture.window.names()->topLevelItem(i)->text(0) == QLatin1String("gemm")) {
                found = true;
                QCOMPARE(fixture.window.names()->topLevelItem(i)->text(1), QString("1"));
            }
        QVERIFY(found);
        QTest::keyClick(&view, Qt::Key_Escape);
        QVERIFY(!view.range());
    }

    void aRowOfTheTableLeadsToTheLongestSlice()
    {
        TraceWindowFixture fixture;
        QVERIFY(fixture.isOpen());
        QVERIFY(fixture.isSummed());
        QTreeWidget* names = fixture.window.names();
        names->setFocus();
        names->setCurrentItem(names->topLevelItem(0)); // the most time
        QTest::keyClick(names, Qt::Key_Return);
        QVERIFY(fixture.view().selection());
        QCOMPARE(fixture.window.facts().value("name"), QString("slow gemm"));
    }

    void headingsFoldAndARevealedSliceUnfoldsThem()
    {
        TraceWindowFixture fixture;
        QVERIFY(fixture.isOpen());
        ActivityView& view = fixture.view();
        const int height = view.rows().height();
        const SliceId gemm = fixture.slice("gemm");
        QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, QPoint(20, TimelinePainter::rulerHeight + 10));
        QVERIFY(view.rows().height() < height);
        QVERIFY(view.rectOf(gemm).isEmpty());
        view.select(gemm, true);
        QCOMPARE(view.rows().height(), height);
        QVERIFY(!view.rectOf(gemm).isEmpty());
    }

    void manySlicesArePaintedByPixels()
    {
        TraceWindowFixture fixture(manyKernels(200'000, 4));
        QVERIFY(fixture.isOpen());
        const StoredActivities& trace = *fixture.view().trace();
        const ActivityPainter painter(Theme::dark(), trace, 1);
        QImage image(1200, 40, QImage::Format_RGB32);
        QPainter into(&image);
        const TimeAxis axis = fitted({0, 1, 0, 1200}, 0, double(fixture.view().total()));
        std::size_t rectangles = 0;
        const std::vector<QRgb> ground(1200, qRgb(1, 2, 3));
        for (const Track& track : trace.tracks)
            rectangles = std::max(rectangles, painter.track(into, axis, QRect(0, 0, 1200, 20), track, ground, {}));
        QVERIFY2(rectangles > 100 && rectangles <= 2 * 1200, qPrintable(QString::number(rectangles)));
        into.end();
        for (const int y : {0, 19}) { // the slices reach from top to bottom
            int free = 0;
            for (int x = 0; x < 1200; ++x)
                free += image.pixel(x, y) == qRgb(1, 2, 3);
            QVERIFY2(free < 600, qPrintable(QString::number(free)));
        }
    }

    void aPictureIsWritten()
    {
        TraceWindowFixture fixture;
        QVERIFY(fixture.isOpen());
        const QString path = fixture.folder.filePath(QStringLiteral("view.png"));
        QVERIFY(fixture.window.exportTo(path));
        QCOMPARE(QImage(path).size(), (fixture.view().size() * fixture.view().devicePixelRatioF()));
        QVERIFY(!fixture.window.exportTo(QStringLiteral("/nowhere/view.png")));
        QVERIFY(fixture.window.state().contains(QLatin1String("cannot")));
    }

    void anotherToolsFileIsImportedOnceAndKept()
    {
        TraceWindowFixture fixture;
        QVERIFY(fixture.isOpen());
        QFile json(fixture.folder.filePath(QStringLiteral("run.pt.trace.json")));
        QVERIFY(json.open(QIODevice::WriteOnly));
        json.write(
            R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10, "dur": 5,)"
            R"( "args": {"device": 0, "stream": 7}}]})");
        json.close();
        QFile design(fixture.folder.filePath(QStringLiteral("design.json")));
        QVERIFY(design.open(QIODevice::WriteOnly));
        design.write(R"({"pipewright": 1, "name": "a design"})");
        design.close();
        QVERIFY(TraceWindow::opens(json.fileName()));
        QVERIFY(TraceWindow::opens(fixture.path));
        QVERIFY(!TraceWindow::opens(design.fileName()));
        QVERIFY(!TraceWindow::opens(QStringLiteral("/nowhere")));
        const QString cache = fixture.folder.filePath(QStringLiteral("cache"));
        for (int time = 0; time < 2; ++time) {
            fixture.opened.clear();
            fixture.window.open(json.fileName(), cache);
            QVERIFY2(fixture.isOpen(), qPrintable(fixture.window.state()));
            QCOMPARE(fixture.view().trace()->slices(), 1u);
            QCOMPARE(QDir(cache).entryList(QDir::Files).size(), 1);
        }
    }

    void slicesOfOneGpuAreToldApart()
    {
        DeviceTimes times;
        times.to = 1000;
        for (int device = 0; device < 2; ++device) {
            DeviceTime& each = times.devices.emplace_back();
            each.device = device;
            each.name = "GPU 0 (NVIDIA H100 80GB HBM3), 32 multiprocessors, device " + std::to_string(device);
        }
        DeviceTimeList list;
        list.setTimes(times, {});
        QCOMPARE(list.topLevelItem(1)->text(0), QString("device 1"));
        QVERIFY(list.topLevelItem(1)->toolTip(0).startsWith("GPU 0 (NVIDIA H100"));
    }

    void theSlowestDeviceAndItsReasonAreSaidAndLedTo()
    {
        TraceData data = launches();
        const auto steps = addLane(data, TraceLane::Kind::Thread, 0, 77, 2, -1, "thread 2");
        addActivity(data, steps, ActivityKind::Range, "ProfilerStep#7", 0, 26'000);
        addActivity(data, steps, ActivityKind::Range, "ProfilerStep#8", 26'000, 60'000);
        TraceWindowFixture fixture(std::move(data));
        QVERIFY(fixture.isOpen());
        QVERIFY(fixture.isSummed());
        QVERIFY2(fixture.window.verdict().startsWith(QLatin1String("GPU 1 holds up the others")),
                 qPrintable(fixture.window.verdict()));
        QVERIFY2(fixture.window.verdict().contains(QLatin1String("most of it computing")),
                 qPrintable(fixture.window.verdict()));
        QVERIFY2(fixture.window.stretch().contains("all steps"), qPrintable(fixture.window.stretch()));
        DeviceTimeList* devices = fixture.window.devices();
        QCOMPARE(devices->topLevelItemCount(), 2);
        QCOMPARE(devices->topLevelItem(0)->text(0), QString("GPU 0"));
        // Captions are whole words that fit, and leave room for the names.
        QStringList captions;
        for (int column = 1; column < devices->columnCount(); ++column) {
            if (devices->isColumnHidden(column)) // of idle time that is not known, since here all of it is
                continue;
            captions << devices->headerItem()->text(column);
            QVERIFY(devices->header()->sectionSize(column) >= devices->header()->sectionSizeHint(column));
        }
        QCOMPARE(captions.join(u' '), QString("computing communication copies host gap launching waiting"));
        QVERIFY2(
            devices->header()->length() <= devices->viewport()->width(),
            qPrintable(QStringLiteral("%1 in %2").arg(devices->header()->length()).arg(devices->viewport()->width())));
        QVERIFY2(devices->header()->sectionSize(0) >= 60,
                 qPrintable(QString::number(devices->header()->sectionSize(0))));
        // A gap leads to what ends it.
        QTreeWidgetItem* gap = nullptr;
        QStringList gaps;
        for (int i = 0; i < devices->topLevelItem(0)->childCount(); ++i) {
            QTreeWidgetItem* item = devices->topLevelItem(0)->child(i);
            gaps << item->text(0);
            if (!gap && item->text(0).contains(QLatin1String("host gap, before gemm")))
                gap = item;
        }
        QVERIFY2(gap, qPrintable(gaps.join(QStringLiteral("; "))));
        devices->setCurrentItem(gap);
        QVERIFY(fixture.view().selection() && fixture.view().selection()->track == fixture.slice("gemm").track);
        QVERIFY(double(fixture.view().total()) > fixture.view().axis().end() - fixture.view().axis().start);
        // A step is explained for itself: one kernel of each device lies in the first, and a part of the second.
        QComboBox* step = fixture.window.stepPicker();
        QVERIFY(step->isVisible());
        QCOMPARE(step->count(), 3);
        step->setCurrentIndex(1);
        Q_EMIT step->activated(1);
        QVERIFY(fixture.view().range() == std::pair(Nanoseconds{0}, Nanoseconds{26'000}));
        QVERIFY(fixture.isSummed());
        QCOMPARE(devices->topLevelItem(1)->text(1), QString("46.2\u00a0%")); // 8 + 4 of 26 us
        Q_EMIT step->activated(0);
        QVERIFY(!fixture.view().range());
    }

    void theWindowFitsASmallScreenWhateverItOpens()
    {
        QWidget designer;
        TraceWindow window(&designer); // with a button more than alone
        window.show();
        window.open(
            {QStringLiteral("/a/recording with a name that nobody would want to write on a small screen.json")});
        QVERIFY2(window.minimumSizeHint().width() <= 960,
                 qPrintable(QString::number(window.minimumSizeHint().width())));
        QSignalSpy failed(&window, &TraceWindow::failed);
        QTRY_VERIFY(!failed.isEmpty());
        window.stepPicker()->addItem(QStringLiteral("ProfilerStep#7, 143.9 ms"));
        window.stepPicker()->show();
        QVERIFY2(window.minimumSizeHint().width() <= 960,
                 qPrintable(QString::number(window.minimumSizeHint().width())));
        QVERIFY(window.minimumSizeHint().height() <= 560);
    }

    void aTraceWithoutKernelsBeginsWithNames()
    {
        TraceData data;
        data.tool = "made up";
        data.source = "made-up.json";
        const auto thread = addLane(data, TraceLane::Kind::Thread, 0, 77, 1, -1, "thread 1");
        addActivity(data, thread, ActivityKind::Range, "PP:0F0", 1'000, 2'000);
        TraceWindowFixture fixture(std::move(data));
        QVERIFY(fixture.isOpen());
        QTRY_VERIFY_WITH_TIMEOUT(!fixture.window.devices()->isVisible(), 20'000);
        QVERIFY(fixture.window.names()->isVisible());
    }

    void devicesAreJudgedOverTheTimeInWhichTheyRan()
    {
        TraceData data = launches();
        const auto host = addLane(data, TraceLane::Kind::Thread, 0, 77, 2, -1, "thread 2");
        addActivity(data, host, ActivityKind::Range, "main", 0, 10'000'000);
        TraceWindowFixture fixture(std::move(data));
        QVERIFY(fixture.isOpen());
        QVERIFY(fixture.isSummed());
        const QTreeWidget* devices = fixture.window.devices();
        QCOMPARE(devices->topLevelItem(0)->text(1),
                 QString("50.0\u00a0%")); // 20 of the 40 us from first to last kernel
        // The heading is of the table below it.
        QVERIFY2(fixture.window.stretch().startsWith(QStringLiteral("the 40\u00a0µs in which devices ran")),
                 qPrintable(fixture.window.stretch()));
        fixture.window.findChild<QTabWidget*>()->setCurrentIndex(1);
        QVERIFY2(fixture.window.stretch().startsWith(QStringLiteral("the visible ")),
                 qPrintable(fixture.window.stretch()));
        fixture.view().setRange(std::pair(Nanoseconds{0}, Nanoseconds{1'000'000}));
        QVERIFY(fixture.isSummed());
        QCOMPARE(devices->topLevelItem(0)->text(1), QString("2.0\u00a0%"));
        QCOMPARE(fixture.window.stretch(), QStringLiteral("the measured 1\u00a0ms"));
    }

    void notesSurviveAndAreInTheReport()
    {
        TraceWindowFixture fixture;
        QVERIFY(fixture.isOpen());
        fixture.view().setRange(std::pair(Nanoseconds{10'000}, Nanoseconds{20'000}));
        QTest::keyClick(&fixture.view(), Qt::Key_N);
        QTRY_VERIFY(fixture.window.notes()->field()->hasFocus());
        QTest::keyClicks(fixture.window.notes()->field(), QStringLiteral("the first two"));
        QTest::keyClick(fixture.window.notes()->field(), Qt::Key_Return);
        QVERIFY(QFile::exists(fixture.path + QStringLiteral(".notes.json")));
        fixture.view().setRange(std::nullopt);
        fixture.opened.clear();
        fixture.window.open(fixture.path);
        QVERIFY(fixture.isOpen());
        QCOMPARE(fixture.window.notes()->notes().size(), 1u);
        fixture.window.notes()->list()->setCurrentRow(0);
        QVERIFY(fixture.view().range() == std::pair(Nanoseconds{10'000}, Nanoseconds{20'000}));
        const QString report = fixture.folder.filePath(QStringLiteral("report.html"));
        QSignalSpy reported(&fixture.window, &TraceWindow::reported);
        fixture.window.reportTo(report);
        QVERIFY(QTest::qWaitFor([&] { return !reported.isEmpty(); }, 60'000));
        QFile file(report);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray html = file.readAll();
        for (const char* part :
             {"<svg", "the first two", "GPU 1 holds up the others", "slow gemm", "events without a duration"})
            QVERIFY2(html.contains(part), part);
        reported.clear();
        fixture.window.reportTo(QStringLiteral("/nowhere/report.html"));
        QVERIFY(QTest::qWaitFor([&] { return !reported.isEmpty(); }, 60'000));
        QCOMPARE(reported[0][0].toString(), QString());
        // The last note takes its file along.
        fixture.window.notes()->list()->setCurrentRow(0);
        fixture.window.notes()->removeCurrent();
        QVERIFY(!QFile::exists(fixture.path + QStringLiteral(".notes.json")));
        // Notes that cannot be read are not written over.
        QFile broken(fixture.path + QStringLiteral(".notes.json"));
        QVERIFY(broken.open(QIODevice::WriteOnly));
        broken.write("mine");
        broken.close();
        fixture.opened.clear();
        fixture.window.open(fixture.path);
        QVERIFY(fixture.isOpen());
        QVERIFY(!fixture.window.notes()->field()->isEnabled());
    }

    void theTraceAnswersSqlBesideItsSchema()
    {
        TraceWindowFixture fixture;
        QVERIFY(fixture.isOpen());
        fixture.window.showQuery();
        QueryWindow& query = *fixture.window.query();
        const QList<QTreeWidgetItem*> kernels =
            query.tables()->findItems(QStringLiteral("CUPTI_ACTIVITY_KIND_KERNEL"), Qt::MatchExactly);
        QCOMPARE(kernels.size(), 1);
        QCOMPARE(kernels[0]->text(1), QString("8"));
        QVERIFY(kernels[0]->childCount() > 5);
        QVERIFY(query.statement()->toPlainText().contains(
            QLatin1String("CUPTI_ACTIVITY_KIND_KERNEL"))); // a first question stands there
        const auto answer = [&](const char* sql) {
            QSignalSpy answered(&query, &QueryWindow::answered);
            query.statement()->setPlainText(QLatin1String(sql));
            QTest::keyClick(query.statement(), Qt::Key_Return, Qt::ControlModifier);
            return QTest::qWaitFor([&] { return !answered.isEmpty(); }, 60'000);
        };
        QVERIFY(QTest::qWaitForWindowActive(&query));
        query.statement()->setFocus();
        QVERIFY2(answer("SELECT deviceId, count(*) AS kernels FROM CUPTI_ACTIVITY_KIND_KERNEL GROUP BY deviceId"),
                 qPrintable(query.state()));
        QCOMPARE(query.rows()->rowCount(), 2);
        QCOMPARE(query.rows()->horizontalHeaderItem(1)->text(), QString("kernels"));
        QCOMPARE(query.rows()->item(1, 1)->text(), QString("4"));
        QVERIFY(answer("DELETE FROM LANES"));
        QVERIFY2(query.state().contains(QLatin1String("only reading")), qPrintable(query.state()));
        // One that never ends is stopped.
        QSignalSpy answered(&query, &QueryWindow::answered);
        query.statement()->setPlainText(
            QStringLiteral("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"));
        query.run();
        query.stop();
        QCOMPARE(query.state(), QString("stopped"));
        QVERIFY(answer("SELECT 1"));
        QCOMPARE(query.rows()->item(0, 0)->text(), QString("1"));
    }

    void whatIsNoTraceSaysSo()
    {
        TraceWindowFixture fixture;
        QVERIFY(fixture.isOpen());
        QFile broken(fixture.folder.filePath(QStringLiteral("broken.db")));
        QVERIFY(broken.open(QIODevice::WriteOnly));
        broken.write("no database at all");
        broken.close();
        fixture.window.open(broken.fileName());
        QVERIFY(QTest::qWaitFor([&] { return !fixture.failed.isEmpty(); }, 60'000));
        QVERIFY2(fixture.window.state().contains(QLatin1String("broken.db")), qPrintable(fixture.window.state()));
        QVERIFY(fixture.view().trace()->slices() > 0); // what was open stays
    }
};

PIPEWRIGHT_TEST(TestTraceWindow, QApplication)
#include "tst_tracewindow.moc"
