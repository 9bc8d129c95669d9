// SPDX-License-Identifier: GPL-3.0-or-later
// The maths of a stage: gradients of a whole model against finite differences of the fp64 model, the three
// passes against the full backward, and what each pass may and may not read.
#include "core/base/diagnostic.h"
#include "executor/stage/counterrandom.h"
#include "executor/stage/gptreference.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <thread>

namespace {
std::atomic<long> allocations = 0; ///< of this whole program
}

void* operator new(std::size_t size)
{
    ++allocations;
    if (void* memory = std::malloc(size > 0 ? size : 1))
        return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept
{
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept
{
    std::free(memory);
}

using namespace pipewright;
using namespace pipewright::test;

namespace {

std::vector<std::int32_t> someTokens(const ModelShape& shape, const char* name)
{
    std::vector<std::int32_t> tokens(std::size_t(shape.tokens()));
    for (std::size_t i = 0; i < tokens.size(); ++i)
        tokens[i] = std::int32_t(CounterRandom(3, name).bits(i) % std::uint64_t(shape.vocabulary));
    return tokens;
}

/// A vision transformer takes bytes, and whoever masks tokens asks for some only.
std::vector<std::int32_t> someInputs(const ModelShape& shape)
{
    std::vector<std::int32_t> inputs(std::size_t(shape.inputs()));
    const std::int64_t most = shape.architecture == Architecture::Vision ? 256 : shape.vocabulary;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        inputs[i] = std::int32_t(CounterRandom(3, "tokens").bits(i) % std::uint64_t(most));
    return inputs;
}

std::vector<std::int32_t> someTargets(const ModelShape& shape)
{
    std::vector<std::int32_t> targets(std::size_t(shape.targets()));
    const bool pools = shape.architecture == Architecture::Encoder && !shape.tiedHead;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        targets[i] =
            std::int32_t(CounterRandom(3, "targets").bits(i) % std::uint64_t(pools ? shape.hidden : shape.vocabulary));
        if (shape.countedTargets() < shape.targets() && i % 3 != 0)
            targets[i] = -1;
    }
    return targets;
}

/// Parameters far from their gentle start: every term of every gradient counts.
std::vector<float> wildParameters(std::size_t count)
{
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = float(0.4 * CounterRandom(5, "wild").normal(i));
    return values;
}

} // namespace

class TestStageMaths : public QObject {
    Q_OBJECT
private slots:
    void gradientsOfAWholeModelAreTheSlopesOfItsLoss_data()
    {
        QTest::addColumn<ModelShape>("shape");
        const auto row = [](const char* name, auto change, ModelShape shape = llamaShape()) {
            change(shape);
            QTest::newRow(name) << shape;
        };
        row(
            "GPT", [](ModelShape&) {}, smallShape());
        row(
            "GPT with SiLU", [](ModelShape& s) { s.activation = Activation::Silu; }, smallShape());
        row(
            "GPT with a window",
            [](ModelShape& s) {
                s.window = 4;
                s.attention = AttentionMemory::Streamed;
            },
            smallShape());
        row("Llama", [](ModelShape&) {});
        row("tied head", [](ModelShape& s) { s.tiedHead = true; });
        row("attention to later tokens", [](ModelShape& s) { s.bidirectional = true; });
        row(
            "GPT's to later tokens",
            [](ModelShape& s) {
                s.bidirectional = true;
                s.attention = AttentionMemory::Streamed;
            },
            smallShape());
        row("Qwen 2", [](ModelShape& s) { s.queryKeyValueBias = true; });
        row("Qwen 3", [](ModelShape& s) { s.queryKeyNorm = true; });
        row("biases on the projection", [](ModelShape& s) { s.queryKeyValueBias = s.projectionBias = true; });
        row("biases everywhere", [](ModelShape& s) {
            s.bias = s.queryKeyValueBias = true;
            s.normEpsilon = 1e-5;
        });
        row("gated GELU", [](ModelShape& s) { s.activation = Activation::GeluTanh; });
        row("gated GELU by erf", [](ModelShape& s) { s.activation = Activation::Gelu; });
        row("plain MLP", [](ModelShape& s) { s.gatedMlp = false; });
        row("window", [](ModelShape& s) {
            s.window = 4;
            s.fullAttentionEvery = 2;
        });
        const auto ofExperts = [](ModelShape& s) {
            s.experts = 6;
            s.expertsPerToken = 2;
            s.expertFfn = 10;
        };
        row("Mixtral", ofExperts);
        row("Mixtral with a load-balancing term", [&](ModelShape& s) {
            ofExperts(s);
            s.routerBalance = 0.5;
        });
        row("Qwen 3 MoE", [&](ModelShape& s) {
            ofExperts(s);
            s.queryKeyNorm = true;
            s.routerNormalised = false;
        });
        row("DeepSeek's experts", [&](ModelShape& s) {
            ofExperts(s);
            s.sharedExperts = 2;
            s.denseLayers = 1;
            s.routerScore = RouterScore::Sigmoid;
            s.routerScale = 2.5;
            s.routerGroups = 3;
            s.routerGroupsPerToken = 2;
            s.routerBias = true;
        });
        const auto latent = [](ModelShape& s) {
            s.headSize = 4;
            s.rotaryHeadSize = 6;
            s.valueHeadSize = 5;
            s.keyValueLatent = 7;
            s.keyValueHeads = s.heads;
        };
        row("latent attention", latent);
        row("latent queries too", [&](ModelShape& s) {
            latent(s);
            s.queryLatent = 9;
            s.rotary.attentionFactor = 1.2;
        });
        row("Yarn", [](ModelShape& s) {
            s.rotary = {.base = 100,
                        .scaling = Rotary::Scaling::Yarn,
                        .factor = 4,
                        .low = 1,
                        .high = 2,
                        .original = 32,
                        .attentionFactor = 1.1};
        });
        row("linear biases", [](ModelShape& s) {
            s.linearBiases = true;
            s.rotary = {};
        });
        row("BLOOM", [](ModelShape& s) {
            s.linearBiases = s.embeddingNorm = s.bias = s.queryKeyValueBias = s.tiedHead = true;
            s.rotary = {};
            s.gatedMlp = false;
            s.activation = Activation::GeluTanh;
            s.keyValueHeads = s.heads;
        });
        row("norms on both sides", [](ModelShape& s) { s.postNorm = true; });
        row("Gemma 2", [](ModelShape& s) {
            s.postNorm = s.tiedHead = true;
            s.embeddingScale = 3.5;
            s.attentionSoftCap = 1.5;
            s.logitsSoftCap = 2;
            s.queryScale = 9;
            s.window = 4;
            s.fullAttentionEvery = 2;
        });
        row("Gemma 3", [](ModelShape& s) {
            s.postNorm = s.queryKeyNorm = true;
            s.window = 4;
            s.fullAttentionEvery = 2;
            s.localRotaryBase = 10;
        });
        row("GPT-OSS", [&](ModelShape& s) {
            ofExperts(s);
            s.queryKeyValueBias = s.projectionBias = s.attentionSinks = s.expertBias = s.routerBias = true;
            s.activation = Activation::ClampedSilu;
            s.window = 4;
            s.fullAttentionEvery = 2;
        });
        row("clamped gated MLP", [](ModelShape& s) { s.activation = Activation::ClampedSilu; });
        row(
            "BERT with masked tokens", [](ModelShape&) {}, encoderShape());
        row(
            "BERT's pooler", [](ModelShape&) {}, encoderShape(2, false));
        row(
            "ViT", [](ModelShape&) {}, visionShape());
    }
    void gradientsOfAWholeModelAreTheSlopesOfItsLoss()
    {
        QFETCH(ModelShape, shape);
        const StageMaths maths(workloadOf(shape), 0, shape.layers + 2, 2);
        const ParameterLayout& layout = maths.parameters();
        const std::vector<float> parameters = wildParameters(layout.count());
        std::vector<float> gradients(layout.count());
        const auto tokens = someInputs(shape), targets = someTargets(shape);
        StageRoom room(maths);
        float loss = 0;
        maths.forward(parameters, {tokens, {}, targets, {&loss, 1}}, room.memory(), {});
        maths.backward(parameters, room.memory(), {}, {}, gradients);

        Values at(parameters.begin(), parameters.end());
        const auto lossAt = [&] { return referenceLoss(shape, layout, at, tokens, targets, 2); };
        ModelShape shown = shape;
        shown.routerBalance = 0; // the load-balancing term is not in the loss that is shown
        QVERIFY(std::abs(loss / referenceLoss(shown, layout, at, tokens, targets, 2) - 1) < 1e-5);
        for (const Parameter& parameter : layout.parameters()) {
            const auto own = parameter.in(std::span(gradients));
            double largest = 0, worst = 0;
            for (const float value : own)
                largest = std::max(largest, double(std::abs(value)));
            if (parameter.isCorrection) { // chooses, and nothing follows it smoothly: it is given counts
                float copies = 0;
                for (const float value : own)
                    copies += value;
                QCOMPARE(copies, float(shape.tokens() * shape.expertsPerToken));
                continue;
            }
            for (std::size_t probe = 0; probe < 8; ++probe) {
                const std::size_t i = CounterRandom(7, parameter.name).bits(probe) % own.size();
                double& value = at[parameter.offset + i];
                const double before = value, step = 1e-5;
                value = before + step;
                const double above = lossAt();
                value = before - step;
                const double below = lossAt();
                value = before;
                worst = std::max(worst, std::abs((above - below) / (2 * step) - own[i]));
            }
            QVERIFY2(worst < 2e-5 * largest,
                     qPrintable(QString("%1: off by %2 of %3").arg(parameter.name.c_str()).arg(worst).arg(largest)));
        }
    }

    void inputAndWeightHalvesEqualTheFullBackwardBitForBit()
    {
        const ModelShape shape = smallShape();
        const StageMaths maths(workloadOf(shape), 1, 3, 1); // middle stage: activations in, activations out
        const std::vector<float> parameters = wildParameters(maths.parameters().count());
        const std::vector<float> input = wildParameters(maths.activationElements());
        std::vector<std::vector<float>> gradients(2, std::vector<float>(parameters.size()));
        StageRoom rooms[2] = {StageRoom(maths), StageRoom(maths)};
        for (StageRoom& room : rooms)
            maths.forward(parameters, {{}, input, {}}, room.memory(), room.output);
        QCOMPARE(rooms[0].output, rooms[1].output);
        maths.backward(parameters, rooms[0].memory(), input, rooms[0].inputGrad, gradients[0]);

        // The halves get only what their schedule leaves alive.
        maths.inputGrad(parameters, rooms[1].memory(), input, rooms[1].inputGrad, gradients[1]);
        StageMemory forWeight = rooms[1].memory();
        forWeight.savedUntilInputGrad = forWeight.workspace = {};
        maths.weightGrad(forWeight, gradients[1]);
        QCOMPARE(gradients[1], gradients[0]);
        QCOMPARE(rooms[1].inputGrad, rooms[0].inputGrad);
        QVERIFY(std::none_of(gradients[0].begin(), gradients[0].end(), [](float g) { return std::isnan(g); }));
    }

    void gradientsAreAddedToWhatIsThere()
    {
        const ModelShape shape = smallShape(1);
        const StageMaths maths(workloadOf(shape), 0, 3, 1);
        const std::vector<float> parameters = wildParameters(maths.parameters().count());
        const auto tokens = someTokens(shape, "tokens"), targets = someTokens(shape, "targets");
        std::vector<float> once(parameters.size()), twice(parameters.size());
        StageRoom room(maths);
        maths.forward(parameters, {tokens, {}, targets, room.loss}, room.memory(), {});
        maths.backward(parameters, room.memory(), {}, {}, once);
        for (int pass = 0; pass < 2; ++pass)
            maths.backward(parameters, room.memory(), {}, {}, twice);
        for (std::size_t i = 0; i < once.size(); ++i)
            QVERIFY(std::abs(twice[i] - 2 * once[i]) <= 1e-5f * (1 + std::abs(once[i])));
    }

    void aStageNeedsItsInputOnlyDuringForward()
    {
        const ModelShape shape = smallShape();
        const StageMaths maths(workloadOf(shape), 1, 3, 1);
        const std::vector<float> parameters = wildParameters(maths.parameters().count());
        std::vector<float> input = wildParameters(maths.activationElements());
        const std::vector<float> outputGrad = input;
        std::vector<std::vector<float>> gradients(2, std::vector<float>(parameters.size()));
        for (auto& sums : gradients) {
            StageRoom room(maths);
            maths.forward(parameters, {{}, input, {}}, room.memory(), room.output);
            if (&sums == &gradients[1])
                std::fill(input.begin(), input.end(), NAN);
            maths.backward(parameters, room.memory(), outputGrad, room.inputGrad, sums);
        }
        QCOMPARE(gradients[1], gradients[0]);
    }

    void parametersAreArgumentsSoForwardAndBackwardMayUseDifferentVersions()
    {
        const ModelShape shape = smallShape(1);
        const StageMaths maths(workloadOf(shape), 1, 2, 1);
        const std::vector<float> before = wildParameters(maths.parameters().count());
        std::vector<float> after = before;
        for (float& value : after)
            value *= 1.5f;
        const std::vector<float> input = wildParameters(maths.activationElements());
        std::vector<float> gradients(before.size());
        StageRoom same(maths), mixed(maths);
        for (StageRoom* room : {&same, &mixed}) {
            maths.forward(before, {{}, input, {}}, room->memory(), room->output);
            maths.inputGrad(room == &same ? before : after, room->memory(), input, room->inputGrad, gradients);
        }
        QCOMPARE(same.output, mixed.output);
        QVERIFY(same.inputGrad != mixed.inputGrad);
    }

    void eachLayerCanBeAStageOfItsOwn()
    {
        const ModelShape shape = smallShape(1);
        const auto tokens = someTokens(shape, "tokens"), targets = someTokens(shape, "targets");
        const Workload workload = workloadOf(shape);
        const StageMaths whole(workload, 0, 3, 1);
        const std::vector<float> parameters = wildParameters(whole.parameters().count());
        StageRoom room(whole);
        float expected = 0;
        whole.forward(parameters, {tokens, {}, targets, {&expected, 1}}, room.memory(), {});
        std::size_t offset = 0;
        float loss = 0;
        std::vector<float> activation;
        for (int layer = 0; layer < 3; ++layer) {
            const StageMaths maths(workload, layer, layer + 1, 1);
            StageRoom own(maths);
            maths.forward(std::span(parameters).subspan(offset, maths.parameters().count()),
                          {tokens, activation, targets, {&loss, 1}}, own.memory(), own.output);
            activation = own.output;
            offset += maths.parameters().count();
        }
        QCOMPARE(loss, expected);
    }

    void layersOfAStageRunInTheirOwnOrderWhateverTheirKinds()
    {
        ModelShape shape = test::llamaShape(3); // one dense layer, two with experts
        shape.experts = 6;
        shape.expertsPerToken = 2;
        shape.expertFfn = 10;
        shape.denseLayers = 1;
        const Workload workload = workloadOf(shape);
        QVERIFY(workload.layers[1].parameters != workload.layers[2].parameters);

        const StageMaths together(workload, 1, 4, 1);
        const std::vector<float> parameters = wildParameters(together.parameters().count());
        std::vector<float> input(together.activationElements()), outputGrad(input), gradients(parameters.size());
        for (std::size_t i = 0; i < input.size(); ++i) {
            input[i] = float(CounterRandom(5, "input").normal(i));
            outputGrad[i] = float(CounterRandom(5, "slope").normal(i));
        }
        StageRoom room(together);
        together.forward(parameters, {{}, input, {}}, room.memory(), room.output);
        together.backward(parameters, room.memory(), outputGrad, room.inputGrad, gradients);

        std::vector<StageMaths> alone;
        std::vector<StageRoom> rooms;
        for (int layer = 1; layer < 4; ++layer)
            rooms.emplace_back(alone.emplace_back(workload, layer, layer + 1, 1));
        const auto partOf = [&](std::vector<float>& all, std::size_t stage) {
            std::size_t begin = 0;
            for (std::size_t s = 0; s < stage; ++s)
                begin += alone[s].parameters().count();
            return std::span(all).subspan(begin, alone[stage].parameters().count());
        };
        std::vector<float> copy = parameters, sums(parameters.size());
        for (std::size_t s = 0; s < 3; ++s)
            alone[s].forward(partOf(copy, s), {{}, s == 0 ? input : rooms[s - 1].output, {}}, rooms[s].memory(),
                             rooms[s].output);
        for (std::size_t s = 3; s-- > 0;)
            alone[s].backward(partOf(copy, s), rooms[s].memory(), s == 2 ? outputGrad : rooms[s + 1].inputGrad,
                              rooms[s].inputGrad, partOf(sums, s));
        QVERIFY(room.output == rooms[2].output);
        QVERIFY(room.inputGrad == rooms[0].inputGrad);
        QVERIFY(gradients == sums);
    }

    void noPassAllocates()
    {
        const ModelShape shape = smallShape();
        const StageMaths maths(workloadOf(shape), 0, 4, 1);
        const std::vector<float> parameters = wildParameters(maths.parameters().count());
        std::vector<float> gradients(parameters.size());
        const auto tokens = someTokens(shape, "tokens"), targets = someTokens(shape, "targets");
        StageRoom room(maths);
        const long before = allocations;
        maths.forward(parameters, {tokens, {}, targets, room.loss}, room.memory(), {});
        maths.backward(parameters, room.memory(), {}, {}, gradients);
        QCOMPARE(long(allocations), before);
    }

    void severalThreadsMayUseOneStageAtOnce()
    {
        ModelShape shape = smallShape();
        shape.hidden = 96; // large enough for the matrix library's packed path
        shape.heads = shape.keyValueHeads = 3;
        shape.headSize = 32;
        shape.ffn = 384;
        shape.sequence = 33;
        const StageMaths maths(workloadOf(shape), 1, 2, 1);
        const std::vector<float> parameters = wildParameters(maths.parameters().count());
        const std::vector<float> input = wildParameters(maths.activationElements());
        std::vector<std::vector<float>> gradients(4, std::vector<float>(parameters.size()));
        std::vector<std::thread> threads;
        for (auto& own : gradients)
            threads.emplace_back([&] {
                StageRoom room(maths);
                for (int pass = 0; pass < 5; ++pass) {
                    maths.forward(parameters, {{}, input, {}}, room.memory(), room.output);
                    maths.backward(parameters, room.memory(), input, room.inputGrad, own);
                }
            });
        for (std::thread& thread : threads)
            thread.join();
        for (const auto& own : gradients)
            QCOMPARE(own, gradients.front());
    }

    void aModelThatCannotRunIsRefusedWithItsReasons()
    {
        ModelShape shape = smallShape();
        shape.dropout = true;
        shape.queryLatent = 4; // and none of the keys
        try {
            const StageMaths maths(workloadOf(shape), 0, 4, 1);
            QFAIL("accepted");
        } catch (const Error& error) {
            QVERIFY(error.diagnostics().size() >= 2);
        }
    }

    void aRangeOutsideTheModelIsRefused()
    {
        const Workload workload = workloadOf(smallShape());
        QVERIFY_THROWS_EXCEPTION(Error, StageMaths(workload, 2, 2, 1));
        QVERIFY_THROWS_EXCEPTION(Error, StageMaths(workload, 0, 5, 1));
    }
};

PIPEWRIGHT_TEST(TestStageMaths, NoApplication)
#include "tst_stagemaths.moc"
