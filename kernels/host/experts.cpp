// SPDX-License-Identifier: GPL-3.0-or-later
// Token by token, and one product per expert that has rows. O(tokens · experts · perToken) in addition to the products.
#include "kernels/calls.h"

#include "kernels/host/gemm.h"
#include "kernels/host/simd.h"
#include "kernels/host/softmax.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <vector>

namespace pipewright::kernels {
namespace {

constexpr float none = -std::numeric_limits<float>::infinity();

/// The scores by which a token chooses its experts.
struct Choice {
    const Router& router;
    std::span<const float> correction;
    const float* probabilities; ///< of one token, per expert

    float scoreOf(int expert) const
    {
        return probabilities[expert] + (correction.empty() ? 0.0f : correction[std::size_t(expert)]);
    }
    /// The sum of the group's two best scores.
    float scoreOfGroup(int group) const
    {
        const int size = router.experts / router.groups;
        float best = none, second = none;
        for (int e = group * size; e < (group + 1) * size; ++e) {
            const float score = scoreOf(e);
            if (score > best) {
                second = best;
                best = score;
            } else if (score > second) {
                second = score;
            }
        }
        return size > 1 ? best + second : best;
    }
    /// Whether fewer than `groupsPerToken` groups are better; between equal groups the first is better.
    bool isOpen(int group) const
    {
        const float own = scoreOfGroup(group);
        int better = 0;
        for (int other = 0; other < router.groups; ++other)
            if (const float score = scoreOfGroup(other); score > own || (score == own && other < group))
                ++better;
        return better < router.groupsPerToken;
    }
};

void choose(const Choice& by, std::span<std::int32_t> choice)
{
    const Router& router = by.router;
    std::fill(choice.begin(), choice.end(), -1);
    const int size = router.experts / router.groups;
    for (int group = 0; group < router.groups; ++group) {
        if (router.groups > 1 && !by.isOpen(group))
            continue;
        for (int e = group * size; e < (group + 1) * size; ++e) { // into the list, best first
            const float score = by.scoreOf(e);
            auto place = std::find_if(choice.begin(), choice.end(),
                                      [&](std::int32_t other) { return other < 0 || by.scoreOf(other) < score; });
            if (place == choice.end())
                continue;
            std::copy_backward(place, choice.end() - 1, choice.end());
            *place = e;
        }
    }
}

PIPEWRIGHT_VECTOR_CLONES
void sigmoidRow(std::size_t count, float* row)
{
    for (std::size_t i = 0; i < count; ++i)
        row[i] = 1.0f / (1.0f + exponential(-row[i]));
}

PIPEWRIGHT_VECTOR_CLONES
float dotOfRows(std::size_t count, const float* a, const float* b)
{
    return sumInLanes(count, [=](std::size_t i) { return a[i] * b[i]; });
}

PIPEWRIGHT_VECTOR_CLONES
void addScaledRow(std::size_t count, float factor, const float* from, float* to)
{
    for (std::size_t i = 0; i < count; ++i)
        to[i] += factor * from[i];
}

float sumOfChosen(std::span<const std::int32_t> choice, const float* probabilities)
{
    float sum = 0;
    for (const std::int32_t expert : choice)
        sum += probabilities[expert];
    return sum;
}

} // namespace

void run(const RouteTokens& call)
{
    const Router& router = call.router;
    const auto experts = std::size_t(router.experts), each = std::size_t(router.perToken);
    const std::size_t tokens = call.logitsToProbabilities.size() / experts;
    assert(call.choice.size() == tokens * each && call.row.size() == tokens * each);
    assert(call.weight.size() == tokens * each && call.begin.size() == experts + 1);
    assert(call.given.empty() || call.given.size() == call.choice.size());
    assert(router.perToken <= router.experts / router.groups * router.groupsPerToken);
    std::fill(call.begin.begin(), call.begin.end(), 0);
    for (std::size_t token = 0; token < tokens; ++token) {
        float* p = call.logitsToProbabilities.data() + token * experts;
        switch (router.kind) {
        case RouterKind::Softmax: softmaxRow(experts, 1, p); break;
        case RouterKind::Sigmoid: sigmoidRow(experts, p); break;
        }
        const std::span<std::int32_t> choice = call.choice.subspan(token * each, each);
        if (call.given.empty())
            choose({router, call.correction, p}, choice);
        else
            std::copy_n(call.given.data() + token * each, each, choice.data());
        const float share = router.normalised ? router.scale / sumOfChosen(choice, p) : router.scale;
        for (std::size_t k = 0; k < each; ++k) {
            call.weight[token * each + k] = share * p[choice[k]];
            ++call.begin[std::size_t(choice[k]) + 1];
        }
    }
    for (std::size_t e = 0; e < experts; ++e)
        call.begin[e + 1] += call.begin[e];
    // Each copy takes the next row of its expert. That moves begin on by one expert, so it is shifted back afterwards.
    for (std::size_t copy = 0; copy < call.choice.size(); ++copy)
        call.row[copy] = call.begin[std::size_t(call.choice[copy])]++;
    std::copy_backward(call.begin.begin(), call.begin.end() - 1, call.begin.end());
    call.begin[0] = 0;
}

bool couldChoose(const Router& router, std::span<const float> correction, std::span<const float> probabilities,
                 std::span<const std::int32_t> choice, float tolerance)
{
    std::vector<float> scores(probabilities.begin(), probabilities.end());
    for (float& score : scores)
        score -= tolerance;
    for (const std::int32_t expert : choice) {
        if (expert < 0 || expert >= router.experts)
            return false;
        scores[std::size_t(expert)] = probabilities[std::size_t(expert)] + tolerance;
    }
    std::vector<std::int32_t> made(choice.size());
    choose({router, correction, scores.data()}, made);
    return std::is_permutation(made.begin(), made.end(), choice.begin());
}

void run(const RouteTokensGrad& call)
{
    const Router& router = call.router;
    const auto experts = std::size_t(router.experts), each = std::size_t(router.perToken),
               width = std::size_t(call.width);
    const std::size_t tokens = call.probabilities.size() / experts;
    assert(call.balance == 0 || (router.kind == RouterKind::Softmax && call.begin.size() == experts + 1));
    assert(call.logitsGrad.size() == tokens * experts && call.outputGrad.size() == tokens * width);
    for (std::size_t token = 0; token < tokens; ++token) {
        const float* p = call.probabilities.data() + token * experts;
        float* grad = call.logitsGrad.data() + token * experts;
        const std::span<const std::int32_t> choice = call.choice.subspan(token * each, each);
        std::fill_n(grad, experts, 0.0f);
        // First the gradients of the chosen probabilities …
        const float sum = router.normalised ? sumOfChosen(choice, p) : 1.0f;
        float shared = 0;
        for (std::size_t k = 0; k < each; ++k) {
            const float ofWeight = dotOfRows(width, &call.outputGrad[token * width],
                                             &call.expertOutput[std::size_t(call.row[token * each + k]) * width]);
            grad[choice[k]] = router.scale / sum * ofWeight;
            shared += ofWeight * p[choice[k]];
        }
        if (router.normalised)
            for (const std::int32_t expert : choice)
                grad[expert] -= router.scale / (sum * sum) * shared;
        // … then those of the logits.
        switch (router.kind) {
        case RouterKind::Softmax: {
            float weighted = 0;
            if (call.balance != 0)
                for (std::size_t e = 0; e < experts; ++e)
                    grad[e] += call.balance * float(call.begin[e + 1] - call.begin[e]);
            for (std::size_t e = 0; e < experts; ++e)
                weighted += p[e] * grad[e];
            for (std::size_t e = 0; e < experts; ++e)
                grad[e] = p[e] * (grad[e] - weighted);
            break;
        }
        case RouterKind::Sigmoid:
            for (std::size_t e = 0; e < experts; ++e)
                grad[e] *= p[e] * (1.0f - p[e]);
            break;
        }
    }
}

void run(const CountCopies& call)
{
    assert(call.begin.size() == call.counts.size() + 1);
    for (std::size_t e = 0; e < call.counts.size(); ++e)
        call.counts[e] += float(call.begin[e + 1] - call.begin[e]);
}

void run(const BalanceStep& call)
{
    assert(call.counts.size() == call.values.size());
    double sum = 0; // a sum of whole numbers, hence exact
    for (const float count : call.counts)
        sum += double(count);
    const double mean = sum / double(call.counts.size());
    for (std::size_t e = 0; e < call.values.size(); ++e)
        call.values[e] += double(call.counts[e]) < mean ? call.rate : double(call.counts[e]) > mean ? -call.rate : 0.0f;
}

void run(const CopyToExperts& call)
{
    const auto width = std::size_t(call.width), each = std::size_t(call.perToken);
    assert(call.output.size() == call.row.size() * width && call.input.size() * each == call.output.size());
    assert(call.weight.empty() || call.weight.size() == call.row.size());
    for (std::size_t copy = 0; copy < call.row.size(); ++copy) {
        const float* from = call.input.data() + copy / each * width;
        float* to = call.output.data() + std::size_t(call.row[copy]) * width;
        if (call.weight.empty())
            std::copy_n(from, width, to);
        else
            for (std::size_t i = 0; i < width; ++i)
                to[i] = call.weight[copy] * from[i];
    }
}

void run(const SumOfExperts& call)
{
    const auto width = std::size_t(call.width), each = std::size_t(call.perToken);
    assert(call.input.size() == call.row.size() * width && call.output.size() * each == call.input.size());
    if (call.store == Store::Replace)
        std::fill(call.output.begin(), call.output.end(), 0.0f);
    for (std::size_t copy = 0; copy < call.row.size(); ++copy)
        addScaledRow(width, call.weight.empty() ? 1.0f : call.weight[copy],
                     call.input.data() + std::size_t(call.row[copy]) * width, call.output.data() + copy / each * width);
}

namespace {

/// Visits the experts that have rows: visit(rows, first row, offset of the weight, expert).
template<class Visit>
void forEachExpert(const ExpertsShape& shape, std::span<const std::int32_t> begin, Visit visit)
{
    for (int e = 0; e < shape.experts; ++e)
        if (const int rows = begin[std::size_t(e) + 1] - begin[std::size_t(e)]; rows > 0)
            visit(rows, std::size_t(begin[std::size_t(e)]), std::size_t(e) * std::size_t(shape.stride), std::size_t(e));
}

} // namespace

void run(const ExpertsForward& call)
{
    const int inputs = call.shape.inputs, outputs = call.shape.outputs;
    forEachExpert(call.shape, call.begin, [&](int rows, std::size_t first, std::size_t weight, std::size_t expert) {
        float* output = call.output.data() + first * std::size_t(outputs);
        if (!call.bias.empty())
            for (int row = 0; row < rows; ++row)
                std::copy_n(call.bias.data() + expert * std::size_t(call.biasStride), outputs,
                            output + std::size_t(row) * std::size_t(outputs));
        gemm(rows, outputs, inputs, 1, {call.input.data() + first * std::size_t(inputs), inputs},
             {call.weight.data() + weight, inputs, true}, call.bias.empty() ? 0.0f : 1.0f, output, outputs);
    });
}

void run(const ExpertsInputGrad& call)
{
    const int inputs = call.shape.inputs, outputs = call.shape.outputs;
    forEachExpert(call.shape, call.begin, [&](int rows, std::size_t first, std::size_t weight, std::size_t) {
        gemm(rows, inputs, outputs, 1, {call.outputGrad.data() + first * std::size_t(outputs), outputs},
             {call.weight.data() + weight, inputs}, call.store == Store::Add ? 1.0f : 0.0f,
             call.inputGrad.data() + first * std::size_t(inputs), inputs);
    });
}

void run(const ExpertsWeightGrad& call)
{
    const int inputs = call.shape.inputs, outputs = call.shape.outputs;
    forEachExpert(call.shape, call.begin, [&](int rows, std::size_t first, std::size_t weight, std::size_t expert) {
        gemm(outputs, inputs, rows, 1, {call.outputGrad.data() + first * std::size_t(outputs), outputs, true},
             {call.input.data() + first * std::size_t(inputs), inputs}, 1, call.weightGrad.data() + weight, inputs);
        if (!call.biasGrad.empty())
            for (int row = 0; row < rows; ++row)
                addScaledRow(std::size_t(outputs), 1,
                             call.outputGrad.data() + (first + std::size_t(row)) * std::size_t(outputs),
                             call.biasGrad.data() + expert * std::size_t(call.biasStride));
    });
}

} // namespace pipewright::kernels
