// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/reference/reference.h"

#include "kernels/layernorm.h"

#include <cmath>
#include <numbers>

namespace pipewright::reference {

Values linearForward(LinearShape shape, const Values& input, const Values& weight, const Values& bias)
{
    const auto [rows, inputs, outputs] = shape;
    Values output(std::size_t(rows) * outputs);
    for (int row = 0; row < rows; ++row)
        for (int out = 0; out < outputs; ++out) {
            double sum = bias.empty() ? 0 : bias[out];
            for (int in = 0; in < inputs; ++in)
                sum += input[row * inputs + in] * weight[out * inputs + in];
            output[row * outputs + out] = sum;
        }
    return output;
}

Values linearInputGrad(LinearShape shape, const Values& outputGrad, const Values& weight)
{
    const auto [rows, inputs, outputs] = shape;
    Values inputGrad(std::size_t(rows) * inputs);
    for (int row = 0; row < rows; ++row)
        for (int out = 0; out < outputs; ++out)
            for (int in = 0; in < inputs; ++in)
                inputGrad[row * inputs + in] += outputGrad[row * outputs + out] * weight[out * inputs + in];
    return inputGrad;
}

WeightGrads linearWeightGrad(LinearShape shape, const Values& input, const Values& outputGrad)
{
    const auto [rows, inputs, outputs] = shape;
    WeightGrads grads{Values(std::size_t(outputs) * inputs), Values(outputs)};
    for (int row = 0; row < rows; ++row)
        for (int out = 0; out < outputs; ++out) {
            for (int in = 0; in < inputs; ++in)
                grads.weight[out * inputs + in] += outputGrad[row * outputs + out] * input[row * inputs + in];
            grads.bias[out] += outputGrad[row * outputs + out];
        }
    return grads;
}

namespace {

struct Normalised {
    Values values;
    double scale = 0; ///< 1 / sqrt(variance + epsilon)
};

Normalised normalise(const double* row, int columns, double epsilon)
{
    double mean = 0, variance = 0;
    for (int i = 0; i < columns; ++i)
        mean += row[i] / columns;
    for (int i = 0; i < columns; ++i)
        variance += (row[i] - mean) * (row[i] - mean) / columns;
    Normalised result{Values(columns), 1 / std::sqrt(variance + epsilon)};
    for (int i = 0; i < columns; ++i)
        result.values[i] = (row[i] - mean) * result.scale;
    return result;
}

} // namespace

Values layerNormForward(int rows, int columns, const Values& input, const Values& gamma, const Values& beta,
                        double epsilon)
{
    Values output(input.size());
    for (int row = 0; row < rows; ++row) {
        const Normalised n = normalise(&input[row * columns], columns, epsilon);
        for (int i = 0; i < columns; ++i)
            output[row * columns + i] = gamma[i] * n.values[i] + beta[i];
    }
    return output;
}

Values layerNormInputGrad(int rows, int columns, const Values& input, const Values& gamma, const Values& outputGrad,
                          double epsilon)
{
    Values inputGrad(input.size());
    for (int row = 0; row < rows; ++row) {
        const Normalised n = normalise(&input[row * columns], columns, epsilon);
        double meanGrad = 0, meanProduct = 0;
        for (int i = 0; i < columns; ++i) {
            const double grad = outputGrad[row * columns + i] * gamma[i];
            meanGrad += grad / columns;
            meanProduct += grad * n.values[i] / columns;
        }
        for (int i = 0; i < columns; ++i) {
            const double grad = outputGrad[row * columns + i] * gamma[i];
            inputGrad[row * columns + i] = n.scale * (grad - meanGrad - n.values[i] * meanProduct);
        }
    }
    return inputGrad;
}

WeightGrads layerNormWeightGrad(int rows, int columns, const Values& input, const Values& outputGrad, double epsilon)
{
    WeightGrads grads{Values(columns), Values(columns)};
    for (int row = 0; row < rows; ++row) {
        const Normalised n = normalise(&input[row * columns], columns, epsilon);
        for (int i = 0; i < columns; ++i) {
            grads.weight[i] += outputGrad[row * columns + i] * n.values[i];
            grads.bias[i] += outputGrad[row * columns + i];
        }
    }
    return grads;
}

namespace {

/// Visits every (sequence, head): `scores` is where its probabilities start, `at` its first element in
/// a matrix of tokens x hidden, `at3` the query's in a matrix of tokens x 3 hidden.
template<class Visit>
void forEachHead(AttentionShape shape, Visit visit)
{
    const int hidden = shape.hidden();
    for (int sequence = 0; sequence < shape.sequences; ++sequence)
        for (int head = 0; head < shape.heads; ++head) {
            const int scores = (sequence * shape.heads + head) * shape.length * shape.length;
            const int row = sequence * shape.length, column = head * shape.headSize;
            visit(scores, row * hidden + column, row * 3 * hidden + column);
        }
}

} // namespace

Attention attentionForward(AttentionShape shape, const Values& query, const Values& key, const Values& value)
{
    const int hidden = shape.hidden(), length = shape.length;
    Attention result{Values(shape.scores()), Values(query.size())};
    forEachHead(shape, [&](int scores, int at, int) {
        for (int q = 0; q < length; ++q) {
            double sum = 0;
            for (int k = 0; k <= q; ++k) {
                double dot = 0;
                for (int i = 0; i < shape.headSize; ++i)
                    dot += query[at + q * hidden + i] * key[at + k * hidden + i];
                sum += result.probabilities[scores + q * length + k] = std::exp(dot / std::sqrt(shape.headSize));
            }
            for (int k = 0; k <= q; ++k) {
                const double p = result.probabilities[scores + q * length + k] /= sum;
                for (int i = 0; i < shape.headSize; ++i)
                    result.output[at + q * hidden + i] += p * value[at + k * hidden + i];
            }
        }
    });
    return result;
}

Values attentionInputGrad(AttentionShape shape, const Values& query, const Values& key, const Values& value,
                          const Values& probabilities, const Values& outputGrad)
{
    const int hidden = shape.hidden(), length = shape.length;
    Values grads(3 * query.size());
    forEachHead(shape, [&](int scores, int at, int at3) {
        for (int q = 0; q < length; ++q) {
            Values probabilityGrad(length);
            double weighted = 0; // sum over keys of p · dp
            for (int k = 0; k <= q; ++k) {
                const double p = probabilities[scores + q * length + k];
                for (int i = 0; i < shape.headSize; ++i) {
                    const double grad = outputGrad[at + q * hidden + i];
                    probabilityGrad[k] += grad * value[at + k * hidden + i];
                    grads[at3 + k * 3 * hidden + 2 * hidden + i] += p * grad;
                }
                weighted += p * probabilityGrad[k];
            }
            for (int k = 0; k <= q; ++k) {
                const double p = probabilities[scores + q * length + k];
                const double scoreGrad = p * (probabilityGrad[k] - weighted) / std::sqrt(shape.headSize);
                for (int i = 0; i < shape.headSize; ++i) {
                    grads[at3 + q * 3 * hidden + i] += scoreGrad * key[at + k * hidden + i];
                    grads[at3 + k * 3 * hidden + hidden + i] += scoreGrad * query[at + q * hidden + i];
                }
            }
        }
    });
    return grads;
}

Values fromBytes(Tokens bytes)
{
    Values result;
    for (const std::int32_t byte : bytes)
        result.push_back(byte / 127.5 - 1);
    return result;
}

Values geluForward(const Values& input)
{
    Values output;
    for (const double x : input)
        output.push_back(x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))));
    return output;
}

Values geluInputGrad(const Values& input, const Values& outputGrad)
{
    Values inputGrad;
    for (std::size_t i = 0; i < input.size(); ++i) {
        const double x = input[i], root = std::sqrt(2 / std::numbers::pi);
        const double t = std::tanh(root * (x + 0.044715 * x * x * x));
        const double slope = root * (1 + 3 * 0.044715 * x * x);
        inputGrad.push_back(outputGrad[i] * ((1 + t) / 2 + x / 2 * (1 - t * t) * slope));
    }
    return inputGrad;
}

Values embeddingForward(int length, int hidden, Tokens tokens, const Values& table, const Values& positions)
{
    Values output(tokens.size() * hidden);
    for (int t = 0; t < int(tokens.size()); ++t)
        for (int i = 0; i < hidden; ++i)
            output[t * hidden + i] = table[tokens[t] * hidden + i] + positions[t % length * hidden + i];
    return output;
}

WeightGrads embeddingWeightGrad(int length, int hidden, int vocabulary, Tokens tokens, const Values& outputGrad)
{
    WeightGrads grads{Values(std::size_t(vocabulary) * hidden), Values(std::size_t(length) * hidden)};
    for (int t = 0; t < int(tokens.size()); ++t)
        for (int i = 0; i < hidden; ++i) {
            grads.weight[tokens[t] * hidden + i] += outputGrad[t * hidden + i];
            grads.bias[t % length * hidden + i] += outputGrad[t * hidden + i];
        }
    return grads;
}

Values featureBagForward(int length, int hidden, Tokens features, const Values& table)
{
    Values output(features.size() / length * hidden);
    for (int f = 0; f < int(features.size()); ++f)
        for (int i = 0; i < hidden; ++i)
            output[f / length * hidden + i] += table[features[f] * hidden + i] / std::sqrt(double(length));
    return output;
}

Values featureBagWeightGrad(int length, int hidden, int rows, Tokens features, const Values& outputGrad)
{
    Values tableGrad(std::size_t(rows) * hidden);
    for (int f = 0; f < int(features.size()); ++f)
        for (int i = 0; i < hidden; ++i)
            tableGrad[features[f] * hidden + i] += outputGrad[f / length * hidden + i] / std::sqrt(double(length));
    return tableGrad;
}

CrossEntropy crossEntropyForward(int rows, int classes, const Values& logits, Tokens targets, double scale)
{
    CrossEntropy result{Values(logits.size()), 0};
    for (int row = 0; row < rows; ++row) {
        double sum = 0;
        for (int i = 0; i < classes; ++i)
            sum += result.probabilities[row * classes + i] = std::exp(logits[row * classes + i]);
        for (int i = 0; i < classes; ++i)
            result.probabilities[row * classes + i] /= sum;
        if (targets[row] >= 0)
            result.loss -= scale * std::log(result.probabilities[row * classes + targets[row]]);
    }
    return result;
}

Values crossEntropyInputGrad(int rows, int classes, const Values& probabilities, Tokens targets, double scale)
{
    Values logitsGrad(probabilities);
    for (int row = 0; row < rows; ++row) {
        if (targets[row] >= 0)
            logitsGrad[row * classes + targets[row]] -= 1;
        for (int i = 0; i < classes; ++i)
            logitsGrad[row * classes + i] *= targets[row] >= 0 ? scale : 0;
    }
    return logitsGrad;
}

void sgdMomentumStep(const kernels::SgdSettings& settings, Values& parameters, const Values& gradients,
                     Values& momentum)
{
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        momentum[i] = settings.momentum * momentum[i] + gradients[i];
        parameters[i] *= 1 - double(settings.learningRate) * settings.weightDecay;
        parameters[i] -= settings.learningRate * momentum[i];
    }
}

void adamWStep(const kernels::AdamWSettings& settings, int step, Values& parameters, const Values& gradients,
               Values& firstMoment, Values& secondMoment)
{
    const double beta1 = settings.beta1, beta2 = settings.beta2;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        firstMoment[i] = beta1 * firstMoment[i] + (1 - beta1) * gradients[i];
        secondMoment[i] = beta2 * secondMoment[i] + (1 - beta2) * gradients[i] * gradients[i];
        const double mean = firstMoment[i] / (1 - std::pow(beta1, step));
        const double deviation = std::sqrt(secondMoment[i] / (1 - std::pow(beta2, step)));
        parameters[i] -=
            settings.learningRate * (mean / (deviation + settings.epsilon) + settings.weightDecay * parameters[i]);
    }
}

void rmsPropStep(const kernels::RmsPropSettings& settings, Values& parameters, const Values& gradients, Values& squares,
                 Values& last)
{
    const double keep = settings.smoothing;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        last[i] = gradients[i];
        squares[i] = keep * squares[i] + (1 - keep) * gradients[i] * gradients[i];
        parameters[i] -= settings.learningRate * gradients[i] / (std::sqrt(squares[i]) + settings.epsilon);
    }
}

Values predictMomentum(double distance, const Values& parameters, const Values& momentum)
{
    Values ahead = parameters;
    for (std::size_t i = 0; i < ahead.size(); ++i)
        ahead[i] -= distance * momentum[i];
    return ahead;
}

Values predictRmsProp(double distance, double epsilon, const Values& parameters, const Values& squares,
                      const Values& last)
{
    Values ahead = parameters;
    for (std::size_t i = 0; i < ahead.size(); ++i)
        ahead[i] -= distance * last[i] / (std::sqrt(squares[i]) + epsilon);
    return ahead;
}

Values predictAdam(const kernels::AdamWSettings& settings, int step, double distance, const Values& parameters,
                   const Values& firstMoment, const Values& secondMoment)
{
    Values ahead = parameters;
    for (std::size_t i = 0; i < ahead.size(); ++i) {
        const double mean = firstMoment[i] / (1 - std::pow(double(settings.beta1), step)),
                     square = secondMoment[i] / (1 - std::pow(double(settings.beta2), step));
        ahead[i] -= distance * mean / (std::sqrt(square) + settings.epsilon);
    }
    return ahead;
}

} // namespace pipewright::reference
