// SPDX-License-Identifier: GPL-3.0-or-later
// The dimensions of a model: a transformer (decoder, encoder, vision) or a classifier of residual MLPs. Layers, bytes
// and work are computed from them. Or a table of layers whose times and bytes are known: measured, or given.
#pragma once

#include "core/base/units.h"

#include <cstdint>
#include <string>
#include <vector>

namespace pipewright {

enum class DataType { Fp32, Bf16 };
inline constexpr int bytesOf(DataType type)
{
    return type == DataType::Fp32 ? 4 : 2;
}

/// What a transformer layer keeps of its attention core (scores, softmax, dropout).
enum class AttentionMemory {
    Stored,     ///< the s x s matrices are kept for the backward pass
    Recomputed, ///< they are not (selective recomputation, flash attention)
    Streamed,   ///< one number per query and head is kept, to recompute them: flash attention as GPU training runs it
};

/// The layers before and after the transformer layers.
enum class Architecture {
    Decoder, ///< token embedding … final norm, projection to the vocabulary, loss
    Encoder, ///< BERT: token, position and two segment tables with a norm … pooler (no vocabulary head)
    Vision,  ///< ViT: patch projection, class token, position table … final norm, classifier of `vocabulary` classes
    Classifier, ///< of chunks of `sequence` bytes: a bag of features, residual MLPs … final norm, `vocabulary` classes
    Table,      ///< `table` says it all; the dimensions mean nothing
};

/// How every stage is shared out over a group of equal devices, and how many copies of the pipeline there are. The
/// schedule sees a group as one device; what a member computes, keeps and sends is in parallelism.h.
struct Parallelism {
    int tensor = 1;        ///< members that share every matrix
    bool sequence = false; ///< between matrices, tensor-parallel members split the tokens
    int context = 1;       ///< members with a part of every sequence each
    int expert = 1;        ///< data-parallel copies that share out the experts
    int data = 1;          ///< copies of the pipeline, which sum their gradients at the end of a step

    int members() const { return tensor * context; } ///< of a stage's device
    std::int64_t devicesPerStage() const { return std::int64_t{members()} * data; }
    bool operator==(const Parallelism&) const = default;
};

/// A layer whose costs are known rather than computed; all of one microbatch.
struct KnownLayer {
    std::string name;
    Nanoseconds forward = 0, inputGrad = 0, weightGrad = 0;
    Nanoseconds backward = 0;     ///< the full one, often shorter than its halves
    Bytes saved = 0;              ///< what F keeps …
    Bytes savedForWeightGrad = 0; ///< … and of that, what stays from I until W
    Bytes parameters = 0;         ///< at bytesOf(dataType) each
    Bytes output = 0;             ///< handed to the next layer
    bool operator==(const KnownLayer&) const = default;
};

struct ModelShape {
    std::string name = "byte-gpt";
    Architecture architecture = Architecture::Decoder;
    int layers = 8; ///< transformer layers
    std::int64_t hidden = 128;
    int heads = 4;
    int keyValueHeads = 4;      ///< fewer than heads: grouped-query attention
    std::int64_t headSize = 32; ///< usually hidden / heads
    std::int64_t ffn = 512;
    bool gatedMlp = false;         ///< SwiGLU: three matrices instead of two
    bool bias = true;              ///< biases on every linear and layer norm (GPT)
    bool queryKeyValueBias = true; ///< biases on q, k, v (Qwen2.5 has these and no others)
    bool projectionBias = false;   ///< a bias on the attention's output though `bias` is false (GPT-OSS)
    bool queryKeyNorm = false;     ///< RMS norm per head on q and k (Qwen3)
    bool postNorm = false;         ///< a norm behind attention and MLP too (Gemma 2)
    bool attentionSinks = false;   ///< one parameter per head that takes attention from no token (GPT-OSS)
    bool learnedPositions = true;  ///< position table of `sequence` rows (GPT); otherwise rotary
    bool tiedHead = true;          ///< output head shares the embedding's matrix
    std::int64_t vocabulary = 256;
    std::int64_t sequence = 64;
    std::int64_t microbatchSize = 4; ///< sequences per microbatch
    DataType dataType = DataType::Fp32;
    bool dropout = false; ///< one-byte masks are kept, as in arXiv 2205.05198
    AttentionMemory attention = AttentionMemory::Stored;

    // Mixture of experts; experts = 0 is a dense model. Experts are gated MLPs of their own width.
    int experts = 0;
    int expertsPerToken = 0;
    int sharedExperts = 0; ///< experts that every token visits besides
    std::int64_t expertFfn = 0;
    bool routerBias = false; ///< one correction term per expert (DeepSeek-V3)
    bool expertBias = false; ///< on both matrices of an expert (GPT-OSS)
    int denseLayers = 0;     ///< the first layers have a plain MLP of width `ffn` instead

    // Multi-head latent attention (DeepSeek); keyValueLatent = 0 is ordinary attention. `headSize` is the part of a
    // query or key without rotary positions.
    std::int64_t queryLatent = 0, keyValueLatent = 0;
    std::int64_t rotaryHeadSize = 0, valueHeadSize = 0;

    std::int64_t patchElements = 0; ///< Vision: values of one patch, for example 16 * 16 * 3
    std::int64_t features = 0;      ///< Classifier: 256 bytes, and pairs of bytes hashed into the rest

    std::vector<KnownLayer> table; ///< Table: all layers in order

    /// Seq1F1B: a microbatch is one of so many pieces of its sequences; its attention looks back on all of them.
    int sequencePieces = 1;

    Parallelism parallel;

    /// Rows that the layers work on, each with a target: tokens of a microbatch, or of a piece; a classifier's, or a
    /// table's, samples.
    std::int64_t tokens() const
    {
        const bool samples = architecture == Architecture::Classifier || architecture == Architecture::Table;
        return samples ? microbatchSize : sequence / sequencePieces * microbatchSize;
    }
    /// Integers that the first layer takes of a microbatch: tokens; a classifier's bytes and as many pairs of them.
    std::int64_t inputs() const
    {
        return architecture == Architecture::Classifier ? 2 * sequence * microbatchSize : tokens();
    }
    /// Parameters of one expert.
    std::int64_t expertElements() const { return 3 * hidden * expertFfn + (expertBias ? 2 * expertFfn + hidden : 0); }
    bool operator==(const ModelShape&) const = default;
};

} // namespace pipewright
