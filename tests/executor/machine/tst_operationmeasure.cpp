// SPDX-License-Identifier: GPL-3.0-or-later
// Single operations timed on the host. How fast they are decides nothing: what is measured, and what is left out, does.
#include "core/base/diagnostic.h"
#include "core/design/designbuilder.h"
#include "core/design/ratedwork.h"
#include "core/design/rateorigins.h"
#include "core/design/redesign.h"
#include "errorof.h"
#include "executor/host/hostbackend.h"
#include "executor/machine/operationmeasure.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

namespace {

OperationMeasureOptions quickly()
{
    OperationMeasureOptions options;
    options.atLeast = 0;
    options.repetitions = 1;
    return options;
}

Design designOf(const char* model)
{
    DesignRequest request = test::requestFor("1f1b", 2, 4);
    request.model = model;
    return makeDesign(request);
}

} // namespace

class TestOperationMeasure : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyShapeThatADesignNeedsIsMeasuredAndThenCounts_data()
    {
        QTest::addColumn<QString>("model");
        QTest::newRow("stored scores") << "byte-gpt-small";
        QTest::newRow("streamed, fewer keys, gated") << "byte-llama";
    }
    void everyShapeThatADesignNeedsIsMeasuredAndThenCounts()
    {
        QFETCH(QString, model);
        const Design design = designOf(qPrintable(model));
        const std::vector<RatedShape> shapes = ratedShapesOf(design);
        QVERIFY(shapes.size() > 10);
        const auto backend = createHostBackend(2, Bytes{1} << 30);
        std::vector<double> fractions;
        OperationMeasureOptions options = quickly();
        options.progress = [&](double fraction, const std::string& what) {
            QVERIFY(!what.empty());
            fractions.push_back(fraction);
        };
        const OperationMeasurement found = measureOperations(*backend, shapes, options);
        QVERIFY2(found.leftOut.empty(), found.leftOut.empty() ? "" : found.leftOut.front().why.c_str());
        QCOMPARE(found.times.size(), shapes.size());
        QCOMPARE(fractions.size(), shapes.size());
        QVERIFY(std::is_sorted(fractions.begin(), fractions.end()));
        Cluster cluster = design.cluster;
        const auto rates = std::make_shared<const OperationRates>(
            ratesOf(found.times, {"t", "o", "s", "w", cluster.devices[0].peakFlops, 1e10}));
        for (DeviceSpec& device : cluster.devices)
            device.rates = rates;
        for (const PassOrigins& stage : rateOrigins(withCluster(design, cluster)))
            for (const OriginSeconds& pass : {stage.forward, stage.inputGrad, stage.weightGrad})
                for (int origin = 0; origin < rateOriginCount; ++origin)
                    QCOMPARE(pass[std::size_t(origin)] > 0, origin == int(RateOrigin::Measured));
    }

    void whatCannotBeMeasuredIsLeftOutWithTheReason()
    {
        const std::vector<RatedShape> shapes{
            {RatedOperation::Product, "TN", "fp32", {}, {8, 8, 8}},
            {RatedOperation::Product, "TN", "bf16", {}, {8, 8, 8}},
            {RatedOperation::GroupedProduct, "TN", "fp32", {}, {2, 8, 8, 8}},
            {RatedOperation::AttentionForward, "causal", "fp32", {}, {2.5, 1, 8, 8, 16}},
            {RatedOperation::AllReduce, {}, {}, "wire", {2, 64}},
            {RatedOperation::Memory, "elementwise", {}, {}, {1e9}},
        };
        const auto backend = createHostBackend(1, Bytes{1} << 20);
        const OperationMeasurement found = measureOperations(*backend, shapes, quickly());
        QCOMPARE(found.times.size(), std::size_t{1});
        QVERIFY(found.times.front().shape == shapes.front() && found.times.front().seconds > 0);
        QStringList whys;
        for (const OperationMeasurement::LeftOut& left : found.leftOut)
            whys << QString::fromStdString(left.why);
        QCOMPARE(whys.size(), 5);
        for (const char* why : {"does not multiply bf16", "experts are one call", "no whole number", "collectives",
                                "more than half of the memory"})
            QVERIFY2(whys.filter(why).size() == 1, why);
    }

    void theLargestShapesAreLeftOutWhereTimeRunsShort()
    {
        const std::vector<RatedShape> shapes{{RatedOperation::Product, "TN", "fp32", {}, {8, 8, 8}},
                                             {RatedOperation::Product, "TN", "fp32", {}, {4096, 8192, 8192}}};
        const auto backend = createHostBackend(1);
        OperationMeasureOptions options = quickly();
        options.seconds = 1e-9;
        const OperationMeasurement found = measureOperations(*backend, shapes, options);
        QCOMPARE(found.leftOut.size() + found.times.size(), std::size_t{2});
        QVERIFY(!found.leftOut.empty() && found.leftOut.back().shape == shapes.back());
        QVERIFY(found.leftOut.back().why.find("had passed") != std::string::npos);
    }

    void measuringCanBeCancelled()
    {
        const std::vector<RatedShape> shapes(5, {RatedOperation::Product, "TN", "fp32", {}, {8, 8, 8}});
        const auto backend = createHostBackend(1);
        std::atomic<bool> cancel = false;
        OperationMeasureOptions options = quickly();
        options.cancel = &cancel;
        int steps = 0;
        options.progress = [&](double, const std::string&) { cancel = ++steps == 2; };
        const std::string error = test::errorOf([&] { (void)measureOperations(*backend, shapes, options); });
        QVERIFY2(error.find("cancelled") != std::string::npos, error.c_str());
        QCOMPARE(steps, 2);
    }
};

PIPEWRIGHT_TEST(TestOperationMeasure, NoApplication)
#include "tst_operationmeasure.moc"
