// SPDX-License-Identifier: GPL-3.0-or-later
// Stages that are stored in bf16: their gradients are those of fp32 within what bf16 can hold, the halves of the
// backward are the whole to the bit, and the bytes are those that costs are made of.
#include "core/base/diagnostic.h"
#include "core/design/stagecosts.h"
#include "executor/stage/counterrandom.h"
#include "executor/stage/gptreference.h"
#include "executor/stage/storedstage.h"
#include "testmain.h"

#include <QTest>

#include <cmath>
#include <deque>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// As the host computes it; or a device that computes with bf16, which has no room for fp32 copies.
ModelShape inBf16(ModelShape shape, bool widened = true)
{
    shape.dataType = DataType::Bf16;
    shape.widened = widened;
    return shape;
}

/// A device that computes with bf16, as the host plays it: what a call says is stored is widened for it alone, and what
/// it writes is rounded where it goes.
class Bf16Operations final : public kernels::Operations {
public:
    bool keepsProbabilities() const override { return true; }
    bool computesWithStored() const override { return true; }
    mutable int ofCopies = 0, unlike = 0; ///< between fp32 and bf16; products whose factors are not both stored

private:
    struct Widened {
        std::vector<float> values;
        std::uint16_t* results; ///< null: it is only read
    };
    static std::vector<float> widen(const void* stored, std::size_t count)
    {
        std::vector<float> values(count);
        kernels::run(kernels::Widen{{static_cast<const std::uint16_t*>(stored), count}, values});
        return values;
    }
    template<class Call>
    static constexpr int firstFactor() ///< the number of its operand; -1: none
    {
        using namespace kernels;
        if (std::is_same_v<Call, LinearForward>)
            return 3;
        return std::is_same_v<
                   Call,
                   LinearInputGrad> || std::is_same_v<Call, LinearWeightGrad> || std::is_same_v<Call, ExpertsForward>
                   ? 2
               : std::is_same_v<Call, ExpertsInputGrad>  ? 1
               : std::is_same_v<Call, ExpertsWeightGrad> ? 0
                                                         : -1;
    }
    void issue(kernels::Operation operation, const void* call, std::size_t,
               kernels::StoredOperands stored) const override
    {
        kernels::visit(operation, call, [&](const auto& known, const char*) { runKnown(known, stored); });
    }
    template<class Call>
    void runKnown(Call call, kernels::StoredOperands stored) const
    {
        ofCopies +=
            std::is_same_v<
                Call,
                kernels::Widen> || std::is_same_v<Call, kernels::Narrow> || std::is_same_v<Call, kernels::RoundToBf16>;
        if constexpr (firstFactor<Call>() >= 0)
            unlike += (stored >> firstFactor<Call>() & 3) != 3;
        std::deque<Widened> all;
        int number = 0;
        const auto replaced = [&](auto* values, std::size_t count) {
            auto* const patterns = reinterpret_cast<const std::uint16_t*>(values);
            const bool isRead = std::is_const_v<std::remove_pointer_t<decltype(values)>>;
            all.push_back({widen(patterns, count), isRead ? nullptr : const_cast<std::uint16_t*>(patterns)});
            return all.back().values.data();
        };
        if constexpr (std::is_same_v<Call, kernels::TensorCall>) {
            for (std::size_t i = 0; i < 2; ++i)
                if (stored >> i & 1)
                    call.in[i] = replaced(call.in[i], std::size_t(call.size[i]));
            if (stored >> 5 & 1)
                call.out = replaced(call.out, std::size_t(call.size[0]));
        }
        kernels::forOperands(call, [&]<class Element>(std::span<Element>& operand) {
            if constexpr (std::is_same_v<std::remove_const_t<Element>, float>) {
                if (stored >> number & 1)
                    operand = {replaced(operand.data(), operand.size()), operand.size()};
                ++number;
            }
        });
        kernels::run(call);
        for (const Widened& each : all)
            if (each.results)
                kernels::run(kernels::Narrow{each.values, {each.results, each.values.size()}});
    }
};

/// A stage's memory for one microbatch, filled with what must not be read before it is written.
struct StoredRoom {
    explicit StoredRoom(const StoredStage& stage)
        : output(std::size_t(stage.activationBytes()), std::byte{0xff}), inputGrad(output)
    {
        const auto fill = [](std::vector<std::byte>& buffer, Bytes bytes) {
            buffer.assign(std::size_t(bytes), std::byte{0xff});
        };
        fill(kept[0], stage.bytes(BufferKind::SavedUntilInputGrad));
        fill(kept[1], stage.bytes(BufferKind::SavedUntilWeightGrad));
        fill(kept[2], stage.bytes(BufferKind::SavedFromInputGrad));
        fill(kept[3], stage.bytes(BufferKind::RecomputedUntilInputGrad));
        fill(kept[4], stage.bytes(BufferKind::RecomputedUntilWeightGrad));
        for (const Op op : {Op::F, Op::I, Op::B, Op::W, Op::R})
            workspaces[std::size_t(op)].resize(std::size_t(stage.workspace(op)));
    }
    StageMemory memory(Op op, const kernels::Operations& on)
    {
        std::vector<std::byte>& own = workspaces[std::size_t(op)];
        std::fill(own.begin(), own.end(), untouched);
        StageMemory memory{kept[0], kept[1], kept[2], own};
        memory.recomputedUntilInputGrad = kept[3];
        memory.recomputedUntilWeightGrad = kept[4];
        memory.operations = &on;
        return memory;
    }
    /// Of the workspaces that are there, some pass has written into the last line of each.
    bool isAllUsed() const
    {
        return std::all_of(workspaces.begin(), workspaces.end(), [](const std::vector<std::byte>& own) {
            return own.empty() || std::any_of(own.end() - 16, own.end(), [](std::byte b) { return b != untouched; });
        });
    }
    static constexpr std::byte untouched{0xff};
    std::array<std::vector<std::byte>, 5> kept;
    std::array<std::vector<std::byte>, 8> workspaces;
    std::vector<std::byte> output, inputGrad;
};

struct StoredBatch {
    explicit StoredBatch(const ModelShape& shape)
        : inputs(std::size_t(shape.inputs())), targets(std::size_t(shape.targets()))
    {
        const bool vision = shape.architecture == Architecture::Vision;
        for (std::size_t i = 0; i < inputs.size(); ++i)
            inputs[i] =
                std::int32_t(CounterRandom(3, "tokens").bits(i) % std::uint64_t(vision ? 256 : shape.vocabulary));
        for (std::size_t i = 0; i < targets.size(); ++i)
            targets[i] = std::int32_t(CounterRandom(3, "targets").bits(i) % std::uint64_t(shape.vocabulary));
    }
    std::vector<std::int32_t> inputs, targets;
};

/// A whole model as one stage, or cut behind a layer in two: its loss and gradients.
struct Trained {
    Trained(const ModelShape& shape, int cut, bool inHalves, const kernels::Operations& on = kernels::hostOperations(),
            Recompute recompute = Recompute::None)
    {
        const Workload workload = workloadOf(shape);
        const int all = shape.layers + 2;
        std::vector<StoredStage> stages;
        stages.emplace_back(workload, 0, cut, 1, recompute);
        if (cut < all)
            stages.emplace_back(workload, cut, all, 1, recompute);
        std::vector<StoredRoom> rooms;
        std::vector<std::vector<std::byte>> weights;
        std::vector<std::vector<float>> sums;
        const StoredBatch batch(shape);
        std::span<const std::byte> activation;
        for (const StoredStage& stage : stages) {
            std::vector<float> values(stage.parameters().count());
            stage.parameters().initialise(values, 5);
            for (float& value : values)
                value *= 2; // every term counts
            std::vector<std::byte>& stored = weights.emplace_back(std::size_t(stage.parameterBytes()));
            stage.store(kernels::hostOperations(), values, stored);
            sums.emplace_back(values.size());
            StoredRoom& room = rooms.emplace_back(stage);
            stage.forward(stored, {batch.inputs, activation, batch.targets, {&loss, 1}}, room.memory(Op::F, on),
                          room.output);
            if (recompute.byBlock())
                stage.recompute(stored, {batch.inputs, activation, batch.targets, {&again, 1}}, room.memory(Op::R, on));
            activation = room.output;
        }
        for (std::size_t s = stages.size(); s-- > 0;) {
            StoredInput input; // for a backward that recomputes
            if (s > 0)
                input.activation = rooms[s - 1].output;
            const auto memory = [&](Op op) {
                StageMemory of = rooms[s].memory(op, on);
                of.input = &input;
                return of;
            };
            const std::span<const std::byte> outputGrad = s + 1 < stages.size()
                                                              ? std::span<const std::byte>(rooms[s + 1].inputGrad)
                                                              : std::span<const std::byte>();
            if (inHalves) {
                stages[s].inputGrad(weights[s], memory(Op::I), outputGrad, rooms[s].inputGrad, sums[s]);
                stages[s].weightGrad(memory(Op::W), sums[s]);
            } else {
                stages[s].backward(weights[s], memory(Op::B), outputGrad, rooms[s].inputGrad, sums[s]);
            }
        }
        for (const std::vector<float>& of : sums)
            gradients.insert(gradients.end(), of.begin(), of.end());
        isAllUsed = std::all_of(rooms.begin(), rooms.end(), [](const StoredRoom& room) { return room.isAllUsed(); });
    }
    float loss = 0, again = 0;
    bool isAllUsed = true; ///< of the workspaces
    std::vector<float> gradients;
};

} // namespace

class TestStoredStage : public QObject {
    Q_OBJECT

    static constexpr Recompute ways[] = {Recompute::None,      Recompute::BlockSelective, Recompute::Block,
                                         Recompute::Selective, Recompute::Full,           Recompute::every(2)};

private slots:
    void bf16TrainsAsFp32DoesWithinItsRounding_data()
    {
        QTest::addColumn<ModelShape>("shape");
        QTest::newRow("GPT") << smallShape();
        QTest::newRow("Llama") << llamaShape();
        QTest::newRow("BERT") << encoderShape();
        QTest::newRow("ViT") << visionShape();
        ModelShape latent = llamaShape();
        latent.headSize = 4;
        latent.rotaryHeadSize = 6;
        latent.valueHeadSize = 5;
        latent.keyValueLatent = 7;
        latent.keyValueHeads = latent.heads;
        QTest::newRow("latent attention") << latent;
    }
    void bf16TrainsAsFp32DoesWithinItsRounding()
    {
        QFETCH(ModelShape, shape);
        const Trained exact(shape, shape.layers + 2, false), whole(inBf16(shape), shape.layers + 2, false);
        QVERIFY(std::abs(whole.loss / exact.loss - 1) < 2e-2);
        QVERIFY(whole.loss != exact.loss); // it is not fp32 in silence
        const double bound = 3e-2;         // some roundings of 2^-9 one after the other, as run.h says
        const ParameterLayout layout(workloadOf(shape), 0, shape.layers + 2);
        for (const Parameter& parameter : layout.parameters()) {
            const auto ours = parameter.in(std::span(whole.gradients)),
                       theirs = parameter.in(std::span(exact.gradients));
            double difference = 0, size = 0;
            for (std::size_t i = 0; i < ours.size(); ++i) {
                difference += std::pow(double(ours[i]) - double(theirs[i]), 2);
                size += std::pow(double(theirs[i]), 2);
            }
            QVERIFY2(
                std::sqrt(difference) <= bound * std::sqrt(size),
                qPrintable(QString("%1: off by %2").arg(parameter.name.c_str()).arg(std::sqrt(difference / size))));
        }
        // However it is cut, and whether the backward comes in halves.
        const Trained halves(inBf16(shape), shape.layers + 2, true);
        QCOMPARE(halves.loss, whole.loss);
        QCOMPARE(halves.gradients, whole.gradients);
        for (int cut = 1; cut <= shape.layers + 1; ++cut) {
            const Trained two(inBf16(shape), cut, true);
            QCOMPARE(two.loss, whole.loss);
            QCOMPARE(two.gradients, whole.gradients);
        }
    }

    void aDeviceThatComputesWithBf16MakesTheSameOfIt_data()
    {
        bf16TrainsAsFp32DoesWithinItsRounding_data();
        ModelShape experts = llamaShape();
        experts.experts = 6;
        experts.expertsPerToken = 2;
        experts.expertFfn = 5;
        experts.sharedExperts = 1;
        QTest::newRow("experts") << experts;
        ModelShape capped = llamaShape();
        capped.logitsSoftCap = 3;
        capped.embeddingScale = 2;
        QTest::newRow("capped logits") << capped;
    }
    /// To the bit, in no fp32 copy of anything, with none of its products' factors in fp32, and in a workspace that has
    /// no room for more than that.
    void aDeviceThatComputesWithBf16MakesTheSameOfIt()
    {
        QFETCH(ModelShape, shape);
        const Trained host(inBf16(shape), shape.layers + 2, true);
        for (const Recompute recompute : ways)
            for (int cut = 1; cut <= shape.layers + 2; ++cut)
                for (const bool inHalves : {true, false}) {
                    const Bf16Operations device;
                    const Trained there(inBf16(shape, false), cut, inHalves, device, recompute);
                    QCOMPARE(there.loss, host.loss);
                    QCOMPARE(there.gradients, host.gradients);
                    QCOMPARE(device.ofCopies, 0);
                    QCOMPARE(device.unlike, 0);
                    QVERIFY(there.isAllUsed);
                }
    }

    /// In fp32, and in bf16 on a device that widens it: however the stages are cut and whether I and W are apart.
    void recomputationMakesTheSameGradients_data() { aDeviceThatComputesWithBf16MakesTheSameOfIt_data(); }
    void recomputationMakesTheSameGradients()
    {
        QFETCH(ModelShape, shape);
        for (const ModelShape& of : {shape, inBf16(shape)}) {
            const Trained kept(of, shape.layers + 2, true);
            for (const Recompute recompute : ways)
                for (int cut = 1; cut <= shape.layers + 2; ++cut)
                    for (const bool inHalves : {true, false}) {
                        const Trained again(of, cut, inHalves, kernels::hostOperations(), recompute);
                        QCOMPARE(again.loss, kept.loss);
                        QCOMPARE(again.gradients, kept.gradients);
                    }
        }
    }

    void bytesAreThoseOfTheCosts()
    {
        for (const Recompute recompute : ways)
            for (const ModelShape& shape : {inBf16(llamaShape()), inBf16(encoderShape()), inBf16(visionShape()),
                                            inBf16(llamaShape(), false), inBf16(encoderShape(), false)}) {
                const Workload workload = workloadOf(shape);
                Costs costs;
                applyBytes(workload, {2, 2}, {{recompute, recompute}, {}}, costs);
                for (int s = 0; s < 2; ++s) {
                    const StoredStage stage(workload, 2 * s, 2 * s + 2, 1, recompute);
                    const StageCosts& of = costs.stages[std::size_t(s)];
                    QCOMPARE(stage.parameterBytes(), of.parameters);
                    QCOMPARE(2 * stage.parameterBytes(), of.gradients);
                    QCOMPARE(stage.bytes(BufferKind::SavedUntilInputGrad), of.savedUntilInputGrad);
                    QCOMPARE(stage.bytes(BufferKind::SavedUntilWeightGrad), of.savedUntilWeightGrad);
                    QCOMPARE(stage.bytes(BufferKind::SavedFromInputGrad), of.savedFromInputGrad);
                    QCOMPARE(stage.bytes(BufferKind::RecomputedUntilInputGrad), of.recomputedUntilInputGrad);
                    QCOMPARE(stage.bytes(BufferKind::RecomputedUntilWeightGrad), of.recomputedUntilWeightGrad);
                    QCOMPARE(stage.workspace(Op::F), of.workspaceForward);
                    QCOMPARE(stage.workspace(Op::I), of.workspaceInputGrad);
                    QCOMPARE(stage.workspace(Op::B), of.workspaceBackward);
                    QCOMPARE(stage.workspace(Op::W), of.workspaceWeightGrad);
                    QCOMPARE(stage.workspace(Op::R), of.workspaceRecompute);
                    if (s == 0)
                        QCOMPARE(stage.activationBytes(), of.output);
                }
            }
    }

    /// A device that can only widen it, and no room for that.
    void bf16AsItIsIsRefused() { QVERIFY_THROWS_EXCEPTION(Error, Trained(inBf16(llamaShape(), false), 4, true)); }
};

PIPEWRIGHT_TEST(TestStoredStage, NoApplication)
#include "tst_storedstage.moc"
