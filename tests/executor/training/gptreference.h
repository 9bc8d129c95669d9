// SPDX-License-Identifier: GPL-3.0-or-later
// The whole model once more in double precision, forward only: its finite differences are the truth that
// the stage maths' gradients are tested against. Also the memory that tests run a stage on.
#pragma once

#include "executor/training/stagemaths.h"
#include "kernels/reference/reference.h"
#include "makers/models.h"

#include <cmath>
#include <vector>

namespace pipewright::test {

using reference::Values;

/// One microbatch's share of the loss; `layout` is that of all layers in one stage.
inline double referenceLoss(const ModelShape& shape, const ParameterLayout& layout, const Values& parameters,
                            std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets,
                            int microbatches)
{
    const int rows = int(shape.tokens()), hidden = int(shape.hidden), ffn = int(shape.ffn);
    const auto at = [&](int layer, const char* name) {
        const Parameter& p = layout.at(layer, name);
        return Values(parameters.begin() + p.offset, parameters.begin() + p.offset + p.count());
    };
    const auto addTo = [](Values& x, const Values& y) {
        for (std::size_t i = 0; i < x.size(); ++i)
            x[i] += y[i];
    };
    Values x = reference::embeddingForward(int(shape.sequence), hidden, tokens, at(0, "table.weight"),
                                           at(0, "positions.weight"));
    for (int layer = 1; layer <= shape.layers; ++layer) {
        const Values n1 = reference::layerNormForward(rows, hidden, x, at(layer, "ln1.gamma"), at(layer, "ln1.beta"));
        const Values qkv =
            reference::linearForward({rows, hidden, 3 * hidden}, n1, at(layer, "qkv.weight"), at(layer, "qkv.bias"));
        Values parts[3];
        for (int row = 0; row < rows; ++row)
            for (int i = 0; i < 3 * hidden; ++i)
                parts[i / hidden].push_back(qkv[row * 3 * hidden + i]);
        const Values context = reference::attentionForward(
                                   {int(shape.microbatchSize), int(shape.sequence), shape.heads, int(shape.headSize)},
                                   parts[0], parts[1], parts[2])
                                   .output;
        addTo(x, reference::linearForward({rows, hidden, hidden}, context, at(layer, "projection.weight"),
                                          at(layer, "projection.bias")));
        const Values n2 = reference::layerNormForward(rows, hidden, x, at(layer, "ln2.gamma"), at(layer, "ln2.beta"));
        const Values up =
            reference::linearForward({rows, hidden, ffn}, n2, at(layer, "fc1.weight"), at(layer, "fc1.bias"));
        addTo(x, reference::linearForward({rows, ffn, hidden}, reference::geluForward(up), at(layer, "fc2.weight"),
                                          at(layer, "fc2.bias")));
    }
    const int head = shape.layers + 1;
    const Values n = reference::layerNormForward(rows, hidden, x, at(head, "norm.gamma"), at(head, "norm.beta"));
    const Values logits =
        reference::linearForward({rows, hidden, int(shape.vocabulary)}, n, at(head, "projection.weight"), {});
    return reference::crossEntropyForward(rows, int(shape.vocabulary), logits, targets,
                                          1.0 / (double(rows) * microbatches))
        .loss;
}

/// Memory of one stage and one microbatch, filled with a pattern that must never be read before written.
struct StageRoom {
    explicit StageRoom(const StageMaths& maths)
        : output(maths.activationElements(), NAN), inputGrad(maths.activationElements(), NAN)
    {
        const auto fill = [&](std::vector<std::byte>& buffer, BufferKind kind) {
            buffer.assign(std::size_t(maths.layout().bytes(kind)), std::byte{0xff}); // NaN as floats
        };
        fill(untilInputGrad, BufferKind::SavedUntilInputGrad);
        fill(untilWeightGrad, BufferKind::SavedUntilWeightGrad);
        fill(fromInputGrad, BufferKind::SavedFromInputGrad);
        fill(workspace, BufferKind::Workspace);
    }
    StageMemory memory() { return {untilInputGrad, untilWeightGrad, fromInputGrad, workspace}; }
    std::vector<float> loss = {0.0f};

    std::vector<std::byte> untilInputGrad, untilWeightGrad, fromInputGrad, workspace;
    std::vector<float> output, inputGrad;
};

} // namespace pipewright::test
