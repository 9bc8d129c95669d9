// SPDX-License-Identifier: GPL-3.0-or-later
// What follows from the rows of operations: rules on small graphs, and the numbers of whole layers. The latter are
// those of the program before it had a model graph, when they were written out part by part.
#include "core/model/layersofgraph.h"
#include "core/model/modelgraph.h"
#include "core/model/transformer.h"
#include "core/presets/presets.h"
#include "testmain.h"

#include <QTest>

#include <array>
#include <functional>
#include <map>

using namespace pipewright;

namespace {

enum Place { First, Last, End }; ///< embedding, last layer between the ends, head

struct LayerNumbers {
    const char *preset, *change;
    Place place;
    std::int64_t parameters;
    std::array<double, 3> flops; ///< forward, input gradient, weight gradient
    std::array<Bytes, 3> kept;   ///< until I, until W, from I
    Bytes workspace;
};

constexpr LayerNumbers published[] = {
    {"bert-large", "", First, 31782912, {0, 0, 0}, {12582912, 16384, 8388608}, 0},
    {"bert-large", "", Last, 12596224, {111669149696, 120259084288, 103079215104}, {251658240, 58720256, 75497472}, 0},
    {"bert-large", "", End, 1049600, {16777216, 16777216, 16777216}, {8437792, 16384, 16384}, 0},
    {"bert-large", "tied", First, 31782912, {0, 0, 0}, {12582912, 16384, 8388608}, 0},
    {"bert-large",
     "tied",
     Last,
     12596224,
     {111669149696, 120259084288, 103079215104},
     {251658240, 58720256, 75497472},
     0},
    {"bert-large",
     "tied",
     End,
     32336698,
     {264627027968, 264627027968, 264627027968},
     {516866048, 16777216, 258424832},
     0},
    {"bert-large", "head tok", First, 31782912, {0, 0, 0}, {12582912, 16384, 8388608}, 0},
    {"bert-large",
     "head tok",
     Last,
     12596224,
     {111669149696, 120259084288, 103079215104},
     {251658240, 58720256, 75497472},
     0},
    {"bert-large", "head tok", End, 3075, {25165824, 25165824, 25165824}, {65536, 8388608, 24576}, 0},
    {"vit-b-16", "", First, 742656, {7398752256, 0, 7398752256}, {0, 9633792, 9682944}, 0},
    {"vit-b-16", "", Last, 7087872, {93053091840, 96868171776, 89238011904}, {116951808, 67780608, 87146496}, 78976512},
    {"vit-b-16", "", End, 770536, {49152000, 49152000, 49152000}, {9811072, 49152, 64000}, 98304},
    {"byte-mlp", "", First, 65536, {0, 0, 0}, {0, 2048, 4096}, 0},
    {"byte-mlp", "", Last, 33216, {1048576, 1048576, 1048576}, {20480, 20480, 20480}, 4096},
    {"byte-mlp", "", End, 384, {8192, 8192, 8192}, {4416, 4096, 256}, 4096},
    {"byte-gpt", "", First, 40960, {0, 0, 0}, {0, 1024, 131072}, 0},
    {"byte-gpt", "", Last, 198272, {109051904, 117440512, 100663296}, {1441792, 917504, 1179648}, 393216},
    {"byte-gpt", "", End, 33024, {16777216, 16777216, 16777216}, {394240, 131072, 262144}, 131072},
    {"byte-gpt", "pieces4", First, 40960, {0, 0, 0}, {0, 256, 32768}, 0},
    {"byte-gpt", "pieces4", Last, 198272, {27262976, 29360128, 25165824}, {360448, 229376, 294912}, 98304},
    {"byte-gpt", "pieces4", End, 33024, {4194304, 4194304, 4194304}, {98560, 32768, 65536}, 32768},
    {"gpt-3-175b", "", First, 642723840, {0, 0, 0}, {25165824, 8192, 50331648}, 0},
    {"gpt-3-175b",
     "",
     Last,
     1812099072,
     {7627861917696, 7834020347904, 7421703487488},
     {2516582400, 352321536, 452984832},
     0},
    {"gpt-3-175b",
     "",
     End,
     617582592,
     {2529517633536, 2529517633536, 2529517633536},
     {462045184, 50331648, 205852672},
     0},
    {"gpt-3-175b", "tp4seq cp2 stored dropout", First, 179564544, {0, 0, 0}, {3145728, 4096, 6291456}, 0},
    {"gpt-3-175b",
     "tp4seq cp2 stored dropout",
     Last,
     453080064,
     {953482739712, 979252543488, 927712935936},
     {314572800, 44040192, 56623104},
     0},
    {"gpt-3-175b",
     "tp4seq cp2 stored dropout",
     End,
     154423296,
     {316208578560, 316208578560, 316208578560},
     {57761792, 6291456, 25733120},
     0},
    {"llama-3-8b", "", First, 525336576, {0, 0, 0}, {0, 32768, 67108864}, 0},
    {"llama-3-8b",
     "",
     Last,
     218112000,
     {4123168604160, 4947802324992, 3573412790272},
     {704643072, 436207616, 704643072},
     135266304},
    {"llama-3-8b",
     "",
     End,
     525340672,
     {8607114461184, 8607114461184, 8607114461184},
     {4269834240, 67108864, 2101346304},
     134217728},
    {"llama-3-8b", "capped", First, 525336576, {0, 0, 0}, {0, 32768, 67108864}, 0},
    {"llama-3-8b",
     "capped",
     Last,
     218112000,
     {4123168604160, 4947802324992, 3573412790272},
     {704643072, 436207616, 704643072},
     135266304},
    {"llama-3-8b",
     "capped",
     End,
     525340672,
     {8607114461184, 8607114461184, 8607114461184},
     {8472526848, 67108864, 2101346304},
     134217728},
    {"qwen3-8b", "", First, 622329856, {0, 0, 0}, {0, 16384, 33554432}, 0},
    {"qwen3-8b",
     "",
     Last,
     192946432,
     {1717986918400, 1924145348608, 1580547964928},
     {360710144, 201326592, 318767104},
     67633152},
    {"qwen3-8b",
     "",
     End,
     622333952,
     {5098126180352, 5098126180352, 5098126180352},
     {2522890240, 33554432, 1244659712},
     67108864},
    {"qwen3-8b", "postnorm", First, 622329856, {0, 0, 0}, {0, 16384, 33554432}, 0},
    {"qwen3-8b",
     "postnorm",
     Last,
     192954624,
     {1717986918400, 1924145348608, 1580547964928},
     {427819008, 201326592, 318767104},
     67633152},
    {"qwen3-8b",
     "postnorm",
     End,
     622333952,
     {5098126180352, 5098126180352, 5098126180352},
     {2522890240, 33554432, 1244659712},
     67108864},
    {"qwen3-8b", "head reward", First, 622329856, {0, 0, 0}, {0, 16384, 33554432}, 0},
    {"qwen3-8b",
     "head reward",
     Last,
     192946432,
     {1717986918400, 1924145348608, 1580547964928},
     {360710144, 201326592, 318767104},
     0},
    {"qwen3-8b",
     "head reward",
     End,
     16793602,
     {137506062336, 137506062336, 137506062336},
     {33554444, 67108864, 33570816},
     0},
    {"mixtral-8x7b", "", First, 131072000, {0, 0, 0}, {0, 16384, 33554432}, 0},
    {"mixtral-8x7b",
     "",
     Last,
     1451270144,
     {3367522795520, 3573681225728, 3230083842048},
     {654540800, 402653220, 620822528},
     201850880},
    {"mixtral-8x7b",
     "",
     End,
     131076096,
     {1073741824000, 1073741824000, 1073741824000},
     {557858816, 33554432, 262144000},
     67108864},
    {"mixtral-8x7b", "ep2dp2", First, 131072000, {0, 0, 0}, {0, 16384, 33554432}, 0},
    {"mixtral-8x7b",
     "ep2dp2",
     Last,
     746627072,
     {3367522795520, 3573681225728, 3230083842048},
     {654540800, 402653220, 620822528},
     0},
    {"mixtral-8x7b",
     "ep2dp2",
     End,
     131076096,
     {1073741824000, 1073741824000, 1073741824000},
     {557858816, 33554432, 262144000},
     0},
    {"mixtral-8x7b", "expertbias", First, 131072000, {0, 0, 0}, {0, 16384, 33554432}, 0},
    {"mixtral-8x7b",
     "expertbias",
     Last,
     1451532296,
     {3367522795520, 3573681225728, 3230083842048},
     {654540800, 402653220, 620822528},
     201850880},
    {"mixtral-8x7b",
     "expertbias",
     End,
     131076096,
     {1073741824000, 1073741824000, 1073741824000},
     {557858816, 33554432, 262144000},
     67108864},
    {"deepseek-v3", "", First, 926679040, {0, 0, 0}, {0, 16384, 58720256}, 0},
    {"deepseek-v3",
     "",
     Last,
     11507286272,
     {5481988882432, 6512781033472, 4794794115072},
     {1447428096, 889193476, 1378353152},
     1612709888},
    {"deepseek-v3",
     "",
     End,
     926686208,
     {7591354695680, 7591354695680, 7591354695680},
     {2176860160, 58720256, 1059061760},
     117440512},
    {"deepseek-v3", "tp2", First, 463339520, {0, 0, 0}, {0, 16384, 58720256}, 0},
    {"deepseek-v3",
     "tp2",
     Last,
     5762138368,
     {2810519224320, 3325915299840, 2466921840640},
     {1027997696, 746587140, 992477184},
     0},
    {"deepseek-v3",
     "tp2",
     End,
     463346688,
     {3795677347840, 3795677347840, 3795677347840},
     {1117798400, 58720256, 529530880},
     0},
};

ModelShape changed(ModelShape shape, const std::string& change)
{
    const std::map<std::string, std::function<void()>> changes{
        {"", [] {}},
        {"untied", [&] { shape.tiedHead = false; }},
        {"tied", [&] { shape.tiedHead = true; }},
        {"capped", [&] { shape.logitsSoftCap = 30; }},
        {"postnorm", [&] { shape.postNorm = true; }},
        {"pieces4", [&] { shape.sequencePieces = 4; }},
        {"expertbias", [&] { shape.expertBias = shape.routerBias = true; }},
        {"tp2", [&] { shape.parallel.tensor = 2; }},
        {"ep2dp2", [&] { shape.parallel.expert = shape.parallel.data = 2; }},
        {"tp4seq cp2 stored dropout",
         [&] {
             shape.parallel.tensor = 4;
             shape.parallel.sequence = shape.dropout = true;
             shape.parallel.context = 2;
             shape.attention = AttentionMemory::Stored;
         }},
        {"head tok",
         [&] {
             shape.head = Head::TokenLabels;
             shape.labels = 3;
         }},
        {"head reward",
         [&] {
             shape.head = Head::Reward;
             shape.labels = 2;
         }},
    };
    changes.at(change)();
    return shape;
}

Layer describedFrom(const TensorGraph& graph)
{
    Layer layer;
    describeLayer(graph, 1, layer);
    return layer;
}

/// "name until" of every kept tensor.
std::map<std::string, std::pair<std::int64_t, Lifetime>> keptBy(const Layer& layer)
{
    std::map<std::string, std::pair<std::int64_t, Lifetime>> kept;
    for (const SavedTensor& tensor : layer.saved)
        kept[tensor.name] = {tensor.elements, tensor.lifetime};
    return kept;
}

} // namespace

class LayersOfGraphTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void numbersOfLayersStay_data()
    {
        QTest::addColumn<int>("row");
        int row = 0;
        for (const LayerNumbers& numbers : published)
            QTest::addRow("%s %s, %d", numbers.preset, numbers.change, int(numbers.place)) << row++;
    }
    void numbersOfLayersStay()
    {
        QFETCH(int, row);
        const LayerNumbers& numbers = published[row];
        const std::vector<Layer> layers = layersOf(changed(PresetLibrary().model(numbers.preset), numbers.change));
        const Layer& layer = numbers.place == First ? layers.front()
                             : numbers.place == End ? layers.back()
                                                    : layers[layers.size() - 2];
        QCOMPARE(layer.parameters, numbers.parameters);
        QCOMPARE(layer.forwardFlops, numbers.flops[0]);
        QCOMPARE(layer.inputGradFlops, numbers.flops[1]);
        QCOMPARE(layer.weightGradFlops, numbers.flops[2]);
        std::array<Bytes, 3> bytes{};
        for (const SavedTensor& tensor : layer.saved)
            bytes[static_cast<std::size_t>(tensor.lifetime)] += tensor.bytes();
        QVERIFY(bytes == numbers.kept);
        Bytes workspace = 0;
        for (const WorkspaceTensor& tensor : layer.workspace)
            workspace += tensor.bytes();
        QCOMPARE(workspace, numbers.workspace);
    }

    void aTensorThatManyReadIsKeptOnceUntilItsLastReader()
    {
        TensorGraph graph;
        const int x = graph.addReceived("x", {2, 3, 4});
        const int normed = graph.add("n", "rms_norm", {x, graph.addParameter("g", {4})});
        graph.describe(normed, "norm", false);
        const int a = graph.add("a", "linear", {normed, graph.addParameter("wa", {6, 4})});
        graph.describe(a, "both", false);
        const int b = graph.add("b", "linear", {normed, graph.addParameter("wb", {2, 4})});
        graph.describe(b, "both", false);
        const int c = graph.add("c", "silu", {a});
        graph.describe(c, "act", false);
        graph.add("s1", "sum", {c});
        graph.add("loss", "sum", {b});
        const auto kept = keptBy(describedFrom(graph));
        QCOMPARE(kept.size(), std::size_t{4});
        QCOMPARE(kept.at("norm.input"), std::pair(std::int64_t{24}, Lifetime::UntilInputGrad));
        QCOMPARE(kept.at("both.input"), std::pair(std::int64_t{24}, Lifetime::UntilWeightGrad)); // of two products
        QCOMPARE(kept.at("both.outputGrad"), std::pair(std::int64_t{6 * (6 + 2)}, Lifetime::FromInputGrad));
        QCOMPARE(kept.at("act.activationInput"), std::pair(std::int64_t{36}, Lifetime::UntilInputGrad));
    }

    void productsOfOnePartAreAsWideAsAllOfThem()
    {
        const auto layerWith = [](const char* second) {
            TensorGraph graph;
            const int x = graph.addReceived("x", {3, 8});
            const int a = graph.add("a", "linear", {x, graph.addParameter("wa", {4, 8})});
            graph.describe(a, "first", false);
            const int b = graph.add("b", "linear", {x, graph.addParameter("wb", {4, 8})});
            graph.describe(b, second, false);
            graph.add("loss", "sum", {graph.add("m", "multiply", {a, b})});
            return describedFrom(graph);
        };
        QCOMPARE(layerWith("first").forwardFlops, layerWith("other").forwardFlops);
        QCOMPARE(layerWith("first").forwardFlopsPerWidth, 2.0 * 3 * 8 * 8 / 8);
        QCOMPARE(layerWith("other").forwardFlopsPerWidth, 2 * (2.0 * 3 * 8 * 4 / 4));
    }

    void anActivationIsMadeAgainForTheProductBehindIt()
    {
        const auto keptWith = [](const char* operation) {
            TensorGraph graph;
            const int gate = graph.addReceived("gate", {3, 8}), factor = graph.addReceived("factor", {3, 8});
            const int active = graph.add("active", operation, {gate});
            graph.describe(active, "act", false);
            const int product = graph.add("product", "multiply", {active, factor});
            graph.describe(product, "product", false);
            graph.add("loss", "sum", {product});
            return keptBy(describedFrom(graph));
        };
        QCOMPARE(keptWith("silu").size(), std::size_t{2}); // the gate and the factor
        QVERIFY(!keptWith("silu").contains("product.factor"));
        QCOMPARE(keptWith("relu").size(), std::size_t{2});       // its result, which is the product's first operand
        QVERIFY(keptWith("dropout").contains("product.factor")); // not made again: its mask alone is kept
    }

    void gradientsPassThroughSumsOnce()
    {
        TensorGraph graph;
        const int x = graph.addReceived("x", {2, 3, 4});
        const int y = graph.add("y", "linear", {x, graph.addParameter("w", {4, 4})});
        graph.describe(y, "y", false);
        const int placed = graph.add("p", "positions", {y, graph.addParameter("t", {3, 4})});
        graph.describe(placed, "p", false);
        graph.add("loss", "sum", {placed});
        const auto kept = keptBy(describedFrom(graph));
        QVERIFY(kept.contains("y.outputGrad") && !kept.contains("p.outputGrad")); // one tensor
    }

    void inputsHaveNoGradient()
    {
        TensorGraph graph;
        const int x = graph.addInput("x", {3, 8});
        const int y = graph.add("y", "linear", {x, graph.addParameter("w", {4, 8})});
        graph.describe(y, "y", false);
        graph.add("loss", "sum", {y});
        const Layer layer = describedFrom(graph);
        QCOMPARE(layer.inputGradFlops, 0.0);
        QCOMPARE(layer.weightGradFlops, layer.forwardFlops);
        QVERIFY(layer.workspace.empty());
    }

    void expertsHoldCopiesNotSlots()
    {
        ModelShape shape;
        shape.experts = 8;
        shape.expertsPerToken = 1;
        shape.expertFfn = 16;
        shape.activation = Activation::Silu;
        shape.sequence = 3; // fewer tokens than experts, so most slots are empty
        const Layer layer = layersOf(shape)[1];
        QCOMPARE(keptBy(layer).at("experts.fc1.input").first, shape.tokens() * shape.hidden);
        QCOMPARE(keptBy(layer).at("experts.output").first, shape.tokens() * shape.hidden);
    }
};

PIPEWRIGHT_TEST(LayersOfGraphTest, NoApplication)
#include "tst_layersofgraph.moc"
