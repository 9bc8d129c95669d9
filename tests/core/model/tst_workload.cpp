// SPDX-License-Identifier: GPL-3.0-or-later
// Layers, kept tensors, work and stage costs against published formulas and numbers.
#include "core/base/diagnostic.h"
#include "core/design/recutcosts.h"
#include "core/design/stagecosts.h"
#include "core/model/activationmemory.h"
#include "core/model/transformer.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTest>

#include <cmath>
#include <map>
#include <numeric>

using namespace pipewright;

namespace {

ModelShape gpt(int layers, std::int64_t hidden, int heads, std::int64_t microbatch, std::int64_t sequence = 2048)
{
    ModelShape shape = test::gptShape(layers, hidden, heads, 51'200, sequence, microbatch);
    shape.dataType = DataType::Bf16;
    shape.dropout = true;
    return shape;
}

Bytes kept(const Layer& layer, std::initializer_list<Lifetime> lifetimes)
{
    Bytes bytes = 0;
    for (const SavedTensor& tensor : layer.saved)
        for (const Lifetime lifetime : lifetimes)
            if (tensor.lifetime == lifetime)
                bytes += tensor.bytes();
    return bytes;
}

std::map<std::string, std::pair<std::int64_t, Lifetime>> byName(const Layer& layer)
{
    std::map<std::string, std::pair<std::int64_t, Lifetime>> tensors;
    for (const SavedTensor& tensor : layer.saved)
        tensors[tensor.name] = {tensor.elements, tensor.lifetime};
    return tensors;
}

Cluster twoDevices()
{
    Cluster cluster;
    cluster.devices.assign(2, DeviceSpec{"Device", 0, 1e12, 1e11, 0.5});
    cluster.link = {"link", 5'000, 1e10};
    return cluster;
}

constexpr double gib = 1024.0 * 1024.0 * 1024.0;

} // namespace

class TestWorkload : public QObject {
    Q_OBJECT

private slots:
    void publishedActivationMemoryIsReproducedToTheLastDigit()
    {
        struct Row {
            int layers;
            std::int64_t hidden;
            int heads;
            std::int64_t microbatch;
            int t, p, v;
            double none, sequence, selective, both, states;
        };
        const Row rows[] = {
            {48, 6144, 64, 4, 8, 1, 1, 59.25, 39.5625, 29.25, 9.5625, 45.5625},
            {96, 12288, 96, 1, 8, 8, 3, 66.84375, 41.4140625, 37.78125, 12.3515625, 45.5625},
            {128, 25600, 160, 1, 8, 64, 1, 131.25, 76.5625, 81.25, 26.5625, 32.958984375},
        };
        for (const Row& row : rows) {
            const ModelShape shape = gpt(row.layers, row.hidden, row.heads, row.microbatch);
            const auto bytes = [&](ActivationMode mode) {
                return firstStageActivationBytes(shape, mode, row.t, row.p, row.v) / gib;
            };
            QCOMPARE(bytes(ActivationMode::TensorParallel), row.none);
            QCOMPARE(bytes(ActivationMode::SequenceParallel), row.sequence);
            QCOMPARE(bytes(ActivationMode::TensorParallelSelective), row.selective);
            QCOMPARE(bytes(ActivationMode::SequenceParallelSelective), row.both);
            QCOMPARE(stateBytesPerDevice(shape, 18, row.t, row.p) / gib, row.states);
        }
        QCOMPARE(activationBytesPerLayer(gpt(1, 1024, 16, 2), ActivationMode::FullRecompute, 8), 2.0 * 2048 * 2 * 1024);
    }

    void publishedUtilizationIsReproducedToThePrintedDigit()
    {
        struct Row {
            int layers;
            std::int64_t hidden;
            int heads;
            double batch, devices, seconds, mfu, hfu;
        };
        const Row rows[] = {{48, 6144, 64, 4, 8, 1.10, 41.7, 43.8},
                            {96, 12288, 96, 64, 64, 13.75, 51.4, 52.8},
                            {105, 20480, 128, 280, 280, 37.83, 56.0, 57.0},
                            {128, 25600, 160, 512, 512, 71.49, 56.3, 57.0}};
        for (const Row& row : rows) {
            const ModelShape shape = gpt(row.layers, row.hidden, row.heads, 1);
            const auto percent = [&](Recompute recompute) {
                return std::round(
                           1000
                           * utilization(iterationFlops(shape, row.batch, recompute), row.seconds, row.devices, 312e12))
                       / 10;
            };
            QCOMPARE(percent(Recompute::None), row.mfu);
            QCOMPARE(percent(Recompute::BlockSelective), row.hfu);
        }
        // Full recomputation repeats every layer's forward, and not the head's.
        const ModelShape shape = gpt(48, 6144, 64, 1);
        const double sbh = 2048.0 * 6144;
        QVERIFY(std::abs(iterationFlops(shape, 1, Recompute::Block) - iterationFlops(shape, 1, Recompute::None)
                         - 24 * 48 * sbh * 6144 * (1 + 2048.0 / (6 * 6144)))
                < 1e6);
    }

    void aLayersWorkFollowsTheZeroBubbleTable()
    {
        const ModelShape shape = gpt(4, 2304, 24, 3, 1024);
        const Layer layer = layersOf(shape)[1];
        const double sbh = 1024.0 * 3 * 2304;
        QCOMPARE(layer.forwardFlops, sbh * (24 * 2304 + 4 * 1024));
        QCOMPARE(layer.inputGradFlops, sbh * (24 * 2304 + 8 * 1024));
        QCOMPARE(layer.weightGradFlops, sbh * 24 * 2304);
        double all = 0;
        for (const Layer& each : layersOf(shape))
            all += each.forwardFlops + each.inputGradFlops + each.weightGradFlops;
        QVERIFY(std::abs(all / iterationFlops(shape, 3, Recompute::None) - 1) < 1e-12);
    }

    void whatALayerKeepsSumsToThePublishedFormula()
    {
        for (const int heads : {24, 32}) {
            const ModelShape shape = gpt(2, 96 * heads, heads, 3, 1024);
            const std::int64_t sbh = shape.tokens() * shape.hidden;
            const Layer layer = layersOf(shape)[1];
            const Bytes scores = 5 * heads * shape.sequence * shape.tokens();
            QCOMPARE(kept(layer, {Lifetime::UntilInputGrad, Lifetime::UntilWeightGrad}), 34 * sbh + scores);
            QCOMPARE(kept(layer, {Lifetime::UntilWeightGrad, Lifetime::FromInputGrad}), 32 * sbh);
            QCOMPARE(double(kept(layer, {Lifetime::UntilInputGrad, Lifetime::UntilWeightGrad})),
                     activationBytesPerLayer(shape, ActivationMode::TensorParallel, 1));

            ModelShape recomputed = shape;
            recomputed.attention = AttentionMemory::Recomputed;
            QCOMPARE(kept(layersOf(recomputed)[1], {Lifetime::UntilInputGrad, Lifetime::UntilWeightGrad}), 34 * sbh);
            QCOMPARE(kept(layersOf(recomputed)[1], {Lifetime::UntilWeightGrad, Lifetime::FromInputGrad}), 32 * sbh);
        }
    }

    void aRunnableLayerKeepsExactlyTheTensorsTheExecutorKnows()
    {
        const ModelShape shape; // byte-gpt
        QVERIFY(isRunnable(shape));
        const std::int64_t tokens = 256, sbh = tokens * 128, wide = tokens * 512;
        const Lifetime input = Lifetime::UntilInputGrad, weight = Lifetime::UntilWeightGrad,
                       from = Lifetime::FromInputGrad;
        const std::map<std::string, std::pair<std::int64_t, Lifetime>> expected{
            {"ln1.input", {sbh, input}},
            {"attention.query", {sbh, input}},
            {"attention.key", {sbh, input}},
            {"attention.value", {sbh, input}},
            {"attention.probabilities", {4 * 64 * 64 * 4, input}},
            {"ln2.input", {sbh, input}},
            {"mlp.activationInput", {wide, input}},
            {"qkv.input", {sbh, weight}},
            {"projection.input", {sbh, weight}},
            {"fc1.input", {sbh, weight}},
            {"fc2.input", {wide, weight}},
            {"qkv.outputGrad", {3 * sbh, from}},
            {"projection.outputGrad", {sbh, from}},
            {"fc1.outputGrad", {wide, from}},
            {"fc2.outputGrad", {sbh, from}},
        };
        const std::vector<Layer> layers = layersOf(shape);
        QCOMPARE(layers.size(), std::size_t(10));
        QVERIFY(byName(layers[1]) == expected);
        QCOMPARE(layers[1].saved.size(), expected.size());
        QCOMPARE(layers[1].saved.front().bytesPerElement, 4);

        const std::map<std::string, std::pair<std::int64_t, Lifetime>> head{
            {"norm.input", {sbh, input}},
            {"projection.input", {sbh, weight}},
            {"loss.probabilities", {tokens * 256, input}},
            {"loss.targets", {tokens, input}},
            {"projection.outputGrad", {tokens * 256, from}},
        };
        QVERIFY(byName(layers.back()) == head);
        const std::map<std::string, std::pair<std::int64_t, Lifetime>> embedding{{"table.tokens", {tokens, weight}},
                                                                                 {"table.outputGrad", {sbh, from}}};
        QVERIFY(byName(layers.front()) == embedding);
    }

    void gatedAndGroupedLayersKeepWhatTheyNeed()
    {
        ModelShape shape = gpt(2, 1024, 16, 2, 512);
        shape.dropout = false;
        shape.keyValueHeads = 4;
        shape.gatedMlp = true;
        shape.ffn = 2816;
        const auto tensors = byName(layersOf(shape)[1]);
        const std::int64_t tokens = shape.tokens();
        QCOMPARE(tensors.at("attention.query").first, tokens * 1024);
        QCOMPARE(tensors.at("attention.key").first, tokens * 256);
        QCOMPARE(tensors.at("qkv.outputGrad").first, tokens * (1024 + 2 * 256));
        QCOMPARE(tensors.at("mlp.activationInput").first, tokens * 2816);
        QCOMPARE(tensors.at("mlp.gateInput").first, tokens * 2816);
        QCOMPARE(tensors.at("fc1.outputGrad").first, tokens * 2 * 2816);
        QVERIFY(!tensors.contains("mlp.mask"));
        QVERIFY(isRunnable(shape));
        QVERIFY(!layersOf(shape)[1].workspace.empty());
    }

    void parametersAreNamedAndCounted()
    {
        for (const auto& layer : layersOf(gpt(2, 64, 2, 1))) {
            std::int64_t count = 0;
            for (const LayerParameter& parameter : layer.parameterTensors)
                count += parameter.count();
            QCOMPARE(count, layer.parameters);
        }
        ModelShape shape = test::llamaShape();
        shape.experts = 4;
        shape.expertsPerToken = 2;
        shape.sharedExperts = 1;
        shape.expertFfn = 10;
        const Layer layer = layersOf(shape)[1];
        std::int64_t count = 0;
        std::vector<std::string> names;
        for (const LayerParameter& parameter : layer.parameterTensors) {
            count += parameter.count();
            names.push_back(parameter.name);
        }
        QCOMPARE(count, layer.parameters);
        QCOMPARE(names, std::vector<std::string>({"ln1.gamma", "qkv.weight", "projection.weight", "ln2.gamma",
                                                  "router.weight", "experts.fc1.weight", "experts.fc2.weight",
                                                  "shared.fc1.weight", "shared.fc2.weight"}));
    }

    void aWindowMayLeaveOutSomeLayers()
    {
        ModelShape shape = test::llamaShape(6);
        QCOMPARE(windowOf(shape, 0), std::int64_t(0));
        shape.window = 5;
        QCOMPARE(windowOf(shape, 5), std::int64_t(5));
        shape.fullAttentionEvery = 3; // Gemma and GPT-OSS count so: layers 2 and 5 look at all
        std::vector<std::int64_t> windows;
        for (int layer = 0; layer < 6; ++layer)
            windows.push_back(windowOf(shape, layer));
        QCOMPARE(windows, std::vector<std::int64_t>({5, 5, 0, 5, 5, 0}));
    }

    void decodersOfTodayRun()
    {
        ModelShape shape = test::llamaShape();
        QVERIFY(isRunnable(shape));
        QCOMPARE(attentionCoreOf(shape), AttentionCore::Grouped);
        QCOMPARE(attentionOnHost(shape), AttentionMemory::Streamed);
    }

    void whatCannotRunSaysWhy()
    {
        QVERIFY(whyNotRunnable(ModelShape{}).empty());
        const Diagnostics reasons = whyNotRunnable(gpt(2, 64, 2, 1));
        QCOMPARE(reasons.size(), std::size_t(1));
        QCOMPARE(reasons[0].where, std::string("model.dropout"));
    }

    void workspaceOfAStageIsItsLargestLayers()
    {
        const ModelShape shape;
        const std::vector<Layer> layers = layersOf(shape);
        const Bytes sbh = 4 * 256 * 128, scores = 4 * 4 * 64 * 64 * 4;
        const std::span<const Layer> all(layers);
        QCOMPARE(stageWorkspace(all), sbh + scores);
        QCOMPARE(stageWorkspace(all.last(1)), sbh);
        QCOMPARE(stageWorkspace(all.first(1)), Bytes(0));
        const StageCosts costs = formulaCosts(test::workloadOf(shape), {10}, twoDevices(), {0}).stages.front();
        QCOMPARE(costs.workspaceInputGrad, sbh + scores);
        // A full backward makes what W reads one layer at a time, beside the gradient that goes from layer to layer.
        Bytes forWeights = 0;
        for (const SavedTensor& tensor : layers[1].saved)
            forWeights += tensor.lifetime == Lifetime::FromInputGrad ? tensor.bytes() : 0;
        QVERIFY(forWeights > 0);
        QCOMPARE(costs.workspaceBackward, sbh + forWeights + sbh + scores);
        QCOMPARE(costs.madeForWeightGrad(Op::B), Bytes(0));
        QCOMPARE(costs.madeForWeightGrad(Op::I), costs.savedFromInputGrad);
        QCOMPARE(costs.workspaceForward, Bytes(0));
        QCOMPARE(costs.workspaceWeightGrad, Bytes(0));
        ModelShape other = shape;
        other.dropout = true;
        QCOMPARE(stageWorkspace(layersOf(other)), Bytes(0));
    }

    void theEvenSplitGivesTheRemainderToTheMiddle()
    {
        ModelShape shape;
        shape.layers = 10;
        const Workload workload = makeWorkload(shape, Optimizer::AdamW, "test");
        QCOMPARE(evenPartition(workload, 1), std::vector<int>({12}));
        QCOMPARE(evenPartition(workload, 4), std::vector<int>({3, 3, 3, 3})); // 2 3 3 2 and the ends
        QCOMPARE(evenPartition(workload, 3), std::vector<int>({4, 4, 4}));
        QCOMPARE(evenPartition(workload, 10), std::vector<int>({2, 1, 1, 1, 1, 1, 1, 1, 1, 2}));
        for (int stages = 1; stages <= 10; ++stages) {
            const std::vector<int> partition = evenPartition(workload, stages);
            QCOMPARE(int(partition.size()), stages);
            QCOMPARE(std::accumulate(partition.begin(), partition.end(), 0), 12);
        }
        // The head alone, and then the embedding too.
        QCOMPARE(evenPartition(workload, 11), std::vector<int>({2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
        QCOMPARE(evenPartition(workload, 12), std::vector<int>(12, 1));
        QVERIFY_THROWS_EXCEPTION(Error, evenPartition(workload, 13));
        QVERIFY_THROWS_EXCEPTION(Error, evenPartition(workload, 0));
    }

    void impossibleDimensionsAreNamed()
    {
        ModelShape shape;
        shape.hidden = -5;
        shape.vocabulary = 0;
        const Diagnostics wrong = checkShape(shape);
        QCOMPARE(wrong.size(), std::size_t(2));
        QCOMPARE(wrong[0].where, std::string("model.hidden"));
        QVERIFY_THROWS_EXCEPTION(Error, makeWorkload(shape, Optimizer::AdamW, ""));
        ModelShape huge;
        huge.sequence = 100'000'000;
        huge.microbatchSize = 1'000'000;
        QVERIFY(hasErrors(checkShape(huge)));
        ModelShape uneven;
        uneven.keyValueHeads = 3;
        QVERIFY(hasErrors(checkShape(uneven)));
    }

    void stateBytesFollowPrecisionAndOptimizer()
    {
        const auto total = [](StateBytesPerParameter s) { return s.parameter + s.gradient + s.optimizer; };
        QCOMPARE(total(stateBytes(DataType::Bf16, Optimizer::AdamW)), 18);
        QCOMPARE(total(stateBytes(DataType::Fp32, Optimizer::AdamW)), 16);
        QCOMPARE(stateBytes(DataType::Fp32, Optimizer::SgdMomentum), (StateBytesPerParameter{4, 4, 4}));
    }

    void stageCostsAreFlopsOverTheSustainedRateAndSumsOfBytes()
    {
        const ModelShape shape;
        const Workload workload = makeWorkload(shape, Optimizer::AdamW, "test");
        Dataflow dataflow;
        const Costs costs = formulaCosts(workload, {5, 5}, twoDevices(), {0, 1}, &dataflow);
        QCOMPARE(costs.source, std::string("formula: Device at 50 % of peak"));
        QCOMPARE(costs.stages.size(), std::size_t(2));

        const double sbh = 64.0 * 4 * 128;
        const double layer = sbh * (24 * 128 + 4 * 64);
        const double head = 2 * sbh * 256;
        QCOMPARE(costs.stages[1].forward, Nanoseconds(std::llround((4 * layer + head) / 5e11 * 1e9)));
        QCOMPARE(costs.stages[1].inputGrad,
                 Nanoseconds(std::llround((4 * sbh * (24 * 128 + 8 * 64) + head) / 5e11 * 1e9)));
        QCOMPARE(costs.stages[0].forward, Nanoseconds(std::llround((4 * layer / 5e11 + 2 * 4 * sbh / 1e11) * 1e9)));
        QCOMPARE(costs.stages[0].backward, costs.stages[0].inputGrad + costs.stages[0].weightGrad);

        const std::int64_t perLayer = 12 * 128 * 128 + 13 * 128;
        const std::int64_t first = 4 * perLayer + 256 * 128 + 64 * 128, last = 4 * perLayer + 2 * 128 + 256 * 128;
        QCOMPARE(costs.stages[0].parameters, 4 * first);
        QCOMPARE(costs.stages[1].parameters, 4 * last);
        QCOMPARE(costs.stages[1].gradients, 4 * last);
        QCOMPARE(costs.stages[1].optimizerState, 8 * last);
        QCOMPARE(costs.stages[0].update, Nanoseconds(std::llround(double((2 * 12 + 4) * first) / 1e11 * 1e9)));
        QCOMPARE(costs.stages[0].output, Bytes(4 * 64 * 4 * 128));
        QCOMPARE(costs.stages[1].output, Bytes(0));
        QCOMPARE(costs.stages[0].savedUntilWeightGrad, Bytes(4 * (4 * 7 * std::int64_t(sbh)) + 4 * 256));
        QVERIFY(costs.stages[0].workspaceInputGrad > costs.stages[0].workspaceForward);

        QCOMPARE(dataflow.shared.size(), std::size_t(1));
        QCOMPARE(dataflow.shared[0], (SharedParameter{0, 1, 4 * 256 * 128}));
        QCOMPARE(costs.reduce, Nanoseconds(2 * (5'000 + std::llround(4 * 256 * 128 / 1e10 * 1e9))));
    }

    void aTiedHeadsCopyInOneStageCountsAndIsNamedAsShared()
    {
        const Workload workload = makeWorkload(ModelShape{}, Optimizer::SgdMomentum, "test");
        Dataflow dataflow;
        dataflow.shared.push_back({0, 1, 5});
        const Costs costs = formulaCosts(workload, {10}, twoDevices(), {0}, &dataflow);
        QCOMPARE(dataflow.shared, (std::vector<SharedParameter>{{0, 0, 4 * 256 * 128}}));
        QVERIFY(sharedParametersOf(workload, {10}, true).empty());
        QCOMPARE(costs.reduce, Nanoseconds(0));
        const Bytes held = 4 * (parameterCount(workload) + 256 * 128);
        QCOMPARE(costs.stages[0].parameters, held);
        QCOMPARE(costs.stages[0].optimizerState, held);
    }

    void piecesOfASequenceShareItsBytes()
    {
        ModelShape shape;
        shape.hidden = 1024;
        shape.heads = 16;
        shape.keyValueHeads = 4;
        shape.headSize = 64;
        shape.ffn = 4096;
        shape.sequence = 2048;
        shape.microbatchSize = 3;
        shape.dataType = DataType::Bf16;
        const auto costsOf = [&](int pieces) {
            shape.sequencePieces = pieces;
            Costs costs;
            applyBytes(makeWorkload(shape, Optimizer::AdamW, "test"), {3, 7}, {}, costs);
            return costs.stages;
        };
        const auto whole = costsOf(1), cut = costsOf(8);
        for (std::size_t stage = 0; stage < 2; ++stage) {
            QCOMPARE(whole[stage].sequenceGradient, Bytes{0});
            QCOMPARE(cut[stage].savedUntilInputGrad * 8, whole[stage].savedUntilInputGrad); // scores are s/k x s
            QCOMPARE(cut[stage].savedUntilWeightGrad * 8, whole[stage].savedUntilWeightGrad);
            QCOMPARE(cut[stage].output * 8, whole[stage].output);
            QCOMPARE(cut[stage].parameters, whole[stage].parameters); // the position table keeps its rows
            // Gradients of the keys and values of 7 of 8 pieces, summed in fp32: 2 and 6 attention layers.
            QCOMPARE(cut[stage].sequenceGradient, Bytes{4} * (stage == 0 ? 2 : 6) * 2 * 4 * 64 * 3 * (2048 - 256));
        }
    }

    void costsSurviveAnotherCut()
    {
        const Workload workload = makeWorkload(ModelShape{}, Optimizer::AdamW, "test");
        Costs costs;
        costs.source = "measured: x.db";
        costs.link.latency = 7;
        costs.stages.resize(2);
        applyBytes(workload, {5, 5}, {}, costs);
        costs.stages[0].forward = 4000; // embedding (no FLOPs) and four layers
        costs.stages[0].inputGrad = costs.stages[0].weightGrad = 8000;
        costs.stages[1].forward = 6000;
        const Costs same = recutCosts(workload, costs, {{5, 5}}, {{5, 5}});
        QVERIFY(same == costs);
        const Costs four = recutCosts(workload, costs, {{5, 5}}, {{3, 2, 2, 3}});
        QCOMPARE(four.stages.size(), std::size_t(4));
        QCOMPARE(four.stages[0].forward, Nanoseconds(2000));
        QCOMPARE(four.stages[1].forward, Nanoseconds(2000));
        QCOMPARE(four.stages[0].inputGrad, Nanoseconds(4000));
        QCOMPARE(four.stages[2].forward + four.stages[3].forward, Nanoseconds(6000));
        QVERIFY(four.stages[3].forward > four.stages[2].forward); // the head's product
        QCOMPARE(four.stages[0].savedUntilInputGrad + four.stages[1].savedUntilInputGrad,
                 costs.stages[0].savedUntilInputGrad);
        QCOMPARE(four.source, std::string("measured: x.db"));
        QCOMPARE(four.link.latency, Nanoseconds(7));
        QVERIFY_THROWS_EXCEPTION(Error, recutCosts(workload, costs, {{5, 5}}, {{5, 4}}));
    }

    void bytesCanBeCombinedWithGivenTimes()
    {
        const Workload workload = makeWorkload(ModelShape{}, Optimizer::AdamW, "test");
        Costs costs;
        costs.stages.resize(2);
        costs.stages[1].forward = 77;
        applyBytes(workload, {5, 5}, {}, costs);
        QCOMPARE(costs.stages[1].forward, Nanoseconds(77));
        Costs formula = formulaCosts(workload, {5, 5}, twoDevices(), {0, 1});
        QCOMPARE(costs.stages[1].savedUntilInputGrad, formula.stages[1].savedUntilInputGrad);
        QCOMPARE(costs.stages[1].parameters, formula.stages[1].parameters);
    }

    void partitionsThatDoNotFitAreRefused()
    {
        const Workload workload = makeWorkload(ModelShape{}, Optimizer::AdamW, "test");
        QVERIFY_THROWS_EXCEPTION(Error, formulaCosts(workload, {5, 4}, twoDevices(), {0, 1}));
        QVERIFY_THROWS_EXCEPTION(Error, formulaCosts(workload, {5, 6}, twoDevices(), {0, 1}));
        QVERIFY_THROWS_EXCEPTION(Error, formulaCosts(workload, {10, 0}, twoDevices(), {0, 1}));
        QVERIFY_THROWS_EXCEPTION(Error, formulaCosts(workload, {5, 5}, twoDevices(), {0}));
        QVERIFY_THROWS_EXCEPTION(Error, formulaCosts(workload, {5, 5}, twoDevices(), {0, 2}));
        Cluster dead = twoDevices();
        dead.devices[1].peakFlops = 0;
        QVERIFY_THROWS_EXCEPTION(Error, formulaCosts(workload, {5, 5}, dead, {0, 1}));
    }
};

PIPEWRIGHT_TEST(TestWorkload, NoApplication)
#include "tst_workload.moc"
