// SPDX-License-Identifier: GPL-3.0-or-later
// What a stage of measured layers holds when PyTorch's autograd and its pipelining run it. It follows from these rules,
// not from a list of tensors:
//   - A backward in two halves keeps the graph from the topmost weight down, with all that it saved, until W. So I
//     frees only what the layers above that weight saved.
//   - From I until W the stage holds its input and the gradients of its input and of its output, and the gradients
//     between its layers where a weight gradient starts from them.
//   - The first stage's input requires no gradient, so its I does nothing and its W does the full backward.
//   - A full backward frees each layer's tensors as it passes through the layer.
//   - Where the backward recomputes (torch.utils.checkpoint), F keeps the input of every recomputed range of layers,
//     the state of the random numbers, and what the loss saved. The backward recomputes a range, then frees it. It runs
//     whole there: I does it all, and W nothing (in the first stage the other way round).
// Values in flight between stages that the Program counts as received or to be sent are left out here.
#pragma once

#include "core/base/recompute.h"
#include "core/model/workload.h"

#include <cstddef>
#include <vector>

namespace pipewright {

struct AutogradStage {
    Bytes untilInputGrad = 0, untilWeightGrad = 0; ///< kept by F
    Bytes fromInputGrad = 0;                       ///< from I until W; a full backward has none of it
    Bytes workspaceForward = 0, workspaceInputGrad = 0, workspaceWeightGrad = 0, workspaceBackward = 0;
    bool operator==(const AutogradStage&) const = default;
};

/// The stage of `count` layers from `begin` on, which recomputes nothing or in full. O(count).
AutogradStage autogradStage(const std::vector<Layer>& model, std::size_t begin, std::size_t count,
                            Recompute recompute = Recompute::None);

} // namespace pipewright
