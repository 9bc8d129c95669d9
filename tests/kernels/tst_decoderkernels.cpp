// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of today's decoders: fp64 references against finite differences and published numbers, host kernels
// against the references, at sizes that leave odd tails.
#include "kernels/calls.h"
#include "kernels/reference/decoder.h"
#include "numbers.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using kernels::ActivationKind;
using kernels::GroupedAttentionShape;
using kernels::Store;
using test::distance;
using test::dot;
using test::finiteDifferences;
using test::single;
using test::someValues;
using test::Values;

namespace {

constexpr double tolerance = 2e-6, slopes = 1e-8;
constexpr ActivationKind kinds[] = {ActivationKind::GeluTanh, ActivationKind::Gelu, ActivationKind::Silu};

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

class TestDecoderKernels : public QObject {
    Q_OBJECT
private slots:
    void rmsNormIsWhatItsReferenceSaysAndThatIsRight_data()
    {
        QTest::addColumn<int>("columns");
        for (const int columns : {1, 5, 16, 37, 128})
            QTest::addRow("%d columns", columns) << columns;
    }
    void rmsNormIsWhatItsReferenceSaysAndThatIsRight()
    {
        QFETCH(int, columns);
        const int rows = 7;
        const double epsilon = 1e-2f; // large enough to be seen
        const Values x = someValues(rows * columns, 1), gamma = someValues(columns, 2),
                     dy = someValues(rows * columns, 3);
        const auto loss = [&](const Values& x, const Values& gamma) {
            return dot(reference::rmsNormForward(rows, columns, epsilon, x, gamma), dy);
        };
        const Values dx = reference::rmsNormInputGrad(rows, columns, epsilon, x, gamma, dy);
        const Values dGamma = reference::rmsNormWeightGrad(rows, columns, epsilon, x, dy);
        QVERIFY(distance(dx, finiteDifferences(x, [&](auto& v) { return loss(v, gamma); })) < 10 * slopes);
        QVERIFY(distance(dGamma, finiteDifferences(gamma, [&](auto& v) { return loss(x, v); })) < slopes);

        std::vector<float> y(x.size(), NAN), added(x.size(), 0.25f), replaced = single(dy), gammaGrad(columns, 0.5f);
        kernels::run(kernels::RmsNormForward{rows, columns, float(epsilon), single(x), single(gamma), y});
        kernels::run(kernels::RmsNormWeightGrad{rows, columns, float(epsilon), single(x), single(dy), gammaGrad});
        kernels::run(kernels::RmsNormInputGrad{rows, columns, float(epsilon), single(x), single(gamma), single(dy),
                                               added, Store::Add});
        kernels::run(kernels::RmsNormInputGrad{rows, columns, float(epsilon), single(x), single(gamma), replaced,
                                               replaced, Store::Replace}); // in place
        Values expectedSum = dx, expectedGamma = dGamma;
        for (double& value : expectedSum)
            value += 0.25;
        for (double& value : expectedGamma)
            value += 0.5;
        QVERIFY(distance(y, reference::rmsNormForward(rows, columns, epsilon, x, gamma)) < tolerance);
        QVERIFY(distance(added, expectedSum) < tolerance);
        QVERIFY(distance(replaced, dx) < 10 * tolerance);
        QVERIFY(distance(gammaGrad, expectedGamma) < tolerance);
    }

    void rotaryFrequenciesAreThePublishedOnes()
    {
        using kernels::RotaryScaling;
        const kernels::RotaryFrequencies llama{500'000, RotaryScaling::Llama3, 8, 1, 4, 8192};
        const kernels::RotaryFrequencies plain{500'000, RotaryScaling::None, 1, 1, 4, 0};
        // Short waves stay, long ones are eight times as long, between 2,048 and 8,192 tokens both have a share.
        QCOMPARE(kernels::rotaryFrequency(llama, 0, 128), 1.0);
        QCOMPARE(kernels::rotaryFrequency(llama, 10, 128), kernels::rotaryFrequency(plain, 10, 128));
        QCOMPARE(kernels::rotaryFrequency(llama, 63, 128), kernels::rotaryFrequency(plain, 63, 128) / 8);
        const double wave = kernels::rotaryFrequency(plain, 30, 128);
        const double turns = 8192 * wave / (2 * std::numbers::pi), kept = (turns - 1) / 3;
        QVERIFY(kept > 0 && kept < 1);
        QCOMPARE(kernels::rotaryFrequency(llama, 30, 128), wave * (kept + (1 - kept) / 8));
        // DeepSeek-V3: pairs 10 to 23 of 32 are blended (beta_fast 32, beta_slow 1, 4,096 tokens, base 10,000).
        const kernels::RotaryFrequencies yarn{10'000, RotaryScaling::Yarn, 40, 1, 32, 4096};
        const kernels::RotaryFrequencies base{10'000, RotaryScaling::None, 1, 1, 32, 4096};
        QCOMPARE(kernels::rotaryFrequency(yarn, 10, 64), kernels::rotaryFrequency(base, 10, 64));
        QCOMPARE(kernels::rotaryFrequency(yarn, 23, 64), kernels::rotaryFrequency(base, 23, 64) / 40);
        const double eleventh = kernels::rotaryFrequency(base, 11, 64);
        QVERIFY(kernels::rotaryFrequency(yarn, 11, 64) < eleventh);
        QVERIFY(kernels::rotaryFrequency(yarn, 11, 64) > eleventh / 40);
    }

    void turningIsWhatItsReferenceSaysAndTurnsBack_data()
    {
        QTest::addColumn<bool>("neighbours");
        QTest::addColumn<int>("first");
        QTest::newRow("halves") << false << 0;
        QTest::newRow("halves of a later piece") << false << 1000;
        QTest::newRow("neighbours") << true << 3;
    }
    void turningIsWhatItsReferenceSaysAndTurnsBack()
    {
        QFETCH(bool, neighbours);
        QFETCH(int, first);
        const int length = 5, heads = 3, headSize = 11, offset = 3, size = 6;
        const Values x = someValues(2 * length * heads * headSize, 1);
        std::vector<float> turned = single(x);
        kernels::Rotate call{{10'000, kernels::RotaryScaling::None, 1, 1, 4, 0},
                             length,
                             first,
                             heads,
                             headSize,
                             offset,
                             size,
                             neighbours,
                             false,
                             turned};
        const Values expected = reference::rotate(call, x);
        kernels::run(call);
        QVERIFY(distance(turned, expected) < tolerance);
        QVERIFY(turned != single(x));
        call.backwards = true;
        kernels::run(call);
        QVERIFY(distance(turned, x) < tolerance);
    }

    void productsOfTurnedValuesDependOnTheirDistance()
    {
        const Values q = someValues(8, 1), k = someValues(8, 2);
        const auto productAt = [&](int query, int key) {
            std::vector<float> none;
            const auto turned = [&](const Values& x, int position) {
                return reference::rotate(
                    {{10'000, kernels::RotaryScaling::None, 1, 1, 4, 0}, 1, position, 1, 8, 0, 8, false, false, none},
                    x);
            };
            return dot(turned(q, query), turned(k, key));
        };
        QVERIFY(std::abs(productAt(7, 3) - productAt(104, 100)) < 1e-10);
        QVERIFY(std::abs(productAt(7, 3) - productAt(8, 3)) > 1e-3);
    }

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
                < slopes);
        QVERIFY(distance(grads.key, finiteDifferences(of.key, [&](auto& x) { return loss(of.query, x, of.value); }))
                < slopes);
        QVERIFY(distance(grads.value, finiteDifferences(of.value, [&](auto& x) { return loss(of.query, of.key, x); }))
                < slopes);
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
        const GroupedAttentionShape whole = attentionShape(2, length * pieces, 4, 2, 6, 4, window, true);
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

    void activationsAreWhatTheirReferenceSaysAndThatIsRight()
    {
        for (const ActivationKind kind : kinds)
            for (const std::size_t count : {9u, 15u, 64u, 1003u}) {
                const Values x = someValues(count, 1, 8), dy = someValues(count, 2), factor = someValues(count, 3);
                const Values value = reference::activationForward(kind, x);
                const Values slope = reference::activationInputGrad(kind, x, dy);
                QVERIFY(distance(slope, finiteDifferences(
                                            x, [&](auto& v) { return dot(reference::activationForward(kind, v), dy); }))
                        < 10 * slopes);
                std::vector<float> y(count, NAN), dx = single(dy);
                kernels::run(kernels::ActivationForward{kind, single(x), y});
                kernels::run(kernels::ActivationInputGrad{kind, single(x), dx, dx}); // in place
                QVERIFY(distance(y, value) < tolerance);
                QVERIFY(distance(dx, slope) < tolerance);

                Values gated = value, gateGrad = slope, factorGrad = value;
                for (std::size_t i = 0; i < count; ++i) {
                    gated[i] *= factor[i];
                    gateGrad[i] *= factor[i];
                    factorGrad[i] *= dy[i];
                }
                std::vector<float> both(count, NAN), dGate = single(dy), dFactor(count, NAN);
                kernels::run(kernels::GatedForward{kind, single(x), single(factor), both});
                kernels::run(kernels::GatedInputGrad{kind, single(x), single(factor), dGate, dGate, dFactor});
                QVERIFY(distance(both, gated) < tolerance);
                QVERIFY(distance(dGate, gateGrad) < tolerance);
                QVERIFY(distance(dFactor, factorGrad) < tolerance);
            }
    }

    void keysAreJoinedAndTheirGradientsSplit()
    {
        const kernels::LatentKeys shape{2, 3, 2};
        const std::vector<float> own{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, shared{20, 21, 22, 23};
        std::vector<float> keys(20, NAN), ownGrad(12, NAN), sharedGrad(4, NAN);
        kernels::run(kernels::JoinKeys{shape, own, shared, keys});
        QCOMPARE(keys, std::vector<float>({1, 2, 3, 20, 21, 4, 5, 6, 20, 21, 7, 8, 9, 22, 23, 10, 11, 12, 22, 23}));
        kernels::run(kernels::SplitKeysGrad{shape, keys, ownGrad, sharedGrad});
        QCOMPARE(ownGrad, own);
        QCOMPARE(sharedGrad, std::vector<float>({40, 42, 44, 46})); // of both heads
    }

    void routingIsWhatItsReferenceSays_data()
    {
        QTest::addColumn<int>("groups");
        QTest::addColumn<int>("groupsPerToken");
        QTest::addColumn<bool>("sigmoid");
        QTest::addColumn<bool>("normalised");
        QTest::newRow("Mixtral") << 1 << 1 << false << true;
        QTest::newRow("as it comes") << 1 << 1 << false << false;
        QTest::newRow("DeepSeek") << 4 << 2 << true << true;
    }
    void routingIsWhatItsReferenceSays()
    {
        QFETCH(int, groups);
        QFETCH(int, groupsPerToken);
        QFETCH(bool, sigmoid);
        QFETCH(bool, normalised);
        const int tokens = 23, experts = 8, each = 3, width = 5, copies = tokens * each;
        const kernels::Router router{experts,
                                     each,
                                     groups,
                                     groupsPerToken,
                                     sigmoid ? kernels::RouterKind::Sigmoid : kernels::RouterKind::Softmax,
                                     normalised,
                                     1.5f};
        const Values logits = someValues(tokens * experts, 1, 2),
                     correction = sigmoid ? someValues(experts, 2, 0.3) : Values(),
                     outputs = someValues(copies * width, 3), dy = someValues(tokens * width, 4);
        std::vector<float> p = single(logits), weight(copies, NAN), logitsGrad(logits.size(), NAN);
        std::vector<std::int32_t> choice(copies, -1), row(copies, -1), begin(experts + 1, -1);
        kernels::run(kernels::RouteTokens{router, single(correction), p, choice, row, weight, begin});

        Values weights;
        std::vector<int> chosen(experts);
        for (int t = 0; t < tokens; ++t) {
            const Values own(logits.begin() + t * experts, logits.begin() + (t + 1) * experts);
            const reference::Routing expected = reference::routeToken(router, correction, own);
            for (int k = 0; k < each; ++k) {
                QCOMPARE(choice[t * each + k], expected.choice[k]);
                ++chosen[expected.choice[k]];
            }
            weights.insert(weights.end(), expected.weight.begin(), expected.weight.end());
        }
        QVERIFY(distance(weight, weights) < tolerance);
        // Every copy has a row of its own among its expert's, in the order of the tokens.
        std::vector<int> next(begin.begin(), begin.end() - 1);
        for (int e = 0; e < experts; ++e)
            QCOMPARE(begin[e + 1] - begin[e], chosen[e]);
        for (int copy = 0; copy < copies; ++copy)
            QCOMPARE(row[copy], next[choice[copy]]++);

        // The gradient of sum over copies of weight · (dy · output), with the choice as it is.
        const auto loss = [&](const Values& at) {
            double sum = 0;
            for (int t = 0; t < tokens; ++t) {
                const reference::Routing of = reference::routeToken(
                    router, correction, Values(at.begin() + t * experts, at.begin() + (t + 1) * experts));
                for (int k = 0; k < each; ++k)
                    for (int i = 0; i < width; ++i)
                        sum += of.weight[k] * dy[t * width + i] * outputs[row[t * each + k] * width + i];
            }
            return sum;
        };
        kernels::run(kernels::RouteTokensGrad{router, width, p, choice, row, single(dy), single(outputs), logitsGrad});
        QVERIFY(distance(logitsGrad, finiteDifferences(logits, loss)) < 5 * tolerance);
    }

    void copiesGoToTheirExpertsAndBack()
    {
        const int tokens = 4, each = 2, width = 3;
        const std::vector<std::int32_t> row{5, 0, 1, 7, 2, 3, 6, 4};
        const auto x = single(someValues(tokens * width, 1)), weight = single(someValues(tokens * each, 2));
        std::vector<float> plain(row.size() * width, NAN), weighed(plain.size(), NAN), sum(x.size(), NAN), added = x;
        kernels::run(kernels::CopyToExperts{each, width, row, {}, x, plain});
        kernels::run(kernels::CopyToExperts{each, width, row, weight, x, weighed});
        for (std::size_t copy = 0; copy < row.size(); ++copy)
            for (int i = 0; i < width; ++i) {
                const float value = x[copy / each * width + i];
                QCOMPARE(plain[std::size_t(row[copy]) * width + i], value);
                QCOMPARE(weighed[std::size_t(row[copy]) * width + i], weight[copy] * value);
            }
        kernels::run(kernels::SumOfExperts{each, width, row, weight, plain, sum, Store::Replace});
        kernels::run(kernels::SumOfExperts{each, width, row, {}, plain, added, Store::Add});
        for (int t = 0; t < tokens; ++t)
            for (int i = 0; i < width; ++i) {
                const int at = t * width + i;
                QVERIFY(std::abs(sum[at] - (weight[t * 2] + weight[t * 2 + 1]) * x[at]) < 1e-6f);
                QVERIFY(std::abs(added[at] - 3 * x[at]) < 1e-6f);
            }
    }

    void everyExpertHasItsOwnLinearLayer()
    {
        // The second has no rows; between their weights lies something else.
        const kernels::ExpertsShape shape{3, 4, 2, 11};
        const std::vector<std::int32_t> begin{0, 2, 2, 5};
        const Values x = someValues(5 * 4, 1), w = someValues(2 * 11 + 8, 2), dy = someValues(5 * 2, 3);
        std::vector<float> y(10, NAN), dx(20, NAN), added(20, 0.5f), dw(w.size(), 0.25f);
        kernels::run(kernels::ExpertsForward{shape, begin, single(x), single(w), y});
        kernels::run(kernels::ExpertsInputGrad{shape, begin, single(dy), single(w), dx, Store::Replace});
        kernels::run(kernels::ExpertsInputGrad{shape, begin, single(dy), single(w), added, Store::Add});
        kernels::run(kernels::ExpertsWeightGrad{shape, begin, single(x), single(dy), dw});
        Values expectedY, expectedDx, expectedDw(w.size(), 0.25);
        for (const int e : {0, 2}) {
            const int rows = begin[e + 1] - begin[e];
            const auto part = [&](const Values& all, int width) {
                return Values(all.begin() + begin[e] * width, all.begin() + begin[e + 1] * width);
            };
            const Values weight(w.begin() + e * 11, w.begin() + e * 11 + 8);
            const kernels::LinearShape one{rows, 4, 2};
            const Values ofY = reference::linearForward(one, part(x, 4), weight, {});
            const Values ofX = reference::linearInputGrad(one, part(dy, 2), weight);
            const Values ofW = reference::linearWeightGrad(one, part(x, 4), part(dy, 2)).weight;
            expectedY.insert(expectedY.end(), ofY.begin(), ofY.end());
            expectedDx.insert(expectedDx.end(), ofX.begin(), ofX.end());
            for (int i = 0; i < 8; ++i)
                expectedDw[e * 11 + i] += ofW[i];
        }
        QVERIFY(distance(y, expectedY) < tolerance);
        QVERIFY(distance(dx, expectedDx) < tolerance);
        QVERIFY(distance(dw, expectedDw) < tolerance);
        for (double& value : expectedDx)
            value += 0.5;
        QVERIFY(distance(added, expectedDx) < tolerance);
    }

    void anInputGradientIsAddedWhenAsked()
    {
        const kernels::LinearShape shape{5, 6, 7};
        const Values dy = someValues(35, 1), w = someValues(42, 2), before = someValues(30, 3);
        Values expected = reference::linearInputGrad(shape, dy, w);
        for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] += before[i];
        std::vector<float> dx = single(before);
        kernels::run(kernels::LinearInputGrad{shape, single(dy), single(w), dx, Store::Add});
        QVERIFY(distance(dx, expected) < tolerance);
    }

    void anEmbeddingWithoutPositionsIsItsTable()
    {
        const int hidden = 5, vocabulary = 7;
        const auto tokens = test::someTokens(9, vocabulary, 1);
        const Values table = someValues(vocabulary * hidden, 2), none(3 * hidden), dy = someValues(9 * hidden, 3);
        std::vector<float> y(9 * hidden, NAN), grad(table.size());
        kernels::run(kernels::EmbeddingForward{3, hidden, tokens, single(table), {}, y});
        kernels::run(kernels::EmbeddingWeightGrad{3, hidden, tokens, single(dy), grad, {}});
        QVERIFY(distance(y, reference::embeddingForward(3, hidden, tokens, table, none)) < tolerance);
        QVERIFY(distance(grad, reference::embeddingWeightGrad(3, hidden, vocabulary, tokens, dy).weight) < tolerance);
    }
};

PIPEWRIGHT_TEST(TestDecoderKernels, NoApplication)
#include "tst_decoderkernels.moc"
