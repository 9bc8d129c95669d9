// SPDX-License-Identifier: GPL-3.0-or-later
// The dock below the lanes: its pages, what each says, and that the chosen one is remembered.
#include "core/predict/stagememory.h"
#include "gui/compare/comparewindow.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/designer/otherwindows.h"
#include "gui/dock/dock.h"
#include "gui/dock/steptable.h"
#include "gui/memory/memorypanel.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/copying.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "testmain.h"

#include <QApplication>
#include <QPushButton>
#include <QTest>

using namespace pipewright;

namespace {

using Fixture = MainWindowFixture;

StepTable* tableOf(MainWindow& window, const char* page)
{
    window.dock().showPage(QLatin1String(page));
    QTest::qWait(0);
    return window.dock().currentWidget()->findChild<StepTable*>();
}

QString cell(const StepTable& table, int row, int column)
{
    return table.model()->index(row, column).data().toString();
}

} // namespace

class TestDock : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void theChosenPageReturnsNextTime()
    {
        Fixture fixture;
        QCOMPARE(fixture.window.dock().currentWidget()->objectName(), QStringLiteral("memory"));
        QVERIFY(fixture.window.memory().isVisible());
        fixture.window.dock().showPage(QStringLiteral("microbatches"));
        QVERIFY(!fixture.window.memory().isVisible());
        MainWindow next(fixture.options());
        QCOMPARE(next.dock().currentWidget()->objectName(), QStringLiteral("microbatches"));
        for (int page = 0; page < next.dock().count(); ++page) // none needs more than the dock has
            QVERIFY(next.dock().minimumSizeHint().height() <= 128);
    }

    void memoryIsShownByKindAsItIsPredicted()
    {
        Fixture fixture;
        Document& document = fixture.document();
        const int device = fixture.window.memory().device();
        const DeviceMemory expected = deviceMemory(document.design(), *document.prediction(), device);
        const DeviceMemory whole =
            memoryBreakdown(document.design(), *document.prediction()).devices[static_cast<std::size_t>(device)];
        QVERIFY(expected == whole);
        const QStringList texts = fixture.window.memory().kindTexts();
        QVERIFY(texts.contains(QStringLiteral("activations ") + sizeText(expected.activations)));
        QVERIFY(texts.contains(QStringLiteral("optimizer ") + sizeText(expected.optimizer)));
        document.select(Block{Op::F, 0, 0, 0});
        const DeviceMemory first = deviceMemory(document.design(), *document.prediction(), 0);
        QVERIFY(
            fixture.window.memory().kindTexts().contains(QStringLiteral("activations ") + sizeText(first.activations)));
    }

    void everyTransferHasARow()
    {
        Fixture fixture;
        const Prediction& prediction = *fixture.document().prediction();
        StepTable* table = tableOf(fixture.window, "transfers");
        QVERIFY(table);
        QCOMPARE(table->model()->rowCount(), int(prediction.transfers));
        Nanoseconds earliest = std::numeric_limits<Nanoseconds>::max();
        for (TaskId task = 0; task < prediction.program.tasks.size(); ++task)
            if (prediction.program.tasks[task].kind == TaskKind::Transfer)
                earliest = std::min(earliest, prediction.timeline.start[task]);
        QCOMPARE(cell(*table, 0, 0), durationText(earliest)); // sorted by start
        QCOMPARE(cell(*table, 0, 1), QStringLiteral("F0.0"));
        QCOMPARE(cell(*table, 0, 2), deviceLabel(fixture.document().design(), 0));
        table->setCurrentIndex(table->model()->index(0, 0));
        QCOMPARE(fixture.document().selection(), std::optional(Block{Op::F, 0, 0, 0}));
        // Sorted by what they take, the longest first.
        table->sortByColumn(5, Qt::DescendingOrder);
        Nanoseconds longest = 0;
        for (TaskId task = 0; task < prediction.program.tasks.size(); ++task)
            if (prediction.program.tasks[task].kind == TaskKind::Transfer)
                longest = std::max(longest, prediction.timeline.end[task] - prediction.timeline.start[task]);
        QCOMPARE(cell(*table, 0, 5), durationText(longest));
    }

    void everyMicrobatchHasARowThatFollowsAnEdit()
    {
        Fixture fixture;
        StepTable* table = tableOf(fixture.window, "microbatches");
        QVERIFY(table);
        QCOMPARE(table->model()->rowCount(), fixture.document().design().schedule.microbatches);
        const auto ends = [&](int microbatch) {
            const Prediction& prediction = *fixture.document().prediction();
            Nanoseconds end = 0;
            for (TaskId task = 0; task < prediction.program.tasks.size(); ++task)
                if (const Task& each = prediction.program.tasks[task];
                    each.kind == TaskKind::Compute && each.op != Op::U && each.microbatch() == microbatch)
                    end = std::max(end, prediction.timeline.end[task]);
            return durationText(end);
        };
        for (int row = 0; row < table->model()->rowCount(); ++row)
            QCOMPARE(cell(*table, row, 3), ends(row));
        fixture.document().apply(PinBlock{{Op::F, 0, 1, 0}, 500'000'000});
        for (int row = 0; row < table->model()->rowCount(); ++row)
            QCOMPARE(cell(*table, row, 3), ends(row));
        // Behind another page it is empty, and right again when it is seen.
        fixture.window.dock().showPage(QStringLiteral("memory"));
        fixture.document().undoStack()->undo();
        QCOMPARE(table->model()->rowCount(), 0);
        fixture.window.dock().showPage(QStringLiteral("microbatches"));
        for (int row = 0; row < table->model()->rowCount(); ++row)
            QCOMPARE(cell(*table, row, 3), ends(row));
        QCOMPARE(table->model()->rowCount(), fixture.document().design().schedule.microbatches);
    }

    void tablesAreCopiedAsTextAndCsv()
    {
        Fixture fixture;
        StepTable* table = tableOf(fixture.window, "microbatches");
        table->selectRow(2);
        const QString text = copyOf(*table, CopyAs::Tabs, true);
        QCOMPARE(text.count(QLatin1Char('\n')), 2); // headings, and the row
        QVERIFY(text.section(QLatin1Char('\n'), 1).startsWith(QStringLiteral("2\t")));
        const QString csv = copyOf(*table, CopyAs::Csv, false);
        QCOMPARE(csv.count(QStringLiteral("\r\n")), 1 + table->model()->rowCount());
        QVERIFY(csv.startsWith(QStringLiteral("microbatch,begins,")));
    }

    void theComparisonStandsInTheDockUntilItIsAWindow()
    {
        Fixture fixture;
        fixture.window.dock().showPage(QStringLiteral("compare"));
        QTest::qWait(0);
        auto* compare = fixture.window.others().find<CompareWindow>();
        QVERIFY(compare && compare->isVisible() && !compare->isWindow());
        QCOMPARE(compare->count(), 1);
        QTest::keyClick(compare, Qt::Key_Escape); // closes a window, and no page
        QVERIFY(compare->isVisible());
        fixture.window.others().open<CompareWindow>();
        QVERIFY(compare->isWindow() && compare->isVisible());
        QVERIFY(compare->height() > 500);
        compare->close();
        QTRY_VERIFY(!compare->isWindow() && compare->isVisible()); // back in the dock
        fixture.window.dock().showPage(QStringLiteral("memory"));
        QVERIFY(!compare->isVisible());
        fixture.window.others().open<CompareWindow>();
        QVERIFY(compare->isWindow());
        compare->close();
        QTest::qWait(0);
        QVERIFY(!compare->isVisible());
    }
};

PIPEWRIGHT_TEST(TestDock, QApplication)

#include "tst_dock.moc"
