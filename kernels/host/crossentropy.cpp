// SPDX-License-Identifier: GPL-3.0-or-later
// A softmax per row; the loss of a row is its log-sum-exp less the target's logit, summed in double. O(rows · classes).
#include "kernels/calls.h"

#include "kernels/host/softmax.h"

#include <cassert>
#include <cmath>

namespace pipewright::kernels {

void run(const CrossEntropyForward& call)
{
    const auto [rows, classes, logitsToProbabilities, targets, scale, loss] = call;
    const auto width = std::size_t(classes);
    assert(logitsToProbabilities.size() == rows * width && targets.size() == std::size_t(rows) && loss.size() == 1);
    double sum = 0;
    for (std::size_t row = 0; row < targets.size(); ++row) {
        assert(targets[row] < classes);
        float* values = logitsToProbabilities.data() + row * width;
        const float target = targets[row] < 0 ? 0 : values[targets[row]];
        const SoftmaxNormaliser normaliser = softmaxRow(width, 1, values);
        if (targets[row] >= 0)
            sum += double(normaliser.largest) + std::log(double(normaliser.sum)) - target;
    }
    loss[0] = float(sum * scale);
}

void run(const CrossEntropyInputGrad& call)
{
    const auto [rows, classes, probabilities, targets, scale, logitsGrad] = call;
    const auto width = std::size_t(classes);
    assert(probabilities.size() == rows * width && logitsGrad.size() == rows * width);
    assert(targets.size() == std::size_t(rows));
    for (std::size_t row = 0; row < targets.size(); ++row) {
        const float ofRow = targets[row] < 0 ? 0 : scale;
        for (std::size_t i = row * width; i < (row + 1) * width; ++i)
            logitsGrad[i] = ofRow * probabilities[i];
        if (targets[row] >= 0)
            logitsGrad[row * width + std::size_t(targets[row])] -= scale;
    }
}

} // namespace pipewright::kernels
