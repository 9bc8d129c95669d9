// SPDX-License-Identifier: GPL-3.0-or-later
// Products in FP8 and NVFP4: what they keep and hold, how long they take, and where they are refused.
#include "core/design/designbuilder.h"
#include "core/design/redesign.h"
#include "core/design/stagestate.h"
#include "core/files/designfile.h"
#include "core/model/frameworklayers.h"
#include "core/model/transformer.h"
#include "core/predict/leftout.h"
#include "core/predict/throughput.h"
#include "core/presets/presets.h"
#include "errorof.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;
using test::errorOf;

namespace {

/// A decoder of the shape of Llama 3 8B: 8 layers of 4096 values, 32 heads and 8 of keys, gated MLPs 14336 wide.
ModelShape llama(ProductType products, std::string_view framework)
{
    ModelShape shape = PresetLibrary().model("llama-3-8b");
    shape.layers = 8;
    shape.sequence = 8192;
    shape.microbatchSize = 1;
    shape.products = products;
    shape.framework = *frameworkNamed(framework);
    return shape;
}

Layer blockOf(const Workload& workload)
{
    return workload.layers.at(1);
}

Bytes kept(const Layer& layer, Lifetime lifetime)
{
    Bytes sum = 0;
    for (const SavedTensor& tensor : layer.saved)
        sum += tensor.lifetime == lifetime ? tensor.bytes() : 0;
    return sum;
}

Workload workloadOf(const ModelShape& shape)
{
    return makeWorkload(shape, Optimizer::AdamW, "a test");
}

Design made(const char* cluster, std::optional<Precision> precision, const char* model = "llama-3-8b")
{
    DesignRequest request;
    request.family = "1f1b";
    request.devices = 4;
    request.microbatches = 8;
    request.model = model;
    request.cluster = cluster;
    request.precision = precision;
    request.efficiency = 0.5; // the data sheets by hand, not what was measured
    return makeDesign(request);
}

constexpr Bytes layerMatrices = 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336;

/// Llama 3 8B on 4 stages, as Megatron-LM holds it, with 4 copies that share out their states.
Design sharedDesign(const char* precision, int level)
{
    DesignRequest request;
    request.family = "1f1b";
    request.devices = 4;
    request.microbatches = 8;
    request.model = "llama-3-8b";
    request.cluster = "h100-nodes";
    request.framework = frameworkNamed("megatron");
    request.precision = precisionNamed(precision);
    request.parallel = Parallelism{.data = 4};
    request.zero.level = level;
    request.efficiency = 0.5; // the data sheets by hand, not what was measured
    return makeDesign(request);
}

bool contains(const std::string& text, std::string_view part)
{
    return text.find(part) != std::string::npos;
}

} // namespace

class PrecisionTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aNameIsAPrecision()
    {
        for (const std::string_view name : {"fp32", "bf16", "fp8", "fp8-parameters", "nvfp4", "nvfp4-parameters"})
            QCOMPARE(nameOf(*precisionNamed(name)), name);
        QVERIFY(!precisionNamed("own") && !precisionNamed("") && !precisionNamed("fp16"));
    }

    // Per token, in values: the inputs of both norms and of attention (queries, keys, values and its result) stay wide,
    // as do gate and factor of the MLP; what the four products read is kept with 33 bytes for 32 values.
    void megatronKeepsWhatProductsReadNarrow()
    {
        constexpr std::int64_t tokens = 8192, hidden = 4096, heads = 32, keys = 8, headSize = 128, ffn = 14336;
        const Workload wide = workloadOf(llama(ProductType::Own, "megatron")),
                       narrow = workloadOf(llama(ProductType::Fp8, "megatron"));
        const std::int64_t read = tokens * (hidden + heads * headSize + hidden + ffn);
        QCOMPARE(kept(blockOf(wide), Lifetime::UntilWeightGrad), 2 * read);
        QCOMPARE(kept(blockOf(narrow), Lifetime::UntilWeightGrad), read * 33 / 32);
        // The result of attention is kept wide besides.
        QCOMPARE(kept(blockOf(narrow), Lifetime::UntilInputGrad) - kept(blockOf(wide), Lifetime::UntilInputGrad),
                 2 * tokens * heads * headSize);
        const std::int64_t gradients = tokens * ((heads + 2 * keys) * headSize + hidden + 2 * ffn + hidden);
        QCOMPARE(kept(blockOf(wide), Lifetime::FromInputGrad), 2 * gradients);
        QCOMPARE(kept(blockOf(narrow), Lifetime::FromInputGrad), gradients * 33 / 32);
    }

    void othersKeepWideValuesAndCastAgain()
    {
        const Layer wide = blockOf(workloadOf(llama(ProductType::Own, "torchtitan"))),
                    narrow = blockOf(workloadOf(llama(ProductType::Fp8, "torchtitan")));
        QVERIFY(wide.saved == narrow.saved);
        const Movements kept =
                            blockOf(workloadOf(llama(ProductType::Fp8, "megatron"))).moved[std::size_t(Movement::Cast)],
                        again = narrow.moved[std::size_t(Movement::Cast)];
        constexpr double bytes = 2 + 2 * 33. / 32;
        QCOMPARE(kept.forward.bytes, bytes * 8192 * 4096); // of the projection alone: norms and the MLP write narrow
        QCOMPARE(again.forward.bytes - kept.forward.bytes, bytes * static_cast<double>(narrow.narrowParameters));
        QCOMPARE(kept.weightGrad.bytes, 0.);
        QVERIFY(again.weightGrad.bytes > 0);
    }

    // Two copies of every weight of the layers' matrices; norms, embedding and head have none.
    void weightsAreHeldTwiceMore()
    {
        for (const auto& [type, bytes] : {std::pair{ProductType::Fp8, 33}, std::pair{ProductType::Nvfp4, 18}}) {
            const ModelShape shape = llama(type, "megatron"), plain = llama(ProductType::Own, "megatron");
            const std::vector<Layer> layers = workloadOf(shape).layers;
            constexpr std::int64_t matrices = 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336;
            QCOMPARE(layers.at(1).narrowParameters, matrices);
            QCOMPARE(layers.front().narrowParameters + layers.back().narrowParameters, std::int64_t(0));
            QCOMPARE(narrowWeightsOf(shape, layers), Bytes(8 * 2 * (matrices * bytes / 32)));
            QCOMPARE(narrowWeightsOf(plain, workloadOf(plain).layers), Bytes(0));
        }
    }

    void everyStageOfADeviceHasItsOwn()
    {
        const auto most = [](int chunks) {
            DesignRequest request;
            request.family = chunks > 1 ? "interleaved-1f1b" : "1f1b";
            request.devices = 4;
            request.microbatches = 8;
            request.chunks = chunks;
            request.model = "llama-3-8b";
            request.cluster = "h100-node";
            request.precision = precisionNamed("fp8");
            request.framework = frameworkNamed("megatron");
            const Design design = makeDesign(request);
            Bytes bytes = 0;
            for (const HeldBesides& held : heldBesides(design.schedule, design.costs))
                bytes = std::max(bytes, held.bytes);
            return bytes;
        };
        constexpr Bytes layer = 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336;
        QVERIFY(most(1) > 8 * 2 * layer); // 32 layers over 4 devices
        QVERIFY(most(2) > 8 * 2 * layer);
    }

    // Megatron-LM's --fp8-param-gather: what products read is held twice in their type, and in no wider one.
    void parametersMayExistInTheProductsTypeAlone()
    {
        const Design both = sharedDesign("fp8", 1), alone = sharedDesign("fp8-parameters", 1);
        constexpr std::int64_t matrices = 8 * std::int64_t(layerMatrices); // of each of four stages
        for (std::size_t stage = 0; stage < 4; ++stage) {
            const StageCosts &before = both.costs.stages[stage], &after = alone.costs.stages[stage];
            QCOMPARE(before.narrowWeights, Bytes(2 * (matrices * 33 / 32)));
            QCOMPARE(after.narrowWeights, Bytes(matrices * 33 / 32));
            QCOMPARE(before.parameters - after.parameters, Bytes(2 * matrices - matrices * 33 / 32));
            QCOMPARE(after.gradients, before.gradients);
            QCOMPARE(after.optimizerState, before.optimizerState); // master copies and moments, in fp32
            // Over the links that sum the gradients, of 4 bytes each.
            const double spared =
                static_cast<double>(before.gather - after.gather) / static_cast<double>(before.reduceGradients);
            const double fewer = static_cast<double>(before.parameters - after.parameters);
            QVERIFY(std::abs(spared - fewer / static_cast<double>(before.gradients)) < 1e-3);
        }
        const StageCosts whole = sharedDesign("fp8-parameters", 3).costs.stages[1];
        QCOMPARE(whole.gatheredParameters, alone.costs.stages[1].parameters);
        QCOMPARE(whole.narrowWeights, Bytes(0)); // the second copy of a layer is made when its backward comes
        for (const int level : {1, 3})
            QCOMPARE(std::ranges::count_if(leftOut(sharedDesign("fp8-parameters", level)),
                                           [](const std::string& each) { return contains(each, "second copy"); }),
                     level == 3 ? 1 : 0);
        const std::int64_t all = alone.costs.stages[1].gradients / 4;
        QCOMPARE(whole.parameters, Bytes(((all + 3) / 4 - matrices / 4) * 2 + matrices / 4 * 33 / 32));
    }

    // A tied head on its embedding's device is one matrix, in bf16 beside layers in FP8.
    void aTiedMatrixKeepsItsType()
    {
        DesignRequest request;
        request.family = "zb-v";
        request.devices = 2;
        request.microbatches = 4;
        request.model = "llama-3-8b";
        request.cluster = "h100-node";
        const auto tied = [design = makeDesign(request)](const char* precision) {
            ModelShape shape = llama(ProductType::Own, "megatron");
            shape.tiedHead = true;
            shape.setPrecision(*precisionNamed(precision));
            return withModel(design, shape);
        };
        for (const char* name : {"fp8", "fp8-parameters"}) {
            const Design design = tied(name);
            QCOMPARE(design.dataflow.shared.size(), std::size_t(1));
            const int last = design.schedule.stages() - 1;
            const StageCosts& stage = design.costs.stages[std::size_t(last)];
            const StageState held = stageState(design.schedule, design.costs, design.dataflow, last, 0);
            constexpr Bytes matrix = Bytes(128'256) * 4096;
            QCOMPARE(stage.parameters - held.parameters, 2 * matrix);
            QCOMPARE(stage.gradients - held.gradients, 4 * matrix);
            QVERIFY(designFromJson(designToJson(design), "a test") == design);
        }
        QVERIFY(withPrecision(tied("bf16"), *precisionNamed("fp8-parameters")) == tied("fp8-parameters"));
        QVERIFY(withPrecision(tied("fp8-parameters"), *precisionNamed("bf16")) == tied("bf16"));
    }

    // A framework without buffers has nothing that stages share, and yet its weights are those of the device's stages.
    void narrowWeightsAreOfAStageOfTheirDevice()
    {
        Design design = made("h100-node", precisionNamed("fp8"));
        for (StageCosts& stage : design.costs.stages)
            stage.framework = 0, stage.narrowWeights = 1000;
        const std::vector<HeldBesides> held = heldBesides(design.schedule, design.costs);
        for (std::size_t device = 0; device < held.size(); ++device) {
            QCOMPARE(held[device].bytes, Bytes(1000));
            QCOMPARE(design.schedule.deviceOfStage[std::size_t(held[device].stage)], int(device));
        }
    }

    void expertsElsewhereAreNeitherHeldNorCast()
    {
        ModelShape shape = PresetLibrary().model("mixtral-8x7b");
        shape.products = ProductType::Fp8;
        const auto blockFor = [&](const char* framework, int expert) {
            shape.framework = *frameworkNamed(framework);
            shape.parallel.data = shape.parallel.expert = expert;
            return blockOf(workloadOf(shape));
        };
        const std::int64_t attention = 4096 * (4096 + 2 * 1024) + 4096 * 4096, expert = 3 * 4096 * 14336;
        QCOMPARE(blockFor("megatron", 1).narrowParameters, attention + 8 * expert);
        QCOMPARE(blockFor("megatron", 4).narrowParameters, attention + 2 * expert);
        const auto casts = [&](const char* framework, int experts) {
            return blockFor(framework, experts).moved[std::size_t(Movement::Cast)].forward.bytes;
        };
        QCOMPARE(casts("torchtitan", 1) - casts("torchtitan", 4), 6. * double(expert) * (2 + 2 * 33. / 32));
        QCOMPARE(casts("megatron", 1), casts("megatron", 4));
    }

    void routersStayWide()
    {
        ModelShape shape = PresetLibrary().model("mixtral-8x7b");
        shape.products = ProductType::Fp8;
        int wide = 0, narrow = 0;
        const Layer block = blockOf(workloadOf(shape));
        for (const ProductSize& product : block.products)
            (product.narrow ? narrow : wide) += 1;
        QCOMPARE(wide, 1);
        QCOMPARE(narrow, 4); // qkv, projection and two of experts
    }

    // A block of four alike: its products at the device's other peak, all else as before, and the casts by bandwidth.
    void productsTakeTheirOwnPeak()
    {
        const Design wide = made("h100-node", precisionNamed("bf16")),
                     narrow = made("h100-node", precisionNamed("fp8"));
        const DeviceSpec& device = narrow.cluster.devices.front();
        QCOMPARE(device.peakOf(ProductType::Fp8), 1979e12);
        constexpr std::size_t stage = 1;
        double flops = 0, casts = 0;
        const int first = narrow.layersPerStage[0], count = narrow.layersPerStage[stage];
        for (int layer = first; layer < first + count; ++layer) {
            for (const ProductSize& product : narrow.workload->layers[std::size_t(layer)].products)
                flops += product.narrow ? product.flops() : 0;
            casts += narrow.workload->layers[std::size_t(layer)].moved[std::size_t(Movement::Cast)].forward.bytes;
        }
        const double less =
            flops / device.efficiency * (1 / device.peakFlops - 1 / device.peakFp8) - casts / device.memoryBandwidth;
        QVERIFY(std::abs(static_cast<double>(wide.costs.stages[stage].forward - narrow.costs.stages[stage].forward)
                         - less * 1e9)
                <= 2);
        QVERIFY(less > 0);
        // Of the peak of its products, so never above one.
        QVERIFY(modelFlopsUtilization(narrow, 1'000'000'000) < modelFlopsUtilization(wide, 1'000'000'000));
    }

    void aFileKeepsIt()
    {
        const Design design = made("b200-nodes", precisionNamed("nvfp4"));
        const Design again = designFromJson(designToJson(design), "a test");
        QCOMPARE(again.workload->shape.products, ProductType::Nvfp4);
        QCOMPARE(again.cluster.devices.front().peakNvfp4, 9000e12);
        QVERIFY(again == design);
        QVERIFY(withPrecision(design, *precisionNamed("bf16")).workload->shape
                == made("b200-nodes", precisionNamed("bf16")).workload->shape);
    }

    void whatCannotBeIsSaid()
    {
        QVERIFY(contains(errorOf([] { made("a100-nodes", precisionNamed("fp8")); }), "has no products in fp8"));
        QVERIFY(contains(errorOf([] { made("h100-nodes", precisionNamed("nvfp4")); }), "has no products in nvfp4"));
        const Design design = made("h100-nodes", precisionNamed("fp8"));
        QVERIFY(!whyNotRunnable(design.workload->shape).empty());
        Design given = made("h100-nodes", precisionNamed("bf16"));
        given.costs.source = "given";
        QVERIFY(contains(errorOf([&] { withPrecision(given, *precisionNamed("fp8")); }), "no formula says"));
        ModelShape shape = llama(ProductType::Fp8, "none");
        shape.dataType = DataType::Fp32;
        QVERIFY(hasErrors(checkShape(shape)));
        // Parameters in FP8 alone are what Transformer Engine holds.
        for (const char* framework : {"none", "torchtitan", "deepspeed"}) {
            shape = llama(ProductType::Fp8, framework);
            QVERIFY(!hasErrors(checkShape(shape)));
            shape.narrowParameters = true;
            QVERIFY(contains(errorOf([&] { workloadOf(shape); }), "none exist in fp8 alone"));
        }
        shape = llama(ProductType::Own, "megatron");
        shape.narrowParameters = true;
        QVERIFY(contains(errorOf([&] { workloadOf(shape); }), "no narrower one"));
    }
};

PIPEWRIGHT_TEST(PrecisionTest, NoApplication)
#include "tst_precision.moc"
