// SPDX-License-Identifier: GPL-3.0-or-later
// Long schedules are predicted, checked and exported without their buffers: all that is said of them must be what
// predicting and checking them whole says.
#include "core/design/designbuilder.h"
#include "core/exchange/exchange.h"
#include "core/families/family.h"
#include "core/predict/designcheck.h"
#include "core/predict/predict.h"
#include "core/program/deadlock.h"
#include "core/schedule/validate.h"
#include "makers/designs.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;
using namespace pipewright::test;

namespace {

constexpr int microbatches = 4'100; // of 4 devices: enough blocks to be looked through for repetitions

/// Two blocks of a device that may change places do so, amid what repeats itself.
Design editedInTheMiddle(const char* family)
{
    Design design = familyDesign(family, 4, microbatches);
    std::vector<Block>& order = design.schedule.order[2];
    for (std::size_t i = order.size() / 2; i + 1 < order.size(); ++i)
        if (order[i].op != order[i + 1].op && order[i].microbatch != order[i + 1].microbatch) {
            std::swap(order[i], order[i + 1]);
            if (!hasErrors(validate(design.schedule)))
                return design;
            std::swap(order[i], order[i + 1]);
        }
    qFatal("nothing to edit");
}

} // namespace

class SteadyPredictionTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void timesAndMetricsAreThoseOfTheWholePrediction_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("costs");
        for (const char* family : {"1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "seq1f1b", "dualpipe-v"})
            for (const char* costs : {"plain", "host gaps", "blocking", "one stream"})
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
        design.costs.communication = costs == "blocking"     ? Communication::Blocking
                                     : costs == "one stream" ? Communication::OneStream
                                                             : Communication::Overlapped;
        const std::optional<OutlinedPrediction> steady = predictSteady(design);
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

    void anOutlineIsWhatTheWholePredictionSays_data()
    {
        QTest::addColumn<QString>("what");
        for (const char* what : {"1f1b", "zb-h1", "dualpipe-v", "edited 1f1b", "edited zb-h1",
                                 "edited interleaved-1f1b", "short", "bus", "updates", "recomputed"})
            QTest::newRow(what) << what;
    }

    void anOutlineIsWhatTheWholePredictionSays()
    {
        QFETCH(QString, what);
        Design design;
        if (what.startsWith("edited "))
            design = editedInTheMiddle(what.mid(7).toUtf8().constData());
        else if (what == "short")
            design = familyDesign("interleaved-1f1b", 4, 8);
        else if (what == "bus" || what == "recomputed")
            design = familyDesign("1f1b", 4, 40);
        else if (what == "updates")
            design = familyDesign("pipedream", 4, 16);
        else
            design = familyDesign(what.toUtf8().constData(), 4, microbatches);
        if (what == "bus")
            design.costs.link.bus = "wire";
        if (what == "recomputed") {
            DesignRequest request;
            request.family = "1f1b";
            request.devices = 4;
            request.microbatches = 12;
            request.recompute = {Recompute::Block, {}};
            design = makeDesign(request);
        }
        const Prediction whole = predict(design);
        for (const Curves curves : {Curves::NotNeeded, Curves::OneByOne}) {
            const OutlinedPrediction outline = predictOutline(design, curves);
            QVERIFY(outline.program.tasks == whole.program.tasks);
            QVERIFY(outline.timeline.start == whole.timeline.start);
            QVERIFY(outline.timeline.end == whole.timeline.end);
            QCOMPARE(outline.transfers, whole.transfers);
            QCOMPARE(outline.transferred, whole.transferred);
            QCOMPARE(outline.cannotHang, issuesInTaskOrder(whole.program));
            QCOMPARE(outline.metrics.rateSpan, whole.metrics.rateSpan);
            QVERIFY(curves == Curves::OneByOne || outline.program.buffers.empty());
            for (int d = 0; d < 4; ++d) {
                const auto device = static_cast<std::size_t>(d);
                QVERIFY(outline.program.devices[device].instructions.empty());
                QCOMPARE(outline.metrics.devices[device].peakBytes, whole.metrics.devices[device].peakBytes);
                QCOMPARE(outline.metrics.devices[device].peakActivations,
                         whole.metrics.devices[device].peakActivations);
                if (curves == Curves::NotNeeded)
                    continue;
                QVERIFY(outline.listsOf(outline.program, d) == whole.program.devices[device]);
                QVERIFY(outline.memoryOf(d) == whole.timeline.memory[device]);
            }
            for (const char* format : {"perfetto", "chrome", "blocks-csv", "metrics-csv"}) {
                if (curves != exportFormat(format).curves || (sanitized && design.schedule.blocks() > 1000))
                    continue; // of long designs the texts take most of the time
                ExportOptions fromWhole, fromOutline;
                fromWhole.predicted = &whole;
                fromOutline.predicted = &outline;
                if (curves == Curves::OneByOne)
                    fromOutline.predictedCurve = [&](int device) { return outline.memoryOf(device); };
                const std::string expected = exportFormat(format).write(design, fromWhole).text;
                QVERIFY2(exportFormat(format).write(design, fromOutline).text == expected, format);
            }
        }
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
