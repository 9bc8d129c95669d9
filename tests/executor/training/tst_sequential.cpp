// SPDX-License-Identifier: GPL-3.0-or-later
// The sequential run, which all gradients are compared with: its loss falls, its result does not depend on how the
// model is cut into stages, and it does depend on the order in which gradients are summed.
#include "core/base/diagnostic.h"
#include "executor/stage/gptreference.h"
#include "executor/training/sequential.h"
#include "executor/training/textdata.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <cmath>

using namespace pipewright;
using namespace pipewright::test;

namespace {

TextData someText(const ModelShape& shape)
{
    std::string text;
    for (int i = 0; i < 40; ++i)
        text += "the quick brown fox jumps over the lazy dog; pack my box with five dozen jugs. ";
    return TextData::fromText(text, "test", shape, 4);
}

struct Outcome {
    std::vector<double> losses;
    std::vector<float> gradients, parameters; ///< of all stages, joined
};

Outcome train(const ModelShape& shape, const std::vector<int>& layersPerStage, const AccumulationOrder& order,
              int microbatches, int steps = 2)
{
    const TextData data = someText(shape);
    SequentialTrainer trainer(workloadOf(shape), layersPerStage, microbatches, {}, data, 9);
    Outcome outcome;
    for (int step = 0; step < steps; ++step)
        outcome.losses.push_back(trainer.step(order));
    for (int stage = 0; stage < trainer.stages(); ++stage) {
        const auto gradients = trainer.gradients(stage), parameters = trainer.parameters(stage);
        outcome.gradients.insert(outcome.gradients.end(), gradients.begin(), gradients.end());
        outcome.parameters.insert(outcome.parameters.end(), parameters.begin(), parameters.end());
    }
    return outcome;
}

} // namespace

class TestSequential : public QObject {
    Q_OBJECT
private slots:
    void aByteGptLearnsASmallText()
    {
        ModelShape shape;
        shape.layers = 2;
        shape.hidden = 32;
        shape.heads = shape.keyValueHeads = 2;
        shape.headSize = 16;
        shape.ffn = 128;
        shape.sequence = 32;
        OptimizerSettings settings;
        settings.adamW.learningRate = 1e-2f;
        const TextData data = someText(shape);
        SequentialTrainer trainer(workloadOf(shape), {2, 2}, 2, settings, data, 1);
        const AccumulationOrder order = AccumulationOrder::ascending(2, 2);
        const double first = trainer.step(order);
        double last = first;
        for (int step = 1; step < 60; ++step)
            last = trainer.step(order);
        QVERIFY2(std::abs(first - std::log(256.0)) < 0.3, qPrintable(QString::number(first))); // knows nothing yet
        QVERIFY2(last < 0.5 * first, qPrintable(QString::number(last)));
    }

    void momentumSgdLearnsToo()
    {
        const ModelShape shape = smallShape();
        OptimizerSettings settings;
        settings.kind = Optimizer::SgdMomentum;
        settings.sgd.learningRate = 0.05f;
        const TextData data = someText(shape);
        SequentialTrainer trainer(workloadOf(shape), {4}, 2, settings, data, 1);
        const AccumulationOrder order = AccumulationOrder::ascending(1, 2);
        const double first = trainer.step(order);
        double last = first;
        for (int step = 1; step < 60; ++step)
            last = trainer.step(order);
        QVERIFY2(last < 0.75 * first, qPrintable(QString("%1 to %2").arg(first).arg(last)));
    }

    void everyCutIntoStagesGivesTheSameBits()
    {
        const ModelShape shape = smallShape(4);
        const auto cut = [&](const std::vector<int>& layersPerStage) {
            return train(shape, layersPerStage, AccumulationOrder::ascending(int(layersPerStage.size()), 3), 3);
        };
        const Outcome whole = cut({6});
        for (const auto& layersPerStage : std::vector<std::vector<int>>{{3, 3}, {2, 2, 2}, {2, 1, 1, 2}, {1, 4, 1}}) {
            const Outcome parts = cut(layersPerStage);
            QCOMPARE(parts.losses, whole.losses);
            QCOMPARE(parts.gradients, whole.gradients);
            QCOMPARE(parts.parameters, whole.parameters);
        }
    }

    /// The step along the gradient changes the loss by the gradient's length: a skip that is not added, or whose
    /// gradient does not come back, is off by far more than a hundredth.
    void skipConnectionsHaveTheSlopeOfTheLoss()
    {
        ModelShape shape = smallShape(4);
        shape.tiedHead = false;
        const TextData data = someText(shape);
        const std::vector<SkipConnection> skips{{0, 2, 0}, {0, 3, 0}, {1, 3, 0}};
        SequentialTrainer trainer(workloadOf(shape), {2, 1, 1, 2}, 2, {}, data, 9, skips);
        SequentialTrainer without(workloadOf(shape), {2, 1, 1, 2}, 2, {}, data, 9);
        QVERIFY(without.evaluate().loss != trainer.evaluate().loss);
        std::vector<std::vector<float>> start, gradients;
        for (int stage = 0; stage < trainer.stages(); ++stage)
            start.emplace_back(trainer.parameters(stage).begin(), trainer.parameters(stage).end());
        trainer.step(AccumulationOrder::ascending(4, 2));
        double square = 0;
        for (int stage = 0; stage < trainer.stages(); ++stage)
            for (const float g :
                 gradients.emplace_back(trainer.gradients(stage).begin(), trainer.gradients(stage).end()))
                square += double(g) * g;
        const double length = std::sqrt(square), step = 0.01;
        const auto lossAt = [&](double distance) {
            auto moved = start;
            for (std::size_t s = 0; s < moved.size(); ++s)
                for (std::size_t i = 0; i < moved[s].size(); ++i)
                    moved[s][i] += float(distance * gradients[s][i] / length);
            trainer.startAt(0, moved);
            return trainer.evaluate().loss;
        };
        const double slope = (lossAt(step) - lossAt(-step)) / (2 * step);
        QVERIFY2(std::abs(slope / length - 1) < 0.01, qPrintable(QString("%1 of %2").arg(slope).arg(length)));
    }

    void piecesOfSequencesGiveTheGradientsOfWholeOnes_data()
    {
        QTest::addColumn<int>("pieces");
        for (const int pieces : {2, 3, 6, 12})
            QTest::addRow("%d pieces", pieces) << pieces;
    }
    void piecesOfSequencesGiveTheGradientsOfWholeOnes()
    {
        // The same sums in another order: of each parameter tensor, off by less than 1e-5 of its largest gradient
        // (measured: 5e-7).
        QFETCH(int, pieces);
        ModelShape shape = smallShape(3);
        shape.sequence = 12;
        const ParameterLayout layout(workloadOf(shape), 0, 5);
        const Outcome whole = train(shape, {5}, AccumulationOrder::ascending(1, 3), 3, 1);
        shape.sequencePieces = pieces;
        const auto cutInto = [&](const std::vector<int>& layersPerStage) {
            return train(shape, layersPerStage,
                         AccumulationOrder::ascending(int(layersPerStage.size()), 3 * pieces, pieces), 3 * pieces, 1);
        };
        const Outcome cut = cutInto({5});
        QVERIFY(std::abs(cut.losses[0] / whole.losses[0] - 1) < 1e-6);
        for (const Parameter& parameter : layout.parameters()) {
            const auto expected = parameter.in(std::span(whole.gradients)),
                       found = parameter.in(std::span(cut.gradients));
            double largest = 0, worst = 0;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                largest = std::max(largest, double(std::abs(expected[i])));
                worst = std::max(worst, double(std::abs(expected[i] - found[i])));
            }
            QVERIFY2(worst < 1e-5 * largest,
                     qPrintable(QString("%1: off by %2 of %3").arg(parameter.name.c_str()).arg(worst).arg(largest)));
        }
        QCOMPARE(cutInto({2, 1, 2}).gradients, cut.gradients); // whatever the cut into stages
        QVERIFY(cut.gradients != whole.gradients);
    }

    void theOrderOfSumsIsPartOfTheResult()
    {
        const ModelShape shape = smallShape();
        AccumulationOrder reversed = AccumulationOrder::ascending(2, 4);
        for (auto* orders : {&reversed.inputGrad, &reversed.weightGrad})
            for (auto& order : *orders)
                std::reverse(order.begin(), order.end());
        const Outcome up = train(shape, {2, 2}, AccumulationOrder::ascending(2, 4), 4, 1);
        const Outcome down = train(shape, {2, 2}, reversed, 4, 1);
        QCOMPARE(up.losses, down.losses); // forward is summed in ascending order always
        QVERIFY(up.gradients != down.gradients);
        float largest = 0, worst = 0;
        for (std::size_t i = 0; i < up.gradients.size(); ++i) {
            largest = std::max(largest, std::abs(up.gradients[i]));
            worst = std::max(worst, std::abs(up.gradients[i] - down.gradients[i]));
        }
        QVERIFY(worst < 1e-5f * largest);
        QCOMPARE(train(shape, {2, 2}, reversed, 4, 1).gradients, down.gradients);
    }

    void theTwoHalvesOfTheBackwardHaveOrdersOfTheirOwn()
    {
        // W in another order than I changes matrices but not one bit of a layer norm's gradient.
        const ModelShape shape = smallShape();
        AccumulationOrder mixed = AccumulationOrder::ascending(1, 4);
        mixed.weightGrad[0] = {2, 0, 3, 1};
        const Outcome plain = train(shape, {4}, AccumulationOrder::ascending(1, 4), 4, 1);
        const Outcome other = train(shape, {4}, mixed, 4, 1);
        bool matricesDiffer = false;
        const ParameterLayout layout(workloadOf(shape), 0, 4);
        for (const Parameter& parameter : layout.parameters()) {
            const auto a = parameter.in(std::span(plain.gradients)), b = parameter.in(std::span(other.gradients));
            const bool equal = std::equal(a.begin(), a.end(), b.begin());
            if (parameter.name.ends_with("gamma") || parameter.name.ends_with("beta"))
                QVERIFY2(equal, parameter.name.c_str());
            matricesDiffer = matricesDiffer || (parameter.isMatrix() && !equal);
        }
        QVERIFY(matricesDiffer);
    }

    void theTiedMatrixStaysTheSameOnBothEnds()
    {
        const ModelShape shape = smallShape();
        const TextData data = someText(shape);
        SequentialTrainer trainer(workloadOf(shape), {2, 2}, 2, {}, data, 1);
        for (int step = 0; step < 3; ++step)
            trainer.step(AccumulationOrder::ascending(2, 2));
        const auto table = trainer.maths(0).parameters().embeddingMatrix()->in(trainer.parameters(0));
        const auto head = trainer.maths(1).parameters().headMatrix()->in(trainer.parameters(1));
        QVERIFY(std::equal(table.begin(), table.end(), head.begin(), head.end()));
    }

    void ordersAndCutsThatDoNotFitAreRefused()
    {
        const ModelShape shape = smallShape();
        const TextData data = someText(shape);
        QVERIFY_THROWS_EXCEPTION(Error, SequentialTrainer(workloadOf(shape), {2, 1}, 2, {}, data, 1));
        QVERIFY_THROWS_EXCEPTION(Error, SequentialTrainer(workloadOf(shape), {4, 0}, 2, {}, data, 1));
        QVERIFY_THROWS_EXCEPTION(Error, SequentialTrainer(workloadOf(shape), {4}, 0, {}, data, 1));
        SequentialTrainer trainer(workloadOf(shape), {2, 2}, 2, {}, data, 1);
        AccumulationOrder twice = AccumulationOrder::ascending(2, 2);
        twice.weightGrad[1] = {0, 0};
        QVERIFY_THROWS_EXCEPTION(Error, trainer.step(twice));
        QVERIFY_THROWS_EXCEPTION(Error, trainer.step(AccumulationOrder::ascending(1, 2)));
        ModelShape cut = shape;
        cut.sequencePieces = 3;
        QVERIFY_THROWS_EXCEPTION(Error, SequentialTrainer(workloadOf(cut), {2, 2}, 4, {}, data, 1));
        const TextData cutData = someText(cut);
        SequentialTrainer pieces(workloadOf(cut), {2, 2}, 6, {}, cutData, 1);
        QVERIFY_THROWS_EXCEPTION(Error, pieces.step(AccumulationOrder::ascending(2, 6))); // first pieces first
    }

    void replicasAreSummedAfterTheirOwnSharedParameters()
    {
        // Two replicas with half of the microbatches each are the sum of two trainings with that half.
        const ModelShape shape = smallShape();
        const TextData data = someText(shape);
        AccumulationOrder both{{{1, 0}, {0, 1}, {2, 3}, {3, 2}}, {{0, 1}, {1, 0}, {3, 2}, {2, 3}}};
        SequentialTrainer trainer(workloadOf(shape), {2, 2}, 4, {}, data, 9);
        trainer.step(both);
        const auto table = trainer.maths(0).parameters().embeddingMatrix()->in(trainer.gradients(0));
        const auto head = trainer.maths(1).parameters().headMatrix()->in(trainer.gradients(1));
        QVERIFY(std::equal(table.begin(), table.end(), head.begin(), head.end()));
        const Outcome one = train(shape, {2, 2}, AccumulationOrder::ascending(2, 4), 4, 1);
        float largest = 0, worst = 0;
        std::size_t i = 0;
        for (int stage = 0; stage < 2; ++stage)
            for (const float gradient : trainer.gradients(stage)) {
                largest = std::max(largest, std::abs(one.gradients[i]));
                worst = std::max(worst, std::abs(gradient - one.gradients[i++]));
            }
        QVERIFY(worst > 0 && worst < 1e-5f * largest);
        std::swap(both.inputGrad[0], both.inputGrad[2]);
        both.inputGrad[2].pop_back();
        QVERIFY_THROWS_EXCEPTION(Error, trainer.step(both));
    }
};

PIPEWRIGHT_TEST(TestSequential, NoApplication)
#include "tst_sequential.moc"
