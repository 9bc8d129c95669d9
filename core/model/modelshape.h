// SPDX-License-Identifier: GPL-3.0-or-later
// The dimensions of a model: a transformer (decoder, encoder, vision) or a classifier of residual MLPs. Layers, bytes
// and work are computed from them. Or a table of layers whose times and bytes are known: measured, or given.
#pragma once

#include "core/base/producttype.h"
#include "core/base/units.h"
#include "core/model/frameworkmemory.h"

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
    Recomputed, ///< the s x s matrices are not kept (selective recomputation, flash attention)
    Streamed,   ///< one number per query and head is kept, to recompute them: flash attention as GPU training runs it
};

/// The function between the two matrix products of an MLP; in a gated MLP it is applied to the gate.
enum class Activation {
    GeluTanh,    ///< GELU in its tanh form (GPT-2)
    Gelu,        ///< GELU by the error function (BERT, ViT)
    Silu,        ///< x / (1 + e^-x) (Llama)
    ClampedSilu, ///< gated MLPs only (GPT-OSS): x / (1 + e^(-1.702 x)) of the gate x, at most 7, times 1 + the factor,
                 ///< clamped to -7 to 7
};

/// Rotary positions (Su et al., arXiv 2104.09864): pair i of a head's `size` values turns by position ·
/// base^(-2i/size), and published models stretch those frequencies for sequences longer than they were first trained
/// on.
struct Rotary {
    enum class Scaling {
        None,
        Linear, ///< all frequencies / factor
        Llama3, ///< frequency / factor for wavelengths above original / low, unchanged below original / high, blended
                ///< between
        Yarn,   ///< arXiv 2309.00071: by the turns that a pair makes over the original length, `low` (fast) to `high`
    };
    double base = 10'000;
    Scaling scaling = Scaling::None;
    double factor = 1;
    double low = 1, high = 4;   ///< Llama3: low_freq_factor, high_freq_factor; Yarn: beta_slow, beta_fast
    std::int64_t original = 0;  ///< tokens of the sequences before stretching
    double attentionFactor = 1; ///< Yarn: the scores are multiplied by its square
    bool operator==(const Rotary&) const = default;
};

/// The scores by which a mixture of experts chooses experts and weights their outputs.
enum class RouterScore {
    Softmax, ///< over all experts (Mixtral, Qwen)
    Sigmoid, ///< of each expert's logit separately (DeepSeek-V3)
};

/// The layers before and after the transformer layers.
enum class Architecture {
    Decoder, ///< token embedding … final norm, projection to the vocabulary, loss
    Encoder, ///< BERT: token, position and two segment tables with a norm, norms behind the layers' parts … with a tied
             ///< head the one for masked tokens, otherwise the pooler
    Vision, ///< ViT: patch projection, class token, position table … final norm, classifier of `vocabulary` classes
    Classifier, ///< of chunks of `sequence` bytes: a bag of features, residual MLPs … final norm, `vocabulary` classes
    Table,      ///< only `table` counts; the dimensions mean nothing
};

/// What follows the last transformer layer. All but Own are predicted and not trained here.
enum class Head {
    Own,            ///< the architecture's: see Architecture
    None,           ///< the final norm alone: an embedding model
    SequenceLabels, ///< scores of `labels` classes for each sequence; a decoder has no bias on them, an encoder has,
                    ///< behind its pooler
    TokenLabels,    ///< scores of `labels` classes, with biases, for each token
    Reward,         ///< a square matrix and a ReLU before the scores of SequenceLabels, both with biases
};

/// How every stage is split over a group of equal devices, and the number of copies of the pipeline. The schedule sees
/// a group as one device; what a member computes, keeps and sends is in parallelism.h.
struct Parallelism {
    int tensor = 1;        ///< members that split every matrix
    bool sequence = false; ///< between matrices, tensor-parallel members split the tokens
    int context = 1;       ///< members with a part of every sequence each, which sum their gradients too
    int expert = 1;        ///< data-parallel copies, or with `foldedExperts` any members, that split the experts
    int data = 1;          ///< copies of the pipeline, which sum their gradients at the end of a step
    double overlap = 0; ///< share of their exchanges that overlaps with computation, where there is enough of it: 0 … 1
    /// Tokens that reach the expert-parallel copy with the most of them, over the mean of all copies: 1 … expert. A
    /// stage is as slow and as full as this copy.
    double expertSpread = 1;
    /// Tensor-parallel members do not split the matrices of an expert: each holds whole experts and sends them its own
    /// tokens. Then `expert` successive devices of a stage split the experts: tensor, then context, then data (MoE
    /// parallel folding, arXiv 2504.14960; Megatron's expert-tensor-parallel-size 1).
    bool foldedExperts = false;
    /// A token goes once to each node with experts that it visits, and is handed on there (DeepSeek-V3, arXiv
    /// 2412.19437, section 3.2.2; DeepEP). Else a copy goes to every expert.
    bool nodeDispatch = false;

    int members() const { return tensor * context; } ///< of a stage's device
    std::int64_t devicesPerStage() const { return std::int64_t{members()} * data; }
    /// Of a stage, those that share out all experts among them once or several times.
    std::int64_t devicesWithExperts() const { return foldedExperts ? devicesPerStage() : std::int64_t{context} * data; }
    /// Of these, the ones that hold the same expert, whose gradients they sum.
    std::int64_t holdersOfExpert() const { return devicesWithExperts() / expert; }
    bool operator==(const Parallelism&) const = default;
};

/// What PyTorch's autograd holds of a layer besides what F keeps; autogradstage.h says what a stage makes of it.
struct AutogradBytes {
    Bytes fromInputGrad = 0; ///< made by I and kept until W, without the gradients of its input and output
    Bytes gradient = 0;      ///< the part of the output's gradient that stays from I until W
    Bytes input = 0;         ///< the part of the input that a stage beginning here keeps, though no layer does
    Bytes output = 0;        ///< the part of the output that a stage ending here keeps, though no layer does
    Bytes savedByLoss = 0;   ///< the part of what F keeps that is not the layer's own: that of the loss behind it
    Bytes workspaceForward = 0, workspaceInputGrad = 0, workspaceWeightGrad = 0, workspaceBackward = 0;
    bool operator==(const AutogradBytes&) const = default;
};

/// A layer whose costs are known rather than computed; all of one microbatch.
struct KnownLayer {
    std::string name;
    Nanoseconds forward = 0, inputGrad = 0, weightGrad = 0;
    Nanoseconds backward = 0;     ///< the full one, often shorter than its halves
    Bytes saved = 0;              ///< what F keeps …
    Bytes savedForWeightGrad = 0; ///< … and the part of it that stays from I until W
    Bytes parameters = 0;         ///< at bytesOf(dataType) each
    Bytes frozen = 0;             ///< of these, without gradient and optimizer state
    Bytes shared = 0;             ///< of the trained ones, those that are also the parameters of …
    std::string sharedWith = {};  ///< … this earlier layer, by its name; empty: none
    Bytes output = 0;             ///< handed to the next layer
    AutogradBytes autograd = {};  ///< where PyTorch runs the layers
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
    bool gatedMlp = false;                        ///< SwiGLU: three matrices instead of two
    Activation activation = Activation::GeluTanh; ///< of the MLP and the experts; files of gated models mean silu
    bool bias = true;                             ///< biases on every linear and layer norm (GPT); without: RMS norms
    double normEpsilon = 1e-5;                    ///< added to the variance, or mean square, of a norm
    bool queryKeyValueBias = true;                ///< biases on q, k, v (Qwen2.5 has these and no others)
    bool projectionBias = false;                  ///< a bias on the attention's output though `bias` is false (GPT-OSS)
    bool queryKeyNorm = false;                    ///< RMS norm per head on q and k (Qwen3)
    bool bidirectional = false;                   ///< a decoder's tokens also attend to later ones
    bool postNorm = false;                        ///< a norm behind attention and MLP too (Gemma 2)
    bool attentionSinks = false;  ///< one parameter per head that takes part in the softmax without a token (GPT-OSS)
    bool learnedPositions = true; ///< position table of `sequence` rows (GPT); otherwise rotary
    /// Neither: scores are reduced by the distance from key to query, times a slope of the head (ALiBi).
    bool linearBiases = false;
    Rotary rotary = {};
    std::int64_t window = 0;    ///< number of keys that a query attends to, its own included; 0: no limit
    int fullAttentionEvery = 0; ///< with a window: every n-th layer attends to all keys; 0: none does
    /// With a window: these layers attend to all keys, where that is not every n-th. Ascending.
    std::vector<int> fullAttentionLayers;
    bool embeddingNorm = false;  ///< a norm behind a decoder's embedding (BLOOM); encoders always have one
    double embeddingScale = 1;   ///< tokens' embeddings are multiplied by it (Gemma)
    double attentionSoftCap = 0; ///< scores s become cap · tanh(s / cap) (Gemma 2); 0: they stay
    double logitsSoftCap = 0;    ///< likewise of the last logits
    double queryScale = 0;       ///< scores are divided by its square root; 0: by that of headSize (Gemma 2 and 3)
    double localRotaryBase = 0;  ///< of layers with a window (Gemma 3); 0: as in the other layers
    bool tiedHead = true;        ///< output head shares the embedding's matrix
    Head head = Head::Own;
    std::int64_t labels = 0; ///< classes of a head of labels
    std::int64_t vocabulary = 256;
    std::int64_t sequence = 64;
    std::int64_t microbatchSize = 4; ///< sequences per microbatch
    DataType dataType = DataType::Fp32;
    ProductType products = ProductType::Own; ///< of a bf16 transformer's layers; predicted, not trained here
    /// What these products read of parameters is held and gathered in their type alone, not in bf16 too (Megatron-LM's
    /// --fp8-param-gather).
    bool narrowParameters = false;
    /// bf16 on devices without bf16 arithmetic, such as the host: each layer is computed in fp32 copies, whose memory
    /// counts.
    bool widened = false;
    bool dropout = false; ///< one-byte masks are kept, as in arXiv 2205.05198
    AttentionMemory attention = AttentionMemory::Stored;

    // Mixture of experts; experts = 0 is a dense model. Experts are gated MLPs of their own width.
    int experts = 0;
    int expertsPerToken = 0;
    int sharedExperts = 0; ///< further experts, which every token visits
    std::int64_t expertFfn = 0;
    RouterScore routerScore = RouterScore::Softmax;
    bool routerNormalised = true; ///< the weights of a token's experts sum to 1
    double routerScale = 1;       ///< factor on these weights
    int routerGroups = 1;         ///< groups of experts, of which a token visits `routerGroupsPerToken` (DeepSeek-V3)
    int routerGroupsPerToken = 1;
    bool routerBias = false;   ///< one correction term per expert (DeepSeek-V3)
    double routerBiasRate = 0; ///< change of the correction in a step, in favour of experts with too few tokens
    double routerBalance = 0;  ///< coefficient of the load-balancing term (arXiv 2101.03961, equation 4)
    bool expertBias = false;   ///< on both matrices of an expert (GPT-OSS)
    int denseLayers = 0;       ///< the first layers have a plain MLP of width `ffn` instead

    // Multi-head latent attention (DeepSeek); keyValueLatent = 0 is ordinary attention. `headSize` is the part of a
    // query or key without rotary positions.
    std::int64_t queryLatent = 0, keyValueLatent = 0;
    std::int64_t rotaryHeadSize = 0, valueHeadSize = 0;

    std::int64_t patchElements = 0; ///< Vision: values of one patch, for example 16 * 16 * 3
    std::int64_t features = 0;      ///< Classifier: 256 bytes, and pairs of bytes hashed into the rest

    std::vector<KnownLayer> table; ///< Table: all layers in order
    /// Table: the layers run in PyTorch, whose autograd determines what is held and for how long (autogradstage.h).
    bool autograd = false;

    /// Seq1F1B: a microbatch is one of this many pieces of its sequences; its attention also reads the earlier pieces.
    int sequencePieces = 1;

    Parallelism parallel;
    FrameworkMemory framework;

    /// Rows that the layers work on: tokens of a microbatch, or of a piece; a classifier's, or a table's, samples.
    std::int64_t tokens() const
    {
        const bool samples = architecture == Architecture::Classifier || architecture == Architecture::Table;
        return samples ? microbatchSize : sequence / sequencePieces * microbatchSize;
    }
    /// Integers that the first layer takes of a microbatch: tokens; a classifier's bytes and as many pairs of them; the
    /// bytes of pictures, patch by patch.
    std::int64_t inputs() const
    {
        if (architecture == Architecture::Vision)
            return (sequence - 1) * patchElements * microbatchSize;
        return architecture == Architecture::Classifier ? 2 * sequence * microbatchSize : tokens();
    }
    /// Whether tokens attend to earlier ones alone.
    bool looksBack() const { return architecture == Architecture::Decoder && !bidirectional; }
    /// Rows of a microbatch that reach the loss: all, or one of every sequence (a class token's, a pooler's, its
    /// label).
    std::int64_t targets() const
    {
        const bool one = head == Head::Own ? architecture == Architecture::Vision
                                                 || (architecture == Architecture::Encoder && !tiedHead)
                                           : head == Head::SequenceLabels || head == Head::Reward;
        return one ? microbatchSize : tokens();
    }
    /// The masked tokens of a sequence, over which the loss is a mean: 15 % (arXiv 1810.04805, section 3.1), one at
    /// least.
    std::int64_t maskedTokens() const { return sequence * 15 / 100 > 1 ? sequence * 15 / 100 : 1; }
    std::int64_t countedTargets() const
    {
        return architecture == Architecture::Encoder && tiedHead ? maskedTokens() * microbatchSize : targets();
    }
    /// Parameters of one expert.
    std::int64_t expertElements() const { return 3 * hidden * expertFfn + (expertBias ? 2 * expertFfn + hidden : 0); }
    Precision precision() const { return {dataType == DataType::Bf16, products, narrowParameters}; }
    void setPrecision(const Precision& precision)
    {
        dataType = precision.narrowModel ? DataType::Bf16 : DataType::Fp32;
        products = precision.products;
        narrowParameters = precision.parameters;
    }
    bool operator==(const ModelShape&) const = default;
};

} // namespace pipewright
