// SPDX-License-Identifier: GPL-3.0-or-later
// What is searched beside the order: layers to stages and stages to devices, halves of backwards, recomputation.
#include "core/design/newdesign.h"
#include "core/design/redesign.h"
#include "core/families/family.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "core/search/partition.h"
#include "core/search/searchmodel.h"
#include "core/search/variants.h"
#include "errorof.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <numeric>
#include <stop_token>

using namespace pipewright;

namespace {

Design designOf(int layers, int devices, int microbatches, const char* family = "zb-h1")
{
    NewDesign choice;
    choice.workload =
        test::workloadOf(test::gptShape(layers, 256, 4, 8192, 128)); // whose head is worth several layers;
    choice.cluster.name = "test";
    choice.cluster.devices.assign(static_cast<std::size_t>(devices),
                                  DeviceSpec{"device", Bytes{1} << 40, 1e12, 1e11, 0.5});
    choice.cluster.link.latency = 2'000;
    choice.family = family;
    choice.microbatches = microbatches;
    return designFromModel(choice);
}

PartitionOptions options(double factor)
{
    PartitionOptions options;
    options.search.limit.factor = factor;
    options.search.timeLimit = std::chrono::milliseconds(0);
    options.search.rounds = 3;
    return options;
}

/// The best order of every cut into as many stages, on these devices, by the same search.
Nanoseconds bestOfEveryCut(const Design& base, const SearchOptions& search, const std::vector<int>& devices,
                           std::vector<int> layers, std::size_t stage, int left)
{
    if (stage + 1 == layers.size()) {
        layers[stage] = left;
        try {
            return pipewright::search(withPlacement(base, devices, layers), search).value;
        } catch (const Error&) {
            return SearchModel::noCapacity; // an embedding alone keeps next to nothing from F, and more from I than
                                            // fits
        }
    }
    Nanoseconds best = SearchModel::noCapacity;
    for (int count = 1; count + static_cast<int>(layers.size() - stage) - 1 <= left; ++count) {
        layers[stage] = count;
        best = std::min(best, bestOfEveryCut(base, search, devices, layers, stage + 1, left - count));
    }
    return best;
}

} // namespace

class SearchPartitionTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void shapesOfPlacements()
    {
        QCOMPARE(placementOf(PlacementShape::Linear, 3), std::vector<int>({0, 1, 2}));
        QCOMPARE(placementOf(PlacementShape::Looped, 2), std::vector<int>({0, 1, 0, 1}));
        QCOMPARE(placementOf(PlacementShape::V, 3), std::vector<int>({0, 1, 2, 2, 1, 0}));
        QCOMPARE(placementOf(PlacementShape::Wave, 2), std::vector<int>({0, 1, 1, 0, 0, 1, 1, 0}));
        QVERIFY(placementOf(PlacementShape::Free, 2).empty());
    }

    void aHeavyHeadTakesLayersFromTheLastStage()
    {
        const Design base = designOf(12, 4, 8);
        const PartitionOptions given = options(2);
        const Nanoseconds even = search(base, given.search).value;
        const PartitionResult found = searchPartition(base, given);
        QVERIFY(found.result.value < even);
        QVERIFY(found.design.layersPerStage.back() < base.layersPerStage.back());
        QCOMPARE(std::accumulate(found.design.layersPerStage.begin(), found.design.layersPerStage.end(), 0), 14);
        QCOMPARE(found.design.schedule.deviceOfStage, base.schedule.deviceOfStage);
        // The design is whole: its own costs, its own prediction.
        const Metrics metrics = predict(found.design).metrics;
        QCOMPARE(metrics.makespan, found.result.value);
        QCOMPARE(found.design.costs, withPartition(base, found.design.layersPerStage).costs);
        QVERIFY(!found.trials.empty());
        for (const PartitionTrial& trial : found.trials)
            QVERIFY(trial.value >= found.result.value);
    }

    void noCutIsBetter_data()
    {
        QTest::addColumn<int>("devices");
        QTest::addColumn<int>("microbatches");
        QTest::addColumn<double>("factor");
        QTest::addColumn<bool>("uneven");
        QTest::newRow("2 devices, one slower") << 2 << 4 << 1.0 << true;
        QTest::newRow("3 devices, scarce memory") << 3 << 3 << 0.7 << false;
        QTest::newRow("3 devices") << 3 << 3 << 2.0 << false;
    }

    void noCutIsBetter()
    {
        QFETCH(int, devices);
        QFETCH(int, microbatches);
        QFETCH(double, factor);
        QFETCH(bool, uneven);
        Design base = designOf(5, devices, microbatches);
        if (uneven) {
            Cluster cluster = base.cluster;
            cluster.devices[0].peakFlops /= 2;
            base = withCluster(base, cluster);
        }
        const PartitionOptions given = options(factor);
        std::vector<int> order = base.schedule.deviceOfStage;
        Nanoseconds best = SearchModel::noCapacity;
        do
            best = std::min(best, bestOfEveryCut(base, given.search, order, base.layersPerStage, 0,
                                                 static_cast<int>(base.workload->layers.size())));
        while (uneven && std::next_permutation(order.begin(), order.end()));
        const Nanoseconds found = searchPartition(base, given).result.value;
        QCOMPARE(found, best); // so few that each is searched
    }

    void aFasterDeviceHoldsMoreLayers()
    {
        Design base = designOf(12, 3, 6);
        Cluster uneven = base.cluster;
        uneven.devices[1].peakFlops *= 2;
        base = withCluster(base, uneven);
        PartitionOptions given = options(2);
        given.search.rounds = 1;
        const PartitionResult found = searchPartition(base, given);
        std::vector<int> layers(3, 0);
        for (std::size_t s = 0; s < found.design.layersPerStage.size(); ++s)
            layers[found.design.schedule.deviceOfStage[s]] += found.design.layersPerStage[s];
        QVERIFY(layers[1] > layers[0]);
        QVERIFY(found.result.value < search(base, given.search).value);
    }

    void severalStagesPerDeviceBeatOne()
    {
        const Design base = designOf(20, 4, 4);
        PartitionOptions given = options(1.5);
        given.search.rounds = 1;
        given.shapes = {PlacementShape::Linear};
        const Nanoseconds linear = searchPartition(base, given).result.value;
        given.shapes = {PlacementShape::Linear, PlacementShape::V};
        const PartitionResult best = searchPartition(base, given);
        QVERIFY(best.result.value < linear);
        QCOMPARE(best.design.schedule.deviceOfStage, placementOf(PlacementShape::V, 4));
        given.moveLayers = false;
        const PartitionResult even = searchPartition(base, given);
        QCOMPARE(even.design.layersPerStage, evenPartition(*base.workload, even.design.schedule.stages()));
        QVERIFY(best.result.value <= even.result.value);
    }

    /// With a better order than the search finds in no time.
    void theDesignAsItWasIsTheFirstCutWithItsOwnOrder()
    {
        const Design base = designOf(12, 3, 6);
        PartitionOptions given = options(2);
        Design better = searchPartition(base, given).design;
        const Nanoseconds known = predict(better).metrics.makespan;
        given.search.rounds = 1;
        std::stop_source stop;
        stop.request_stop();
        given.search.stop = stop.get_token();
        for (const bool placements : {false, true}) {
            if (placements)
                given.shapes = {PlacementShape::Linear, PlacementShape::V};
            given.moveLayers = !placements;
            const PartitionResult found = searchPartition(better, given);
            QCOMPARE(found.result.value, known);
            QVERIFY(found.design.schedule.order == better.schedule.order);
            QCOMPARE(found.result.history.front().source, std::string("as it was"));
            QCOMPARE(found.design.layersPerStage, better.layersPerStage);
        }
    }

    /// A cut starts from an order that nobody gave.
    void onlyTheGivenOrderIsCalledAsItWas()
    {
        const Design base = designOf(12, 3, 6);
        PartitionOptions given = options(2);
        given.shapes = {PlacementShape::V};
        const PartitionResult found = searchPartition(base, given);
        QCOMPARE(found.design.schedule.deviceOfStage, placementOf(PlacementShape::V, 3));
        QCOMPARE(found.result.history.front().source, std::string("one after the other"));
    }

    void cutsAndStylesOfBackwardsAreSearchedTogether()
    {
        Design base = designOf(12, 4, 8, "1f1b");
        VariantOptions variants;
        variants.search = options(2).search;
        variants.search.rounds = 1;
        variants.backward = BackwardChoice::Either;
        variants.partition = PartitionOptions{};
        const VariantResult found = searchVariants(base, variants);
        QCOMPARE(found.trials.size(), std::size_t{2});
        QVERIFY(*found.trials[0].backward == BackwardStyle::Split && !found.trials[0].cuts.empty());
        QVERIFY(*found.trials[1].backward == BackwardStyle::Full && !found.trials[1].cuts.empty());
        QCOMPARE(predict(found.design).metrics.makespan, found.result.value);
        for (const VariantTrial& trial : found.trials)
            QVERIFY(*trial.value >= found.result.value);
        PartitionOptions cutOnly = options(2);
        cutOnly.search.rounds = 1;
        QVERIFY(found.result.value < searchPartition(base, cutOnly).result.value); // W fills the bubbles
        QVERIFY(found.design.layersPerStage.back() < base.layersPerStage.back());
    }

    /// Some backwards whole and some split: "either" tries all of one style, and the design as it is.
    void aMixtureOfBackwardsIsAmongTheChoices()
    {
        Design base = designOf(4, 2, 3, "1f1b");
        std::vector<Block>& last = base.schedule.order[1];
        const auto at = std::ranges::find(last, Block{Op::B, 1, 2, 0});
        at->op = Op::I;
        last.insert(at + 1, Block{Op::W, 1, 2, 0});
        for (StageCosts& stage :
             base.costs.stages) // one block is quicker, but for the one whose gradient is waited for
            stage.backward = stage.inputGrad + stage.weightGrad / 8;
        base.costs.source = "given";
        QVERIFY(!styleOf(base.schedule));
        VariantOptions variants;
        variants.search = options(0.5).search;
        variants.search.rounds = 1;
        variants.search.limit = {};
        variants.backward = BackwardChoice::Either;
        const VariantResult found = searchVariants(base, variants);
        QVERIFY(found.result.value <= predict(base).metrics.makespan);
        QVERIFY(std::ranges::any_of(found.trials, [](const VariantTrial& trial) { return !trial.backward; }));
        variants.backward = BackwardChoice::Given;
        variants.search.limit = {Bytes{1} << 40, std::nullopt};
        variants.chooseRecompute = true;
        for (const VariantTrial& trial : searchVariants(base, variants).trials)
            QVERIFY(!trial.backward); // as the design has them
    }

    void whatCannotBeCutIsRefused()
    {
        Design base = designOf(8, 2, 4);
        PartitionOptions given = options(1);
        given.search.locked = {Block{Op::F, 0, 0, 0}};
        QVERIFY_THROWS_EXCEPTION(Error, searchPartition(base, given));
        given = options(0.01);
        QVERIFY_THROWS_EXCEPTION(Error, searchPartition(base, given));
        given = options(1);
        base.schedule.pins.push_back({Block{Op::F, 0, 0, 0}, 5});
        QVERIFY_THROWS_EXCEPTION(Error, searchPartition(base, given));
        base.schedule.pins.clear();
        base.dataflow.skips.push_back({0, 1, 100});
        QVERIFY_THROWS_EXCEPTION(Error, searchPartition(base, given));
        base.dataflow.skips.clear();
        const std::string updates = test::errorOf([&] { searchPartition(designOf(8, 2, 4, "pipedream"), given); });
        QVERIFY2(updates.find("updates its stages amid the run") != std::string::npos, updates.c_str());
        base.workload.reset();
        QVERIFY_THROWS_EXCEPTION(Error, searchPartition(base, given));
    }

    void backwardsAreSplitAndJoinedBlockByBlock()
    {
        const Design full = designOf(8, 4, 6, "1f1b");
        std::vector<Block> locked = {full.schedule.order[1][3], full.schedule.order[1][4]};
        const std::vector<Block> before = locked;
        const Design split = withBackward(full, BackwardStyle::Split, locked);
        QCOMPARE(split.schedule.blocks(), full.schedule.blocks() * 3 / 2);
        QCOMPARE(locked.size(), std::size_t{3});                                   // F, and both halves of B
        QVERIFY(predict(split).metrics.makespan < predict(full).metrics.makespan); // the gradient leaves before W runs
        Design joined = withBackward(split, BackwardStyle::Full, locked);
        QVERIFY(joined.schedule.order == full.schedule.order && locked == before);
        Design pinned = split;
        pinned.schedule.pins.push_back({{Op::W, 1, 2}, 5});
        QVERIFY_THROWS_EXCEPTION(Error, withBackward(pinned, BackwardStyle::Full, locked));
        pinned.schedule.pins = {{{Op::I, 1, 2}, 5}};
        QCOMPARE(withBackward(pinned, BackwardStyle::Full, locked).schedule.pins.front().block.op, Op::B);
    }

    void theBetterStyleOfBackwardIsKept()
    {
        Design base = designOf(4, 2, 4, "1f1b");
        VariantOptions variants;
        variants.search = options(1).search;
        variants.search.rounds = 1;
        variants.backward = BackwardChoice::Either;
        QVERIFY(searchVariants(base, variants).backward == BackwardStyle::Split); // W fills the bubbles
        for (StageCosts& stage : base.costs.stages)
            stage.backward = stage.inputGrad + stage.weightGrad / 8; // one block shares what two would do twice
        const VariantResult joined = searchVariants(base, variants);
        QVERIFY(joined.backward == BackwardStyle::Full);
        QCOMPARE(joined.trials.size(), std::size_t{joined.result.proved ? 2u : 3u});
        QVERIFY(*joined.trials[0].value > joined.result.value && *joined.trials[1].value >= joined.result.value);
        QCOMPARE(predict(joined.design).metrics.makespan, joined.result.value);
    }

    void stagesRecomputeWhereNothingElseFits()
    {
        Design base;
        FamilyParameters few;
        few.microbatches = 5;
        base.schedule = makeSchedule("1f1b", few);
        base.costs = uniformCosts({}, base.schedule.stages(), 1);
        for (StageCosts& stage : base.costs.stages) {
            stage.savedUntilWeightGrad = 1000;
            stage.output = 100;
        }
        base.cluster.devices.resize(static_cast<std::size_t>(base.schedule.devices()));
        VariantOptions variants;
        variants.search = options(1).search;
        variants.search.rounds = 1;
        variants.search.limit = {Bytes{1900}, std::nullopt}; // one microbatch at a time, or the inputs of several
        variants.chooseRecompute = true;
        const VariantResult found = searchVariants(base, variants);
        const Metrics metrics = predict(found.design).metrics;
        for (const DeviceMetrics& device : metrics.devices)
            QVERIFY(device.peakBytes <= *variants.search.limit.bytes);
        QCOMPARE(metrics.makespan, found.result.value);
        QVERIFY(!found.recompute.empty() && *found.trials[0].value > found.result.value); // it pays for itself
        variants.search.limit.bytes = 9000;
        QVERIFY(searchVariants(base, variants).recompute.empty()); // it costs time and nothing is gained
        variants.search.limit = {std::nullopt, 1.0};
        QVERIFY_THROWS_EXCEPTION(Error, searchVariants(base, variants));
        variants.search.limit = {Bytes{1900}, std::nullopt};
        variants.chooseRecompute = false;
        variants.recompute = RecomputeChoice{Recompute::Block, {{4, 4}}}; // there are four stages
        QVERIFY_THROWS_EXCEPTION(Error, searchVariants(base, variants));
    }

    /// The search places R too, and its own times and bytes are those of the prediction.
    void recomputesArePlacedByTheSearch()
    {
        for (const char* family : {"1f1b", "zb-h1"}) {
            const Design base = designOf(8, 3, 5, family);
            const Design again = withRecompute(base, {Recompute::Block, Recompute::None, Recompute::BlockSelective});
            SearchOptions quick = options(1).search;
            quick.rounds = 1;
            quick.limit = {};
            const SearchResult found = search(again, quick);
            Design result = again;
            result.schedule = found.schedule;
            QCOMPARE(result.schedule.blocks(), base.schedule.blocks() + 2 * base.schedule.microbatches);
            QCOMPARE(predict(result).metrics.makespan, found.value);
            QVERIFY(found.bound.value <= found.value);
            QVERIFY(found.value <= predict(again).metrics.makespan);
            QVERIFY_THROWS_EXCEPTION(Error, search(again, [] {
                                         SearchOptions byFactor;
                                         byFactor.limit.factor = 1;
                                         return byFactor;
                                     }()));
        }
    }

    /// A recompute goes on while its gradient is on the way, in the model of the search as in the prediction.
    void theSearchModelTimesRecomputesAsThePredictionDoes()
    {
        const auto leftOut = [](const Design& design) { // the sum of shared gradients at the end
            const SearchModel model(design, {}, {});
            const auto lanes = model.lanesOf(design.schedule);
            LaneTimes times(model);
            return lanes && times.run(*lanes)
                       ? predict(design).metrics.makespan - times.value(*lanes, SearchObjective::Makespan)
                       : -1;
        };
        Design design = designOf(8, 3, 5, "1f1b");
        design.costs.link.latency = 700'000;
        const Nanoseconds usual = leftOut(design);
        QVERIFY(usual >= 0);
        QCOMPARE(leftOut(withRecompute(design, {Recompute::Block, Recompute::Block, Recompute::Block})), usual);
        QCOMPARE(leftOut(withRecompute(design, {Recompute::None, Recompute::Block, Recompute::BlockSelective})), usual);
    }
};

PIPEWRIGHT_TEST(SearchPartitionTest, NoApplication)
#include "tst_searchpartition.moc"
