// SPDX-License-Identifier: GPL-3.0-or-later
// The GPU's kernels of mixtures of experts against their references: who is chosen, where copies lie, the linear layers
// of all experts, and the gradients.
#pragma once

#include "gpu/decoderchecks.h"

namespace pipewright::test {

inline void checkRouting(const char* name, const kernels::Router& router, int tokens, float balance,
                         bool gradients = true)
{
    namespace gpu = kernels::cuda;
    const int experts = router.experts, each = router.perToken, width = 37, copies = tokens * each;
    const bool sigmoid = router.kind == kernels::RouterKind::Sigmoid;
    const Values logits = someValues(std::size_t(tokens) * experts, 1, 2),
                 correction = sigmoid ? someValues(experts, 2, 0.3) : Values(),
                 outputs = someValues(std::size_t(copies) * width, 3), dy = someValues(std::size_t(tokens) * width, 4);
    Values weights, numbers; // choices, rows, begins
    Values begin(std::size_t(experts) + 1);
    const auto routed = [&](const Values& at, int token) {
        return reference::routeToken(router, correction,
                                     Values(at.begin() + token * experts, at.begin() + (token + 1) * experts));
    };
    for (int token = 0; token < tokens; ++token) {
        const reference::Routing of = routed(logits, token);
        weights.insert(weights.end(), of.weight.begin(), of.weight.end());
        for (const int expert : of.choice) {
            numbers.push_back(expert);
            ++begin[std::size_t(expert) + 1];
        }
    }
    for (std::size_t e = 1; e < begin.size(); ++e)
        begin[e] += begin[e - 1];
    Values next = begin, rows;
    for (int copy = 0; copy < copies; ++copy)
        rows.push_back(next[std::size_t(numbers[std::size_t(copy)])]++);
    numbers = joined({numbers, rows, begin});

    Floats p(single(logits)), weight(copies), adjusted(single(correction)), grads(single(dy)),
        ofExperts(single(outputs));
    Memory<std::int32_t> choice(copies), row(copies), begins(std::size_t(experts) + 1);
    const auto route = [&](Floats& probabilities) {
        gpu::run({}, kernels::RouteTokens{router, sigmoid ? adjusted.span() : std::span<float>(), probabilities.span(),
                                          choice.span(), row.span(), weight.span(), begins.span()});
    };
    route(p);
    check(std::string("routing, ") + name, numbers, 0, [&] {
        Floats again(single(logits));
        route(again);
        std::vector<float> all;
        for (const Memory<std::int32_t>* part : {&choice, &row, &begins})
            for (const std::int32_t number : part->read())
                all.push_back(float(number));
        return all;
    });
    check(std::string("weights of experts, ") + name, weights, sumError, [&] { return weight.read(); });
    std::vector<std::int32_t> turned = choice.read(); // the last of a token first
    for (int token = 0; token < tokens; ++token)
        std::reverse(turned.begin() + token * each, turned.begin() + (token + 1) * each);
    check(std::string("choices that are given, ") + name, Values(turned.begin(), turned.end()), 0, [&] {
        Floats again(single(logits)), otherWeight(copies);
        Memory<std::int32_t> given(turned), made(copies), otherRow(copies), otherBegins(begins.read().size());
        gpu::run({},
                 kernels::RouteTokens{router, sigmoid ? adjusted.span() : std::span<float>(), again.span(), made.span(),
                                      otherRow.span(), otherWeight.span(), otherBegins.span(), given.span()});
        std::vector<float> all;
        for (const std::int32_t expert : made.read())
            all.push_back(float(expert));
        return all;
    });
    if (!gradients)
        return;
    const auto loss = [&](const Values& at) {
        double sum = 0;
        for (int token = 0; token < tokens; ++token) {
            const reference::Routing of = routed(at, token);
            for (int k = 0; k < each; ++k) {
                const auto from = std::size_t(rows[std::size_t(token * each + k)]) * std::size_t(width);
                for (std::size_t i = 0; i < std::size_t(width); ++i)
                    sum += of.weight[std::size_t(k)] * dy[std::size_t(token) * width + i] * outputs[from + i];
            }
            double all = 0;
            for (int e = 0; balance != 0 && e < experts; ++e)
                all += std::exp(at[std::size_t(token * experts + e)]);
            for (int e = 0; balance != 0 && e < experts; ++e)
                sum += balance * (begin[std::size_t(e) + 1] - begin[std::size_t(e)])
                       * std::exp(at[std::size_t(token * experts + e)]) / all;
        }
        return sum;
    };
    check(std::string("router grad, ") + name, finiteDifferences(logits, loss), sumError, [&] {
        Floats grad(std::vector<float>(logits.size(), NAN));
        gpu::run({}, kernels::RouteTokensGrad{router, width, p.span(), choice.span(), row.span(), grads.span(),
                                              ofExperts.span(), grad.span(), balance, begins.span()});
        return grad.read();
    });
}

inline void checkCopies()
{
    namespace gpu = kernels::cuda;
    const int each = 2, width = 3;
    const std::vector<std::int32_t> rows{5, 0, 1, 7, 2, 3, 6, 4};
    const Values x = someValues(4 * width, 1), w = someValues(rows.size(), 2);
    Values plainCopies(rows.size() * width), weighed(plainCopies.size()), sum(x.size()), added = x;
    for (std::size_t copy = 0; copy < rows.size(); ++copy)
        for (std::size_t i = 0; i < width; ++i) {
            const std::size_t from = copy / each * width + i, to = std::size_t(rows[copy]) * width + i;
            plainCopies[to] = x[from];
            weighed[to] = w[copy] * x[from];
            sum[from] += w[copy] * x[from];
            added[from] += x[from];
        }
    Memory<std::int32_t> row(rows);
    Floats input(single(x)), weight(single(w));
    check("copies to experts, and back", joined({plainCopies, weighed, sum, added}), elementError, [&] {
        Floats copies(plainCopies.size()), withWeights(weighed.size()), back(x.size()), onTop(single(x));
        gpu::run({}, kernels::CopyToExperts{each, width, row.span(), {}, input.span(), copies.span()});
        gpu::run({}, kernels::CopyToExperts{each, width, row.span(), weight.span(), input.span(), withWeights.span()});
        gpu::run({}, kernels::SumOfExperts{each, width, row.span(), weight.span(), copies.span(), back.span(),
                                           Store::Replace});
        gpu::run({}, kernels::SumOfExperts{each, width, row.span(), {}, copies.span(), onTop.span(), Store::Add});
        return readAll({&copies, &withWeights, &back, &onTop});
    });
    check("correction of the choice", {3, 0, 6, 2, 0.5, 0.625, 0.375, 0.625}, elementError, [&] {
        Memory<std::int32_t> begin(std::vector<std::int32_t>{0, 2, 2, 8, 10});
        Floats counts(std::vector<float>{1, 0, 0, 0}), values(std::vector<float>(4, 0.5f)),
            exact(std::vector<float>{2.75f, 0, 6, 2.25f}); // the first is exactly the mean
        gpu::run({}, kernels::CountCopies{begin.span(), counts.span()});
        gpu::run({}, kernels::BalanceStep{0.125f, exact.span(), values.span()});
        return readAll({&counts, &values});
    });
}

/// Experts of no, few and many rows, with other values between their weights.
/// On tensor cores values are what bf16 can hold, and where they are stored as bf16 nobody looks at another copy.
enum class ExpertFactors { Fp32, HeldByBf16, StoredAsBf16 };

inline void checkExpertProducts(const std::string& name, ExpertFactors kind, int inputs, int outputs)
{
    namespace gpu = kernels::cuda;
    const int experts = 4;
    const bool bf16 = kind != ExpertFactors::Fp32, stored = kind == ExpertFactors::StoredAsBf16;
    const std::int64_t stride = inputs * outputs + 7, biasStride = outputs + 3;
    const std::vector<std::int32_t> begins{0, 3, 3, small ? 73 : 203, small ? 80 : 300};
    const auto rows = std::size_t(begins.back());
    const Values x = valuesFor(bf16, someValues(rows * std::size_t(inputs), 1)),
                 w = valuesFor(bf16, someValues(std::size_t(experts * stride), 2)),
                 b = someValues(std::size_t(experts * biasStride), 3),
                 dy = valuesFor(bf16, someValues(rows * std::size_t(outputs), 4));
    Values plainOutputs, biased, inputGrads, weightGrads(w.size(), 0.25), biasGrads(b.size(), 0.25);
    for (int e = 0; e < experts; ++e) {
        const auto part = [&](const Values& all, int width) {
            return Values(all.begin() + begins[std::size_t(e)] * width,
                          all.begin() + begins[std::size_t(e) + 1] * width);
        };
        const auto from = [](const Values& all, std::int64_t at, int count) {
            return Values(all.begin() + at, all.begin() + at + count);
        };
        const kernels::LinearShape one{begins[std::size_t(e) + 1] - begins[std::size_t(e)], inputs, outputs};
        const Values weight = from(w, e * stride, inputs * outputs), bias = from(b, e * biasStride, outputs);
        plainOutputs = joined({plainOutputs, reference::linearForward(one, part(x, inputs), weight, {})});
        biased = joined({biased, reference::linearForward(one, part(x, inputs), weight, bias)});
        inputGrads = joined({inputGrads, reference::linearInputGrad(one, part(dy, outputs), weight)});
        const auto grads = reference::linearWeightGrad(one, part(x, inputs), part(dy, outputs));
        for (int i = 0; i < inputs * outputs; ++i)
            weightGrads[std::size_t(e * stride + i)] += grads.weight[std::size_t(i)];
        for (int i = 0; i < outputs; ++i)
            biasGrads[std::size_t(e * biasStride + i)] += grads.bias[std::size_t(i)];
    }
    const kernels::ExpertsShape shape{experts, inputs, outputs, stride};
    Memory<std::int32_t> begin(begins);
    const auto floats = [&](const Values& of) { return stored ? std::vector<float>(of.size(), NAN) : single(of); };
    Floats input(floats(x)), weight(floats(w)), bias(single(b)), grad(floats(dy)), wideGrad(single(dy));
    Memory<std::uint16_t> storedInput(Bf16Values(x).patterns), storedWeight(Bf16Values(w).patterns),
        storedGrad(Bf16Values(dy).patterns);
    const auto factors = [&](Memory<std::uint16_t>& left, Memory<std::uint16_t>& right) {
        return stored ? kernels::Bf16Factors{true, left.span().data(), right.span().data()}
                      : kernels::Bf16Factors{.exact = bf16};
    };
    check("experts forward, " + name, joined({plainOutputs, biased}), sumError, [&] {
        Floats y(dy.size()), withBias(dy.size());
        gpu::run(
            {},
            kernels::ExpertsForward{
                shape, begin.span(), input.span(), weight.span(), y.span(), {}, 0, factors(storedInput, storedWeight)});
        gpu::run({}, kernels::ExpertsForward{shape, begin.span(), input.span(), weight.span(), withBias.span(),
                                             bias.span(), biasStride, factors(storedInput, storedWeight)});
        return readAll({&y, &withBias});
    });
    check("experts input grad, " + name, joined({inputGrads, plus(inputGrads, 0.5)}), sumError, [&] {
        Floats dx(x.size()), added(std::vector<float>(x.size(), 0.5f));
        gpu::run({}, kernels::ExpertsInputGrad{shape, begin.span(), grad.span(), weight.span(), dx.span(),
                                               Store::Replace, factors(storedGrad, storedWeight)});
        gpu::run({}, kernels::ExpertsInputGrad{shape, begin.span(), grad.span(), weight.span(), added.span(),
                                               Store::Add, factors(storedGrad, storedWeight)});
        return readAll({&dx, &added});
    });
    check("experts weight grad, " + name, joined({weightGrads, biasGrads}), sumError, [&] {
        Floats dw(std::vector<float>(w.size(), 0.25f)), db(std::vector<float>(b.size(), 0.25f));
        gpu::run({}, kernels::ExpertsWeightGrad{shape, begin.span(), input.span(), wideGrad.span(), dw.span(),
                                                db.span(), biasStride, factors(storedInput, storedGrad)});
        return readAll({&dw, &db});
    });
}

inline void checkExperts()
{
    using kernels::RouterKind;
    const int tokens = small ? 23 : 300;
    checkRouting("Mixtral", {8, 3, 1, 1, RouterKind::Softmax, true, 1.5f}, tokens, 0);
    checkRouting("balanced", {8, 3, 1, 1, RouterKind::Softmax, false, 1}, tokens, 0.01f);
    checkRouting("DeepSeek", {40, 3, 4, 2, RouterKind::Sigmoid, true, 1.5f}, tokens, 0);
    // So many groups that the best experts of some tokens are in none that counts, and of other warps than the first.
    checkRouting("many groups", {96, 3, 16, 2, RouterKind::Sigmoid, true, 1}, tokens, 0, false);
    // More than a block has threads, and for copies more than twice as many.
    checkRouting("many copies", {4, 3, 1, 1, RouterKind::Softmax, true, 1}, 200, 0, false);
    checkRouting("many experts", {260, 2, 1, 1, RouterKind::Softmax, true, 1}, 2, 0, false);
    checkCopies();
    checkExpertProducts("fp32", ExpertFactors::Fp32, 40, 70);
    if (!multipliesBf16())
        return;
    // With more terms than a slice, and more lines than a square.
    checkExpertProducts("bf16", ExpertFactors::HeldByBf16, 40, 70);
    checkExpertProducts("stored as bf16", ExpertFactors::StoredAsBf16, small ? 71 : 171, small ? 132 : 202);
}

} // namespace pipewright::test
