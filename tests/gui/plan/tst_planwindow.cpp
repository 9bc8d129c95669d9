// SPDX-License-Identifier: GPL-3.0-or-later
// The window that plans: asked for model, cluster and batch it finds what `plan` finds, opens and exports it; cancelled
// and closed while it runs.
#include "core/exchange/exchange.h"
#include "gui/plan/planfixture.h"
#include "gui/search/tradeoffplot.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "testmain.h"

#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QFile>
#include <QListWidget>
#include <QMenu>
#include <QSemaphore>
#include <QTemporaryDir>
#include <QThreadPool>

#include <algorithm>

using namespace pipewright;
using test::PlanFixture;

namespace {

QString contentOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

} // namespace

class TestPlanWindow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void theDesignIsTheFirstChoiceAndTheListIsThatOfTheCommand()
    {
        PlanFixture fixture;
        QCOMPARE(fixture.window->fields().devices()->value(), 4);
        QCOMPARE(fixture.window->fields().batch()->value(), fixture.document.design().schedule.microbatches);
        QVERIFY(!fixture.window->openButton()->isEnabled() && !fixture.window->result());
        PlanRequest request = fixture.window->fields().request();
        QCOMPARE(request.shape.layers, 6);
        QVERIFY(fixture.plan());
        const PlanResult& shown = *fixture.window->result();
        const PlanResult found = findPlans(request);
        QVERIFY(shown.complete && shown.frontierComplete);
        QVERIFY2(fixture.window->state().startsWith(QLatin1String("Complete")), qPrintable(fixture.window->state()));
        QVERIFY2(fixture.window->costs().contains(QLatin1String("predicted")), qPrintable(fixture.window->costs()));
        QVERIFY2(fixture.window->costs().contains(QLatin1String("formula")), qPrintable(fixture.window->costs()));
        QCOMPARE(shown.plans.size(), found.plans.size());
        QCOMPARE(shown.frontier, found.frontier);
        QCOMPARE(fixture.window->table().rowCount(), int(found.plans.size()));
        Nanoseconds longest = 0;
        for (const TrainingPlan& plan : found.plans)
            longest = std::max(longest, plan.step);
        for (int row = 0; row < fixture.window->table().rowCount(); ++row) {
            QCOMPARE(shown.plans[std::size_t(row)].step, found.plans[std::size_t(row)].step);
            QCOMPARE(fixture.window->table().text(row, PlanTable::Step),
                     durationText(found.plans[std::size_t(row)].step, longest));
        }
        // The first is chosen, and says why it stands there.
        QCOMPARE(fixture.window->table().currentPlan(), 0);
        QVERIFY(fixture.why().startsWith(QString::fromStdString(found.plans[0].why)));
        QVERIFY(fixture.window->openButton()->isEnabled());
    }

    void aRowOpensWithItsStepAndOneUndoBringsTheDesignBack()
    {
        PlanFixture fixture;
        QVERIFY(fixture.plan());
        const Design before = fixture.document.design();
        const std::vector<TrainingPlan>& plans = fixture.window->result()->plans;
        PlanTable& table = fixture.window->table();
        for (int row = 0; row < table.rowCount(); ++row) {
            table.setFocus();
            table.setCurrentPlan(row);
            if (row % 2 == 0)
                QTest::keyClick(&table, Qt::Key_Return);
            else
                QTest::mouseClick(fixture.window->openButton(), Qt::LeftButton);
            QTRY_COMPARE(fixture.document.undoStack()->index(), row + 1);
            QCOMPARE(fixture.document.prediction()->metrics.makespan, plans[std::size_t(row)].step);
            Bytes peak = 0;
            for (const DeviceMetrics& device : fixture.document.prediction()->metrics.devices)
                peak = std::max(peak, device.peakBytes);
            QCOMPARE(peak, plans[std::size_t(row)].peak);
        }
        QCOMPARE(fixture.window->fields().devices()->value(), 4); // what was asked for stays
        while (fixture.document.undoStack()->canUndo())
            fixture.document.undoStack()->undo();
        QCOMPARE(fixture.document.design(), before);
    }

    void cancelKeepsTheBestSoFarAndSaysThatItIsNotComplete()
    {
        PlanFixture fixture;
        fixture.takeLargeModel();
        QTest::mouseClick(fixture.window->button(), Qt::LeftButton);
        QVERIFY(fixture.window->isRunning() && !fixture.window->result());
        // The list grows while it runs.
        QVERIFY(QTest::qWaitFor([&] { return fixture.window->table().rowCount() >= 3; }, 240'000));
        QVERIFY2(fixture.window->state().contains(QLatin1String("not proved yet")),
                 qPrintable(fixture.window->state()));
        QVERIFY(!fixture.window->openButton()->isEnabled());
        QTest::mouseClick(fixture.window->button(), Qt::LeftButton);
        QVERIFY(fixture.comes(*fixture.finished));
        QVERIFY(!fixture.window->isRunning());
        QVERIFY(!fixture.window->result()->complete && !fixture.window->result()->plans.empty());
        QVERIFY2(fixture.window->state().startsWith(QLatin1String("Stopped: not complete")),
                 qPrintable(fixture.window->state()));
        // What there is can be opened.
        QTest::mouseClick(fixture.window->openButton(), Qt::LeftButton);
        QCOMPARE(fixture.document.prediction()->metrics.makespan, fixture.window->result()->plans.front().step);
    }

    void closingWhileItRunsEndsTheSearch()
    {
        PlanFixture fixture;
        fixture.takeLargeModel();
        QTest::mouseClick(fixture.window->button(), Qt::LeftButton);
        QVERIFY(QTest::qWaitFor([&] { return fixture.window->table().rowCount() >= 1; }, 240'000));
        fixture.window->close();
        QVERIFY(fixture.comes(*fixture.finished));
        QVERIFY(!fixture.window->isRunning() && !fixture.window->result()->complete);
        fixture.window->show(); // what was found is still there
        QVERIFY(fixture.window->table().rowCount() >= 1);
    }

    void destroyingTheWindowWaitsForNoWorkUnderWay()
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
            PlanFixture fixture;
            fixture.window->start();
            QVERIFY(fixture.window->isRunning());
        }
        go.release(threads);
        pool.waitForDone();
        QCoreApplication::processEvents(); // nothing is delivered to what is gone
    }

    void plansAreWrittenAsConfigurations()
    {
        PlanFixture fixture;
        fixture.window->fields().familySet()->setCurrentIndex(PlanFields::Megatron);
        QVERIFY(fixture.plan());
        QTemporaryDir folder;
        const Design& best = fixture.window->result()->plans.front().design;
        const QString arguments = folder.filePath(QStringLiteral("a.txt"));
        QVERIFY2(fixture.window->exportTo(0, "megatron-args", arguments), qPrintable(fixture.window->state()));
        QCOMPARE(contentOf(arguments), QString::fromStdString(exportFormat("megatron-args").write(best, {}).text));
        QVERIFY(contentOf(arguments).contains(QLatin1String("--num-layers 6")));
        // torchtitan's file names the schedule, which is written too.
        const QString python = folder.filePath(QStringLiteral("plan.py"));
        QVERIFY2(fixture.window->exportTo(0, "torchtitan", python), qPrintable(fixture.window->state()));
        QVERIFY(contentOf(python).contains(QLatin1String("\"plan.csv\"")));
        QCOMPARE(contentOf(folder.filePath(QStringLiteral("plan.csv"))),
                 QString::fromStdString(exportFormat("pytorch-csv").write(best, {}).text));
        QVERIFY(fixture.window->state().contains(QLatin1String("plan.csv")));
        // Each way is in the menu once; a folder that is not there is told.
        QStringList names;
        for (const QAction* action : fixture.window->exports()->actions())
            if (!action->isSeparator())
                names << action->text();
        QCOMPARE(names.front(), QStringLiteral("Megatron-LM arguments…"));
        QCOMPARE(names.removeDuplicates(), 0);
        QVERIFY(!fixture.window->exportTo(0, "megatron-args", folder.filePath(QStringLiteral("none/a.txt"))));
        QVERIFY2(fixture.window->state().contains(QLatin1String("not written")), qPrintable(fixture.window->state()));
    }

    void aScheduleThatAToolDoesNotRunIsWarnedOf()
    {
        PlanFixture fixture;
        PlanFields& fields = fixture.window->fields();
        fields.familySet()->setCurrentIndex(PlanFields::Named);
        for (int row = 0; row < fields.families()->count(); ++row)
            if (fields.families()->item(row)->data(Qt::UserRole) == QStringLiteral("zb-h1"))
                fields.families()->item(row)->setCheckState(Qt::Checked);
        fields.pin("pipeline")->setCurrentText(QStringLiteral("4"));
        QVERIFY(fixture.plan());
        QVERIFY(!fixture.window->result()->plans.empty());
        QTemporaryDir folder;
        QVERIFY(fixture.window->exportTo(0, "megatron-args", folder.filePath(QStringLiteral("a.txt"))));
        QVERIFY2(fixture.window->state().contains(QLatin1String("the order is not Megatron's 1F1B")),
                 qPrintable(fixture.window->state()));
    }

    void theListIsCopiedAsTextAndAsCsv()
    {
        PlanFixture fixture;
        fixture.window->fields().noisy()->setChecked(true);
        QVERIFY(fixture.plan());
        PlanTable& table = fixture.window->table();
        table.setFocus();
        QTest::keyClick(&table, Qt::Key_C, Qt::ControlModifier);
        const QStringList lines = QApplication::clipboard()->text().split(QLatin1Char('\n'), Qt::SkipEmptyParts);
        QCOMPARE(lines.size(), table.rowCount() + 1);
        QCOMPARE(lines[1].split(QLatin1Char('\t'))[1], table.text(0, PlanTable::Step));
        const QStringList csv = table.asCsv().split(QLatin1Char('\n'), Qt::SkipEmptyParts);
        QCOMPARE(csv.size(), table.rowCount() + 1);
        const QStringList names = csv[0].split(QLatin1Char(','));
        for (int row = 0; row < table.rowCount(); ++row) {
            const TrainingPlan& plan = fixture.window->result()->plans[std::size_t(row)];
            const QStringList cells = csv[row + 1].split(QLatin1Char(','));
            QVERIFY(cells.size() >= names.size()); // the last one, why, has commas
            const auto number = [&](const char* name) {
                return cells[names.indexOf(QLatin1String(name))].toLongLong();
            };
            QCOMPARE(number("step_ns"), plan.step);
            QCOMPARE(number("p95_ns"), plan.noisy.p95);
            QCOMPARE(number("peak_bytes"), plan.peak);
            QCOMPARE(number("tensor"), plan.setting.tensor);
            Bytes kinds = 0;
            for (const QString& name : names)
                if (name.endsWith(QLatin1String("_bytes")) && name != QLatin1String("peak_bytes"))
                    kinds += number(qPrintable(name));
            QCOMPARE(kinds, plan.peak);
        }
    }

    void theStepUnderNoiseIsShownWhereItIsAskedFor()
    {
        PlanFixture fixture;
        QVERIFY(fixture.plan());
        QVERIFY(fixture.window->table().isColumnHidden(PlanTable::P95));
        fixture.window->fields().noisy()->setChecked(true);
        QVERIFY(fixture.plan());
        QVERIFY(!fixture.window->table().isColumnHidden(PlanTable::P95));
        const TrainingPlan& best = fixture.window->result()->plans.front();
        QVERIFY(best.noisy.p95 > best.noisy.median && best.noisy.median > 0);
        Nanoseconds longest = 0;
        for (const TrainingPlan& plan : fixture.window->result()->plans)
            longest = std::max({longest, plan.step, plan.noisy.p95});
        QCOMPARE(fixture.window->table().text(0, PlanTable::P95), durationText(best.noisy.p95, longest));
        QCOMPARE(fixture.window->table().text(0, PlanTable::Median), durationText(best.noisy.median, longest));
    }

    void aPointIsShownByHoveringAndChosenByAClick()
    {
        PlanFixture fixture;
        QVERIFY(fixture.plan());
        TradeOffPlot& plot = fixture.window->plot();
        const int last = fixture.window->table().rowCount() - 1;
        QVERIFY(last >= 3 && plot.isOnFront(last));
        for (int row = 0; row <= last; ++row)
            QVERIFY(plot.rect().contains(plot.positionOf(row).toPoint()));
        QTest::mouseMove(&plot, plot.positionOf(last).toPoint());
        QTRY_COMPARE(plot.current(), last);
        QCOMPARE(fixture.window->table().currentPlan(), 0);
        QTest::mouseClick(&plot, Qt::LeftButton, {}, plot.positionOf(last).toPoint());
        QCOMPARE(fixture.window->table().currentPlan(), last);
        QVERIFY(fixture.why().contains(QString::fromStdString(fixture.window->result()->plans.back().why)));
    }

    void theLookIsSwitchedWhileAListIsShown()
    {
        PlanFixture fixture;
        QVERIFY(fixture.plan());
        const int plan = fixture.window->table().rowCount() - 1;
        fixture.window->table().setCurrentPlan(plan);
        Theme::light().apply(*qApp);
        QCOMPARE(fixture.window->table().currentPlan(), plan);
        QCOMPARE(fixture.window->table().item(0, PlanTable::Degrees)->foreground().color(), Theme::light().text);
    }
};

PIPEWRIGHT_TEST(TestPlanWindow, QApplication)
#include "tst_planwindow.moc"
