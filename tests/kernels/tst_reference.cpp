// SPDX-License-Identifier: GPL-3.0-or-later
// The fp64 references against central finite differences: the ground everything else stands on.
#include "kernels/reference/reference.h"
#include "numbers.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::reference;
using test::distance;
using test::dot;
using test::finiteDifferences;
using test::slopeTolerance;
using test::someTokens;
using test::someValues;

class TestReference : public QObject {
    Q_OBJECT
private slots:
    void linearGradientsAreTheSlopesOfTheForward()
    {
        const LinearShape shape{3, 4, 5};
        const Values x = someValues(12, 1), w = someValues(20, 2), b = someValues(5, 3), dy = someValues(15, 4);
        const auto loss = [&](const Values& x, const Values& w, const Values& b) {
            return dot(linearForward(shape, x, w, b), dy);
        };
        const WeightGrads grads = linearWeightGrad(shape, x, dy);
        QVERIFY(distance(linearInputGrad(shape, dy, w), finiteDifferences(x, [&](auto& v) { return loss(v, w, b); }))
                < slopeTolerance);
        QVERIFY(distance(grads.weight, finiteDifferences(w, [&](auto& v) { return loss(x, v, b); })) < slopeTolerance);
        QVERIFY(distance(grads.bias, finiteDifferences(b, [&](auto& v) { return loss(x, w, v); })) < slopeTolerance);
    }

    void layerNormGradientsAreTheSlopesOfTheForward()
    {
        const Values x = someValues(18, 1), gamma = someValues(6, 2), beta = someValues(6, 3), dy = someValues(18, 4);
        const auto loss = [&](const Values& x, const Values& gamma, const Values& beta) {
            return dot(layerNormForward(3, 6, x, gamma, beta), dy);
        };
        const WeightGrads grads = layerNormWeightGrad(3, 6, x, dy);
        QVERIFY(distance(layerNormInputGrad(3, 6, x, gamma, dy),
                         finiteDifferences(x, [&](auto& v) { return loss(v, gamma, beta); }))
                < slopeTolerance);
        QVERIFY(distance(grads.weight, finiteDifferences(gamma, [&](auto& v) { return loss(x, v, beta); }))
                < slopeTolerance);
        QVERIFY(distance(grads.bias, finiteDifferences(beta, [&](auto& v) { return loss(x, gamma, v); }))
                < slopeTolerance);
    }

    void attentionGradientsAreTheSlopesOfTheForward()
    {
        const AttentionShape shape{2, 5, 2, 3};
        const std::size_t count = shape.tokens() * shape.hidden();
        const Values q = someValues(count, 1), k = someValues(count, 2), v = someValues(count, 3),
                     dy = someValues(count, 4);
        const auto loss = [&](const Values& q, const Values& k, const Values& v) {
            return dot(attentionForward(shape, q, k, v).output, dy);
        };
        const Values all = attentionInputGrad(shape, q, k, v, attentionForward(shape, q, k, v).probabilities, dy);
        const auto part = [&](int which) {
            Values result;
            for (std::size_t token = 0; token < shape.tokens(); ++token)
                for (int i = 0; i < shape.hidden(); ++i)
                    result.push_back(all[(token * 3 + which) * shape.hidden() + i]);
            return result;
        };
        QVERIFY(distance(part(0), finiteDifferences(q, [&](auto& x) { return loss(x, k, v); })) < slopeTolerance);
        QVERIFY(distance(part(1), finiteDifferences(k, [&](auto& x) { return loss(q, x, v); })) < slopeTolerance);
        QVERIFY(distance(part(2), finiteDifferences(v, [&](auto& x) { return loss(q, k, x); })) < slopeTolerance);
    }

    void attentionNeverLooksAhead()
    {
        const AttentionShape shape{1, 4, 1, 2};
        const Values q = someValues(8, 1), k = someValues(8, 2);
        Values v = someValues(8, 3);
        const Values before = attentionForward(shape, q, k, v).output;
        v[6] += 1; // the last token's value
        const Values after = attentionForward(shape, q, k, v).output;
        QVERIFY(std::equal(before.begin(), before.begin() + 6, after.begin()));
        QVERIFY(before[6] != after[6]);
    }

    void geluGradientIsTheSlopeOfTheForward()
    {
        const Values x = someValues(40, 1, 4), dy = someValues(40, 2);
        QVERIFY(distance(geluInputGrad(x, dy), finiteDifferences(x, [&](auto& v) { return dot(geluForward(v), dy); }))
                < slopeTolerance);
    }

    void embeddingGradientsAreTheSlopesOfTheForward()
    {
        const auto tokens = someTokens(6, 4, 1); // six tokens of four words: repeats for certain
        const Values table = someValues(12, 2), positions = someValues(9, 3), dy = someValues(18, 4);
        const WeightGrads grads = embeddingWeightGrad(3, 3, 4, tokens, dy);
        QVERIFY(distance(grads.weight,
                         finiteDifferences(
                             table, [&](auto& v) { return dot(embeddingForward(3, 3, tokens, v, positions), dy); }))
                < slopeTolerance);
        QVERIFY(distance(grads.bias,
                         finiteDifferences(positions,
                                           [&](auto& v) { return dot(embeddingForward(3, 3, tokens, table, v), dy); }))
                < slopeTolerance);
    }

    void featureBagGradientIsTheSlopeOfTheForward()
    {
        const auto features = someTokens(6, 4, 1); // two bags of three from four rows
        const Values table = someValues(12, 2), dy = someValues(6, 3);
        QVERIFY(
            distance(featureBagWeightGrad(3, 3, 4, features, dy),
                     finiteDifferences(table, [&](auto& v) { return dot(featureBagForward(3, 3, features, v), dy); }))
            < slopeTolerance);
    }

    void crossEntropyGradientIsTheSlopeOfTheLoss()
    {
        const auto targets = someTokens(4, 5, 1);
        const Values logits = someValues(20, 2, 3);
        const Values grad =
            crossEntropyInputGrad(4, 5, crossEntropyForward(4, 5, logits, targets, 0.25).probabilities, targets, 0.25);
        QVERIFY(distance(grad, finiteDifferences(
                                   logits, [&](auto& v) { return crossEntropyForward(4, 5, v, targets, 0.25).loss; }))
                < slopeTolerance);
    }

    void uniformLogitsCostTheLogarithmOfTheClasses()
    {
        const auto targets = someTokens(4, 8, 1);
        QVERIFY(std::abs(crossEntropyForward(4, 8, Values(32, 0.5), targets, 0.25).loss - std::log(8.0)) < 1e-12);
    }

    void theFirstAdamStepMovesByTheLearningRate()
    {
        // Bias correction makes the first step learningRate · sign(gradient), whatever the gradient's size.
        Values p{1, 1}, m{0, 0}, v{0, 0};
        adamWStep({.learningRate = 0.125f, .weightDecay = 0}, 1, p, {1e-3, -50}, m, v);
        QVERIFY(std::abs(p[0] - 0.875) < 1e-5 && std::abs(p[1] - 1.125) < 1e-5);
    }

    void adamDecaysWeightsApartFromTheGradient()
    {
        Values p{2}, m{0}, v{0};
        adamWStep({.learningRate = 0.5f, .weightDecay = 0.5f}, 1, p, {0}, m, v);
        QVERIFY(std::abs(p[0] - 1.5) < 1e-12);
    }

    void momentumAccumulatesGradients()
    {
        Values p{0}, v{0};
        sgdMomentumStep({.learningRate = 0.5f, .momentum = 0.5f}, p, {1}, v);
        sgdMomentumStep({.learningRate = 0.5f, .momentum = 0.5f}, p, {1}, v);
        QCOMPARE(v[0], 1.5);
        QCOMPARE(p[0], -1.25);
    }
};

PIPEWRIGHT_TEST(TestReference, NoApplication)
#include "tst_reference.moc"
