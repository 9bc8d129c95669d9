// SPDX-License-Identifier: GPL-3.0-or-later
// Each property of what a framework keeps changes its own bytes, by its formula, and no others.
#include "core/design/newdesign.h"
#include "core/model/frameworklayers.h"
#include "core/model/passmemory.h"
#include "core/predict/predict.h"
#include "core/presets/presets.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <string>

using namespace pipewright;

namespace {

ModelShape bf16Llama()
{
    ModelShape shape = test::llamaShape();
    shape.dataType = DataType::Bf16;
    return shape;
}

ModelShape withExperts(ModelShape shape)
{
    shape.experts = 4;
    shape.expertsPerToken = 2;
    shape.expertFfn = 8;
    return shape;
}

Bytes keptOf(const Layer& layer, Lifetime lifetime)
{
    Bytes sum = 0;
    for (const SavedTensor& tensor : layer.saved)
        sum += tensor.lifetime == lifetime ? tensor.bytes() : 0;
    return sum;
}

bool keeps(const Layer& layer, const std::string& name)
{
    return std::any_of(layer.saved.begin(), layer.saved.end(),
                       [&](const SavedTensor& tensor) { return tensor.name == name; });
}

} // namespace

class TestFrameworkLayers : public QObject {
    Q_OBJECT

private slots:
    void aLossInPlaceKeepsLogitsOnceInsteadOfThreeTimes()
    {
        ModelShape shape = bf16Llama();
        const Layer usual = layersOf(shape).back();
        shape.framework.loss = FrameworkMemory::Loss::InPlace;
        const Layer head = layersOf(shape).back();
        const Bytes logits = shape.tokens() * shape.vocabulary;
        QCOMPARE(keptOf(head, Lifetime::UntilInputGrad), keptOf(usual, Lifetime::UntilInputGrad) - 4 * logits);
        QCOMPARE(keptOf(head, Lifetime::FromInputGrad), keptOf(usual, Lifetime::FromInputGrad) - 2 * logits);
        QCOMPARE(keptOf(head, Lifetime::UntilWeightGrad), keptOf(usual, Lifetime::UntilWeightGrad) + 2 * logits);
    }

    /// fp32 logits beside those of the product; in the backward two fp32 gradients, of which the one in bf16, kept
    /// until W, takes the place of a half.
    void aPlainLossWorksInFp32()
    {
        ModelShape shape = bf16Llama();
        shape.framework.loss = FrameworkMemory::Loss::Plain;
        const std::vector<Layer> layers = layersOf(shape);
        QVERIFY(layersOf(bf16Llama()).back() == layers.back()); // F keeps as much
        const Bytes logits = shape.tokens() * shape.vocabulary;
        QVERIFY((endWorkspace(shape, layers.back(), 0)
                 == EndWorkspace{.forward = 6 * logits, .inputGrad = 6 * logits, .backward = 6 * logits}));
        QVERIFY(endWorkspace(shape, layers[1], 0) == EndWorkspace{});
        const std::span<const Layer> head = std::span(layers).last(1);
        const PassMemory plain = passMemory(shape, head, Recompute::None),
                         usual = passMemory(bf16Llama(), head, Recompute::None);
        QCOMPARE(plain.workspace.inputGrad, usual.workspace.inputGrad + 6 * logits);
        QCOMPARE(plain.workspace.backward, usual.workspace.backward + 6 * logits);
    }

    void aVocabularyIsPaddedForAllMembers()
    {
        ModelShape shape = bf16Llama();
        shape.vocabulary = 130;
        shape.framework.vocabularyMultiple = 128;
        QCOMPARE(layersOf(shape).front().parameters, 256 * shape.hidden);
        shape.parallel = {.tensor = 2};
        QCOMPARE(layersOf(shape).front().parameters, 128 * shape.hidden);
        ModelShape plain = shape;
        plain.framework = {};
        plain.parallel = {}; // padding is no parameter of the model
        QCOMPARE(parameterCount(test::workloadOf(shape)), parameterCount(test::workloadOf(plain)));
    }

    void wholeGradientsOfTheVocabularyTakeWhatOthersReleased()
    {
        ModelShape shape = bf16Llama();
        shape.framework.wholeVocabularyGradients = true;
        const std::vector<Layer> layers = layersOf(shape);
        const Bytes matrix = 2 * shape.vocabulary * shape.hidden, stream = 2 * shape.tokens() * shape.hidden,
                    probabilities = 4 * shape.tokens() * shape.vocabulary;
        QCOMPARE(endWorkspace(shape, layers.back(), 0).weightGrad, matrix);
        QCOMPARE(endWorkspace(shape, layers.back(), 0).backward,
                 std::max<Bytes>(0, matrix + stream - probabilities)); // released by then
        shape.framework.loss = FrameworkMemory::Loss::InPlace;
        QCOMPARE(endWorkspace(shape, layersOf(shape).back(), 0).backward, matrix + stream);
        QCOMPARE(endWorkspace(shape, layers.front(), 0).backward, matrix);
        QCOMPARE(endWorkspace(shape, layers.front(), matrix - 100).backward, Bytes(100));
        QCOMPARE(endWorkspace(shape, layers.front(), matrix + 100).backward, Bytes(0));
        QCOMPARE(passMemory(shape, std::span(layers).first(1), Recompute::None).workspace.weightGrad, matrix);
    }

    void onePlaceholderIsHeldForEveryShapeOfMatrix()
    {
        ModelShape shape = bf16Llama();
        shape.framework.gradientPlaceholders = true;
        const std::vector<Layer> layers = layersOf(shape);
        const std::int64_t h = shape.hidden, heads = shape.heads * shape.headSize,
                           qkv = heads + 2 * shape.keyValueHeads * shape.headSize;
        const Bytes once = 2 * (qkv * h + h * heads + 2 * shape.ffn * h + h * shape.ffn);
        QCOMPARE(heldByFramework(shape, std::span(layers).subspan(1, 1)), once);
        QCOMPARE(heldByFramework(shape, layers), once); // both layers, and the ends have none
        // Of experts one stands for all, and the router has none.
        ModelShape mixture = withExperts(shape);
        const Bytes ofExperts = 2 * (qkv * h + h * heads + 2 * mixture.expertFfn * h + h * mixture.expertFfn);
        QCOMPARE(heldByFramework(mixture, layersOf(mixture)), ofExperts);
        mixture.parallel = {.expert = 2, .data = 2};
        QCOMPARE(heldByFramework(mixture, layersOf(mixture)), ofExperts);
    }

    void expertsWeightedEarlyKeepNoOutputs()
    {
        ModelShape shape = withExperts(bf16Llama());
        const Bytes outputs = 2 * shape.tokens() * shape.expertsPerToken * shape.hidden;
        const Bytes usual = keptOf(layersOf(shape)[1], Lifetime::UntilInputGrad);
        shape.framework.expertsWeightedEarly = true;
        QCOMPARE(keptOf(layersOf(shape)[1], Lifetime::UntilInputGrad), usual - outputs);
    }

    void contextParallelMembersKeepAttentionTwice()
    {
        ModelShape shape = bf16Llama();
        shape.sequence = 16;
        shape.framework.attentionInBothLayouts = true;
        QVERIFY(!keeps(layersOf(shape)[1], "attention.byHeads"));
        shape.parallel = {.context = 2};
        const Layer layer = layersOf(shape)[1];
        QVERIFY(keeps(layer, "attention.byHeads"));
        ModelShape once = shape;
        once.framework = {};
        QCOMPARE(keptOf(layer, Lifetime::UntilInputGrad), keptOf(layersOf(once)[1], Lifetime::UntilInputGrad)
                                                              + 2 * shape.tokens() / 2 * shape.heads * shape.headSize);
    }

    void aGatheredSequenceIsHeldWhereTheHeadIs()
    {
        ModelShape shape = bf16Llama();
        shape.sequence = 16;
        shape.framework.gatheredSequence = true;
        shape.framework.buffers = 1000;
        const auto held = [](const ModelShape& of) { return heldByFramework(of, layersOf(of)); };
        QCOMPARE(held(shape), Bytes(1000));
        shape.parallel = {.tensor = 2};
        QCOMPARE(held(shape), Bytes(1000)); // every member has all tokens
        shape.parallel.sequence = true;
        QCOMPARE(held(shape), 1000 + 2 * shape.tokens() * shape.hidden);
        const std::vector<Layer> layers = layersOf(shape);
        QCOMPARE(heldByFramework(shape, std::span(layers).first(2)), Bytes(1000));
    }

    void statesAreThoseOfTheFramework()
    {
        const auto bytes = [](const char* name) {
            return stateBytes(DataType::Bf16, Optimizer::AdamW, *frameworkNamed(name));
        };
        QVERIFY((bytes("none") == StateBytesPerParameter{2, 4, 12}));
        QVERIFY((bytes("megatron") == StateBytesPerParameter{2, 4, 12}));
        QVERIFY((bytes("torchtitan") == StateBytesPerParameter{4, 4, 8}));
        QVERIFY((stateBytes(DataType::Bf16, Optimizer::AdamW, {.narrowGradients = true})
                 == StateBytesPerParameter{2, 2, 12}));
        QCOMPARE(nameOf(FrameworkMemory{.buffers = 1}), std::string_view("own"));
    }

    /// Chunks of one device share what the framework holds there.
    void aDeviceHoldsItOnceForAllItsStages()
    {
        ModelShape shape = PresetLibrary().workload("llama-3-8b").shape;
        const auto persistent = [&](const FrameworkMemory& framework) {
            shape.framework = framework;
            NewDesign choice;
            choice.workload = test::workloadOf(shape);
            choice.cluster = PresetLibrary().cluster("h200-nodes", 4);
            choice.family = "interleaved-1f1b";
            choice.devices = 4;
            choice.chunks = 2;
            choice.microbatches = 4;
            return predict(designFromModel(choice)).program.devices[1].persistentBytes;
        };
        const FrameworkMemory placeholders{.gradientPlaceholders = true};
        const Bytes more = persistent(placeholders) - persistent({}); // and shape has them now
        shape.framework = placeholders;
        const std::vector<Layer> layers = layersOf(shape);
        QCOMPARE(more, heldByFramework(shape, std::span(layers).subspan(1, 1)));
    }
};

PIPEWRIGHT_TEST(TestFrameworkLayers, NoApplication)
#include "tst_frameworklayers.moc"
