// SPDX-License-Identifier: GPL-3.0-or-later
// The page to share: its columns are the step's tasks and times, and its text stands safely in a page. Whether a
// browser shows them was looked at by hand.
#include "core/exchange/exampleexports.h"
#include "core/exchange/exchange.h"
#include "core/predict/criticalpath.h"
#include "errorof.h"
#include "testmain.h"

#include <QRegularExpression>
#include <QTest>

using namespace pipewright;
using test::errorOf;

namespace {

QString pageOf(const Design& design, const Timeline* measured = nullptr)
{
    ExportOptions options;
    options.measured = measured;
    return QString::fromStdString(exportFormat("page").write(design, options).text);
}

/// The numbers of the `occurrence`th column of that name.
std::vector<Nanoseconds> column(const QString& page, const QString& name, int occurrence = 0)
{
    QRegularExpressionMatchIterator found =
        QRegularExpression(QString("^%1: \\[([^\\]]*)\\],$").arg(name), QRegularExpression::MultilineOption)
            .globalMatch(page);
    QString text;
    for (int i = 0; i <= occurrence && found.hasNext(); ++i)
        text = found.next().captured(1);
    std::vector<Nanoseconds> numbers;
    for (const QString& each : text.split(',', Qt::SkipEmptyParts))
        numbers.push_back(each.toLongLong());
    return numbers;
}

int count(const QString& page, const char* what)
{
    return static_cast<int>(page.count(QLatin1String(what)));
}

} // namespace

class SharedPageTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void itsColumnsAreTheStep()
    {
        const Design design = test::exampleDesign("zb-h1", 4, 8);
        const Prediction prediction = predict(design);
        const QString page = pageOf(design);
        const std::size_t tasks = prediction.program.tasks.size();
        QCOMPARE(column(page, "start"), prediction.timeline.start);
        QCOMPARE(column(page, "end"), prediction.timeline.end);
        const std::vector<Nanoseconds> devices = column(page, "device"), after = column(page, "after"),
                                       before = column(page, "before"), beside = column(page, "beside");
        for (const auto* each : {&devices, &after, &before, &beside})
            QCOMPARE(each->size(), tasks);
        std::size_t waits = 0;
        for (TaskId t = 0; t < tasks; ++t) {
            const Task& task = prediction.program.tasks[t];
            const bool moves = task.kind == TaskKind::Transfer;
            QCOMPARE(beside[t] == 1, isBesideBlocks(task.kind));
            if (!moves)
                QCOMPARE(devices[t], Nanoseconds(task.device));
            else if (const TaskId reader =
                         TaskId(std::find(after.begin(), after.end(), Nanoseconds(t)) - after.begin());
                     reader < tasks)
                QCOMPARE(devices[t], devices[reader]); // it stands where its values are waited for
            if (after[t] < 0)
                continue;
            ++waits;
            QCOMPARE(TaskId(after[t]), latestInput(prediction.program, prediction.timeline, t).after);
            QVERIFY(prediction.timeline.end[std::size_t(after[t])] <= prediction.timeline.start[t]);
        }
        QVERIFY(waits > tasks / 2);
        QVERIFY(page.contains("measured: null"));
        QCOMPARE(count(page, "{name: "), 4); // devices
        QVERIFY(page.contains(QString("length: %1,").arg(prediction.metrics.makespan)));
        for (const char* outside : {"http:", "https:", "src=", "@import", "fetch("})
            QVERIFY2(!page.contains(QLatin1String(outside)), outside);
    }

    void aRunStandsBesideThePrediction()
    {
        const Design design = test::exampleDesign("1f1b", 2, 4);
        Timeline run = predict(design).timeline;
        for (std::size_t t = 0; t < run.start.size(); ++t) {
            run.start[t] *= 2;
            run.end[t] *= 2;
        }
        run.start.back() = notRun;
        const QString page = pageOf(design, &run);
        QCOMPARE(column(page, "start", 1), run.start);
        QCOMPARE(column(page, "end", 1).back(), notRun);
        QCOMPARE(column(page, "start", 0), predict(design).timeline.start);
    }

    void itsTextIsNoPartOfThePage()
    {
        Design design = test::exampleDesign("1f1b", 2, 4);
        design.name = "</script><script>alert(\"1\")</script>";
        const QString page = pageOf(design);
        QCOMPARE(count(page, "</script>"), 1);
        QCOMPARE(count(page, "<script>"), 1);
        QVERIFY(page.contains("\\u003c/script>\\u003cscript>alert(\\\"1\\\")"));
    }

    void aStepMayBeTooLarge()
    {
        QVERIFY(errorOf([] { pageOf(test::exampleDesign("1f1b", 16, 4000)); }).find("100000 blocks and transfers")
                != std::string::npos);
    }
};

PIPEWRIGHT_TEST(SharedPageTest, NoApplication)
#include "tst_sharedpage.moc"
