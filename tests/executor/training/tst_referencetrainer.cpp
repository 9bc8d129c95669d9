// SPDX-License-Identifier: GPL-3.0-or-later
// The reference, which all gradients are compared with: its loss falls, its result does not depend on how the model is
// cut into stages, and it does depend on the order in which gradients are summed.
#include "core/base/diagnostic.h"
#include "executor/stage/gptreference.h"
#include "executor/training/referencetrainer.h"
#include "executor/training/textdata.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <numeric>

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

/// For each replica and stage (replica 0's stage 0, stage 1, …) the microbatches of its backwards, in their order.
struct BackwardOrder {
    std::vector<std::vector<int>> inputGrad, weightGrad;
    /// One replica, sequences in ascending order, pieces of one in descending order.
    static BackwardOrder ascending(int stages, int microbatches, int sequencePieces = 1)
    {
        std::vector<int> order;
        for (int m = 0; m < microbatches; ++m)
            order.push_back(m + sequencePieces - 1 - 2 * (m % sequencePieces));
        const std::vector<std::vector<int>> all(static_cast<std::size_t>(stages), order);
        return {all, all};
    }
};

/// Every stage on a device of its own: all forwards, then all input gradients, then all weight gradients.
Schedule scheduleOf(const BackwardOrder& order, int stages, int microbatches, int sequencePieces = 1)
{
    Schedule schedule;
    schedule.family = "custom";
    schedule.backward = BackwardStyle::Split;
    schedule.firstStageMaySplit = true;
    schedule.microbatches = microbatches;
    schedule.sequencePieces = sequencePieces;
    const int devices = static_cast<int>(order.inputGrad.size());
    for (int first = 0; first < devices; first += stages) {
        std::vector<int> placement(static_cast<std::size_t>(stages));
        std::iota(placement.begin(), placement.end(), first);
        (first == 0 ? schedule.deviceOfStage : schedule.replicaPlacements.emplace_back()) = placement;
    }
    for (int device = 0; device < devices; ++device) {
        const auto& inputGrad = order.inputGrad[static_cast<std::size_t>(device)];
        std::vector<int> forward = inputGrad;
        std::sort(forward.begin(), forward.end());
        std::vector<Block>& lane = schedule.order.emplace_back();
        const auto add = [&](Op op, const std::vector<int>& share) {
            for (const int m : share)
                lane.push_back({op, device % stages, m, device / stages});
        };
        add(Op::F, forward);
        add(Op::I, inputGrad);
        add(Op::W, order.weightGrad[static_cast<std::size_t>(device)]);
    }
    return schedule;
}

Schedule ascending(int stages, int microbatches, int sequencePieces = 1)
{
    return scheduleOf(BackwardOrder::ascending(stages, microbatches, sequencePieces), stages, microbatches,
                      sequencePieces);
}

struct Outcome {
    std::vector<double> losses;
    std::vector<float> gradients, parameters; ///< of all stages, joined
};

Outcome train(const ModelShape& shape, const std::vector<int>& layersPerStage, const Schedule& schedule, int steps = 2)
{
    const TextData data = someText(shape);
    ReferenceTrainer trainer(workloadOf(shape), layersPerStage, schedule.microbatches, {}, data, 9);
    Outcome outcome;
    for (int step = 0; step < steps; ++step)
        outcome.losses.push_back(trainer.step(schedule));
    for (int stage = 0; stage < trainer.stages(); ++stage) {
        const auto gradients = trainer.gradients(stage), parameters = trainer.parameters(stage);
        outcome.gradients.insert(outcome.gradients.end(), gradients.begin(), gradients.end());
        outcome.parameters.insert(outcome.parameters.end(), parameters.begin(), parameters.end());
    }
    return outcome;
}

} // namespace

class TestReferenceTrainer : public QObject {
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
        ReferenceTrainer trainer(workloadOf(shape), {2, 2}, 2, settings, data, 1);
        const Schedule order = ascending(2, 2);
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
        ReferenceTrainer trainer(workloadOf(shape), {4}, 2, settings, data, 1);
        const Schedule order = ascending(1, 2);
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
            return train(shape, layersPerStage, ascending(int(layersPerStage.size()), 3));
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
        ReferenceTrainer trainer(workloadOf(shape), {2, 1, 1, 2}, 2, {}, data, 9, skips);
        ReferenceTrainer without(workloadOf(shape), {2, 1, 1, 2}, 2, {}, data, 9);
        QVERIFY(without.evaluate().loss != trainer.evaluate().loss);
        std::vector<std::vector<float>> start, gradients;
        for (int stage = 0; stage < trainer.stages(); ++stage)
            start.emplace_back(trainer.parameters(stage).begin(), trainer.parameters(stage).end());
        trainer.step(ascending(4, 2));
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
            std::vector<StageStart> starts;
            for (const std::vector<float>& parameters : moved)
                starts.push_back({parameters});
            trainer.startAt(0, std::move(starts));
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
        const Outcome whole = train(shape, {5}, ascending(1, 3), 1);
        shape.sequencePieces = pieces;
        const auto cutInto = [&](const std::vector<int>& layersPerStage) {
            return train(shape, layersPerStage, ascending(int(layersPerStage.size()), 3 * pieces, pieces), 1);
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
        BackwardOrder order = BackwardOrder::ascending(2, 4);
        for (auto* orders : {&order.inputGrad, &order.weightGrad})
            for (auto& share : *orders)
                std::reverse(share.begin(), share.end());
        const Schedule reversed = scheduleOf(order, 2, 4);
        const Outcome up = train(shape, {2, 2}, ascending(2, 4), 1);
        const Outcome down = train(shape, {2, 2}, reversed, 1);
        QCOMPARE(up.losses, down.losses); // forward is summed in ascending order always
        QVERIFY(up.gradients != down.gradients);
        float largest = 0, worst = 0;
        for (std::size_t i = 0; i < up.gradients.size(); ++i) {
            largest = std::max(largest, std::abs(up.gradients[i]));
            worst = std::max(worst, std::abs(up.gradients[i] - down.gradients[i]));
        }
        QVERIFY(worst < 1e-5f * largest);
        QCOMPARE(train(shape, {2, 2}, reversed, 1).gradients, down.gradients);
    }

    void theTwoHalvesOfTheBackwardHaveOrdersOfTheirOwn()
    {
        // W in another order than I changes matrices but not one bit of a layer norm's gradient.
        const ModelShape shape = smallShape();
        BackwardOrder mixed = BackwardOrder::ascending(1, 4);
        mixed.weightGrad[0] = {2, 0, 3, 1};
        const Outcome plain = train(shape, {4}, ascending(1, 4), 1);
        const Outcome other = train(shape, {4}, scheduleOf(mixed, 1, 4), 1);
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
        ReferenceTrainer trainer(workloadOf(shape), {2, 2}, 2, {}, data, 1);
        for (int step = 0; step < 3; ++step)
            trainer.step(ascending(2, 2));
        const auto table = trainer.maths(0).parameters().embeddingMatrix()->in(trainer.parameters(0));
        const auto head = trainer.maths(1).parameters().headMatrix()->in(trainer.parameters(1));
        QVERIFY(std::equal(table.begin(), table.end(), head.begin(), head.end()));
    }

    void ordersAndCutsThatDoNotFitAreRefused()
    {
        const ModelShape shape = smallShape();
        const TextData data = someText(shape);
        QVERIFY_THROWS_EXCEPTION(Error, ReferenceTrainer(workloadOf(shape), {2, 1}, 2, {}, data, 1));
        QVERIFY_THROWS_EXCEPTION(Error, ReferenceTrainer(workloadOf(shape), {4, 0}, 2, {}, data, 1));
        QVERIFY_THROWS_EXCEPTION(Error, ReferenceTrainer(workloadOf(shape), {4}, 0, {}, data, 1));
        ReferenceTrainer trainer(workloadOf(shape), {2, 2}, 2, {}, data, 1);
        BackwardOrder twice = BackwardOrder::ascending(2, 2);
        twice.weightGrad[1] = {0, 0};
        QVERIFY_THROWS_EXCEPTION(Error, trainer.step(scheduleOf(twice, 2, 2)));
        QVERIFY_THROWS_EXCEPTION(Error, trainer.step(ascending(1, 2)));
        QVERIFY_THROWS_EXCEPTION(Error, trainer.step(ascending(2, 3)));
        QVERIFY_THROWS_EXCEPTION(Error, trainer.startAt(0, {}));
        QVERIFY_THROWS_EXCEPTION(Error, trainer.startAt(0, {{{1}}, {{1}}}));
        ModelShape cut = shape;
        cut.sequencePieces = 3;
        QVERIFY_THROWS_EXCEPTION(Error, ReferenceTrainer(workloadOf(cut), {2, 2}, 4, {}, data, 1));
        const TextData cutData = someText(cut);
        ReferenceTrainer pieces(workloadOf(cut), {2, 2}, 6, {}, cutData, 1);
        QVERIFY_THROWS_EXCEPTION(
            Error, pieces.step(scheduleOf(BackwardOrder::ascending(2, 6), 2, 6, 3))); // first pieces first
        QVERIFY_THROWS_EXCEPTION(Error, pieces.step(ascending(2, 6)));
    }

    void replicasAreSummedAfterTheirOwnSharedParameters()
    {
        // Two replicas with half of the microbatches each are the sum of two trainings with that half.
        const ModelShape shape = smallShape();
        const TextData data = someText(shape);
        BackwardOrder both{{{1, 0}, {0, 1}, {2, 3}, {3, 2}}, {{0, 1}, {1, 0}, {3, 2}, {2, 3}}};
        ReferenceTrainer trainer(workloadOf(shape), {2, 2}, 4, {}, data, 9);
        trainer.step(scheduleOf(both, 2, 4));
        const auto table = trainer.maths(0).parameters().embeddingMatrix()->in(trainer.gradients(0));
        const auto head = trainer.maths(1).parameters().headMatrix()->in(trainer.gradients(1));
        QVERIFY(std::equal(table.begin(), table.end(), head.begin(), head.end()));
        const Outcome one = train(shape, {2, 2}, ascending(2, 4), 1);
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
        QVERIFY_THROWS_EXCEPTION(Error, trainer.step(scheduleOf(both, 2, 4)));
    }
};

PIPEWRIGHT_TEST(TestReferenceTrainer, NoApplication)
#include "tst_referencetrainer.moc"
