// SPDX-License-Identifier: GPL-3.0-or-later
// Schedules side by side: one axis, true differences, and taking one as the schedule.
#include "core/design/redesign.h"
#include "core/files/designfile.h"
#include "core/predict/spread.h"
#include "core/predict/throughput.h"
#include "gui/compare/comparelanes.h"
#include "gui/compare/comparetable.h"
#include "gui/compare/comparewindow.h"
#include "gui/compare/noisefields.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QApplication>
#include <QMenu>
#include <QPushButton>
#include <QRegularExpression>
#include <QScrollBar>
#include <QSet>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTest>

using namespace pipewright;

namespace {

std::size_t indexOfFamily(std::string_view name)
{
    std::size_t i = 0;
    while (families()[i].name != name)
        ++i;
    return i;
}

struct Fixture {
    Document document;
    std::unique_ptr<CompareWindow> window;

    Fixture()
    {
        document.reset(test::familyDesign("1f1b"));
        window = std::make_unique<CompareWindow>(document);
        window->setOpened(document.design());
        window->show();
        (void)QTest::qWaitForWindowActive(window.get());
    }
    bool settled()
    {
        return QTest::qWaitFor([this] { return !window->isBusy(); }, 30'000);
    }
    /// Without the blanks that align it.
    QString cell(const QString& row, int column)
    {
        static const QRegularExpression blanks(QStringLiteral("   \u00a0*"));
        QTableWidget* table = window->table();
        for (int r = 0; r < table->rowCount(); ++r)
            if (table->verticalHeaderItem(r)->text() == row)
                return table->item(r, column)->text().replace(blanks, QStringLiteral("   ")).trimmed();
        return {};
    }
};

} // namespace

class TestCompare : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void withNothingToCompareWithItOffersSchedulesAndAClickAddsOne()
    {
        Fixture fixture;
        QVERIFY(fixture.window->offers()->isVisible());
        QPushButton* half = nullptr;
        for (QPushButton* button : fixture.window->offers()->findChildren<QPushButton*>())
            if (button->text() == "V-Half")
                half = button;
        QVERIFY(half);
        QTest::mouseClick(half, Qt::LeftButton);
        QCOMPARE(fixture.window->count(), 2);
        QVERIFY(fixture.window->offers()->isVisible()); // a second one is as near
        QVERIFY(fixture.settled());
        QVERIFY(!half->isEnabled());
        fixture.window->lanes().setCurrent(1);
        fixture.window->removeCurrent();
        QVERIFY(half->isEnabled());
    }

    void aFamilyIsAddedByTheMenuAndItsDifferencesAreTrue()
    {
        Fixture fixture;
        QMenu* families = nullptr;
        QTest::mouseClick(fixture.window.get(), Qt::LeftButton); // activates
        Q_EMIT fixture.window->addMenu()->aboutToShow();
        for (QAction* action : fixture.window->addMenu()->actions())
            if (action->menu())
                families = action->menu();
        QVERIFY(families);
        families->actions().at(int(indexOfFamily("zb-h2")))->trigger();
        QVERIFY(fixture.settled());
        QCOMPARE(fixture.window->count(), 2);

        const Prediction present = predict(fixture.document.design());
        const Prediction other = predict(withFamily(fixture.document.design(), *findFamily("zb-h2")));
        QCOMPARE(fixture.cell(QStringLiteral("makespan"), 0), durationText(present.metrics.makespan));
        const double change =
            double(other.metrics.makespan - present.metrics.makespan) / double(present.metrics.makespan);
        QCOMPARE(fixture.cell(QStringLiteral("makespan"), 1),
                 durationText(other.metrics.makespan) + QStringLiteral("   ") + signedPercent(change));
        QCOMPARE(fixture.cell(QStringLiteral("peak, GPU 0"), 1),
                 sizeText(other.metrics.devices[0].peakBytes) + QStringLiteral("   ")
                     + signedSize(other.metrics.devices[0].peakBytes - present.metrics.devices[0].peakBytes));
        QCOMPARE(fixture.cell(QStringLiteral("transfers"), 0), QString::number(present.program.transferCount()));
        const StepSpread noisy =
            spreadOfStep(present.program, fixture.document.design().costs, shownNoise(fixture.document.design().costs));
        QCOMPARE(fixture.cell(QStringLiteral("median with noise"), 0), durationText(noisy.median));
        QCOMPARE(fixture.cell(QStringLiteral("95th percentile with noise"), 0), durationText(noisy.p95));
        QCOMPARE(fixture.cell(QStringLiteral("bubble, papers"), 0), percentText(present.metrics.ratePapers));
        // Values end below each other, and differences do; both stay near the names however wide the window is.
        QTableWidget* table = fixture.window->table();
        QSet<qsizetype> ends;
        for (int r = 0; r < table->rowCount(); ++r) {
            const QString text = table->item(r, 1)->text();
            ends << text.size() - text.indexOf(QStringLiteral("   "));
        }
        QCOMPARE(ends.size(), 1);
        fixture.window->resize(2000, 800);
        QTRY_VERIFY(table->width() > 1500);
        QVERIFY(table->columnWidth(0) <= 300 && table->columnWidth(1) <= 300);
        // Without a model nobody knows the tokens.
        QCOMPARE(fixture.cell(QStringLiteral("throughput"), 1), QStringLiteral("–"));
    }

    void theNoiseIsTypedAndKnowsWhatWasMeasured()
    {
        Fixture fixture;
        fixture.window->addFamily(indexOfFamily("zb-h1"));
        QVERIFY(fixture.settled());
        NoiseFields& noise = fixture.window->noise();
        QCOMPARE(noise.block().text(), QStringLiteral("5.0\u00a0%"));
        noise.device().setFocus();
        noise.device().selectAll();
        QTest::keyClicks(&noise.device(), QStringLiteral("10"));
        QTest::keyClick(&noise.device(), Qt::Key_Return);
        Design design = fixture.document.design();
        const Prediction present = predict(design);
        const auto expected = [&](const SpreadOptions& options) {
            return durationText(spreadOfStep(present.program, design.costs, options).p95);
        };
        SpreadOptions slow = shownNoise(design.costs);
        const QString quiet = expected(slow);
        slow.device = 0.1;
        QVERIFY(quiet != expected(slow));
        QCOMPARE(fixture.cell(QStringLiteral("95th percentile with noise"), 0), expected(slow));
        // The other window that shows steps under noise has the same.
        NoiseFields other;
        other.follow(noise);
        QCOMPARE(other.value(), noise.value());
        other.block().setValue(30);
        QCOMPARE(noise.value().block, std::optional(0.3));
        slow.block = 0.3;
        QCOMPARE(fixture.cell(QStringLiteral("95th percentile with noise"), 0), expected(slow));
        noise.setValue({});
        QVERIFY(fixture.window->noise().block().minimum() >= 0); // nothing was measured of these costs
        for (StageCosts& stage : design.costs.stages)
            stage.spread.fill(0.1);
        fixture.document.reset(design);
        QCOMPARE(noise.block().text(), QStringLiteral("measured"));
        QCOMPARE(fixture.cell(QStringLiteral("95th percentile with noise"), 0), expected(shownNoise(design.costs)));
    }

    void lanesAreLabelledAsOnTheTimelineAndTheTableTakesWhatTheyLeave()
    {
        Fixture fixture;
        fixture.window->addFamily(indexOfFamily("zb-h1"));
        QVERIFY(fixture.settled());
        fixture.window->resize(2500, 1380);
        QTest::qWait(0);
        CompareLanes& lanes = fixture.window->lanes();
        const QRect last = lanes.rectOfSchedule(1);
        QTRY_VERIFY2(lanes.viewport()->height() - lanes.rectOfSchedule(1).bottom() < 60,
                     qPrintable(QStringLiteral("%1 of %2").arg(last.bottom()).arg(lanes.viewport()->height())));
        QTableWidget* table = fixture.window->table();
        const auto belowRows = [&] {
            return table->viewport()->height() - table->rowViewportPosition(table->rowCount() - 1)
                   - table->rowHeight(0);
        };
        QTRY_VERIFY2(belowRows() >= 0 && belowRows() < 60, qPrintable(QString::number(belowRows())));
        fixture.window->resize(1438, 870);
        QTest::qWait(0);
        QCOMPARE(lanes.verticalScrollBar()->maximum(), 0); // all lanes show, and the table scrolls
        fixture.window->resize(1024, 640);
        QTest::qWait(0);
        QVERIFY(lanes.height() >= 150 && table->height() >= 100);
        // More schedules, more lanes: the border follows them, up to three fifths.
        const int before = lanes.height();
        fixture.window->addFamily(indexOfFamily("v-half"));
        QVERIFY(fixture.settled());
        QTRY_VERIFY(lanes.height() > before || lanes.height() >= (lanes.height() + table->height()) / 2);
    }

    void allShareOneAxisThatShowsTheLongest()
    {
        Fixture fixture;
        fixture.window->addFamily(indexOfFamily("v-min"));
        QVERIFY(fixture.settled());
        const CompareLanes& lanes = fixture.window->lanes();
        const Nanoseconds longest =
            std::max(predict(fixture.document.design()).metrics.makespan,
                     predict(withFamily(fixture.document.design(), *findFamily("v-min"))).metrics.makespan);
        QVERIFY(lanes.axis().xOf(0) >= lanes.axis().left && lanes.axis().xOf(double(longest)) <= lanes.axis().right());
        const double before = lanes.axis().nsPerPixel;
        QTest::keyClick(&fixture.window->lanes(), Qt::Key_W);
        QVERIFY(lanes.axis().nsPerPixel < before);
        QTest::keyClick(&fixture.window->lanes(), Qt::Key_Home);
        QCOMPARE(lanes.axis().nsPerPixel, before);
        QVERIFY(lanes.rectOfSchedule(1).top() > lanes.rectOfSchedule(0).bottom());
    }

    void theStateBeforeTheEditsStaysWhileThePresentFollows()
    {
        Fixture fixture;
        fixture.window->addOpened();
        QVERIFY(fixture.settled());
        const QString opened = fixture.cell(QStringLiteral("makespan"), 1);
        QVERIFY(opened.endsWith(QStringLiteral("unchanged")));
        fixture.document.apply(PinBlock{{Op::F, 0, 1, 0}, 500'000'000});
        QVERIFY(fixture.cell(QStringLiteral("makespan"), 0)
                == durationText(fixture.document.prediction()->metrics.makespan));
        QVERIFY(fixture.cell(QStringLiteral("makespan"), 1).startsWith(opened.section(QLatin1Char(' '), 0, 1)));
        QVERIFY(!fixture.cell(QStringLiteral("makespan"), 1).endsWith(QStringLiteral("unchanged")));
    }

    void aChosenScheduleBecomesTheDocumentsAndIsUndone()
    {
        Fixture fixture;
        const Design before = fixture.document.design();
        fixture.window->addFamily(indexOfFamily("gpipe"));
        fixture.window->addFamily(indexOfFamily("zb-v"));
        QVERIFY(fixture.settled());
        QVERIFY(!fixture.window->takeButton()->isEnabled()); // the present one is the present one
        CompareLanes& lanes = fixture.window->lanes();
        QTest::mouseClick(lanes.viewport(), Qt::LeftButton, {}, lanes.rectOfSchedule(1).topLeft() + QPoint(30, 10));
        QCOMPARE(lanes.current(), 1);
        QTest::keyClick(&lanes, Qt::Key_Down);
        QCOMPARE(lanes.current(), 2);
        QCOMPARE(fixture.window->table()->currentColumn(), 2);
        QTest::mouseClick(fixture.window->takeButton(), Qt::LeftButton);
        QCOMPARE(fixture.document.design().schedule.family, std::string("zb-v"));
        QCOMPARE(fixture.document.undoStack()->index(), 1);
        fixture.document.undoStack()->undo();
        QCOMPARE(fixture.document.design(), before);
        QTest::mouseClick(fixture.window->removeButton(), Qt::LeftButton);
        QCOMPARE(fixture.window->count(), 2);
    }

    void filesAreComparedAndBadOnesSayWhy()
    {
        Fixture fixture;
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("other.json"));
        writeDesign(test::familyDesign("zb-h1", 4, 12), path.toStdString(), false);
        fixture.window->addFile(path);
        fixture.window->addFile(folder.filePath(QStringLiteral("none.json")));
        QVERIFY(fixture.settled());
        QCOMPARE(fixture.cell(QStringLiteral("makespan"), 1).section(QStringLiteral("   "), 0, 0),
                 durationText(predict(test::familyDesign("zb-h1", 4, 12)).metrics.makespan));
        QCOMPARE(fixture.cell(QStringLiteral("makespan"), 2), QStringLiteral("–"));
        fixture.window->lanes().setCurrent(2);
        QVERIFY(!fixture.window->takeButton()->isEnabled());
    }
};

PIPEWRIGHT_TEST(TestCompare, QApplication)
#include "tst_compare.moc"
