// SPDX-License-Identifier: GPL-3.0-or-later
// Memory against bubble, where the memory goes, and rates in words.
#include "core/base/diagnostic.h"
#include "core/base/rates.h"
#include "core/design/newdesign.h"
#include "core/predict/offloadedstages.h"
#include "core/predict/stagememory.h"
#include "core/presets/presets.h"
#include "core/search/tradeoffs.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;

namespace {

TradeOff point(double memory, double bubble, bool possible = true)
{
    TradeOff result;
    result.possible = possible;
    result.peakActivations = memory;
    result.bubble = bubble;
    return result;
}

} // namespace

class TradeOffsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theFrontIsWhatNothingBeatsInBoth()
    {
        const std::vector<TradeOff> points{point(4, 0.3),        point(2, 0.5), point(4, 0.2), point(8, 0.2),
                                           point(1, 0.1, false), point(2, 0.5), point(3, 0.5), point(9, 0.0)};
        QCOMPARE(paretoFront(points), (std::vector<bool>{false, true, true, false, false, true, false, true}));
        QVERIFY(paretoFront({}).empty());
    }

    void pointsThatNobodyTellsApartAreEqual()
    {
        // A hair more memory for a fifth less bubble, and the same in small: 7 KiB of 10 GiB make no vertical front.
        const std::vector<TradeOff> points{point(10, 0.3), point(10.000007, 0.2), point(10.00001, 0.2001),
                                           point(12, 0.1995), point(14, 0.1)};
        const TradeOffTolerance tolerance{0.005, 0.001};
        QCOMPARE(paretoFront(points), (std::vector<bool>{true, true, false, true, true}));
        QCOMPARE(paretoFront(points, tolerance), (std::vector<bool>{false, true, true, false, true}));
    }

    /// Against the definition, on every pair.
    void theFrontHoldsByItsDefinition()
    {
        const Design base = test::presetDesign();
        std::vector<TradeOff> all;
        for (const TradeOffCandidate& candidate : tradeOffCandidates(base))
            all.push_back(evaluateTradeOff(base, candidate));
        QVERIFY(all.size() > 25);
        const std::vector<bool> front = paretoFront(all);
        QVERIFY(std::count(front.begin(), front.end(), true) >= 3);
        for (std::size_t i = 0; i < all.size(); ++i) {
            const bool beaten = std::any_of(all.begin(), all.end(), [&](const TradeOff& other) {
                return other.possible && memoryOf(other) <= memoryOf(all[i]) && other.bubble <= all[i].bubble
                       && (memoryOf(other) < memoryOf(all[i]) || other.bubble < all[i].bubble);
            });
            QCOMPARE(bool(front[i]), all[i].possible && !beaten);
        }
    }

    void aTradeOffIsWhatTakingItGives()
    {
        const Design base = test::presetDesign();
        for (const TradeOffCandidate& candidate : tradeOffCandidates(base)) {
            const TradeOff tradeOff = evaluateTradeOff(base, candidate);
            QVERIFY2(tradeOff.possible || !tradeOff.reason.empty(), candidate.label().c_str());
            if (!tradeOff.possible)
                continue;
            const Metrics metrics = predict(designOf(base, candidate)).metrics;
            QCOMPARE(tradeOff.makespan, metrics.makespan);
            if (candidate.family->name == "v-auto") // zb-auto counts a half-freed activation in parts
                QVERIFY2(tradeOff.peakActivations <= *candidate.choice.memoryLimit * 4 + 1e-9,
                         candidate.label().c_str());
        }
    }

    void aTradeOffNobodyWaitsForEndsWithoutAResult()
    {
        std::stop_source closed;
        closed.request_stop();
        for (const char* family : {"1f1b", "v-auto"}) {
            const TradeOff tradeOff =
                evaluateTradeOff(test::presetDesign(), {findFamily(family), {}}, closed.get_token());
            QVERIFY(!tradeOff.possible);
            QCOMPARE(tradeOff.reason, std::string("it was stopped"));
        }
    }

    void candidatesAreNamedByWhatTheyChoose()
    {
        const auto candidates = tradeOffCandidates(test::presetDesign());
        const auto has = [&](const std::string& label) {
            return std::any_of(candidates.begin(), candidates.end(),
                               [&](const TradeOffCandidate& c) { return c.label() == label; });
        };
        QVERIFY(has("ZB-H1"));
        QVERIFY(has("Interleaved 1F1B, 3 chunks"));
        QVERIFY(has("Adaptive V, limit 0.5 ×"));
    }

    void thePresentOrderIsThereWithStagesThatOffload()
    {
        Design base = withFamily(test::presetDesign(), *findFamily("gpipe"));
        base.costs.hostLink = LinkCosts{1000, 1e13}; // time for all of it
        const auto offloads = [](const Design& design) {
            std::vector<TradeOffCandidate> found = tradeOffCandidates(design);
            std::erase_if(found, [](const TradeOffCandidate& one) { return one.offloadStages == 0; });
            return found;
        };
        const std::vector<TradeOffCandidate> candidates = offloads(base);
        QCOMPARE(candidates.size(), std::size_t(base.schedule.stages()));
        QCOMPARE(candidates[1].label(),
                 findFamily(base.schedule.family)->title.data() + std::string(" as it is, 2 stages offload"));
        // They are the curve's points, and what leaves first is what waits longest: the first stage's.
        const std::vector<OffloadPoint> curve = offloadCurve(base);
        QCOMPARE(curve.size(), candidates.size() + 1);
        QCOMPARE(curve.front().share, 0.0);
        QVERIFY(curve[1].offload[0]);
        for (std::size_t k = 0; k < candidates.size(); ++k) {
            const TradeOff point = evaluateTradeOff(base, candidates[k]);
            QVERIFY2(point.possible, point.reason.c_str());
            QCOMPARE(point.makespan, curve[k + 1].makespan);
            QCOMPARE(point.peakBytes, curve[k + 1].peak);
            QVERIFY(curve[k + 1].share >= curve[k].share && curve[k + 1].share <= 1);
            QCOMPARE(designOf(base, candidates[k]).schedule.order, base.schedule.order);
        }
        QVERIFY(curve.back().share > 0 && curve.back().peak < curve.front().peak);
        Design empty = base; // stages that keep nothing have nothing to send away
        for (StageCosts& stage : empty.costs.stages)
            stage.savedUntilInputGrad = stage.savedUntilWeightGrad = 0;
        QVERIFY(offloads(empty).empty());
        base.costs.hostLink.reset();
        QVERIFY(offloads(base).empty());
    }

    void theBreakdownAddsUpToThePeakOfEveryDevice()
    {
        for (const char* family : {"zb-h1", "v-half", "gpipe"}) {
            const Design design = withFamily(test::presetDesign(), *findFamily(family));
            const Prediction prediction = predict(design);
            const MemoryBreakdown breakdown = memoryBreakdown(design, prediction);
            QCOMPARE(int(breakdown.stages.size()), design.schedule.stages());
            for (const DeviceMemory& device : breakdown.devices) {
                QCOMPARE(device.weights + device.gradients + device.optimizer + device.activations + device.buffers
                             + device.workspace,
                         device.peak);
                QCOMPARE(device.peak, prediction.metrics.devices[std::size_t(device.device)].peakBytes);
                QCOMPARE(device.limit, design.cluster.devices[std::size_t(device.device)].memory);
                Bytes activations = 0;
                for (const StageBytes& stage : breakdown.stages)
                    activations += stage.device == device.device ? stage.activations : 0;
                QCOMPARE(activations, device.activations);
            }
        }
    }

    void ratesAreReadAndWrittenWithTheirUnit()
    {
        QCOMPARE(parseFlops("989 TFLOP/s", "x"), 989e12);
        QCOMPARE(parseFlops("1.5PFLOPS", "x"), 1.5e15);
        QCOMPARE(parseBandwidth(" 450 GB/s ", "x"), 450e9);
        QCOMPARE(parseBandwidth("64kB", "x"), 64e3);
        QCOMPARE(parseBandwidth("0 B/s", "x"), 0.0);
        QCOMPARE(formatFlops(989.5e12), std::string("989.5 TFLOP/s"));
        QCOMPARE(formatBandwidth(900e9), std::string("900 GB/s"));
        for (const double rate : {1.0, 999.0, 1e3, 12.5e9, 4.8e12, 3.35e12})
            QCOMPARE(parseBandwidth(formatBandwidth(rate), "x"), rate);
        for (const char* bad : {"", "fast", "-3 GB/s", "3", "3 GFLOP/s", "3 XB/s", "nan B/s"})
            QVERIFY_THROWS_EXCEPTION(Error, parseBandwidth(bad, "x"));
    }
};

PIPEWRIGHT_TEST(TradeOffsTest, NoApplication)
#include "tst_tradeoffs.moc"
