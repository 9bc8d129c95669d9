// SPDX-License-Identifier: GPL-3.0-or-later
// Where tensors and parameters lie, how they start, and how a stage is updated.
#include "core/base/diagnostic.h"
#include "core/design/stagecosts.h"
#include "executor/stage/counterrandom.h"
#include "executor/stage/gptreference.h"
#include "executor/training/optimizer.h"
#include "executor/training/tiedgradients.h"
#include "testmain.h"

#include <QTest>

#include <cmath>
#include <map>

using namespace pipewright;
using namespace pipewright::test;

class TestTrainingLayout : public QObject {
    Q_OBJECT
private slots:
    void savedBuffersHoldExactlyTheBytesTheWorkloadPredicts()
    {
        const Workload workload = workloadOf(ModelShape{});
        const StageLayout layout(workload, 0, int(workload.layers.size()));
        std::map<Lifetime, Bytes> expected;
        for (const Layer& layer : workload.layers)
            for (const SavedTensor& tensor : layer.saved)
                expected[tensor.lifetime] += tensor.bytes();
        QCOMPARE(layout.bytes(BufferKind::SavedUntilInputGrad), expected[Lifetime::UntilInputGrad]);
        QCOMPARE(layout.bytes(BufferKind::SavedUntilWeightGrad), expected[Lifetime::UntilWeightGrad]);
        QCOMPARE(layout.bytes(BufferKind::SavedFromInputGrad), expected[Lifetime::FromInputGrad]);
        QCOMPARE(layout.bytes(BufferKind::Workspace), stageWorkspace(workload.layers));
    }

    void theCostsOfAStageAreTheBytesItsMathsUses_data()
    {
        QTest::addColumn<int>("pieces");
        QTest::newRow("whole sequences") << 1;
        QTest::newRow("3 pieces") << 3;
        QTest::newRow("a piece per token") << 9;
    }
    void theCostsOfAStageAreTheBytesItsMathsUses()
    {
        ModelShape shape = smallShape(4);
        QFETCH(int, pieces);
        shape.sequencePieces = pieces;
        const Workload workload = workloadOf(shape);
        for (const auto& layersPerStage : std::vector<std::vector<int>>{{6}, {3, 3}, {1, 4, 1}}) {
            Costs costs;
            applyBytes(workload, layersPerStage, {}, costs);
            int first = 0;
            for (std::size_t stage = 0; stage < layersPerStage.size(); ++stage) {
                const StageMaths maths(workload, first, first + layersPerStage[stage], 1);
                const StageOptimizer optimizer(maths.parameters(), {});
                first += layersPerStage[stage];
                const StageCosts& predicted = costs.stages[stage];
                QCOMPARE(predicted.parameters, Bytes(4 * maths.parameters().count()));
                QCOMPARE(predicted.gradients, Bytes(4 * maths.parameters().count()));
                QCOMPARE(predicted.optimizerState, Bytes(4 * optimizer.stateElements()));
                QCOMPARE(predicted.savedUntilInputGrad, maths.layout().bytes(BufferKind::SavedUntilInputGrad));
                QCOMPARE(predicted.savedUntilWeightGrad, maths.layout().bytes(BufferKind::SavedUntilWeightGrad));
                QCOMPARE(predicted.savedFromInputGrad, maths.layout().bytes(BufferKind::SavedFromInputGrad));
                QCOMPARE(predicted.workspaceInputGrad, maths.layout().bytes(BufferKind::Workspace));
                QCOMPARE(predicted.sparedByBackward, predicted.savedFromInputGrad); // it takes layer by layer
                QCOMPARE(predicted.sequenceGradient, maths.layout().bytes(BufferKind::SequenceGradient));
                QCOMPARE(predicted.output, maths.hasHead() ? Bytes(0) : Bytes(4 * maths.activationElements()));
            }
        }
    }

    void tensorsOfAStageFollowOneAnotherWithoutGapOrOverlap()
    {
        const Workload workload = workloadOf(smallShape());
        const StageLayout layout(workload, 1, 4);
        std::map<BufferKind, Bytes> end;
        for (int layer = 1; layer < 4; ++layer)
            for (const SavedTensor& tensor : workload.layers[std::size_t(layer)].saved) {
                const Slice& slice = layout.slice(layer, tensor.name);
                QCOMPARE(slice.offset, end[slice.buffer]);
                QCOMPARE(slice.elements, tensor.elements);
                end[slice.buffer] += tensor.bytes();
            }
        QVERIFY_THROWS_EXCEPTION(Error, layout.slice(0, "table.tokens")); // another stage's
        QVERIFY_THROWS_EXCEPTION(Error, layout.slice(1, "no such tensor"));
    }

    void parametersAddUpToTheWorkloadsCount()
    {
        const Workload workload = workloadOf(ModelShape{});
        std::int64_t expected = 0;
        for (const Layer& layer : workload.layers)
            expected += layer.parameters;
        const ParameterLayout whole(workload, 0, int(workload.layers.size()));
        QCOMPARE(std::int64_t(whole.count()), expected);
        std::size_t end = 0;
        for (const Parameter& parameter : whole.parameters()) {
            QCOMPARE(parameter.offset, end);
            end += parameter.count();
        }
    }

    void startValuesDoNotDependOnTheCutIntoStages()
    {
        const Workload workload = workloadOf(smallShape(3));
        const ParameterLayout whole(workload, 0, 5);
        std::vector<float> expected(whole.count());
        whole.initialise(expected, 11);
        std::vector<float> joined;
        for (const auto& [first, last] : {std::pair{0, 2}, {2, 3}, {3, 5}}) {
            const ParameterLayout part(workload, first, last);
            std::vector<float> values(part.count());
            part.initialise(values, 11);
            joined.insert(joined.end(), values.begin(), values.end());
        }
        QCOMPARE(joined, expected);
        whole.initialise(joined, 12);
        QVERIFY(joined != expected);
    }

    void theHeadStartsAsACopyOfTheEmbedding()
    {
        const Workload workload = workloadOf(smallShape());
        const ParameterLayout first(workload, 0, 2), last(workload, 2, 4);
        std::vector<float> a(first.count()), b(last.count());
        first.initialise(a, 1);
        last.initialise(b, 1);
        const auto table = first.embeddingMatrix()->in(std::span(a)), head = last.headMatrix()->in(std::span(b));
        QVERIFY(std::equal(table.begin(), table.end(), head.begin(), head.end()));
        QVERIFY(!first.headMatrix() && !last.embeddingMatrix());
    }

    void startValuesHaveTheScalesOfGpt2()
    {
        const Workload workload = workloadOf(ModelShape{});
        const ParameterLayout layout(workload, 1, 2);
        std::vector<float> values(layout.count());
        layout.initialise(values, 1);
        const auto deviation = [&](const char* name) {
            double squares = 0;
            const auto own = layout.at(1, name).in(std::span(values));
            for (const float value : own)
                squares += double(value) * value;
            return std::sqrt(squares / double(own.size()));
        };
        QVERIFY(std::abs(deviation("qkv.weight") / 0.02 - 1) < 0.02);
        QVERIFY(std::abs(deviation("fc2.weight") / 0.005 - 1) < 0.02); // 0.02 / sqrt(2 · 8 layers)
        QCOMPARE(deviation("ln1.gamma"), 1.0);
        QCOMPARE(deviation("fc1.bias"), 0.0);
    }

    void randomNumbersAreStandardNormalAndDifferByName()
    {
        const CounterRandom random(1, "a");
        double sum = 0, squares = 0;
        for (std::uint64_t i = 0; i < 100000; ++i) {
            sum += random.normal(i);
            squares += random.normal(i) * random.normal(i);
        }
        QVERIFY(std::abs(sum / 1e5) < 0.02);
        QVERIFY(std::abs(squares / 1e5 - 1) < 0.02);
        QVERIFY(random.bits(0) != CounterRandom(1, "b").bits(0));
        QVERIFY(random.bits(0) != CounterRandom(2, "a").bits(0));
    }

    void weightDecayShrinksMatricesOnly_data()
    {
        QTest::addColumn<int>("kind");
        QTest::newRow("AdamW") << int(Optimizer::AdamW);
        QTest::newRow("SGD") << int(Optimizer::SgdMomentum);
    }
    void weightDecayShrinksMatricesOnly()
    {
        QFETCH(int, kind);
        const ParameterLayout layout(workloadOf(smallShape()), 0, 4);
        OptimizerSettings settings{.kind = Optimizer(kind)};
        settings.adamW.weightDecay = settings.sgd.weightDecay = 0.5f;
        settings.adamW.learningRate = settings.sgd.learningRate = 0.5f;
        const StageOptimizer optimizer(layout, settings);
        QCOMPARE(optimizer.stateElements(), layout.count() * (Optimizer(kind) == Optimizer::AdamW ? 2 : 1));
        std::vector<float> parameters(layout.count(), 1), state(optimizer.stateElements());
        optimizer.update(kernels::hostOperations(), 1, parameters, std::vector<float>(layout.count()), state);
        for (const Parameter& parameter : layout.parameters())
            for (const float value : parameter.in(std::span(parameters)))
                QCOMPARE(value, parameter.rows > 1 ? 0.75f : 1.0f);
    }

    void tiedGradientsInOneStageBecomeTheirSum()
    {
        const ParameterLayout layout(workloadOf(smallShape()), 0, 4);
        std::vector<float> gradients(layout.count(), 1);
        fill(layout.headMatrix()->in(std::span(gradients)), 2);
        sumTiedGradients(kernels::hostOperations(), layout, gradients);
        for (const Parameter& parameter : layout.parameters()) {
            const bool tied = &parameter == layout.embeddingMatrix() || &parameter == layout.headMatrix();
            for (const float value : parameter.in(std::span(gradients)))
                QCOMPARE(value, tied ? 3.0f : 1.0f);
        }
    }

private:
    static void fill(std::span<float> values, float value) { std::fill(values.begin(), values.end(), value); }
};

PIPEWRIGHT_TEST(TestTrainingLayout, NoApplication)
#include "tst_traininglayout.moc"
