// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/families/family.h"
#include "core/predict/redesign.h"
#include "gui/designer.h"
#include "gui/panels/chart.h"
#include "gui/panels/errortable.h"
#include "gui/panels/explain.h"
#include "gui/panels/familyestimates.h"
#include "gui/panels/words.h"
#include "gui/picture.h"

#include <QAbstractItemModelTester>
#include <QImage>
#include <QTemporaryDir>
#include <QTest>

using namespace pipewright;

namespace {

/// One microbatch through two devices of 1 ms passes, 1 ms per transfer: every time is known by hand.
Design twoDevices()
{
    Design design;
    FamilyParameters parameters;
    parameters.devices = 2;
    parameters.microbatches = 2;
    design.schedule = makeSchedule("1f1b", parameters);
    DeviceWorth worth;
    worth.transfer = 500'000;
    design.costs = uniformCosts(worth, 2, 1);
    return design;
}

} // namespace

class TestPanels : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void wordsCarryUnitsAndRealMinusSigns()
    {
        QCOMPARE(percentText(0.1137), QStringLiteral("11.4 %"));
        QCOMPARE(percentText(-0.0001), QStringLiteral("0.0 %"));
        QCOMPARE(signedPercent(-0.021), QStringLiteral("\u22122.1 %"));
        QCOMPARE(signedPercent(0.021), QStringLiteral("+2.1 %"));
        QCOMPARE(signedPercent(0), QStringLiteral("unchanged"));
        QCOMPARE(signedPoints(-0.019), QStringLiteral("\u22121.9 pt"));
        QCOMPARE(signedSize(-1024), QStringLiteral("\u2212") + sizeText(1024));
        QCOMPARE(multipleText(4), QStringLiteral("4.0 ×"));
        QCOMPARE(rateText(38400), QStringLiteral("38,400"));
        QCOMPARE(chipText({Op::W, 3, 7, 0}), QStringLiteral("W7"));
        QCOMPARE(blockTitle({Op::I, 3, 7, 0}), QStringLiteral("Input gradient, microbatch 7"));
    }

    void idleTimeIsExplainedByTheBlockThatIsAwaited()
    {
        const Design design = twoDevices();
        const Prediction prediction = predict(design);
        // F1.0 waits for F0.0 (1 ms) and the way (0.5 ms).
        const auto answers = explain(design, prediction, {Op::F, 1, 0, 0});
        QVERIFY(answers);
        QCOMPARE(answers->start, Nanoseconds(1'500'000));
        QCOMPARE(answers->idleBefore, Nanoseconds(1'500'000));
        QVERIFY(answers->waitsFor == (Block{Op::F, 0, 0, 0}));
        QVERIFY2(answers->why.contains(QLatin1String("F0.0")), qPrintable(answers->why));
        QVERIFY2(answers->why.contains(QLatin1String("500")), qPrintable(answers->why));
    }

    void aBlockWithoutIdleTimeSaysWhatItFollows()
    {
        const Design design = twoDevices();
        const Prediction prediction = predict(design);
        const auto answers = explain(design, prediction, {Op::B, 1, 0, 0});
        QVERIFY(answers);
        QCOMPARE(answers->idleBefore, Nanoseconds(0));
        QVERIFY(!answers->waitsFor);
        QVERIFY2(answers->why.contains(QLatin1String("F1.0")), qPrintable(answers->why));
        QVERIFY(!explain(design, prediction, {Op::W, 1, 0, 0}));
    }

    void resultsThatTravelAreListedWithTheirDevice()
    {
        const Design design = twoDevices();
        const Prediction prediction = predict(design);
        const auto forward = explain(design, prediction, {Op::F, 0, 0, 0});
        QCOMPARE(forward->feeds.size(), std::size_t(1));
        QCOMPARE(forward->feeds[0].device, 1);
        QVERIFY(explain(design, prediction, {Op::B, 0, 1, 0})->feeds.empty());
    }

    void pinsAreNamedAsTheCause()
    {
        Design design = twoDevices();
        design.schedule.pins.push_back({{Op::F, 0, 1, 0}, 5'000'000});
        const auto answers = explain(design, predict(design), {Op::F, 0, 1, 0});
        QCOMPARE(answers->idleBefore, Nanoseconds(4'000'000));
        QVERIFY2(answers->why.contains(QLatin1String("pinned")), qPrintable(answers->why));
    }

    void thinnedCurvesKeepPeaksAndCostTwoPointsPerPixel()
    {
        std::vector<MemorySample> samples;
        for (int i = 0; i < 100'000; ++i)
            samples.push_back({Nanoseconds(i) * 10, i == 61'803 ? Bytes{999} : Bytes(i % 7)});
        const auto points = thinSteps(samples, 0, 1'000'000, 300);
        QVERIFY(points.size() <= 601);
        double highest = 0;
        for (std::size_t i = 0; i < points.size(); ++i) {
            highest = std::max(highest, points[i].y());
            QVERIFY(i == 0 || points[i].x() >= points[i - 1].x());
        }
        QCOMPARE(highest, 999.0);
    }

    void aStepIsDrawnUprightAndCarriedIntoTheWindow()
    {
        const std::vector<MemorySample> samples{{0, 10}, {500, 20}};
        const auto points = thinSteps(samples, 100, 1100, 10); // 100 ns per pixel; the step is in pixel 4
        QCOMPARE(points.front(), QPointF(100, 10));
        QCOMPARE(points.back(), QPointF(1100, 20));
        bool upright = false;
        for (std::size_t i = 1; i < points.size(); ++i)
            upright = upright || (points[i].x() == points[i - 1].x() && points[i].y() == 20 && points[i - 1].y() == 10);
        QVERIFY(upright);
        QVERIFY(points.size() <= 6);
        QVERIFY(thinSteps({}, 0, 100, 10).empty());
        QCOMPARE(thinSteps(samples, 600, 900, 10).front().y(), 20.0);
    }

    void theChartsPlotIsWhereItWasPut()
    {
        Chart chart;
        chart.resize(500, 200);
        chart.setPlotMargins(112, 10, 8, 20);
        QCOMPARE(chart.plotArea(), QRectF(112, 10, 380, 170));
        chart.setRange(1000, 2000, 0, 100);
        QCOMPARE(chart.xOf(1500), 302.0);
        QCOMPARE(chart.yOf(100), 10.0);
    }

    void aFamilysEstimateIsWhatSwitchingGives()
    {
        const Design base = exampleDesign();
        for (std::size_t i = 0; i < std::min<std::size_t>(families().size(), 4); ++i) {
            const FamilyEstimate estimate = FamilyEstimates::estimate(base, i);
            if (!estimate.possible) {
                QVERIFY(!estimate.reason.isEmpty());
                continue;
            }
            const Prediction prediction = predict(withFamily(base, families()[i]));
            QCOMPARE(estimate.bubble, prediction.metrics.rateMakespan);
            QCOMPARE(estimate.makespan, prediction.metrics.makespan);
        }
    }

    void switchingFamiliesKeepsCostsWhereTheStagesStay()
    {
        Design base = twoDevices();
        base.costs.stages[1].forward = 7'000'000; // not what any formula gives
        base.costs.source = "measured: run.db";
        const Design gpipe = withFamily(base, *findFamily("gpipe"));
        QCOMPARE(gpipe.costs, base.costs);
        QCOMPARE(gpipe.schedule.microbatches, base.schedule.microbatches);
    }

    void theErrorModelIsAProperModel()
    {
        Document document;
        document.reset(exampleDesign());
        ErrorTableModel model(document);
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        QCOMPARE(model.rowCount(), 0);
        QVERIFY(!model.blockAt(0));
    }

    void picturesAreWrittenAtTwiceTheirSize()
    {
        QTemporaryDir folder;
        const std::string path = folder.filePath(QStringLiteral("a.png")).toStdString();
        svgToPng("<svg xmlns='http://www.w3.org/2000/svg' width='40' height='20'><rect width='40' height='20' fill='#ff0000'/></svg>", path);
        const QImage image(QString::fromStdString(path));
        QCOMPARE(image.size(), QSize(80, 40));
        QCOMPARE(image.pixelColor(40, 20), QColor(255, 0, 0));
        QVERIFY_THROWS_EXCEPTION(Error, svgToPng("no picture", path));
        QVERIFY_THROWS_EXCEPTION(Error, svgToPng("<svg xmlns='http://www.w3.org/2000/svg' width='4' height='4'/>", "/no/such/folder/a.png"));
    }
};

QTEST_MAIN(TestPanels)
#include "tst_panels.moc"
