// SPDX-License-Identifier: GPL-3.0-or-later
// Attention with grouped heads: its fp64 reference against finite differences, the host's kernels against the
// reference, with windows, caps, sinks, linear biases and pieces of sequences.
#include "kernels/calls.h"
#include "kernels/linearbiases.h"
#include "kernels/reference/decoder.h"
#include "numbers.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using kernels::GroupedAttentionShape;
using test::distance;
using test::dot;
using test::finiteDifferences;
using test::single;
using test::slopeTolerance;
using test::someValues;
using test::tolerance;
using test::Values;

namespace {

GroupedAttentionShape attentionShape(int sequences, int length, int heads, int shared, int size, int valueSize,
                                     int window, bool causal)
{
    return {sequences, length, heads, shared, size, valueSize, 1, window, causal, float(1 / std::sqrt(size))};
}

struct Operands {
    Values query, key, value, outputGrad;
    explicit Operands(const GroupedAttentionShape& shape)
        : query(someValues(shape.queries(), 1, 3)), key(someValues(shape.keys(), 2)),
          value(someValues(shape.values(), 3)), outputGrad(someValues(shape.outputs(), 4))
    {
    }
};

/// Rows [piece · length, …) of every sequence of a tensor of whole sequences.
Values pieceOf(const Values& all, int sequences, int pieces, int piece)
{
    const std::size_t share = all.size() / std::size_t(sequences * pieces);
    Values result;
    for (int s = 0; s < sequences; ++s) {
        const auto begin = all.begin() + std::ptrdiff_t((std::size_t(s * pieces + piece)) * share);
        result.insert(result.end(), begin, begin + std::ptrdiff_t(share));
    }
    return result;
}

} // namespace

class TestGroupedAttention : public QObject {
    Q_OBJECT

private slots:
    void groupedAttentionIsWhatItsReferenceSays_data()
    {
        QTest::addColumn<int>("length");
        QTest::addColumn<int>("heads");
        QTest::addColumn<int>("shared");
        QTest::addColumn<int>("size");
        QTest::addColumn<int>("valueSize");
        QTest::addColumn<int>("window");
        QTest::addColumn<bool>("causal");
        QTest::newRow("single token") << 1 << 1 << 1 << 4 << 4 << 0 << true;
        QTest::newRow("grouped") << 19 << 6 << 2 << 5 << 5 << 0 << true;
        QTest::newRow("one for all") << 64 << 4 << 1 << 32 << 32 << 0 << true;
        QTest::newRow("several tiles") << 150 << 2 << 1 << 8 << 8 << 0 << true;
        QTest::newRow("other values") << 70 << 2 << 2 << 6 << 4 << 0 << true;
        QTest::newRow("window of one") << 9 << 2 << 1 << 4 << 4 << 1 << true;
        QTest::newRow("window") << 200 << 2 << 1 << 4 << 4 << 70 << true;
        QTest::newRow("no mask") << 77 << 2 << 1 << 4 << 4 << 0 << false;
    }
    void groupedAttentionIsWhatItsReferenceSays()
    {
        QFETCH(int, length);
        QFETCH(int, heads);
        QFETCH(int, shared);
        QFETCH(int, size);
        QFETCH(int, valueSize);
        QFETCH(int, window);
        QFETCH(bool, causal);
        const GroupedAttentionShape shape = attentionShape(2, length, heads, shared, size, valueSize, window, causal);
        const Operands of(shape);
        const reference::GroupedAttention expected =
            reference::groupedAttentionForward(shape, of.query, of.key, of.value);
        const reference::GroupedAttentionGrads grads =
            reference::groupedAttentionInputGrad(shape, of.query, of.key, of.value, of.outputGrad);
        const auto q = single(of.query), k = single(of.key), v = single(of.value), dy = single(of.outputGrad);
        std::vector<float> logSums(shape.numbers(), NAN), y(shape.outputs(), NAN), dots(shape.numbers(), NAN);
        std::vector<float> dq(q.size(), NAN), dk(k.size(), NAN), dv(v.size(), NAN);
        kernels::run(kernels::GroupedAttentionForward{shape, q, k, v, logSums, y});
        QVERIFY(distance(y, expected.output) < tolerance);
        QVERIFY(distance(logSums, expected.logSums) < tolerance);
        kernels::run(kernels::GroupedAttentionInputGrad{shape, q, k, v, logSums, y, dy, dq, dk, dv, dots});
        // Together: a query that looks at one key has no gradient at all.
        Values expectedAll = grads.query;
        expectedAll.insert(expectedAll.end(), grads.key.begin(), grads.key.end());
        expectedAll.insert(expectedAll.end(), grads.value.begin(), grads.value.end());
        dq.insert(dq.end(), dk.begin(), dk.end());
        dq.insert(dq.end(), dv.begin(), dv.end());
        QVERIFY(distance(dq, expectedAll) < 2 * tolerance);
    }

    void groupedAttentionGradientsAreTheSlopesOfTheForward_data()
    {
        QTest::addColumn<int>("window");
        QTest::addColumn<bool>("causal");
        QTest::newRow("causal") << 0 << true;
        QTest::newRow("window") << 3 << true;
        QTest::newRow("no mask") << 0 << false;
    }
    void groupedAttentionGradientsAreTheSlopesOfTheForward()
    {
        QFETCH(int, window);
        QFETCH(bool, causal);
        const GroupedAttentionShape shape = attentionShape(2, 5, 4, 2, 3, 2, window, causal);
        const Operands of(shape);
        const auto loss = [&](const Values& q, const Values& k, const Values& v) {
            return dot(reference::groupedAttentionForward(shape, q, k, v).output, of.outputGrad);
        };
        const reference::GroupedAttentionGrads grads =
            reference::groupedAttentionInputGrad(shape, of.query, of.key, of.value, of.outputGrad);
        QVERIFY(distance(grads.query, finiteDifferences(of.query, [&](auto& x) { return loss(x, of.key, of.value); }))
                < slopeTolerance);
        QVERIFY(distance(grads.key, finiteDifferences(of.key, [&](auto& x) { return loss(of.query, x, of.value); }))
                < slopeTolerance);
        QVERIFY(distance(grads.value, finiteDifferences(of.value, [&](auto& x) { return loss(of.query, of.key, x); }))
                < slopeTolerance);
    }

    void cappedScoresAndSinksAreWhatTheirReferenceSaysAndThatIsRight()
    {
        for (const auto& [length, withSinks] : {std::pair{7, false}, {7, true}, {71, false}, {71, true}}) {
            GroupedAttentionShape shape = attentionShape(2, length, 4, 2, 3, 2, 0, true);
            shape.softCap = 0.75f; // small enough to be felt
            const Operands of(shape);
            const Values sinks = withSinks ? someValues(4, 9, 2) : Values();
            const auto loss = [&](const Values& q, const Values& k, const Values& v, const Values& s) {
                return dot(reference::groupedAttentionForward(shape, q, k, v, s).output, of.outputGrad);
            };
            const reference::GroupedAttention expected =
                reference::groupedAttentionForward(shape, of.query, of.key, of.value, sinks);
            const reference::GroupedAttentionGrads grads =
                reference::groupedAttentionInputGrad(shape, of.query, of.key, of.value, of.outputGrad, sinks);
            if (length < 10)
                QVERIFY(distance(grads.key,
                                 finiteDifferences(of.key, [&](auto& x) { return loss(of.query, x, of.value, sinks); }))
                        < slopeTolerance);
            if (withSinks)
                QVERIFY(distance(grads.sinks,
                                 finiteDifferences(sinks, [&](auto& x) { return loss(of.query, of.key, of.value, x); }))
                        < slopeTolerance);

            const auto q = single(of.query), k = single(of.key), v = single(of.value), dy = single(of.outputGrad),
                       s = single(sinks);
            std::vector<float> logSums(shape.numbers(), NAN), y(shape.outputs(), NAN), dots(shape.numbers(), NAN);
            std::vector<float> dq(q.size(), NAN), dk(k.size(), NAN), dv(v.size(), NAN), ds(s.size(), 0.5f);
            kernels::run(kernels::GroupedAttentionForward{shape, q, k, v, logSums, y, {}, s});
            kernels::run(
                kernels::GroupedAttentionInputGrad{shape, q, k, v, logSums, y, dy, dq, dk, dv, dots, {}, {}, s, ds});
            Values expectedSinks = grads.sinks;
            for (double& value : expectedSinks)
                value += 0.5;
            QVERIFY(distance(y, expected.output) < 2 * tolerance);
            QVERIFY(distance(logSums, expected.logSums) < 2 * tolerance);
            QVERIFY(distance(dq, grads.query) < 5 * tolerance);
            QVERIFY(distance(dk, grads.key) < 5 * tolerance);
            QVERIFY(distance(dv, grads.value) < 5 * tolerance);
            if (withSinks)
                QVERIFY(distance(ds, expectedSinks) < 5 * tolerance);
        }
    }

    void slopesOfLinearBiasesAreThePublishedOnes()
    {
        for (int head = 0; head < 8; ++head)
            QCOMPARE(kernels::linearBiasSlope(8, head), std::exp2(float(-1 - head)));
        for (int head = 8; head < 12; ++head) // every second one of 16 heads
            QCOMPARE(kernels::linearBiasSlope(12, head), std::exp2(-0.5f - float(head - 8)));
    }

    void linearBiasesAreWhatTheirReferenceSaysAndThatIsRight()
    {
        // All heads of a model, or a member's last two; a length of which every slope can be taken, and several tiles.
        for (const auto& [length, firstHead] : {std::pair{7, 0}, {7, 4}, {71, 0}, {71, 4}}) {
            GroupedAttentionShape shape =
                attentionShape(2, length, 6 - firstHead, firstHead == 0 ? 3 : 1, 3, 2, 0, true);
            shape.biasedHeads = 6;
            shape.firstHead = firstHead;
            const Operands of(shape);
            const auto loss = [&](const Values& q, const Values& k, const Values& v) {
                return dot(reference::groupedAttentionForward(shape, q, k, v).output, of.outputGrad);
            };
            const reference::GroupedAttention expected =
                reference::groupedAttentionForward(shape, of.query, of.key, of.value);
            GroupedAttentionShape without = shape;
            without.biasedHeads = 0;
            QVERIFY(distance(expected.output,
                             reference::groupedAttentionForward(without, of.query, of.key, of.value).output)
                    > 0.01);
            const reference::GroupedAttentionGrads grads =
                reference::groupedAttentionInputGrad(shape, of.query, of.key, of.value, of.outputGrad);
            if (length < 10)
                QVERIFY(distance(grads.query,
                                 finiteDifferences(of.query, [&](auto& x) { return loss(x, of.key, of.value); }))
                        < slopeTolerance);
            const auto q = single(of.query), k = single(of.key), v = single(of.value), dy = single(of.outputGrad);
            std::vector<float> logSums(shape.numbers(), NAN), y(shape.outputs(), NAN), dots(shape.numbers(), NAN);
            std::vector<float> dq(q.size(), NAN), dk(k.size(), NAN), dv(v.size(), NAN);
            kernels::run(kernels::GroupedAttentionForward{shape, q, k, v, logSums, y});
            kernels::run(kernels::GroupedAttentionInputGrad{shape, q, k, v, logSums, y, dy, dq, dk, dv, dots});
            QVERIFY(distance(y, expected.output) < 2 * tolerance);
            QVERIFY(distance(logSums, expected.logSums) < 2 * tolerance);
            QVERIFY(distance(dq, grads.query) < 5 * tolerance);
            QVERIFY(distance(dk, grads.key) < 5 * tolerance);
            QVERIFY(distance(dv, grads.value) < 5 * tolerance);
        }
    }

    void groupedAttentionWithEqualHeadsIsThePlainOne()
    {
        const kernels::AttentionShape plain{2, 19, 3, 5};
        const GroupedAttentionShape shape = attentionShape(2, 19, 3, 3, 5, 5, 0, true);
        const Operands of(shape);
        QVERIFY(distance(reference::groupedAttentionForward(shape, of.query, of.key, of.value).output,
                         reference::attentionForward(plain, of.query, of.key, of.value).output)
                < 1e-7); // the scale is of single precision
    }

    void groupedAttentionOnPiecesIsThatOfTheWholeSequence_data()
    {
        QTest::addColumn<int>("pieces");
        QTest::addColumn<int>("window");
        for (const int pieces : {1, 2, 3})
            for (const int window : {0, 40})
                QTest::addRow("%d pieces, window %d", pieces, window) << pieces << window;
    }
    void groupedAttentionOnPiecesIsThatOfTheWholeSequence()
    {
        QFETCH(int, pieces);
        QFETCH(int, window);
        const int length = 33;
        GroupedAttentionShape whole = attentionShape(2, length * pieces, 4, 2, 6, 4, window, true);
        whole.biasedHeads = window > 0 ? 4 : 0;
        GroupedAttentionShape shape = whole;
        shape.length = length;
        shape.pieces = pieces;
        const Operands of(whole);
        const reference::GroupedAttention expected =
            reference::groupedAttentionForward(whole, of.query, of.key, of.value);
        const reference::GroupedAttentionGrads grads =
            reference::groupedAttentionInputGrad(whole, of.query, of.key, of.value, of.outputGrad);
        const auto cut = [&](const Values& all, int i) { return single(pieceOf(all, 2, pieces, i)); };
        std::vector<std::vector<float>> saved, logSums, outputs;
        std::vector<const float*> places;
        for (int i = 0; i < pieces; ++i) { // keys, then values, as a stage's buffer holds them
            saved.push_back(cut(of.key, i));
            const std::vector<float> values = cut(of.value, i);
            saved.back().insert(saved.back().end(), values.begin(), values.end());
        }
        for (const auto& buffer : saved)
            places.push_back(buffer.data());
        const auto earlier = [&](int i) {
            return kernels::EarlierPieces{std::span(places).first(std::size_t(i)), 0, shape.keys()};
        };
        for (int i = 0; i < pieces; ++i) {
            logSums.emplace_back(shape.numbers(), NAN);
            outputs.emplace_back(shape.outputs(), NAN);
            kernels::run(kernels::GroupedAttentionForward{shape, cut(of.query, i), cut(of.key, i), cut(of.value, i),
                                                          logSums.back(), outputs.back(), earlier(i)});
            QVERIFY(distance(outputs.back(), pieceOf(expected.output, 2, pieces, i)) < tolerance);
        }
        std::vector<float> owed(shape.sequenceGradient(), NAN);
        for (int i = pieces; i-- > 0;) {
            std::vector<float> dq(shape.queries(), NAN), dk(shape.keys(), NAN), dv(shape.values(), NAN),
                dots(shape.numbers(), NAN);
            kernels::run(kernels::GroupedAttentionInputGrad{shape, cut(of.query, i), cut(of.key, i), cut(of.value, i),
                                                            logSums[std::size_t(i)], outputs[std::size_t(i)],
                                                            cut(of.outputGrad, i), dq, dk, dv, dots, earlier(i), owed});
            QVERIFY(distance(dq, pieceOf(grads.query, 2, pieces, i)) < 5 * tolerance);
            QVERIFY(distance(dk, pieceOf(grads.key, 2, pieces, i)) < 5 * tolerance);
            QVERIFY(distance(dv, pieceOf(grads.value, 2, pieces, i)) < 5 * tolerance);
        }
    }

    void hugeScoresStayFinite()
    {
        GroupedAttentionShape shape = attentionShape(1, 3, 1, 1, 1, 1, 0, true);
        const std::vector<float> q(3, 300), k{-300, 0, 300}, v{1, 2, 3};
        std::vector<float> logSums(3), y(3);
        kernels::run(kernels::GroupedAttentionForward{shape, q, k, v, logSums, y});
        QCOMPARE(y, std::vector<float>({1, 2, 3}));
    }
};

PIPEWRIGHT_TEST(TestGroupedAttention, NoApplication)
#include "tst_groupedattention.moc"
