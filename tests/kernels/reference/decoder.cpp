// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/reference/decoder.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

namespace pipewright::reference {

namespace {

double inverseRms(const double* row, int columns, double epsilon)
{
    double squares = 0;
    for (int i = 0; i < columns; ++i)
        squares += row[i] * row[i];
    return 1 / std::sqrt(squares / columns + epsilon);
}

} // namespace

Values rmsNormForward(int rows, int columns, double epsilon, const Values& input, const Values& gamma)
{
    Values output(input.size());
    for (int row = 0; row < rows; ++row) {
        const double scale = inverseRms(&input[row * columns], columns, epsilon);
        for (int i = 0; i < columns; ++i)
            output[row * columns + i] = gamma[i] * input[row * columns + i] * scale;
    }
    return output;
}

Values rmsNormInputGrad(int rows, int columns, double epsilon, const Values& input, const Values& gamma,
                        const Values& outputGrad)
{
    Values inputGrad(input.size());
    for (int row = 0; row < rows; ++row) {
        const int first = row * columns;
        const double scale = inverseRms(&input[first], columns, epsilon);
        double product = 0;
        for (int i = 0; i < columns; ++i)
            product += outputGrad[first + i] * gamma[i] * input[first + i];
        for (int i = 0; i < columns; ++i)
            inputGrad[first + i] =
                scale * outputGrad[first + i] * gamma[i] - input[first + i] * scale * scale * scale * product / columns;
    }
    return inputGrad;
}

Values rmsNormWeightGrad(int rows, int columns, double epsilon, const Values& input, const Values& outputGrad)
{
    Values gammaGrad(columns);
    for (int row = 0; row < rows; ++row) {
        const double scale = inverseRms(&input[row * columns], columns, epsilon);
        for (int i = 0; i < columns; ++i)
            gammaGrad[i] += outputGrad[row * columns + i] * input[row * columns + i] * scale;
    }
    return gammaGrad;
}

Values rotate(const kernels::Rotate& call, const Values& values)
{
    Values result = values;
    const int row = call.heads * call.headSize, pairs = call.size / 2;
    for (int token = 0; token < int(values.size()) / row; ++token)
        for (int head = 0; head < call.heads; ++head)
            for (int i = 0; i < pairs; ++i) {
                const int at = token * row + head * call.headSize + call.offset;
                const int first = at + (call.neighbours ? 2 * i : i), second = first + (call.neighbours ? 1 : pairs);
                const double angle = (call.first + token % call.length)
                                     * kernels::rotaryFrequency(call.frequencies, i, call.size)
                                     * (call.backwards ? -1 : 1);
                result[first] = values[first] * std::cos(angle) - values[second] * std::sin(angle);
                result[second] = values[second] * std::cos(angle) + values[first] * std::sin(angle);
            }
    return result;
}

namespace {

/// Visits every query of every head: rows and columns of its query, its keys and values.
struct QueryPlace {
    int query, output, number; ///< where they begin
    int first, last;           ///< keys that it looks at, as tokens
    int keyColumn, valueColumn, head;
    int token;
};

template<class Visit>
void forEachQuery(const GroupedAttentionShape& shape, Visit visit)
{
    for (int sequence = 0; sequence < shape.sequences; ++sequence)
        for (int head = 0; head < shape.heads; ++head)
            for (int q = 0; q < shape.length; ++q) {
                const int begin = sequence * shape.length, token = begin + q;
                const int shared = head / (shape.heads / shape.keyValueHeads);
                const int last = shape.causal ? token : begin + shape.length - 1;
                const int first = shape.causal && shape.window > 0 ? std::max(begin, token - shape.window + 1) : begin;
                visit(QueryPlace{(token * shape.heads + head) * shape.querySize,
                                 (token * shape.heads + head) * shape.valueSize,
                                 (sequence * shape.heads + head) * shape.length + q, first, last,
                                 shared * shape.querySize, shared * shape.valueSize, head, token});
            }
}

/// As the authors of ALiBi make them: a sequence for the largest power of two of heads, then every second of the next.
double biasSlope(int heads, int head)
{
    const double whole = std::exp2(std::floor(std::log2(double(heads))));
    const auto sequence = [](double count, double index) { return std::pow(std::exp2(-8 / count), index + 1); };
    return head < whole ? sequence(whole, head) : sequence(2 * whole, 2 * (head - whole));
}

/// The probabilities of the keys; `slopes` receives the derivative of the cap at each score.
Values probabilitiesOf(const GroupedAttentionShape& shape, const QueryPlace& at, const Values& query, const Values& key,
                       const Values& sinks, double* logSum, Values* slopes = nullptr)
{
    Values p;
    double sum = sinks.empty() ? 0 : std::exp(sinks[at.head]);
    for (int k = at.first; k <= at.last; ++k) {
        double dot = 0;
        for (int i = 0; i < shape.querySize; ++i)
            dot += query[at.query + i] * key[k * shape.keyValueHeads * shape.querySize + at.keyColumn + i];
        double score = double(shape.scale) * dot, slope = 1;
        if (shape.softCap > 0) {
            const double bent = std::tanh(score / double(shape.softCap));
            score = double(shape.softCap) * bent;
            slope = 1 - bent * bent;
        }
        if (shape.biasedHeads > 0)
            score -= biasSlope(shape.biasedHeads, shape.firstHead + at.head) * (at.token - k);
        if (slopes)
            slopes->push_back(slope);
        sum += p.emplace_back(std::exp(score));
    }
    for (double& share : p)
        share /= sum;
    *logSum = std::log(sum);
    return p;
}

} // namespace

GroupedAttention groupedAttentionForward(const GroupedAttentionShape& shape, const Values& query, const Values& key,
                                         const Values& value, const Values& sinks)
{
    GroupedAttention result{Values(shape.numbers()), Values(shape.outputs())};
    forEachQuery(shape, [&](const QueryPlace& at) {
        const Values p = probabilitiesOf(shape, at, query, key, sinks, &result.logSums[at.number]);
        for (int k = at.first; k <= at.last; ++k)
            for (int i = 0; i < shape.valueSize; ++i)
                result.output[at.output + i] +=
                    p[k - at.first] * value[k * shape.keyValueHeads * shape.valueSize + at.valueColumn + i];
    });
    return result;
}

GroupedAttentionGrads groupedAttentionInputGrad(const GroupedAttentionShape& shape, const Values& query,
                                                const Values& key, const Values& value, const Values& outputGrad,
                                                const Values& sinks)
{
    GroupedAttentionGrads grads{Values(query.size()), Values(key.size()), Values(value.size()), Values(sinks.size())};
    forEachQuery(shape, [&](const QueryPlace& at) {
        double logSum = 0, weighted = 0;
        Values slopes;
        const Values p = probabilitiesOf(shape, at, query, key, sinks, &logSum, &slopes);
        Values probabilityGrad(p.size());
        for (int k = at.first; k <= at.last; ++k) {
            const int v = k * shape.keyValueHeads * shape.valueSize + at.valueColumn;
            for (int i = 0; i < shape.valueSize; ++i) {
                probabilityGrad[k - at.first] += outputGrad[at.output + i] * value[v + i];
                grads.value[v + i] += p[k - at.first] * outputGrad[at.output + i];
            }
            weighted += p[k - at.first] * probabilityGrad[k - at.first];
        }
        if (!sinks.empty())
            grads.sinks[at.head] -= std::exp(sinks[at.head] - logSum) * weighted;
        for (int k = at.first; k <= at.last; ++k) {
            const int row = k * shape.keyValueHeads * shape.querySize + at.keyColumn;
            const double grad = double(shape.scale) * slopes[k - at.first] * p[k - at.first]
                                * (probabilityGrad[k - at.first] - weighted);
            for (int i = 0; i < shape.querySize; ++i) {
                grads.query[at.query + i] += grad * key[row + i];
                grads.key[row + i] += grad * query[at.query + i];
            }
        }
    });
    return grads;
}

Values activationForward(ActivationKind kind, const Values& input)
{
    switch (kind) {
    case ActivationKind::GeluTanh: return geluForward(input);
    case ActivationKind::Gelu:
    case ActivationKind::Silu:
    case ActivationKind::Tanh: break;
    case ActivationKind::ClampedSilu: std::abort(); // only defined with a factor
    }
    Values output;
    for (const double x : input)
        output.push_back(kind == ActivationKind::Gelu   ? x / 2 * (1 + std::erf(x / std::numbers::sqrt2))
                         : kind == ActivationKind::Silu ? x / (1 + std::exp(-x))
                                                        : std::tanh(x));
    return output;
}

Values activationInputGrad(ActivationKind kind, const Values& input, const Values& outputGrad)
{
    switch (kind) {
    case ActivationKind::GeluTanh: return geluInputGrad(input, outputGrad);
    case ActivationKind::Gelu:
    case ActivationKind::Silu:
    case ActivationKind::Tanh: break;
    case ActivationKind::ClampedSilu: std::abort();
    }
    Values inputGrad;
    for (std::size_t i = 0; i < input.size(); ++i) {
        const double x = input[i], s = 1 / (1 + std::exp(-x));
        const double ofGelu =
            (1 + std::erf(x / std::numbers::sqrt2)) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
        const double ofTanh = 1 - std::tanh(x) * std::tanh(x);
        inputGrad.push_back(outputGrad[i]
                            * (kind == ActivationKind::Gelu   ? ofGelu
                               : kind == ActivationKind::Silu ? s + x * s * (1 - s)
                                                              : ofTanh));
    }
    return inputGrad;
}

Values gatedForward(ActivationKind kind, const Values& gate, const Values& factor)
{
    Values output;
    if (kind == ActivationKind::ClampedSilu) {
        for (std::size_t i = 0; i < gate.size(); ++i) {
            const double g = std::min(gate[i], 7.0), u = std::clamp(factor[i], -7.0, 7.0);
            output.push_back(g / (1 + std::exp(-double(1.702f) * g)) * (1 + u));
        }
        return output;
    }
    output = activationForward(kind, gate);
    for (std::size_t i = 0; i < gate.size(); ++i)
        output[i] *= factor[i];
    return output;
}

Values softCap(double cap, const Values& values)
{
    Values result;
    for (const double value : values)
        result.push_back(cap * std::tanh(value / cap));
    return result;
}

Values softCapGrad(double cap, const Values& capped, const Values& grad)
{
    Values result;
    for (std::size_t i = 0; i < grad.size(); ++i)
        result.push_back(grad[i] * (1 - capped[i] * capped[i] / (cap * cap)));
    return result;
}

Routing routeToken(const kernels::Router& router, const Values& correction, const Values& logits)
{
    Values probabilities, score;
    double sum = 0;
    for (const double logit : logits)
        sum += std::exp(logit);
    for (std::size_t e = 0; e < logits.size(); ++e) {
        probabilities.push_back(router.kind == kernels::RouterKind::Softmax ? std::exp(logits[e]) / sum
                                                                            : 1 / (1 + std::exp(-logits[e])));
        score.push_back(probabilities[e] + (correction.empty() ? 0 : correction[e]));
    }
    const int size = router.experts / router.groups;
    std::vector<std::pair<double, int>> groups; // the better ones first
    for (int g = 0; g < router.groups; ++g) {
        Values of(score.begin() + g * size, score.begin() + (g + 1) * size);
        std::sort(of.rbegin(), of.rend());
        groups.emplace_back(-(of[0] + (size > 1 ? of[1] : 0)), g);
    }
    std::sort(groups.begin(), groups.end());
    std::vector<std::pair<double, int>> experts;
    for (int i = 0; i < router.groupsPerToken; ++i)
        for (int e = groups[i].second * size; e < (groups[i].second + 1) * size; ++e)
            experts.emplace_back(-score[e], e);
    std::sort(experts.begin(), experts.end());
    Routing result;
    double chosen = 0;
    for (int k = 0; k < router.perToken; ++k) {
        result.choice.push_back(experts[k].second);
        result.weight.push_back(probabilities[experts[k].second]);
        chosen += result.weight.back();
    }
    for (double& weight : result.weight)
        weight *= double(router.scale) / (router.normalised ? chosen : 1);
    return result;
}

} // namespace pipewright::reference
