// SPDX-License-Identifier: GPL-3.0-or-later
// The tensors that the forward of some operations makes for its own backward: softmax, masks, who visits which expert
// (arXiv 2205.05198, section 4). Functions of rows in operations.cpp.
#pragma once

#include "core/model/savedtensor.h"

#include <vector>

namespace pipewright {

class TensorGraph;
struct Node;

using OwnTensors = std::vector<SavedTensor> (*)(const TensorGraph&, const Node&);

std::vector<SavedTensor> attentionCore(const TensorGraph& graph, const Node& node);
std::vector<SavedTensor> cappedLogits(const TensorGraph& graph, const Node& node);
std::vector<SavedTensor> dropoutMask(const TensorGraph& graph, const Node& node);
std::vector<SavedTensor> lossProbabilities(const TensorGraph& graph, const Node& node);
std::vector<SavedTensor> routing(const TensorGraph& graph, const Node& node);

} // namespace pipewright
