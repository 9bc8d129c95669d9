// SPDX-License-Identifier: GPL-3.0-or-later
// A design under one changed premise keeps the rest, and its costs follow.
#include "core/buildingblock/publishedblocklist.h"
#include "core/design/carriedover.h"
#include "core/design/costorigins.h"
#include "core/design/newdesign.h"
#include "core/design/recutcosts.h"
#include "core/design/redesign.h"
#include "core/design/unevenness.h"
#include "core/model/layertable.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "core/presets/presets.h"
#include "makers/clusters.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <numeric>

using namespace pipewright;

namespace {

} // namespace

class RedesignTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aFamilysOwnChoiceIsWithFamilyWithoutOne()
    {
        const Design base = test::presetDesign();
        const Design half = withFamily(base, *findFamily("v-auto"), {std::nullopt, 0.5});
        const Design whole = withFamily(base, *findFamily("v-auto"), {std::nullopt, 1.0});
        const auto peak = [](const Design& design) {
            double most = 0;
            for (const DeviceMetrics& device : predict(design).metrics.devices)
                most = std::max(most, device.peakActivations);
            return most;
        };
        QVERIFY(peak(half) <= 2.0 + 1e-9);
        QVERIFY(peak(whole) <= 4.0 + 1e-9);
        QVERIFY(peak(half) < peak(whole));
        QCOMPARE(withFamily(base, *findFamily("interleaved-1f1b"), {4, std::nullopt}).schedule.chunks(), 4);
        QVERIFY_THROWS_EXCEPTION(Error, withFamily(base, *findFamily("1f1b"), {3, std::nullopt}));
    }

    void sequencesAreCutAndJoinedAgain()
    {
        const auto work = [](const Design& design) { return predict(design).metrics.ideal; };
        const auto near = [](Nanoseconds a, Nanoseconds b) { return std::abs(double(a - b)) <= 1e-3 * double(b); };
        const Family &whole = *findFamily("1f1b"), &cut = *findFamily("seq1f1b");
        // Where rates go by shape, smaller portions take longer.
        const Design preset = test::withoutRates(test::presetDesign());
        Design measured = withFamily(preset, whole);
        measured.costs.source = "measured: run.db";
        Design given = measured;
        given.workload.reset();
        given.layersPerStage.clear();
        for (const Design& base : {withFamily(preset, whole), measured, given}) {
            const Design pieces = withFamily(base, cut);
            QCOMPARE(pieces.schedule.microbatches, 4 * base.schedule.microbatches);
            QVERIFY2(near(work(pieces), work(base)), base.costs.source.c_str()); // the same work in smaller portions
            QVERIFY(predict(pieces).metrics.makespan < predict(base).metrics.makespan);
            if (base.workload) {
                QCOMPARE(pieces.workload->shape.sequencePieces, 4);
                QCOMPARE(pieces.workload->shape.tokens() * 4, base.workload->shape.tokens());
                QVERIFY(pieces.costs.stages[1].sequenceGradient > 0);
            }
            const Design back = withFamily(pieces, whole);
            QCOMPARE(back.schedule, base.schedule);
            QVERIFY(near(work(back), work(base)));
        }
        Design odd = withFamily(test::presetDesign(), whole);
        odd.workload->shape.sequence = 8190;
        QVERIFY_THROWS_EXCEPTION(Error, withFamily(odd, cut));

        NewDesign choice;
        choice.workload = PresetLibrary().workload("llama-3-8b");
        choice.cluster = PresetLibrary().cluster("h200-node", 4);
        choice.family = "seq1f1b";
        choice.pieces = 2;
        QCOMPARE(designFromModel(choice).workload->shape.sequencePieces, 2);
    }

    void anUnrolledBlockIsADesignThatRuns()
    {
        const Design base = test::presetDesign();
        const Design design = withSchedule(base, unroll(*blockOfFamily("v-half", 4, 8), 8));
        QCOMPARE(design.schedule.stages(), 8);
        QCOMPARE(design.layersPerStage.size(), std::size_t(8));
        QVERIFY(predict(design).metrics.makespan > 0);
        QCOMPARE(design.cluster, base.cluster);
    }

    void anotherCutMovesWorkAndBytesWithItsLayers()
    {
        const Design base = test::presetDesign();
        std::vector<int> cut = base.layersPerStage;
        ++cut[1];
        --cut[2];
        const Design design = withPartition(base, cut);
        QCOMPARE(design.layersPerStage, cut);
        QCOMPARE(design.schedule, base.schedule);
        QVERIFY(design.costs.stages[1].forward > base.costs.stages[1].forward);
        QVERIFY(design.costs.stages[2].parameters < base.costs.stages[2].parameters);
        QCOMPARE(design.costs.stages[0], base.costs.stages[0]);
        QCOMPARE(withPartition(design, base.layersPerStage), base);

        Design measured = base;
        measured.costs.source = "measured: run.db";
        for (StageCosts& stage : measured.costs.stages)
            stage.forward *= 3;
        const Design recut = withPartition(measured, cut);
        QCOMPARE(recut.costs.source, measured.costs.source);
        QVERIFY(recut.costs.stages[1].forward > measured.costs.stages[1].forward);

        QVERIFY_THROWS_EXCEPTION(Error, withPartition(base, {40, 0, 0, 0}));
        QVERIFY_THROWS_EXCEPTION(Error, withPartition(base, {34}));
        Design plain = base;
        plain.workload.reset();
        QVERIFY_THROWS_EXCEPTION(Error, withPartition(plain, cut));
    }

    void measuredCostsTakeTheirDevicesPaceAndLinksAlong()
    {
        // Device 2 takes three times as long as the others for the same work.
        Design measured = withFamily(test::presetDesign(), *findFamily("1f1b"));
        measured.costs.source = "measured: run.db";
        measured.costs.link = {500, 0, {}, CostOrigin::Estimated};
        measured.costs.linkOfPair[{0, 1}] = {100, 0, {}, CostOrigin::Measured};
        for (const Op op : allOps)
            measured.costs.stages[2].*timeField(op) *= 3;
        const Design carried = withFamily(measured, *findFamily("interleaved-1f1b"), {2, std::nullopt});
        const auto total = [](const Design& design, int device) {
            Nanoseconds sum = 0;
            for (int s = 0; s < design.schedule.stages(); ++s)
                if (design.schedule.deviceOfStage[s] == device)
                    sum += design.costs.stages[s].backward;
            return static_cast<double>(sum);
        };
        QVERIFY(total(carried, 2) > 2.5 * total(carried, 1));
        QVERIFY(total(carried, 2) < 3.5 * total(carried, 1));
        QCOMPARE(carried.costs.originOf(Op::F, 3), CostOrigin::Estimated);
        QCOMPARE(carried.costs.linkBetween(0, 1).latency, Nanoseconds(100));
        QCOMPARE(carried.costs.linkBetween(3, 0).latency, Nanoseconds(500));
        QCOMPARE(estimatesText(carried),
                 std::string("F, B, I and W, links 0 -> 3, 1 -> 0, 1 -> 2, 2 -> 1, 2 -> 3, 3 -> 0 and 3 -> 2"));

        // Stages that stay keep what is known of them.
        const Design same = withFamily(measured, *findFamily("zb-h1"));
        QCOMPARE(same.costs.stages, measured.costs.stages);
        std::vector<int> cut = measured.layersPerStage;
        ++cut[0];
        --cut[1];
        const Design moved = withSchedule(measured, measured.schedule, cut);
        QCOMPARE(moved.costs.originOf(Op::F, 0), CostOrigin::Estimated);
        QCOMPARE(moved.costs.stages[2], measured.costs.stages[2]);
        QVERIFY(moved.costs.stages[0].forward > measured.costs.stages[0].forward);

        // Without a model a device's stages share what its own took.
        Design plain = measured;
        plain.workload.reset();
        plain.layersPerStage.clear();
        plain.dataflow = {};
        const Design chunks = withFamily(plain, *findFamily("interleaved-1f1b"), {2, std::nullopt});
        QCOMPARE(chunks.costs.stages[2].forward, measured.costs.stages[2].forward / 2);
        QCOMPARE(chunks.costs.stages[6].forward, measured.costs.stages[2].forward / 2);
        QCOMPARE(chunks.costs.linkBetween(0, 1).latency, Nanoseconds(100));
    }

    /// PyTorch's first stage leaves all of its backward to the weight gradient; its layers do not on other stages.
    void whatOnlyTheFirstStageDoesStaysWithTheFirstStage()
    {
        Design measured = withFamily(test::presetDesign(), *findFamily("zb-h1"));
        measured.costs.source = "measured: torch.db";
        const Costs usual = measured.costs;
        StageCosts& first = measured.costs.stages.front();
        first.weightGrad += first.inputGrad - 50'000;
        first.inputGrad = 50'000;
        const Design v = withFamily(measured, *findFamily("zb-v"));
        Design plain = measured;
        plain.costs = usual;
        const Design expected = withFamily(plain, *findFamily("zb-v"));
        QVERIFY(v.costs.stages.size() > measured.costs.stages.size());
        for (std::size_t s = 0; s < v.costs.stages.size(); ++s) {
            const StageCosts &a = v.costs.stages[s], &b = expected.costs.stages[s];
            const auto near = [](Nanoseconds x, Nanoseconds y) {
                return std::abs(double(x - y)) <= 0.1 * double(std::max<Nanoseconds>(y, 1));
            };
            QVERIFY2(near(a.inputGrad + a.weightGrad, b.inputGrad + b.weightGrad), qPrintable(QString::number(s)));
            QVERIFY2(s == 0 ? a.inputGrad == 50'000 : near(a.inputGrad, b.inputGrad), qPrintable(QString::number(s)));
        }
    }

    /// Of a table, the full backward of a layer may take less than its input gradient alone.
    void noCutOfMeasuredTimesHasANegativeTime()
    {
        std::vector<KnownLayer> table;
        for (int layer = 0; layer < 8; ++layer) {
            KnownLayer known;
            known.name = "layer " + std::to_string(layer);
            known.forward = 2'000'000;
            known.inputGrad = 3'000'000;
            known.weightGrad = 1'000'000;
            known.backward = 2'500'000;
            known.output = 1024;
            table.push_back(known);
        }
        Design measured;
        measured.workload = makeWorkload(tableShape("measured", table), Optimizer::AdamW, "a table");
        measured.schedule = test::familySchedule("1f1b", 2, 4);
        measured.layersPerStage = {4, 4};
        test::addDevices(measured);
        measured.costs = test::unitCosts(2);
        measured.costs.source = "measured: torch.db";
        measured.costs.stages[0].inputGrad = 0; // PyTorch leaves all to the weight gradient
        measured.costs.stages[0].weightGrad = measured.costs.stages[0].backward = 10'000'000;
        for (const auto& share : inputGradShares(*measured.workload, measured.layersPerStage))
            QCOMPARE(share.value(), 0.75);
        for (const char* family : {"interleaved-1f1b", "looped-bfs", "zb-v", "v-half", "1f1b-v", "zb-h1", "gpipe"})
            for (const StageCosts& stage : withFamily(measured, *findFamily(family)).costs.stages)
                for (const Op op : allOps)
                    QVERIFY2(stage.*timeField(op) >= 0, family);
    }

    /// Which optimizer trains is the family's: by any way to it the bytes of its state and the update's time agree.
    void aFamilysOptimizerComesWithItsTimeAndBytes()
    {
        DesignRequest request = test::requestFor("1f1b", 2, 8);
        request.model = "llama-3-8b";
        request.cluster = "h200-node";
        request.efficiency = 0.5; // with rates gradients are cleared too, which scaling by bytes does not know
        const Design base = makeDesign(request);
        Design measured = base;
        measured.costs.source = "measured: run.db";
        for (const char* family : {"pipedream", "spectrain", "xpipe", "zb-h1"}) {
            request.family = family;
            request.costsFrom.reset();
            const Design stated = makeDesign(request);
            DesignRequest carried = test::requestFor(family, 2, 8);
            carried.costsFrom = base;
            DesignRequest ofRun = carried;
            ofRun.costsFrom = measured;
            for (const Design& other : {withFamily(base, *findFamily(family)), makeDesign(carried),
                                        withFamily(measured, *findFamily(family)), makeDesign(ofRun)}) {
                QCOMPARE(other.workload->optimizer, stated.workload->optimizer);
                for (std::size_t s = 0; s < 2; ++s) {
                    QCOMPARE(other.costs.stages[s].optimizerState, stated.costs.stages[s].optimizerState);
                    QVERIFY(std::abs(other.costs.stages[s].update - stated.costs.stages[s].update) <= 1);
                }
                // And back again: no synchronous design keeps the optimizer of an asynchronous one.
                const Design back = withFamily(other, *findFamily("1f1b"));
                QCOMPARE(back.workload->optimizer, base.workload->optimizer);
                QVERIFY(std::abs(back.costs.stages[0].update - base.costs.stages[0].update) <= 1);
            }
            QCOMPARE(optimizerChange(base, stated).empty(), std::string(family) == "xpipe" || *family == 'z');
        }
    }

    void whatSavesMemoryIsCarriedOverWithTheCosts()
    {
        DesignRequest request = test::requestFor("1f1b", 2, 8);
        request.model = "llama-3-8b";
        request.cluster = "h200-node";
        request.recompute = RecomputeChoice{Recompute::Block, {}};
        Design base = makeDesign(request);
        base.costs.hostLink = LinkCosts{0, 25e9};
        base = withOffload(base, {true, false});
        for (const char* family : {"gpipe", "zb-h1", "interleaved-1f1b", "pipedream"}) {
            DesignRequest carried = test::requestFor(family, 2, 8);
            carried.costsFrom = base;
            const Design made = makeDesign(carried), switched = withFamily(base, *findFamily(family));
            QCOMPARE(made.schedule.recompute, switched.schedule.recompute);
            QCOMPARE(made.schedule.offload, switched.schedule.offload);
            QCOMPARE(made.costs.stages, switched.costs.stages);
            QCOMPARE(carriedOver(base, made).size(), std::size_t(*family == 'p' ? 3 : 2));
            carried.recompute = RecomputeChoice{};
            carried.keepOffload = false;
            const Design without = makeDesign(carried);
            QVERIFY(without.schedule.recompute.empty() && without.schedule.offload.empty());
        }
    }

    static Design unevenDesign(const char* family, const std::vector<int>& pacePerStage)
    {
        Design design = withFamily(test::presetDesign(), *findFamily(family));
        design.costs.source = "measured: run.db";
        for (std::size_t s = 0; s < pacePerStage.size(); ++s)
            for (const Op op : allOps)
                design.costs.stages[s].*timeField(op) *= pacePerStage[s];
        return design;
    }

    void aLayerThatMovesTakesOnAnotherPaceOrKeepsItsTime()
    {
        const Design measured = unevenDesign("1f1b", {1, 1, 3, 1});
        QVERIFY(!unevennessOf(measured).known);
        FamilyParameters parameters;
        parameters.devices = 4;
        parameters.microbatches = 8;
        const Schedule chunks = makeSchedule("interleaved-1f1b", parameters);
        const auto forward = [](const Design& design, int stage) {
            return static_cast<double>(design.costs.stages[stage].forward);
        };
        // Stages 4 and 5 have the slow stage's layers, on devices 0 and 1; stages 2 and 6 are on device 2.
        const Design devices = withSchedule(measured, chunks, {}, Unevenness::OfDevices);
        QVERIFY(forward(devices, 2) > 2.5 * forward(devices, 4));
        QVERIFY(forward(devices, 6) > 2.5 * forward(devices, 5));
        const Design layers = withSchedule(measured, chunks, {}, Unevenness::OfLayers);
        QVERIFY(forward(layers, 4) > 2.5 * forward(layers, 2));
        QVERIFY(forward(layers, 5) > 2.5 * forward(layers, 6));
        Design plain = measured;
        plain.workload.reset();
        plain.layersPerStage.clear();
        plain.dataflow = {};
        const Design parts = withSchedule(plain, chunks, {}, Unevenness::OfLayers);
        QVERIFY(std::abs(parts.costs.stages[4].forward - measured.costs.stages[2].forward / 2) <= 1);
        QVERIFY(std::abs(parts.costs.stages[2].forward - measured.costs.stages[1].forward / 2) <= 1);
    }

    /// Devices with several stages tell it.
    void stagesOfOneDeviceTellWhetherItIsSlow()
    {
        const UnevennessFound devices = unevennessOf(unevenDesign("interleaved-1f1b", {1, 2, 1, 3, 1, 2, 1, 3}));
        QVERIFY(devices.known);
        QCOMPARE(devices.assumed, Unevenness::OfDevices);
        const Design ofLayers = unevenDesign("interleaved-1f1b", {1, 1, 1, 1, 3, 3, 1, 1});
        QVERIFY(unevennessOf(ofLayers).known);
        QCOMPARE(unevennessOf(ofLayers).assumed, Unevenness::OfLayers);
        // What is known is used.
        const Design carried = withFamily(ofLayers, *findFamily("1f1b"));
        QVERIFY(carried.costs.stages[2].forward > 2 * carried.costs.stages[1].forward);
        QVERIFY(unevennessOf(unevenDesign("1f1b", {1, 1, 1, 1})).known);
        QVERIFY(unevennessOf(test::presetDesign()).known);
    }

    void gapsOfTheHostStayWithTheirDevices()
    {
        Design measured = withFamily(test::presetDesign(), *findFamily("1f1b"));
        measured.costs.source = "measured: run.db";
        const auto devices = static_cast<std::size_t>(measured.schedule.devices());
        for (std::size_t d = 0; d < devices; ++d) {
            measured.costs.hostGaps.emplace_back().before.fill(static_cast<Nanoseconds>(10'000 * (d + 1)));
            measured.costs.hostGaps.back().origin.fill(CostOrigin::Measured);
        }
        const auto gapsOf = [&](int count) {
            Design base = withDevices(measured, count);
            FamilyParameters parameters;
            parameters.devices = count;
            parameters.microbatches = 8;
            return withSchedule(base, makeSchedule("1f1b", parameters)).costs.hostGaps;
        };
        QCOMPARE(withFamily(measured, *findFamily("zb-v")).costs.hostGaps, measured.costs.hostGaps);
        QCOMPARE(gapsOf(2),
                 std::vector<HostGaps>(measured.costs.hostGaps.begin(), measured.costs.hostGaps.begin() + 2));
        const std::vector<HostGaps> more = gapsOf(static_cast<int>(devices) + 1);
        QCOMPARE(more.size(), devices + 1);
        QCOMPARE(more.back().before[indexOf(Op::F)], static_cast<Nanoseconds>(5'000 * (devices + 1)));
        QCOMPARE(more.back().origin[indexOf(Op::F)], CostOrigin::Estimated);
    }

    /// Measured times of one data type say nothing of another; with other sizes they follow the work.
    void measuredTimesAreScaledByWorkOrRefused()
    {
        Design measured = withFamily(test::presetDesign(), *findFamily("1f1b"));
        const Design formula = measured;
        measured.costs.source = "measured: run.db";
        ModelShape shape = measured.workload->shape;
        shape.dataType = shape.dataType == DataType::Bf16 ? DataType::Fp32 : DataType::Bf16;
        QVERIFY_THROWS_EXCEPTION(Error, withModel(measured, shape));
        (void)withModel(formula, shape);
        shape = measured.workload->shape;
        shape.sequence /= 2;
        const Design shorter = withModel(measured, shape);
        shape.sequence *= 2;
        shape.microbatchSize *= 2;
        const Design larger = withModel(measured, shape);
        for (std::size_t s = 0; s < measured.costs.stages.size(); ++s) {
            QVERIFY(shorter.costs.stages[s].forward < 0.55 * double(measured.costs.stages[s].forward));
            QVERIFY(std::abs(double(larger.costs.stages[s].forward) / double(measured.costs.stages[s].forward) - 2)
                    < 0.001);
            QCOMPARE(larger.costs.originOf(Op::F, static_cast<int>(s)), CostOrigin::Estimated);
            QCOMPARE(larger.costs.stages[s].update, measured.costs.stages[s].update);
        }
        shape = measured.workload->shape;
        shape.vocabulary /= 2;
        QVERIFY(withModel(measured, shape).costs.stages[0].update < measured.costs.stages[0].update);
    }

    void costsOfAnotherModelAreRefused()
    {
        const Design base = test::presetDesign();
        Design other = base;
        other.costs.source = "measured: run.db";
        QCOMPARE(withCostsFrom(base, other).costs, other.costs);
        ModelShape shape = base.workload->shape;
        shape.hidden *= 2;
        other.workload = makeWorkload(shape, base.workload->optimizer, "other");
        QVERIFY_THROWS_EXCEPTION(Error, withCostsFrom(base, other));
    }

    void aBorderMovesUntilOneLayerIsLeft()
    {
        QCOMPARE(withBorderMoved({5, 4, 3}, 0, 2), (std::vector<int>{7, 2, 3}));
        QCOMPARE(withBorderMoved({5, 4, 3}, 1, -9), (std::vector<int>{5, 1, 6}));
        QCOMPARE(withBorderMoved({5, 4, 3}, 1, 9), (std::vector<int>{5, 6, 1}));
    }

    void aFasterDeviceShortensItsStagesWhereAFormulaGaveTheTimes()
    {
        const Design base = test::presetDesign();
        Cluster cluster = base.cluster;
        cluster.devices[1].peakFlops *= 2;
        const Design design = withCluster(base, cluster);
        QVERIFY(design.costs.stages[1].forward < base.costs.stages[1].forward);
        QCOMPARE(design.costs.stages[0].forward, base.costs.stages[0].forward);

        Design measured = base;
        measured.costs.source = "measured: run.db";
        QCOMPARE(withCluster(measured, cluster).costs, measured.costs);
        cluster.link.latency = 7000;
        cluster.linkOfPair[{0, 1}] = {"slow", 9000, 1e9, {}};
        const Design linked = withCluster(measured, cluster);
        QCOMPARE(linked.costs.link.latency, Nanoseconds(7000));
        QCOMPARE(linked.costs.linkBetween(0, 1).latency, Nanoseconds(9000));
        QCOMPARE(linked.costs.stages, measured.costs.stages);
        cluster.devices.pop_back();
        QVERIFY_THROWS_EXCEPTION(Error, withCluster(base, cluster));
    }
};

PIPEWRIGHT_TEST(RedesignTest, NoApplication)
#include "tst_redesign.moc"
