// SPDX-License-Identifier: GPL-3.0-or-later
// A tied head on its embedding's device is one matrix: one parameter, one gradient and one state.
#include "core/design/redesign.h"
#include "core/design/stagecosts.h"
#include "core/design/stagestate.h"
#include "core/files/designfile.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "core/predict/stagememory.h"
#include "core/program/compile.h"
#include "core/search/searchmodel.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <cmath>

using namespace pipewright;

namespace {

/// The matrix of 256,000 × 2,048 is 18 bytes a parameter: weight 2, gradient 4, state 12.
constexpr Bytes matrix = Bytes{256'000} * 2'048;

Design designOf(const char* family, int devices, bool copied = false, const char* cluster = "h200-node")
{
    ModelShape shape;
    shape.name = "tied";
    shape.layers = 14;
    shape.hidden = 2048;
    shape.heads = shape.keyValueHeads = 16;
    shape.headSize = 128;
    shape.ffn = 8192;
    shape.vocabulary = 256'000;
    shape.sequence = 1024;
    shape.microbatchSize = 1;
    shape.dataType = DataType::Bf16;
    shape.attention = AttentionMemory::Recomputed;
    shape.learnedPositions = shape.bias = shape.queryKeyValueBias = false;
    DesignRequest request;
    request.family = family;
    request.devices = devices;
    request.microbatches = 2 * devices;
    request.cluster = cluster;
    request.efficiency = 0.5; // by hand, not from what was measured
    Design design = withModel(makeDesign(request), shape);
    if (copied)
        design.dataflow.shared = sharedParametersOf(*design.workload, design.layersPerStage, true);
    return design;
}

std::vector<Bytes> peaksOfDesign(const Design& design)
{
    std::vector<Bytes> peaks;
    for (const Program::Device& device : compile(design.schedule, design.costs, design.dataflow).devices)
        peaks.push_back(device.peakBytes);
    return peaks;
}

} // namespace

class TestTiedHead : public QObject {
    Q_OBJECT

private slots:
    void onItsEmbeddingsDeviceItIsOneMatrix_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("devices");
        QTest::addColumn<int>("sparing"); ///< device whose stages hold both; -1: none
        QTest::newRow("a V") << "zb-v" << 4 << 0;
        QTest::newRow("a single device") << "gpipe" << 1 << 0;
        QTest::newRow("a chain") << "1f1b" << 4 << -1;
        QTest::newRow("a chain in turns") << "interleaved-1f1b" << 4 << -1;
    }

    void onItsEmbeddingsDeviceItIsOneMatrix()
    {
        QFETCH(QString, family);
        QFETCH(int, devices);
        QFETCH(int, sparing);
        const Design one = designOf(family.toLatin1(), devices), two = designOf(family.toLatin1(), devices, true);
        const std::vector<Bytes> with = peaksOfDesign(one), without = peaksOfDesign(two);
        for (int device = 0; device < devices; ++device)
            QCOMPARE(without[std::size_t(device)] - with[std::size_t(device)], device == sparing ? 18 * matrix : 0);
        QCOMPARE(sparedByOneParameter(one.schedule, one.costs, one.dataflow).bytes, sparing < 0 ? 0 : 18 * matrix);
        QCOMPARE(sparedByOneParameter(two.schedule, two.costs, two.dataflow).bytes, Bytes(0));

        // A search has as much room for activations.
        MemoryLimit limit;
        limit.bytes = Bytes{1} << 40;
        const SearchModel searched(one, limit), copied(two, limit);
        for (int device = 0; device < devices; ++device)
            QCOMPARE(searched.capacity[device] - copied.capacity[device], device == sparing ? 18 * matrix : 0);

        // The table of memory adds up to the same peaks, and no order changes.
        const Prediction prediction = predict(one);
        const MemoryBreakdown breakdown = memoryBreakdown(one, prediction);
        Bytes weights = 0;
        for (const DeviceMemory& device : breakdown.devices) {
            QCOMPARE(device.peak, with[std::size_t(device.device)]);
            QCOMPARE(device.weights + device.gradients + device.optimizer + device.activations + device.buffers
                         + device.workspace,
                     device.peak);
            weights += device.weights;
        }
        const std::int64_t parameters = parameterCount(*one.workload);
        QCOMPARE(weights, 2 * (sparing < 0 ? parameters + matrix : parameters));
        // It is updated once: weight and state are read and written, the gradient is read.
        ModelShape untied = one.workload->shape;
        untied.tiedHead = false;
        const Design parted = withModel(one, untied);
        Nanoseconds updates = 0, apart = 0;
        for (std::size_t stage = 0; stage < one.costs.stages.size(); ++stage) {
            updates += one.costs.stages[stage].update;
            apart += parted.costs.stages[stage].update;
        }
        const double once = double(2 * (2 + 12) + 4) * double(matrix) / one.cluster.devices[0].memoryBandwidth * 1e9;
        QVERIFY(std::abs(double(apart - updates) - (sparing < 0 ? 0 : once)) < double(devices) + 2);
    }

    /// Training on them holds two, and its memory is the predicted one.
    void onCpuThreadsThereAreTwo()
    {
        for (const char* family : {"zb-v", "gpipe"}) {
            const int devices = std::string_view(family) == "gpipe" ? 1 : 4;
            const Design host = designOf(family, devices, false, "host");
            QVERIFY(host.dataflow.shared == designOf(family, devices, true).dataflow.shared);
            // Another cluster is another prediction, also of costs that were given.
            Design given = host;
            given.costs.source = "given";
            for (StageCosts& stage : given.costs.stages)
                stage.origin.fill(CostOrigin::Given);
            const Cluster gpus = PresetLibrary().cluster("h200-node", devices);
            for (const Design& base : {host, given}) {
                const Design moved = withCluster(base, gpus);
                QVERIFY(moved.dataflow.shared == designOf(family, devices).dataflow.shared);
                QVERIFY(withCluster(moved, host.cluster).dataflow.shared == host.dataflow.shared);
            }
        }
    }

    /// Otherwise a recording's tasks would not be the prediction's.
    void aProgramHasTheSameTasksWithAndWithoutCopies()
    {
        for (const char* family : {"zb-v", "gpipe"}) {
            const Design one = designOf(family, 2), two = designOf(family, 2, true);
            QCOMPARE(compile(one.schedule, one.costs, one.dataflow).tasks.size(),
                     compile(two.schedule, two.costs, two.dataflow).tasks.size());
        }
    }

    void aDesignFileKeepsWhetherThereAreCopies()
    {
        for (const bool copied : {false, true}) {
            const Design design = designOf("zb-v", 2, copied);
            QVERIFY(designFromJson(designToJson(design), "a.json").dataflow == design.dataflow);
        }
    }
};

PIPEWRIGHT_TEST(TestTiedHead, NoApplication)
#include "tst_tiedhead.moc"
