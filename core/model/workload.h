// SPDX-License-Identifier: GPL-3.0-or-later
// The model as an ordered list of layers, each with the work of its three passes and the bytes it keeps. Built from a
// model's dimensions (transformer.h) or read from a preset.
#pragma once

#include "core/base/optimizer.h"
#include "core/base/units.h"
#include "core/model/modelshape.h"
#include "core/model/operationsizes.h"
#include "core/model/savedtensor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipewright {

enum class LayerKind { Embedding, Transformer, Mlp, Head, Other };
/// One of the repeated layers between the two ends.
constexpr bool isBlock(LayerKind kind)
{
    switch (kind) {
    case LayerKind::Transformer:
    case LayerKind::Mlp: return true;
    case LayerKind::Embedding:
    case LayerKind::Head:
    case LayerKind::Other: return false;
    }
    return false;
}
/// True for layers with attention, where the pieces of a sequence depend on each other.
constexpr bool hasAttention(LayerKind kind)
{
    switch (kind) {
    case LayerKind::Transformer: return true;
    case LayerKind::Embedding:
    case LayerKind::Mlp:
    case LayerKind::Head:
    case LayerKind::Other: return false;
    }
    return false;
}

/// A collective of the members of a group (parallelism.h): its axis, its kind and how many times it runs in each pass.
enum class GroupAxis { Tensor, Context, Expert };
enum class GroupExchange { AllReduce, GatherOrScatter, AllToAll };
/// How tokens choose experts, where they go once to each node with some of them (Parallelism::nodeDispatch).
struct TokenRouting {
    int experts = 0, perToken = 0;
    int groups = 1, groupsPerToken = 1; ///< of equally many experts each
    /// The nodes besides its own that a token goes to in the mean, where `nodes` share out the experts in their order
    /// and all experts are chosen alike.
    double otherNodes(int nodes) const;
    bool operator==(const TokenRouting&) const = default;
};
struct GroupTraffic {
    GroupAxis axis = GroupAxis::Tensor;
    GroupExchange exchange = GroupExchange::AllReduce;
    Bytes bytes = 0; ///< of the whole tensor; of an all-to-all, what one member sends
    int forward = 0, inputGrad = 0, weightGrad = 0;
    std::optional<TokenRouting> oncePerNode{}; ///< else a copy goes to every expert
    bool operator==(const GroupTraffic&) const = default;
};

/// All work and bytes are for one microbatch, and on one member where devices form groups.
struct Layer {
    std::string name; ///< "layer 3", "embedding", "head"
    LayerKind kind = LayerKind::Other;
    double forwardFlops = 0, inputGradFlops = 0, weightGradFlops = 0;
    /// Sum over the products with weights: FLOPs / narrower side of the weight matrix. Large where matrices are narrow.
    double forwardFlopsPerWidth = 0, inputGradFlopsPerWidth = 0, weightGradFlopsPerWidth = 0;
    std::vector<ProductSize> products;     ///< the same work by shape; not of a table
    std::vector<AttentionSize> attentions; ///< likewise, as their masks have it
    MovedByKind moved{};                   ///< and what moves bytes between them
    Nanoseconds forwardTime = 0, inputGradTime = 0, weightGradTime = 0, backwardTime = 0; ///< of a table; then no FLOPs
    std::int64_t parameters = 0;                  ///< held by this layer (a tied head holds a copy of the embedding)
    std::vector<LayerParameter> parameterTensors; ///< the same, by tensor, if not divided among devices; not of a table
    std::int64_t narrowParameters = 0;            ///< of these, what products in ModelShape::products read
    std::int64_t narrowExpertParameters = 0;      ///< of these, expertParameters
    std::int64_t frozenParameters = 0;            ///< of these, without gradient and optimizer state; of a table
    std::int64_t expertParameters = 0;            ///< of these, shared out over expert-parallel copies
    std::int64_t sharedParameters = 0;            ///< of these, tied to another layer's
    std::string tiedTo;                           ///< name of the layer that owns the shared parameters first
    std::vector<SavedTensor> saved;
    Bytes outputBytes = 0;
    AutogradBytes autograd; ///< of a table whose layers PyTorch runs
    std::vector<GroupTraffic> traffic;
    std::vector<WorkspaceTensor> workspace; ///< of models that can be trained here; empty for others

    /// The work of each pass: FLOPs, or the time where it is known.
    double forwardWork() const { return forwardFlops + static_cast<double>(forwardTime); }
    double inputGradWork() const { return inputGradFlops + static_cast<double>(inputGradTime); }
    double weightGradWork() const { return weightGradFlops + static_cast<double>(weightGradTime); }
    double backwardWork() const { return inputGradFlops + weightGradFlops + static_cast<double>(backwardTime); }
    double work() const { return forwardWork() + inputGradWork() + weightGradWork(); }
    bool operator==(const Layer&) const = default;
};

struct StateBytesPerParameter { ///< 18 in all for mixed-precision Adam with fp32 gradients
    int parameter = 2, gradient = 4, optimizer = 12;
    bool operator==(const StateBytesPerParameter&) const = default;
};

struct Workload {
    // Out of line: inlined, each is kilobytes of code in every file that uses one.
    Workload();
    Workload(const Workload& other);
    Workload(Workload&& other) noexcept;
    Workload& operator=(const Workload& other);
    Workload& operator=(Workload&& other) noexcept;
    ~Workload();

    ModelShape shape;
    Optimizer optimizer = Optimizer::AdamW;
    StateBytesPerParameter state;
    std::vector<Layer> layers; ///< embedding, transformer layers, head; always layersOf(shape): of a member
    std::string source;        ///< "preset llama-3-8b", "design file"

    bool operator==(const Workload& other) const;
};

/// An even split of the workload's layers over `stages`, the remainder to the middle stages first since the ends also
/// hold embedding and head. With more stages than repeated layers the head is a stage of its own, then the embedding
/// too. A table's layers are cut so that the longest stage is as short as can be. Throws Error when there are fewer
/// layers than stages.
std::vector<int> evenPartition(const Workload& workload, int stages);

} // namespace pipewright
