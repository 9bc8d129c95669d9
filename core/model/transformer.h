// SPDX-License-Identifier: GPL-3.0-or-later
// From a model's dimensions to its ordered layers: work, parameters and, by name and lifetime, every tensor that one
// microbatch keeps between its passes. The executor's layers allocate exactly this list, so predicted and allocated
// memory agree. Experts are taken as perfectly balanced and dropless. Layer norm statistics are recomputed in the
// backward pass, hence not kept.
#pragma once

#include "core/base/diagnostic.h"
#include "core/model/workload.h"

#include <span>

namespace pipewright {

/// Faults of the dimensions (a negative width, sizes beyond 64 bits); empty when usable.
Diagnostics checkShape(const ModelShape& shape);

/// Which attention a model's layers compute.
enum class AttentionCore {
    Plain,   ///< causal, as many key as query heads, positions from a table: what GPT has
    Grouped, ///< rotary positions, grouped heads, a norm on queries and keys, a window
    Latent,  ///< DeepSeek's
};
AttentionCore attentionCoreOf(const ModelShape& shape);

/// The attention window of layer `layer`; 0: all earlier tokens.
std::int64_t windowOf(const ModelShape& shape, int layer);
/// Whether the head's matrix is the embedding's.
bool hasTiedHead(const ModelShape& shape);
/// Whether a layer's MLP is a mixture of experts.
bool hasExperts(const ModelShape& shape, int layer);

/// Why the built-in layers cannot train this model; empty when they can.
Diagnostics whyNotRunnable(const ModelShape& shape);
bool isRunnable(const ModelShape& shape);
/// Whether the passes of its layers, and hence their workspace, are those of the built-in layers, whatever a framework
/// keeps besides.
bool hasKnownPasses(const ModelShape& shape);

/// What the host's kernels keep of attention: plain attention its probabilities, other kinds one number per query and
/// head.
AttentionMemory attentionOnHost(const ModelShape& shape);

/// Workspace of the stage's layers, which run one after another and share it.
Bytes stageWorkspace(std::span<const Layer> layersOfStage);

/// "embedding", "layer 0" …, "head" (final norm, output projection, loss). FLOPs count matrix products only, two per
/// multiply-add, without a discount for causal masks. A GPT layer: forward 24 b s h^2 (1 + s/6h); input gradient b s h
/// (24h + 8s), as the attention core has two products for each of forward's; weight gradient 24 b s h^2 (arXiv
/// 2205.05198 app. A, arXiv 2401.10241 table 1). Where devices form groups, the layers are those of one member
/// (parallelism.h). Precondition: checkShape() is empty.
std::vector<Layer> layersOf(const ModelShape& shape);

/// The layers of the undivided model, with nothing recomputed.
std::vector<Layer> wholeLayersOf(const Workload& workload);

/// Elements of the gradients of keys and values that later pieces pass to earlier ones, for one transformer layer and
/// one microbatch of whole sequences: those of all pieces but the last. 0 for whole sequences.
std::int64_t sequenceGradientElements(const ModelShape& shape);

/// Bytes of state for the data type: bf16 keeps fp32 gradients and master weights (18 B with AdamW), if the framework
/// does.
StateBytesPerParameter stateBytes(DataType type, Optimizer optimizer, const FrameworkMemory& framework = {});

/// Throws Error with checkShape()'s diagnostics.
Workload makeWorkload(const ModelShape& shape, Optimizer optimizer, std::string source);

/// All parameters, a tied one counted once.
std::int64_t parameterCount(const Workload& workload);

} // namespace pipewright
