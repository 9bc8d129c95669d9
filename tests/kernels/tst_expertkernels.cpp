// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of experts and of latent attention: fp64 references against finite differences, host kernels against
// the references.
#include "kernels/calls.h"
#include "kernels/reference/decoder.h"
#include "numbers.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using kernels::Store;
using test::distance;
using test::finiteDifferences;
using test::single;
using test::someValues;
using test::tolerance;
using test::Values;

class TestExpertKernels : public QObject {
    Q_OBJECT

private Q_SLOTS:
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

    /// A choice is followed, and is one of the router where scores that are a little off lead to it.
    void aGivenChoiceIsFollowedAndJudged()
    {
        const kernels::Router router{4, 2};
        std::vector<float> p{std::log(0.4f), std::log(0.3f), std::log(0.29f), std::log(0.01f)}, weight(2, NAN);
        std::vector<std::int32_t> choice(2, -1), row(2, -1), begin(5, -1);
        const std::vector<std::int32_t> given{2, 0};
        kernels::run(kernels::RouteTokens{router, {}, p, choice, row, weight, begin, given});
        QCOMPARE(choice, given);
        QVERIFY(std::abs(weight[0] - 0.29f / 0.69f) < 1e-6f && std::abs(weight[1] - 0.4f / 0.69f) < 1e-6f);
        QCOMPARE(begin, std::vector<std::int32_t>({0, 1, 1, 2, 2}));
        QVERIFY(kernels::couldChoose(router, {}, p, given, 0.006f)); // 0.3 and 0.29 meet
        QVERIFY(!kernels::couldChoose(router, {}, p, given, 0.004f));
        QVERIFY(kernels::couldChoose(router, {}, p, std::vector<std::int32_t>{1, 0}, 0)); // its own, in any order
        QVERIFY(!kernels::couldChoose(router, {}, p, std::vector<std::int32_t>{0, 3}, 0.1f));
        QVERIFY(!kernels::couldChoose(router, {}, p, std::vector<std::int32_t>{0, 0}, 1)); // no two of one
        QVERIFY(!kernels::couldChoose(router, {}, p, std::vector<std::int32_t>{0, 4}, 1)); // there is none
        const std::vector<float> correction{0, 0, 0.02f, 0};
        QVERIFY(kernels::couldChoose(router, correction, p, given, 0));
        // Groups of two: the second one's scores sum to 0.3, the first one's to 0.7.
        const kernels::Router grouped{4, 1, 2, 1};
        QVERIFY(!kernels::couldChoose(grouped, {}, p, std::vector<std::int32_t>{2}, 0.15f));
        QVERIFY(kernels::couldChoose(grouped, {}, p, std::vector<std::int32_t>{2}, 0.25f));
    }

    void theChoiceIsCorrectedTowardsWhoIsVisitedTooSeldom()
    {
        const std::vector<std::int32_t> begin{0, 2, 2, 8, 10};
        std::vector<float> counts{1, 0, 0, 0}, values{0.5f, 0.5f, 0.5f, 0.5f};
        kernels::run(kernels::CountCopies{begin, counts});
        QCOMPARE(counts, (std::vector<float>{3, 0, 6, 2}));
        counts[0] = 2.75f; // exactly the mean of 2.75, 0, 6 and 2.25
        counts[3] = 2.25f;
        kernels::run(kernels::BalanceStep{0.125f, counts, values});
        QCOMPARE(values, (std::vector<float>{0.5f, 0.625f, 0.375f, 0.625f}));
    }

    void aLoadBalancingTermHasItsSlope()
    {
        const int tokens = 7, experts = 5;
        const kernels::Router router{experts, 2};
        const Values logits = someValues(tokens * experts, 1, 2);
        std::vector<float> p = single(logits), weight(tokens * 2), none(tokens * experts, NAN), with = none;
        std::vector<std::int32_t> choice(tokens * 2), row(tokens * 2), begin(experts + 1);
        kernels::run(kernels::RouteTokens{router, {}, p, choice, row, weight, begin});
        const std::vector<float> dy(tokens, 1), outputs(tokens * 2, 0.5f);
        kernels::run(kernels::RouteTokensGrad{router, 1, p, choice, row, dy, outputs, none});
        kernels::run(kernels::RouteTokensGrad{router, 1, p, choice, row, dy, outputs, with, 0.25f, begin});
        const auto term = [&](const Values& at) {
            double sum = 0;
            for (int t = 0; t < tokens; ++t) {
                double all = 0;
                for (int e = 0; e < experts; ++e)
                    all += std::exp(at[t * experts + e]);
                for (int e = 0; e < experts; ++e)
                    sum += 0.25 * (begin[e + 1] - begin[e]) * std::exp(at[t * experts + e]) / all;
            }
            return sum;
        };
        std::vector<float> difference(with);
        for (std::size_t i = 0; i < with.size(); ++i)
            difference[i] -= none[i];
        QVERIFY(distance(difference, finiteDifferences(logits, term)) < 10 * tolerance);
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
        const Values b = someValues(3 * 3, 4); // the stride is longer than a bias
        std::vector<float> biased(10, NAN), db(9, 0.25f), unused(w.size());
        kernels::run(kernels::ExpertsForward{shape, begin, single(x), single(w), biased, single(b), 3});
        kernels::run(kernels::ExpertsWeightGrad{shape, begin, single(x), single(dy), unused, db, 3});
        Values expectedDb(9, 0.25);
        for (const int e : {0, 2})
            for (int r = begin[e]; r < begin[e + 1]; ++r)
                for (int i = 0; i < 2; ++i) {
                    QVERIFY(std::abs(biased[r * 2 + i] - y[r * 2 + i] - b[e * 3 + i]) < 1e-6);
                    expectedDb[e * 3 + i] += dy[r * 2 + i];
                }
        QVERIFY(distance(db, expectedDb) < tolerance);
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
};

PIPEWRIGHT_TEST(TestExpertKernels, NoApplication)
#include "tst_expertkernels.moc"
