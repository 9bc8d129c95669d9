// SPDX-License-Identifier: GPL-3.0-or-later
// Every host kernel against its fp64 reference, at sizes that leave odd tails in every vector loop.
#include "kernels/calls.h"
#include "kernels/reference/reference.h"
#include "numbers.h"
#include "testmain.h"

#include <QTest>

#include <thread>

using namespace pipewright;
using test::distance;
using test::single;
using test::someTokens;
using test::someValues;
using test::tolerance;
using test::Values;

class TestKernels : public QObject {
    Q_OBJECT
private slots:
    void linearMatchesItsReference_data()
    {
        QTest::addColumn<int>("rows");
        QTest::addColumn<int>("inputs");
        QTest::addColumn<int>("outputs");
        QTest::newRow("one") << 1 << 1 << 1;
        QTest::newRow("odd") << 7 << 13 << 5;
        QTest::newRow("wide") << 37 << 67 << 131;
        QTest::newRow("byte-gpt") << 64 << 128 << 128;
    }
    void linearMatchesItsReference()
    {
        QFETCH(int, rows);
        QFETCH(int, inputs);
        QFETCH(int, outputs);
        const kernels::LinearShape shape{rows, inputs, outputs};
        const Values x = someValues(rows * inputs, 1), w = someValues(outputs * inputs, 2), b = someValues(outputs, 3);
        const Values dy = someValues(rows * outputs, 4);
        std::vector<float> y(dy.size(), NAN), dx(x.size(), NAN);
        const Values expected = reference::linearForward(shape, x, w, b);
        kernels::run(kernels::LinearForward{shape, single(x), single(w), single(b), y});
        QVERIFY(distance(y, expected) < tolerance);
        kernels::run(kernels::LinearForward{shape, single(x), single(w), {}, y});
        QVERIFY(distance(y, reference::linearForward(shape, x, w, {})) < tolerance);
        kernels::run(kernels::LinearInputGrad{shape, single(dy), single(w), dx});
        QVERIFY(distance(dx, reference::linearInputGrad(shape, dy, w)) < tolerance);
    }

    void linearAddsToWhatIsThereWhenAsked()
    {
        const kernels::LinearShape shape{5, 6, 7};
        const Values x = someValues(30, 1), w = someValues(42, 2), b = someValues(7, 3), before = someValues(35, 4);
        Values expected = reference::linearForward(shape, x, w, b);
        for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] += before[i];
        std::vector<float> y = single(before);
        kernels::run(kernels::LinearForward{shape, single(x), single(w), single(b), y, kernels::Store::Add});
        QVERIFY(distance(y, expected) < tolerance);
    }

    void linearWeightGradientAccumulates()
    {
        const kernels::LinearShape shape{37, 19, 70};
        const Values x = someValues(37 * 19, 1), dy = someValues(37 * 70, 2);
        reference::WeightGrads expected = reference::linearWeightGrad(shape, x, dy);
        for (auto* grads : {&expected.weight, &expected.bias})
            for (double& grad : *grads)
                grad = 2 * grad + 0.5;
        std::vector<float> dw(70 * 19, 0.5f), db(70, 0.5f);
        for (int pass = 0; pass < 2; ++pass)
            kernels::run(kernels::LinearWeightGrad{shape, single(x), single(dy), dw, db});
        QVERIFY(distance(dw, expected.weight) < tolerance);
        QVERIFY(distance(db, expected.bias) < tolerance);
    }

    void layerNormMatchesItsReference_data()
    {
        QTest::addColumn<int>("columns");
        for (const int columns : {1, 5, 16, 37, 128})
            QTest::addRow("%d columns", columns) << columns;
    }
    void layerNormMatchesItsReference()
    {
        QFETCH(int, columns);
        const int rows = 9;
        Values x = someValues(rows * columns, 1);
        for (double& value : x)
            value = float(value + 10); // a mean far from zero: a one-pass variance would lose digits here
        const Values gamma = someValues(columns, 2), beta = someValues(columns, 3), dy = someValues(rows * columns, 4);
        std::vector<float> y(x.size(), NAN), dx(x.size(), 0.25f), dGamma(columns, 0.5f), dBeta(columns, 0.5f);
        kernels::run(kernels::LayerNormForward{rows, columns, single(x), single(gamma), single(beta), y});
        kernels::run(kernels::LayerNormInputGrad{rows, columns, single(x), single(gamma), single(dy), dx});
        kernels::run(kernels::LayerNormWeightGrad{rows, columns, single(x), single(dy), dGamma, dBeta});
        // With an epsilon that is seen, and in place.
        std::vector<float> other(x.size(), NAN), replaced = single(dy);
        const float large = 0.5f;
        kernels::run(kernels::LayerNormForward{rows, columns, single(x), single(gamma), single(beta), other, large});
        kernels::run(kernels::LayerNormInputGrad{rows, columns, single(x), single(gamma), replaced, replaced, large,
                                                 kernels::Store::Replace});
        QVERIFY(distance(other, reference::layerNormForward(rows, columns, x, gamma, beta, large)) < 20 * tolerance);
        QVERIFY(distance(replaced, reference::layerNormInputGrad(rows, columns, x, gamma, dy, large)) < 20 * tolerance);

        Values expectedDx = reference::layerNormInputGrad(rows, columns, x, gamma, dy);
        reference::WeightGrads expected = reference::layerNormWeightGrad(rows, columns, x, dy);
        for (double& value : expectedDx)
            value += 0.25;
        for (auto* grads : {&expected.weight, &expected.bias})
            for (double& grad : *grads)
                grad += 0.5;
        const double loose = 20 * tolerance; // x has lost a digit to its mean
        QVERIFY(distance(y, reference::layerNormForward(rows, columns, x, gamma, beta)) < loose);
        QVERIFY(distance(dx, expectedDx) < loose);
        QVERIFY(distance(dGamma, expected.weight) < loose);
        QVERIFY(distance(dBeta, expected.bias) < loose);
    }

    void attentionMatchesItsReference_data()
    {
        QTest::addColumn<int>("sequences");
        QTest::addColumn<int>("length");
        QTest::addColumn<int>("heads");
        QTest::addColumn<int>("headSize");
        QTest::newRow("single token") << 1 << 1 << 1 << 4;
        QTest::newRow("odd") << 2 << 19 << 3 << 5;
        QTest::newRow("byte-gpt") << 1 << 64 << 4 << 32;
    }
    void attentionMatchesItsReference()
    {
        QFETCH(int, sequences);
        QFETCH(int, length);
        QFETCH(int, heads);
        QFETCH(int, headSize);
        const kernels::AttentionShape shape{sequences, length, heads, headSize};
        const std::size_t count = shape.tokens() * shape.hidden();
        const Values q = someValues(count, 1, 3), k = someValues(count, 2), v = someValues(count, 3),
                     dy = someValues(count, 4);
        const reference::Attention expected = reference::attentionForward(shape, q, k, v);
        std::vector<float> p(shape.scores(), NAN), y(count, NAN), grads(3 * count, NAN), scratch(shape.scores(), NAN);
        kernels::run(kernels::AttentionForward{shape, single(q), single(k), single(v), p, y});
        QVERIFY(distance(p, expected.probabilities) < tolerance);
        QVERIFY(distance(y, expected.output) < tolerance);
        kernels::run(
            kernels::AttentionInputGrad{shape, single(q), single(k), single(v), p, {}, single(dy), grads, scratch});
        QVERIFY(distance(grads, reference::attentionInputGrad(shape, q, k, v, expected.probabilities, dy)) < tolerance);
    }

    void attentionOnPiecesIsThatOfTheWholeSequence_data()
    {
        QTest::addColumn<int>("pieces");
        for (const int pieces : {1, 2, 3, 6})
            QTest::addRow("%d pieces", pieces) << pieces;
    }
    void attentionOnPiecesIsThatOfTheWholeSequence()
    {
        // Pieces of 3 tokens of the whole sequences, which the reference takes at once.
        QFETCH(int, pieces);
        const kernels::AttentionShape shape{2, 3, 2, 5, pieces}, whole{2, 3 * pieces, 2, 5};
        const std::size_t count = whole.tokens() * whole.hidden(), part = shape.tokens() * shape.hidden();
        const Values q = someValues(count, 1, 3), k = someValues(count, 2), v = someValues(count, 3),
                     dy = someValues(count, 4);
        const reference::Attention expected = reference::attentionForward(whole, q, k, v);
        const Values expectedGrads = reference::attentionInputGrad(whole, q, k, v, expected.probabilities, dy);
        // Piece i of a tensor whose sequences have `perSequence` values in all, in `blocks` blocks per sequence.
        const auto cut = [&](const Values& all, int blocks, int i) {
            const std::size_t perBlock = all.size() / std::size_t(shape.sequences * blocks),
                              share = perBlock / std::size_t(pieces);
            Values result;
            for (std::size_t block = 0; block * perBlock < all.size(); ++block) {
                const auto begin = all.begin() + std::ptrdiff_t(block * perBlock + std::size_t(i) * share);
                result.insert(result.end(), begin, begin + std::ptrdiff_t(share));
            }
            return result;
        };
        std::vector<std::vector<float>> saved; // keys, then values, as one buffer of a stage would hold them
        std::vector<const float*> places;
        for (int i = 0; i < pieces; ++i) {
            saved.push_back(single(cut(k, 1, i)));
            const std::vector<float> values = single(cut(v, 1, i));
            saved.back().insert(saved.back().end(), values.begin(), values.end());
            places.push_back(saved.back().data());
        }
        const auto earlier = [&](int i) {
            return kernels::EarlierPieces{std::span(places).first(std::size_t(i)), 0, part};
        };
        const auto keys = [&](int i) { return std::span(saved[std::size_t(i)]).first(part); };
        const auto values = [&](int i) { return std::span(saved[std::size_t(i)]).last(part); };
        std::vector<std::vector<float>> probabilities;
        for (int i = 0; i < pieces; ++i) {
            std::vector<float>& p = probabilities.emplace_back(shape.scores(), NAN);
            std::vector<float> y(part, NAN);
            kernels::run(kernels::AttentionForward{shape, single(cut(q, 1, i)), keys(i), values(i), p, y, earlier(i)});
            QVERIFY(distance(p, cut(expected.probabilities, shape.heads, i)) < tolerance);
            QVERIFY(distance(y, cut(expected.output, 1, i)) < tolerance);
        }
        std::vector<float> owed(shape.sequenceGradient(), NAN);
        for (int i = pieces; i-- > 0;) {
            std::vector<float> grads(3 * part, NAN), scratch(shape.scores(), NAN);
            kernels::run(kernels::AttentionInputGrad{shape,
                                                     single(cut(q, 1, i)),
                                                     keys(i),
                                                     values(i),
                                                     probabilities[std::size_t(i)],
                                                     {},
                                                     single(cut(dy, 1, i)),
                                                     grads,
                                                     scratch,
                                                     earlier(i),
                                                     owed});
            QVERIFY(distance(grads, cut(expectedGrads, 1, i)) < tolerance);
        }
    }

    void hugeScoresStayFinite()
    {
        const kernels::AttentionShape shape{1, 3, 1, 1};
        const std::vector<float> q(3, 300), k{-300, 0, 300}, v{1, 2, 3};
        std::vector<float> p(9), y(3);
        kernels::run(kernels::AttentionForward{shape, q, k, v, p, y});
        QCOMPARE(y[0], 1.0f);
        QCOMPARE(y[2], 3.0f);
    }

    void geluMatchesItsReferenceInPlaceToo()
    {
        for (const std::size_t count : {1u, 15u, 64u, 1003u}) {
            const Values x = someValues(count, 1, 12), dy = someValues(count, 2);
            std::vector<float> y(count, NAN), dx = single(dy);
            kernels::run(kernels::ActivationForward{kernels::ActivationKind::GeluTanh, single(x), y});
            QVERIFY(distance(y, reference::geluForward(x)) < tolerance);
            kernels::run(kernels::ActivationInputGrad{kernels::ActivationKind::GeluTanh, single(x), dx, dx});
            QVERIFY(distance(dx, reference::geluInputGrad(x, dy)) < tolerance);
            std::vector<float> inPlace = single(x);
            kernels::run(kernels::ActivationForward{kernels::ActivationKind::GeluTanh, inPlace, inPlace});
            QCOMPARE(inPlace, y);
        }
    }

    void geluOfExtremesIsTheInputOrZero()
    {
        std::vector<float> y(2);
        kernels::run(kernels::ActivationForward{kernels::ActivationKind::GeluTanh, std::vector<float>{50, -50}, y});
        QCOMPARE(y[0], 50.0f);
        QVERIFY(std::abs(y[1]) < 1e-30f);
    }

    void embeddingMatchesItsReference()
    {
        const int length = 7, hidden = 19, vocabulary = 11;
        const auto tokens = someTokens(21, vocabulary, 1);
        const Values table = someValues(vocabulary * hidden, 2), positions = someValues(length * hidden, 3);
        const Values dy = someValues(21 * hidden, 4);
        std::vector<float> y(dy.size(), NAN), dTable(table.size()), dPositions(positions.size());
        kernels::run(kernels::EmbeddingForward{length, hidden, tokens, single(table), single(positions), y});
        kernels::run(kernels::EmbeddingWeightGrad{length, hidden, tokens, single(dy), dTable, dPositions});
        const reference::WeightGrads expected = reference::embeddingWeightGrad(length, hidden, vocabulary, tokens, dy);
        QVERIFY(distance(y, reference::embeddingForward(length, hidden, tokens, table, positions)) < tolerance);
        QVERIFY(distance(dTable, expected.weight) < tolerance);
        QVERIFY(distance(dPositions, expected.bias) < tolerance);
    }

    void featureBagMatchesItsReference()
    {
        const int length = 7, hidden = 19, rows = 11;
        const auto features = someTokens(3 * length, rows, 1); // more than there are rows: some come twice in a bag
        const Values table = someValues(rows * hidden, 2), dy = someValues(3 * hidden, 3),
                     before = someValues(rows * hidden, 4);
        std::vector<float> y(dy.size(), NAN), dTable = single(before);
        kernels::run(kernels::FeatureBagForward{length, hidden, features, single(table), y});
        kernels::run(kernels::FeatureBagWeightGrad{length, hidden, features, single(dy), dTable});
        QVERIFY(distance(y, reference::featureBagForward(length, hidden, features, table)) < tolerance);
        Values expected = reference::featureBagWeightGrad(length, hidden, rows, features, dy);
        for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] += before[i]; // it adds to what is there
        QVERIFY(distance(dTable, expected) < tolerance);
    }

    void crossEntropyMatchesItsReference()
    {
        const int rows = 9, classes = 37;
        auto targets = someTokens(rows, classes, 1);
        targets[2] = targets[7] = -1; // no part in the loss
        const Values logits = someValues(rows * classes, 2, 8);
        const reference::CrossEntropy expected =
            reference::crossEntropyForward(rows, classes, logits, targets, 1.0 / 16);
        std::vector<float> p = single(logits), loss(1), grad(p.size(), NAN);
        kernels::run(kernels::CrossEntropyForward{rows, classes, p, targets, 1.0f / 16, loss});
        kernels::run(kernels::CrossEntropyInputGrad{rows, classes, p, targets, 1.0f / 16, grad});
        QVERIFY(distance(p, expected.probabilities) < tolerance);
        QVERIFY(std::abs(loss[0] / expected.loss - 1) < tolerance);
        QVERIFY(
            distance(grad, reference::crossEntropyInputGrad(rows, classes, expected.probabilities, targets, 1.0 / 16))
            < tolerance);
    }

    void crossEntropyOfAHopelessTargetIsItsMargin()
    {
        std::vector<float> p{200, -200}, loss(1);
        kernels::run(kernels::CrossEntropyForward{1, 2, p, std::vector<std::int32_t>{1}, 1, loss});
        QCOMPARE(loss[0], 400.0f);
    }

    void optimizersMatchTheirReferencesOverSeveralSteps()
    {
        Values p = someValues(77, 1), m(77), v(77), q = p, momentum(77);
        std::vector<float> fp = single(p), fm(77), fv(77), fq = fp, fMomentum(77);
        Values r = p, squares(77), last(77);
        std::vector<float> fr = fp, fSquares(77), fLast(77);
        const kernels::RmsPropSettings rms{.learningRate = 0.1f, .smoothing = 0.9f, .epsilon = 1e-6f};
        const kernels::AdamWSettings adam{.learningRate = 0.01f, .weightDecay = 0.1f};
        const kernels::SgdSettings sgd{.learningRate = 0.05f, .momentum = 0.9f, .weightDecay = 0.01f};
        for (int step = 1; step <= 5; ++step) {
            const Values gradient = someValues(77, 10 + step);
            reference::adamWStep(adam, step, p, gradient, m, v);
            kernels::run(kernels::AdamWStep{adam, step, fp, single(gradient), fm, fv});
            reference::sgdMomentumStep(sgd, q, gradient, momentum);
            kernels::run(kernels::SgdMomentumStep{sgd, fq, single(gradient), fMomentum});
            reference::rmsPropStep(rms, r, gradient, squares, last);
            kernels::run(kernels::RmsPropStep{rms, fr, single(gradient), fSquares, fLast});
        }
        QVERIFY(distance(fp, p) < tolerance && distance(fm, m) < tolerance && distance(fv, v) < tolerance);
        QVERIFY(distance(fq, q) < tolerance && distance(fMomentum, momentum) < tolerance);
        QVERIFY(distance(fr, r) < 5 * tolerance && distance(fSquares, squares) < tolerance
                && distance(fLast, last) == 0);
        // Where three more steps would lead.
        std::vector<float> aheadP = fp, aheadQ = fq, aheadR = fr;
        kernels::run(kernels::PredictAdam{adam, 5, 0.03f, fp, fm, fv, aheadP});
        kernels::run(kernels::PredictMomentum{0.15f, aheadQ, fMomentum, aheadQ});
        kernels::run(kernels::PredictRmsProp{0.3f, 1e-6f, aheadR, fSquares, fLast, aheadR});
        QVERIFY(distance(aheadP, reference::predictAdam(adam, 5, 0.03, p, m, v)) < 5 * tolerance);
        QVERIFY(distance(aheadQ, reference::predictMomentum(0.15, q, momentum)) < 5 * tolerance);
        QVERIFY(distance(aheadR, reference::predictRmsProp(0.3, 1e-6, r, squares, last)) < 5 * tolerance);
        QVERIFY(distance(aheadP, p) > 1e-3 && distance(aheadQ, q) > 1e-3 && distance(aheadR, r) > 1e-3);
    }

    void resultsDoNotDependOnWhereTheBuffersLie_data()
    {
        QTest::addColumn<int>("rows");
        QTest::addColumn<int>("columns");
        QTest::newRow("small") << 5 << 37;
        QTest::newRow("byte-gpt") << 64 << 128;
    }
    void resultsDoNotDependOnWhereTheBuffersLie()
    {
        // The executor carves tensors out of larger buffers; alignment must not change a bit.
        QFETCH(int, rows);
        QFETCH(int, columns);
        const kernels::LinearShape linear{rows, columns, columns};
        const kernels::AttentionShape attention{1, rows, 1, columns};
        const auto x = single(someValues(rows * columns, 1)), w = single(someValues(columns * columns, 2));
        const auto g = single(someValues(columns, 3));
        std::vector<std::vector<float>> results;
        for (const std::size_t shift : {0u, 1u, 3u, 7u}) {
            std::vector<std::vector<float>> kept;
            const auto room = [&](std::size_t count, const std::vector<float>& start = {}) {
                kept.emplace_back(count + shift);
                std::copy(start.begin(), start.end(), kept.back().begin() + shift);
                return std::span(kept.back()).subspan(shift);
            };
            const auto in = room(x.size(), x), weight = room(w.size(), w), gamma = room(g.size(), g);
            const auto normed = room(x.size()), y = room(x.size()), dx = room(x.size()), dw = room(w.size());
            const auto db = room(g.size()), p = room(attention.scores()), ds = room(p.size()), context = room(x.size());
            const auto dqkv = room(3 * x.size());
            kernels::run(kernels::LayerNormForward{rows, columns, in, gamma, gamma, normed});
            kernels::run(kernels::LinearForward{linear, normed, weight, gamma, y, kernels::Store::Add});
            kernels::run(kernels::AttentionForward{attention, y, in, normed, p, context});
            kernels::run(kernels::ActivationForward{kernels::ActivationKind::GeluTanh, context, context});
            kernels::run(kernels::AttentionInputGrad{attention, y, in, normed, p, {}, context, dqkv, ds});
            kernels::run(kernels::LinearInputGrad{linear, context, weight, dx});
            kernels::run(kernels::LayerNormInputGrad{rows, columns, in, gamma, y, dx});
            kernels::run(kernels::LayerNormWeightGrad{rows, columns, in, dx, gamma, db});
            kernels::run(kernels::LinearWeightGrad{linear, dx, context, dw, db});
            std::vector<float> all;
            for (const auto& values : kept)
                all.insert(all.end(), values.begin() + shift, values.end());
            results.push_back(all);
        }
        for (const auto& result : results)
            QCOMPARE(result, results.front());
    }

    void matrixProductsFromSeveralThreadsAtOnceAreRight()
    {
        // Devices are threads. Different sizes per thread: shared work buffers would be overwritten.
        std::vector<int> wrong(6);
        std::vector<std::thread> threads;
        for (std::size_t t = 0; t < wrong.size(); ++t)
            threads.emplace_back([&, t] {
                const int n = 24 + 8 * int(t);
                const auto x = single(someValues(n * n, unsigned(t))), w = single(someValues(n * n, 9));
                std::vector<float> expected(n * n), y(n * n);
                kernels::run(kernels::LinearForward{{n, n, n}, x, w, {}, expected});
                for (int round = 0; round < 1000; ++round) {
                    kernels::run(kernels::LinearForward{{n, n, n}, x, w, {}, y});
                    wrong[t] += y != expected;
                }
            });
        for (auto& thread : threads)
            thread.join();
        QCOMPARE(wrong, std::vector<int>(6));
    }
};

PIPEWRIGHT_TEST(TestKernels, NoApplication)
#include "tst_kernels.moc"
