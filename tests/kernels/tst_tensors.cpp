// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of kernels/tensors.h against double precision. Gradients are held to central differences of what they
// are the gradient of, so that nothing here repeats the formula that is checked.
#include "kernels/calls.h"
#include "kernels/numbers.h"
#include "kernels/tensors.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <numeric>
#include <set>

using namespace pipewright;
using kernels::TensorOperation;
using test::Values;

namespace {

using Sizes = std::vector<std::int64_t>;

struct Case {
    TensorOperation operation;
    Sizes sizes;
    std::vector<Values> in; ///< an empty one is left out
    Values expected;
    std::vector<std::int32_t> whole{}; ///< features, or choices
    Values start{};                    ///< what is added to; empty: what was there does not matter
};

constexpr std::int64_t rows = 7, columns = 5;

Values each(const Values& values, const std::function<double(double)>& function)
{
    Values result;
    for (const double value : values)
        result.push_back(function(value));
    return result;
}

/// Per row of `width` values.
Values byRow(const Values& values, std::int64_t width, const std::function<Values(const Values&)>& function)
{
    Values result;
    for (auto row = values.begin(); row != values.end(); row += width) {
        const Values found = function({row, row + width});
        result.insert(result.end(), found.begin(), found.end());
    }
    return result;
}

Values logOfSums(const Values& x, std::int64_t width)
{
    return byRow(x, width, [](const Values& row) {
        return Values{std::log(std::accumulate(row.begin(), row.end(), 0.0,
                                               [](double sum, double value) { return sum + std::exp(value); }))};
    });
}
Values softmax(const Values& x, std::int64_t width)
{
    return byRow(x, width, [width](const Values& row) {
        const double sum = logOfSums(row, width).front();
        return each(row, [sum](double value) { return std::exp(value - sum); });
    });
}
Values logSoftmax(const Values& x, std::int64_t width)
{
    return each(softmax(x, width), [](double value) { return std::log(value); });
}
double sigmoid(double x)
{
    return 1 / (1 + std::exp(-x));
}
Values product(const Values& a, const Values& b)
{
    Values result = a;
    std::transform(a.begin(), a.end(), b.begin(), result.begin(), std::multiplies<>());
    return result;
}
Values sum(const Values& a, const Values& b)
{
    Values result = a;
    std::transform(a.begin(), a.end(), b.begin(), result.begin(), std::plus<>());
    return result;
}
/// Of a function of `at`, where its result's gradient is `grad`.
Values gradientOf(const Values& at, const Values& grad, const std::function<Values(const Values&)>& function)
{
    return test::finiteDifferences(at, [&](const Values& x) { return test::dot(function(x), grad); });
}
Values sumsOfRows(const Values& x, std::int64_t width)
{
    return byRow(x, width, [](const Values& row) { return Values{std::accumulate(row.begin(), row.end(), 0.0)}; });
}

/// A mixture of experts: `groups` of tokens that share slots, called places here because moc takes the word for its
/// own.
struct Mixture {
    static constexpr std::int64_t groups = 2, tokens = 6, experts = 3, capacity = 2, width = 4, chosen = 2;
    static constexpr std::int64_t places = experts * capacity;
    static const Sizes& sizes()
    {
        static const Sizes all{groups, tokens, experts, capacity, width};
        return all;
    }
    /// Token by token its likeliest experts.
    static std::vector<std::int32_t> choices(const Values& likely)
    {
        std::vector<std::int32_t> all;
        for (std::int64_t token = 0; token < groups * tokens; ++token) {
            std::vector<std::int32_t> order(static_cast<std::size_t>(experts));
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
                return likely[std::size_t(token * experts + a)] > likely[std::size_t(token * experts + b)];
            });
            all.insert(all.end(), order.begin(), order.begin() + chosen);
        }
        return all;
    }
    /// These, while they have places left. The weights are probabilities · factor, or share it among a token's copies.
    static constexpr double factor = 0.5;
    static Values route(const Values& likely, const std::vector<std::int32_t>& choices, bool shared)
    {
        Values weights = routed(likely, choices);
        return shared ? sharedOut(weights) : each(weights, [](double weight) { return factor * weight; });
    }
    static Values sharedOut(Values weights)
    {
        for (std::size_t token = 0; token < std::size_t(groups * tokens); ++token) {
            const auto first = weights.begin() + std::ptrdiff_t(token * std::size_t(places));
            const double sum = std::accumulate(first, first + places, 0.0);
            std::for_each(first, first + places, [sum](double& weight) { weight *= sum > 0 ? factor / sum : 0; });
        }
        return weights;
    }
    static Values routed(const Values& likely, const std::vector<std::int32_t>& choices)
    {
        Values weights(std::size_t(groups * tokens * places), 0.0);
        for (std::int64_t group = 0; group < groups; ++group) {
            std::vector<std::int64_t> taken(std::size_t(experts), 0);
            for (std::int64_t token = group * tokens; token < (group + 1) * tokens; ++token) {
                for (std::int64_t k = 0; k < chosen; ++k) {
                    const std::int64_t expert = choices[std::size_t(token * chosen + k)];
                    if (auto& slot = taken[std::size_t(expert)]; slot < capacity)
                        weights[std::size_t(token * places + expert * capacity + slot++)] =
                            likely[std::size_t(token * experts + expert)];
                }
            }
        }
        return weights;
    }
    /// Calls visit(weight, number of the token, number of the slot) for all that is not 0.
    template<class Visit>
    static void forEach(const Values& weights, Visit visit)
    {
        for (std::int64_t token = 0; token < groups * tokens; ++token)
            for (std::int64_t slot = 0; slot < places; ++slot)
                if (const double weight = weights[std::size_t(token * places + slot)]; weight != 0)
                    visit(weight, token, token / tokens * places + slot);
    }
    static Values dispatch(const Values& weights, const Values& x)
    {
        Values result(std::size_t(groups * places * width), 0.0);
        forEach(weights, [&](double, std::int64_t token, std::int64_t slot) {
            for (std::int64_t i = 0; i < width; ++i)
                result[std::size_t(slot * width + i)] += x[std::size_t(token * width + i)];
        });
        return result;
    }
    static Values combine(const Values& weights, const Values& inSlots)
    {
        Values result(std::size_t(groups * tokens * width), 0.0);
        forEach(weights, [&](double weight, std::int64_t token, std::int64_t slot) {
            for (std::int64_t i = 0; i < width; ++i)
                result[std::size_t(token * width + i)] += weight * inSlots[std::size_t(slot * width + i)];
        });
        return result;
    }
};

void addElementwise(std::vector<Case>& cases)
{
    using enum TensorOperation;
    const Values x = test::someValues(rows * columns, 1), y = test::someValues(rows * columns, 2);
    const Values perColumn = test::someValues(columns, 3);
    const Sizes all{rows * columns};
    const auto relu = [](double value) { return std::max(value, 0.0); };
    const auto mapped = [](const std::function<double(double)>& function) {
        return [function](const Values& values) { return each(values, function); };
    };
    Values blocks(std::size_t(rows * 3), 0.5); // three values of every five, two apart from the next
    for (std::int64_t row = 0; row < rows; ++row)
        std::copy_n(x.begin() + row * columns, 2, blocks.begin() + row * 3);
    cases.push_back({CopyBlocks, {rows, 2, columns, 3}, {x}, blocks, {}, Values(blocks.size(), 0.5)});
    cases.push_back({Scale, all, {x}, each(x, [](double value) { return value / 2; })});
    cases.push_back({Add, all, {x, y}, sum(x, y)});
    cases.push_back({Multiply, all, {x, y}, product(x, y)});
    cases.push_back({Relu, all, {x}, each(x, relu)});
    cases.push_back({ReluGrad, all, {x, y}, gradientOf(x, y, mapped(relu))});
    cases.push_back({Sigmoid, all, {x}, each(x, sigmoid)});
    cases.push_back({FillFrom, all, {y}, Values(x.size(), y.front())});
    cases.push_back({ScaleBy, all, {x, y}, each(x, [&y](double value) { return value * y.front(); })});
    Values repeated, start = test::someValues(columns, 4), summed = start;
    for (std::int64_t i = 0; i < rows * columns; ++i) {
        repeated.push_back(x[std::size_t(i)] + perColumn[std::size_t(i % columns)]);
        summed[std::size_t(i % columns)] += x[std::size_t(i)];
    }
    cases.push_back({AddRepeated, {rows * columns, columns}, {x, perColumn}, repeated});
    cases.push_back({SumRepeated, {rows * columns, columns}, {x}, summed, {}, start});
    Values parts(4, 0.0);
    for (std::size_t i = 0; i < x.size(); ++i)
        parts[i % 4] += x[i];
    cases.push_back({SumParts, {rows * columns, 4}, {x}, parts});
}

void addRows(std::vector<Case>& cases)
{
    using enum TensorOperation;
    const Values x = test::someValues(rows * columns, 5, 4), y = test::someValues(rows * columns, 6);
    const Sizes both{rows, columns};
    cases.push_back({RowLogSum, both, {x}, logOfSums(x, columns)});
    cases.push_back({RowLogSum, {1, columns}, {Values(columns, 1e3)}, Values{1e3 + std::log(double(columns))}});
    cases.push_back({RowDot, both, {x, y}, sumsOfRows(product(x, y), columns)});
    cases.push_back({RowDot, both, {x, {}}, sumsOfRows(x, columns)});
    const auto soft = [](const Values& values) { return softmax(values, columns); };
    const auto logSoft = [](const Values& values) { return logSoftmax(values, columns); };
    cases.push_back({Softmax, both, {x, logOfSums(x, columns)}, soft(x)});
    cases.push_back(
        {SoftmaxGrad, both, {soft(x), y, sumsOfRows(product(soft(x), y), columns)}, gradientOf(x, y, soft)});
    cases.push_back({LogSoftmax, both, {x, logOfSums(x, columns)}, logSoft(x)});
    cases.push_back({LogSoftmaxGrad, both, {logSoft(x), y, sumsOfRows(y, columns)}, gradientOf(x, y, logSoft)});
}

void addTables(std::vector<Case>& cases)
{
    using enum TensorOperation;
    constexpr std::int64_t first = 4, held = 3, perRow = 2; // of a table of ten rows these are here
    const std::vector<std::int32_t> tokens = test::someTokens(rows, 10, 7);
    const Values table = test::someValues(held * columns, 8), grad = test::someValues(rows * columns, 9),
                 start = test::someValues(held * columns, 10);
    const auto lookUp = [&](const Values& values) {
        Values found;
        for (const std::int64_t token : tokens)
            for (std::int64_t i = 0; i < columns; ++i)
                found.push_back(
                    token >= first && token < first + held ? values[std::size_t((token - first) * columns + i)] : 0.0);
        return found;
    };
    const Values asked(tokens.begin(), tokens.end());
    cases.push_back({LookUp, {rows, columns, first, held}, {asked, table}, lookUp(table)});
    cases.push_back({LookUpGrad,
                     {rows, columns, first, held},
                     {asked, grad},
                     sum(start, gradientOf(table, grad, lookUp)),
                     {},
                     start});
    const std::vector<std::int32_t> features = test::someTokens(rows * perRow, held, 11);
    const auto bag = [&](const Values& values) {
        Values found(std::size_t(rows * columns), 0.0);
        for (std::size_t f = 0; f < features.size(); ++f)
            for (std::size_t i = 0; i < columns; ++i)
                found[f / perRow * columns + i] += values[std::size_t(features[f]) * columns + i] / 2;
        return found;
    };
    cases.push_back({FeatureBag, {rows, columns, perRow}, {table}, bag(table), features});
    cases.push_back(
        {FeatureBagGrad, {rows, columns, perRow}, {grad}, sum(start, gradientOf(table, grad, bag)), features, start});
}

void addMixtures(std::vector<Case>& cases)
{
    using enum TensorOperation;
    const Values scores = test::someValues(std::size_t(Mixture::groups * Mixture::tokens * Mixture::experts), 12, 2);
    const auto softmaxed = [](const Values& of) { return softmax(of, Mixture::experts); };
    const auto sigmoids = [](const Values& of) { return each(of, sigmoid); };
    const auto rounded = [](const Values& of) { return each(of, [](double value) { return double(float(value)); }); };
    const std::vector<std::int32_t> choices = Mixture::choices(scores);
    const Values softmaxes = rounded(softmaxed(scores)), alone = rounded(sigmoids(scores));
    const Values weights = Mixture::route(softmaxes, choices, true), weightGrad = test::someValues(weights.size(), 13);
    const Values x = test::someValues(std::size_t(Mixture::groups * Mixture::tokens * Mixture::width), 14),
                 places = test::someValues(std::size_t(Mixture::groups * Mixture::places * Mixture::width), 15);
    // And where others are chosen than the likeliest.
    std::vector<std::int32_t> others = choices;
    for (std::int32_t& expert : others)
        expert = (expert + 1) % std::int32_t(Mixture::experts);
    for (const int weighting : {0, 1, 2, 3}) {
        const bool shared = weighting % 2 == 1, ofSigmoids = weighting >= 2;
        const Values& likely = ofSigmoids ? alone : softmaxes;
        Sizes routing = Mixture::sizes();
        routing.resize(6);
        routing[4] = Mixture::chosen;
        routing[5] = weighting;
        const Values of = Mixture::route(likely, choices, shared);
        cases.push_back({Route, routing, {likely}, of, choices, Values(of.size(), 0.0)});
        cases.push_back(
            {Route, routing, {likely}, Mixture::route(likely, others, shared), others, Values(of.size(), 0.0)});
        // Which experts were chosen, and have room, stays: only the weights follow the scores.
        cases.push_back(
            {RouteGrad, routing, {of, likely, weightGrad}, gradientOf(scores, weightGrad, [&](const Values& now) {
                 const Values p = ofSigmoids ? sigmoids(now) : softmaxed(now);
                 Values found(of.size(), 0.0);
                 for (std::size_t i = 0; i < of.size(); ++i)
                     if (of[i] != 0)
                         found[i] = p[i / std::size_t(Mixture::capacity)];
                 return shared ? Mixture::sharedOut(found)
                               : each(found, [](double weight) { return Mixture::factor * weight; });
             })});
    }
    Values visits(scores.size(), 0.0);
    for (std::size_t i = 0; i < weights.size(); ++i)
        if (weights[i] != 0)
            visits[i / std::size_t(Mixture::capacity)] = 1;
    cases.push_back({Visits, Mixture::sizes(), {weights}, visits});
    const auto dispatched = [&](const Values& of) { return Mixture::dispatch(weights, of); };
    const auto combined = [&](const Values& of) { return Mixture::combine(weights, of); };
    cases.push_back({Dispatch, Mixture::sizes(), {weights, x}, dispatched(x)});
    cases.push_back({DispatchGrad, Mixture::sizes(), {weights, places}, gradientOf(x, places, dispatched)});
    cases.push_back({Combine, Mixture::sizes(), {weights, places}, combined(places)});
    cases.push_back({CombineSlotsGrad, Mixture::sizes(), {weights, x}, gradientOf(places, x, combined)});
    Values ofWeights = gradientOf(weights, x, [&](const Values& of) { return Mixture::combine(of, places); });
    for (std::size_t i = 0; i < weights.size(); ++i) // a slot that was not taken has no weight to change
        if (weights[i] == 0)
            ofWeights[i] = 0;
    cases.push_back({CombineWeightsGrad, Mixture::sizes(), {weights, x, places}, ofWeights});
}

std::vector<Case> allCases()
{
    std::vector<Case> cases;
    addElementwise(cases);
    addRows(cases);
    addTables(cases);
    addMixtures(cases);
    return cases;
}

} // namespace

class TestTensors : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void operationsAreThoseOfDoublePrecision()
    {
        std::set<TensorOperation> seen{TensorOperation::WholeNumbers}; // below
        for (const Case& one : allCases()) {
            std::vector<std::vector<float>> in;
            for (const Values& values : one.in)
                in.push_back(test::single(values));
            std::vector<std::int32_t> whole = one.whole;
            std::vector<float> scratch(std::size_t(Mixture::groups * Mixture::experts), 0.0f);
            std::vector<float> out =
                one.start.empty() ? std::vector<float>(one.expected.size(), NAN) : test::single(one.start);
            kernels::TensorCall call{};
            call.operation = one.operation;
            call.number = 0.5f;
            std::copy(one.sizes.begin(), one.sizes.end(), call.size);
            for (std::size_t i = 0; i < in.size(); ++i)
                call.in[i] = in[i].empty() ? nullptr : in[i].data();
            call.out = out.data();
            call.scratch = scratch.data();
            call.whole = whole.data();
            kernels::run(call);
            const double off = test::distance(out, one.expected);
            QVERIFY2(off < 2e-6, qPrintable(QString("operation %1: %2").arg(int(one.operation)).arg(off)));
            seen.insert(one.operation);
        }
        QCOMPARE(std::int32_t(seen.size()), kernels::tensorOperationCount); // a new one wants its reference
    }

    void aTokenWithoutAChoiceHasNoPlace()
    {
        std::vector<std::int32_t> choices{-1, -1, 2, -1}; // the second token has a place

        std::vector<float> p{0.5f, 0.3f, 0.2f, 0.1f, 0.1f, 0.8f}, weights(6, 0.0f), taken(3, 0.0f);
        kernels::TensorCall place{};
        place.operation = TensorOperation::Route;
        const Sizes sizes{1, 2, 3, 1, 2};
        std::copy(sizes.begin(), sizes.end(), place.size);
        place.in[0] = p.data();
        place.out = weights.data();
        place.scratch = taken.data();
        place.whole = choices.data();
        place.number = 1;
        kernels::run(place);
        QCOMPARE(weights, (std::vector<float>{0, 0, 0, 0, 0, 0.8f})); // times 1
    }

    void wholeNumbersAreThoseOfTheFloats()
    {
        const std::vector<float> values{0, 7, 50256, 3};
        std::vector<std::int32_t> whole(values.size());
        kernels::TensorCall call{};
        call.operation = TensorOperation::WholeNumbers;
        call.size[0] = std::int64_t(values.size());
        call.in[0] = values.data();
        call.whole = whole.data();
        kernels::run(call);
        QCOMPARE(whole, std::vector<std::int32_t>({0, 7, 50256, 3}));
    }
};

PIPEWRIGHT_TEST(TestTensors, NoApplication)
#include "tst_tensors.moc"
