// SPDX-License-Identifier: GPL-3.0-or-later
// Layers to stages and stages to devices, found together with the order.
#include "core/predict/newdesign.h"
#include "core/predict/predict.h"
#include "core/predict/redesign.h"
#include "core/search/partition.h"
#include "core/workload/transformer.h"

#include <QTest>

#include <algorithm>
#include <numeric>

using namespace pipewright;

namespace {

/// A small model whose head is worth several layers.
Workload smallModel(int layers)
{
    ModelShape shape;
    shape.name = "small";
    shape.layers = layers;
    shape.hidden = 256;
    shape.heads = 4;
    shape.keyValueHeads = 4;
    shape.headSize = 64;
    shape.ffn = 1024;
    shape.vocabulary = 8192;
    shape.sequence = 128;
    return makeWorkload(shape, Optimizer::AdamW, "test");
}

Design designOf(int layers, int devices, int microbatches, const char* family = "zb-h1")
{
    NewDesign choice;
    choice.workload = smallModel(layers);
    choice.cluster.name = "test";
    choice.cluster.devices.assign(static_cast<std::size_t>(devices),
                                  DeviceSpec{"device", Bytes{1} << 40, 1e12, 1e11, 0.5});
    choice.cluster.link.latency = 2'000;
    choice.family = family;
    choice.microbatches = microbatches;
    return makeDesign(choice);
}

PartitionOptions options(double factor)
{
    PartitionOptions options;
    options.search.limit.factor = factor;
    options.search.timeLimit = std::chrono::milliseconds(0);
    options.search.rounds = 3;
    return options;
}

/// The best order of every cut into as many stages, by the same search.
Nanoseconds bestOfEveryCut(const Design& base, const SearchOptions& search, std::vector<int> layers, std::size_t stage,
                           int left)
{
    if (stage + 1 == layers.size()) {
        layers[stage] = left;
        try {
            return pipewright::search(withPlacement(base, base.schedule.deviceOfStage, layers), search).value;
        } catch (const Error&) {
            return SearchModel::
                noCapacity; // an embedding alone keeps next to nothing from F, and more from I than fits
        }
    }
    Nanoseconds best = SearchModel::noCapacity;
    for (int count = 1; count + static_cast<int>(layers.size() - stage) - 1 <= left; ++count) {
        layers[stage] = count;
        best = std::min(best, bestOfEveryCut(base, search, layers, stage + 1, left - count));
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
        QTest::addColumn<double>("factor");
        QTest::newRow("2 devices") << 2 << 1.0;
        QTest::newRow("3 devices, scarce memory") << 3 << 0.7;
        QTest::newRow("3 devices") << 3 << 2.0;
    }

    void noCutIsBetter()
    {
        QFETCH(int, devices);
        QFETCH(double, factor);
        const Design base = designOf(5, devices, 4);
        const PartitionOptions given = options(factor);
        const Nanoseconds best =
            bestOfEveryCut(base, given.search, base.layersPerStage, 0, static_cast<int>(base.workload->layers.size()));
        const Nanoseconds found = searchPartition(base, given).result.value;
        QVERIFY2(found <= best + best / 100, qPrintable(QString("%1 against %2").arg(found).arg(best)));
    }

    void aFasterDeviceHoldsMoreLayers()
    {
        Design base = designOf(12, 3, 9);
        Cluster uneven = base.cluster;
        uneven.devices[1].peakFlops *= 2;
        base = withCluster(base, uneven);
        const PartitionResult found = searchPartition(base, options(2));
        std::vector<int> layers(3, 0);
        for (std::size_t s = 0; s < found.design.layersPerStage.size(); ++s)
            layers[static_cast<std::size_t>(found.design.schedule.deviceOfStage[s])] += found.design.layersPerStage[s];
        QVERIFY(layers[1] > layers[0]);
        QVERIFY(found.result.value < search(base, options(2).search).value);
    }

    void severalStagesPerDeviceBeatOne()
    {
        const Design base = designOf(24, 4, 6);
        PartitionOptions given = options(1.5);
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
        base.workload.reset();
        QVERIFY_THROWS_EXCEPTION(Error, searchPartition(base, given));
    }
};

QTEST_APPLESS_MAIN(SearchPartitionTest)
#include "tst_searchpartition.moc"
