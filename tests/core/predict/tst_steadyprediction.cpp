// SPDX-License-Identifier: GPL-3.0-or-later
// Long schedules that repeat themselves are predicted and checked without their buffers: all that is said of them must
// be what predicting and checking them whole says.
#include "core/families/family.h"
#include "core/predict/designcheck.h"
#include "core/predict/predict.h"
#include "core/program/deadlock.h"
#include "core/schedule/validate.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;
using namespace pipewright::test;

namespace {

constexpr int microbatches = 4'100; // of 4 devices: enough blocks to be looked through for repetitions

} // namespace

class SteadyPredictionTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void timesAndMetricsAreThoseOfTheWholePrediction_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("costs");
        for (const char* family : {"1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "seq1f1b", "dualpipe-v"})
            for (const char* costs : {"plain", "host gaps", "blocking"})
                QTest::addRow("%s, %s", family, costs) << family << costs;
    }

    void timesAndMetricsAreThoseOfTheWholePrediction()
    {
        QFETCH(QString, family);
        QFETCH(QString, costs);
        Design design = familyDesign(family.toUtf8().constData(), 4, microbatches);
        if (costs == "host gaps") {
            design.costs.hostGaps.resize(4);
            for (HostGaps& gaps : design.costs.hostGaps)
                gaps.before.fill(3'000);
        }
        design.costs.blockingTransfers = costs == "blocking";
        const std::optional<SteadyPrediction> steady = predictSteady(design);
        const Prediction whole = predict(design);
        if (!steady) {
            QVERIFY(family != "1f1b" && family != "zb-h1"); // these repeat themselves whatever they cost
            return;
        }
        QVERIFY(steady->cannotHang && issuesInTaskOrder(whole.program));
        QVERIFY(steady->program.buffers.empty() && steady->program.operands.empty());
        QVERIFY(steady->program.tasks == whole.program.tasks);
        QVERIFY(steady->program.afterOnDevice == whole.program.afterOnDevice);
        QVERIFY(steady->program.afterData == whole.program.afterData);
        QVERIFY(steady->program.extraDependencies == whole.program.extraDependencies);
        QVERIFY(steady->program.overlaps == whole.program.overlaps);
        QCOMPARE(steady->program.microbatches, whole.program.microbatches);
        QVERIFY(steady->timeline.start == whole.timeline.start);
        QVERIFY(steady->timeline.end == whole.timeline.end);
        QCOMPARE(steady->transfers, whole.transfers);
        QCOMPARE(steady->transferred, whole.transferred);
        QCOMPARE(steady->metrics.makespan, whole.metrics.makespan);
        QCOMPARE(steady->metrics.span, whole.metrics.span);
        QCOMPARE(steady->metrics.ideal, whole.metrics.ideal);
        QCOMPARE(steady->metrics.rateMakespan, whole.metrics.rateMakespan);
        QCOMPARE(steady->metrics.devices.size(), whole.metrics.devices.size());
        for (std::size_t d = 0; d < whole.metrics.devices.size(); ++d) {
            const DeviceMetrics &one = steady->metrics.devices[d], &other = whole.metrics.devices[d];
            QCOMPARE(one.busy, other.busy);
            QCOMPARE(one.peakBytes, other.peakBytes);
            QCOMPARE(one.peakActivations, other.peakActivations);
            QCOMPARE(steady->metrics.idleCauses[d].host, whole.metrics.idleCauses[d].host);
            QCOMPARE(steady->metrics.idleCauses[d].transfer, whole.metrics.idleCauses[d].transfer);
        }
    }

    void sharedWiresAndShortSchedulesArePredictedWhole()
    {
        Design bus = familyDesign("1f1b", 4, microbatches);
        QVERIFY(predictSteady(bus));
        bus.costs.link.bus = "wire";
        QVERIFY(!predictSteady(bus));
        QVERIFY(!checkDesign(bus).empty()); // the note about the wire
        QVERIFY(!predictSteady(familyDesign("1f1b", 4, 8)));
    }

    void aLongDesignThatIsWrongIsToldAsAShortOne()
    {
        const Design good = familyDesign("1f1b", 4, microbatches);
        QVERIFY(checkDesign(good).empty());
        Design swapped = good;
        auto& order = swapped.schedule.order[0];
        const auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2);
        const auto forward = std::find_if(middle, order.end(), [](const Block& b) { return b.op == Op::F; });
        const auto backward = std::find_if(
            forward, order.end(), [&](const Block& b) { return b.microbatch == forward->microbatch && b.op != Op::F; });
        QVERIFY(backward != order.end());
        std::swap(*forward, *backward);
        QVERIFY(checkDesign(swapped) == validate(swapped.schedule));
        QVERIFY(hasErrors(checkDesign(swapped)));
        Design missing = good;
        missing.schedule.order[2].erase(missing.schedule.order[2].begin() + 4'000);
        QVERIFY(checkDesign(missing) == validate(missing.schedule));
        QVERIFY(hasErrors(checkDesign(missing)));
        Design crowded = good;
        for (DeviceSpec& device : crowded.cluster.devices)
            device.memory = Bytes{1} << 20;
        std::vector<MemoryPeak> crossed;
        QVERIFY(hasErrors(checkDesign(crowded, &crossed)));
        QCOMPARE(crossed.size(), std::size_t{4});
        QVERIFY(!crossed.front().during.empty());
    }
};

PIPEWRIGHT_TEST(SteadyPredictionTest, NoApplication)
#include "tst_steadyprediction.moc"
