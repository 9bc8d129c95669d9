// SPDX-License-Identifier: GPL-3.0-or-later
// Models from recorded runs whose layers have ranges: a recording of PyTorch's profiler on a CPU, and what Nsight would
// record of a GPU, made up.
#include "core/presets/modelfile.h"
#include "core/presets/presets.h"
#include "testmain.h"
#include "testpaths.h"
#include "traces/analysis/layerranges.h"
#include "traces/analysis/layerslices.h"
#include "traces/import/traceimport.h"
#include "traces/store/storedactivities.h"

#include <QTemporaryDir>
#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// Three steps of an embedding, two blocks and a head: record_function around each, with the
/// allocator's reports.
const StoredActivities& recorded()
{
    static const StoredActivities trace = [] {
        const QTemporaryDir folder;
        const std::string path = folder.filePath(QStringLiteral("trace.db")).toStdString();
        importTraces({PIPEWRIGHT_SOURCE_DIR "/tests/traces/analysis/layers.json.gz"}, path, true);
        return readActivities(path);
    }();
    return trace;
}

/// A host that opens ranges and launches kernels 1000 ns behind itself.
struct Host {
    TraceData data;
    std::uint32_t thread = addLane(data, TraceLane::Kind::Thread, 0, 100, 1, -1, "thread 1");
    std::uint32_t stream = addLane(data, TraceLane::Kind::Stream, 0, 100, 7, 0, "stream 7");
    std::uint32_t correlation = 0;
    Nanoseconds now = 0;

    void range(const std::string& name, Nanoseconds kernel)
    {
        addActivity(data, thread, ActivityKind::Range, name, now, now + 100);
        ++correlation;
        addActivity(data, thread, ActivityKind::Runtime, "cudaLaunchKernel", now + 10, now + 20, correlation);
        addActivity(data, stream, ActivityKind::Kernel, "gemm", 10 * now + 1000, 10 * now + 1000 + kernel, correlation);
        now += 100;
    }
    void around(const std::string& name, Nanoseconds start)
    {
        addActivity(data, thread, ActivityKind::Range, name, start, now);
    }
};

std::string faultOf(const StoredActivities& trace, const LayerRangeOptions& options)
{
    try {
        layersOfRanges(trace, "here", options);
        return {};
    } catch (const Error& error) {
        return error.what();
    }
}

} // namespace

class TestLayerRanges : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aRunOfPytorchIsAModelOfItsLayers()
    {
        LayerRangeOptions options;
        options.name = "net";
        const LayerProfile profile = layersOfRanges(recorded(), "layers.json.gz", options);
        const std::vector<KnownLayer>& table = profile.shape.table;
        QCOMPARE(table.size(), std::size_t(4));
        const std::vector<std::string> names{"embedding", "block 0", "block 1", "head"};
        // Floats of 8 rows of 16 tokens, 32 wide, 64 within a block, 50 words.
        const std::vector<Bytes> parameters{50 * 32 * 4, (2 * 32 * 64 + 64 + 32) * 4, (2 * 32 * 64 + 64 + 32) * 4,
                                            (32 * 50 + 50) * 4 + 4};  // the loss itself outlives its backward
        const std::vector<Bytes> outputs{16384, 16384, 16384, 25600}; // of the loss its largest part
        const std::vector<Bytes> saved{16384, 2 * 32768 + 16384, 2 * 32768 + 16384, 25600 + 8};
        for (std::size_t i = 0; i < table.size(); ++i) {
            QCOMPARE(table[i].name, names[i]);
            QCOMPARE(table[i].parameters, parameters[i]);
            QCOMPARE(table[i].output, outputs[i]);
            QCOMPARE(table[i].saved, saved[i]);
            QVERIFY(table[i].forward > 0 && table[i].backward > 0);
            QCOMPARE(table[i].inputGrad + table[i].weightGrad, table[i].backward);
            QCOMPARE(profile.layers[i].rounds, 3);
            QVERIFY(profile.layers[i].peak >= table[i].saved);
        }
        QCOMPARE(table[0].inputGrad, Nanoseconds(0)); // as its input wants none
        QVERIFY(table[1].inputGrad > 0 && table[1].weightGrad > 0);
        QCOMPARE(profile.estimated, (std::vector<std::string>{"input_grad", "weight_grad", "saved_for_weight_grad",
                                                              "parameters", "output"}));
        QCOMPARE(profile.device, std::string("CPU"));

        const std::string origin = profile.origin("layers.json.gz");
        QVERIFY2(origin.find("estimated: input_grad, weight_grad") != origin.npos, origin.c_str());
        QCOMPARE(readModelFile(modelFileText(profile, origin), "net.json").shape, profile.shape);
        QCOMPARE(readModelFile(layerTableText(profile), "net.csv").shape.table, table);
    }

    void theAllocatorsReportsAreACounter()
    {
        const StoredActivities& trace = recorded();
        QCOMPARE(trace.counters.size(), std::size_t(1));
        const TraceCounter& counter = trace.counters[0];
        QCOMPARE(counter.device, -1);
        QVERIFY(std::is_sorted(counter.time.begin(), counter.time.end()));
        QVERIFY(*std::max_element(counter.value.begin(), counter.value.end()) >= 205'000);
    }

    void layersAreChosenByTheirNames()
    {
        LayerRangeOptions options;
        options.layers = "^block";
        QCOMPARE(layersOfRanges(recorded(), "here", options).shape.table.size(), std::size_t(2));
        options.layers = "blok";
        QVERIFY(faultOf(recorded(), options).find("no range is called \"blok\"") != std::string::npos);
        options.layers = "block (";
        QVERIFY(faultOf(recorded(), options).find("no regular expression") != std::string::npos);
    }

    void namesSayThePass_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("layer");
        QTest::addColumn<int>("pass");
        using Pass = LayerPass;
        const auto row = [](const char* name, const char* layer, Pass pass) {
            QTest::newRow(name) << QString(name) << QString(layer) << static_cast<int>(pass);
        };
        row("layer 3", "layer 3", Pass::Forward);
        row("layer 3 forward", "layer 3", Pass::Forward);
        row("backward: Block_3", "Block_3", Pass::Backward);
        row("block3.bwd", "block3", Pass::Backward);
        row("mlp(W)", "mlp", Pass::WeightGrad);
        row("attn(B)", "attn", Pass::Backward);
        row("block 1 input_grad", "block 1", Pass::InputGrad);
        row("feedback", "feedback", Pass::Forward);
        row("backward", "", Pass::Backward);
    }

    void namesSayThePass()
    {
        QFETCH(QString, name);
        QFETCH(QString, layer);
        QFETCH(int, pass);
        const LayerName is = layerName(name.toStdString());
        QCOMPARE(QString::fromStdString(is.layer), layer);
        QCOMPARE(static_cast<int>(is.pass), pass);
    }

    void rangesOfAGpuTakeTheTimesOfTheirKernels_data()
    {
        QTest::addColumn<bool>("halves");
        QTest::newRow("one range per backward") << false;
        QTest::newRow("a range per gradient") << true;
    }

    void rangesOfAGpuTakeTheTimesOfTheirKernels()
    {
        QFETCH(bool, halves);
        Host host;
        for (int step = 0; step < 3; ++step) {
            const Nanoseconds start = host.now;
            host.range("embed", 50);
            host.range("block", 200 + step); // twice: the blocks have one name
            host.range("block", 300);
            host.around("forward", start);
            const Nanoseconds back = host.now;
            for (const Nanoseconds length : {700, 600, 100}) {
                const std::string layer = length == 100 ? "embed" : "block";
                if (halves) {
                    host.range(layer + " dgrad", length / 2);
                    host.range(layer + " wgrad", length / 4);
                } else {
                    host.range(layer, length);
                }
            }
            if (!halves)
                host.around("backward", back);
            host.range("optimizer", 70);
        }
        const LayerProfile profile = layersOfRanges(stored(std::move(host.data)), "here");
        const std::vector<KnownLayer>& table = profile.shape.table;
        QCOMPARE(table.size(), std::size_t(3));
        QCOMPARE(table[1].name, std::string("block 0"));
        QCOMPARE(table[1].forward, Nanoseconds(201)); // the median step
        QCOMPARE(table[2].forward, Nanoseconds(300));
        QCOMPARE(table[2].backward, Nanoseconds(halves ? 525 : 700)); // the last layer comes first
        QCOMPARE(table[1].inputGrad, Nanoseconds(300));
        QCOMPARE(table[1].weightGrad, Nanoseconds(halves ? 150 : 300));
        QCOMPARE(profile.device, std::string("GPU 0"));
        QCOMPARE(profile.unknown.size(), std::size_t(4)); // no allocator reported
        QCOMPARE(profile.estimated.empty(), halves);
    }

    void bytesMayBeThoseOfAModelOfAsManyLayers()
    {
        StoredActivities trace = recorded();
        trace.counters.clear();
        ModelShape shape = loadModel("byte-gpt-small").shape;
        LayerRangeOptions options;
        options.model = &shape;
        shape.layers = 2;
        const LayerProfile profile = layersOfRanges(trace, "here", options);
        QVERIFY(profile.unknown.empty());
        QVERIFY(profile.shape.table[1].parameters > 0 && profile.shape.table[1].saved > 0);
        shape.layers = 3;
        QVERIFY(faultOf(trace, options).find("has 5 layers, and the recording 4") != std::string::npos);
    }

    void whatWasNotRecordedIsSaid()
    {
        const auto recordedWith = [](bool ranges) {
            TraceData data;
            const std::uint32_t thread = addLane(data, TraceLane::Kind::Thread, 0, 1, 1, -1, "thread 1");
            addActivity(data, thread, ActivityKind::Operator, "aten::mm", 0, 10);
            if (ranges) {
                addActivity(data, thread, ActivityKind::Range, "first", 20, 30);
                addActivity(data, thread, ActivityKind::Range, "second", 30, 40);
            }
            return stored(std::move(data));
        };
        QVERIFY(faultOf(recordedWith(false), {}).find("no range of the program") != std::string::npos);
        QVERIFY(faultOf(recordedWith(true), {}).find("no backward of a layer") != std::string::npos);
    }
};

PIPEWRIGHT_TEST(TestLayerRanges, QCoreApplication)
#include "tst_layerranges.moc"
