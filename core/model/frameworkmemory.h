// SPDX-License-Identifier: GPL-3.0-or-later
// What a training framework keeps besides a model's tensors, or in their place. Every property is one by itself, in
// bytes that follow from the model (frameworklayers.h); the name of a framework is a preset of them. The defaults are
// what the built-in backends keep, so that only a design without any of it can be compared with a run of theirs.
#pragma once

#include "core/base/diagnostic.h"
#include "core/base/units.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

struct FrameworkMemory {
    /// What cross entropy keeps of the logits, and makes of them.
    enum class Loss : std::uint8_t {
        Probabilities, ///< F keeps fp32 probabilities, and I writes the logits' gradient beside them
        InPlace,       ///< F overwrites the logits by their gradient (fused in Transformer Engine before 2.18)
        Plain,         ///< fp32 logits and log probabilities, and the gradient of each (PyTorch's cross_entropy)
    };
    Loss loss = Loss::Probabilities;
    bool wideParameters = false;  ///< parameters are held in fp32 and are the master copies (FSDP's mixed precision)
    bool narrowGradients = false; ///< gradients are summed in the model's type, not in fp32
    int vocabularyMultiple = 1;   ///< the vocabulary is padded to a multiple of this, times the tensor-parallel members
    /// The gradients of the embedding's and the head's matrix are whole for a moment, besides their sums.
    bool wholeVocabularyGradients = false;
    /// One gradient for every shape of a layer's matrices, which nobody reads: where products add to the sums
    /// themselves, autograd still wants a gradient, and one is kept for all layers.
    bool gradientPlaceholders = false;
    /// With sequence parallelism the head gathers its input into a buffer that stays.
    bool gatheredSequence = false;
    bool expertsWeightedEarly = false; ///< before their second product, so that combining keeps no outputs
    /// Context-parallel members that exchange heads for tokens keep the result of attention both ways.
    bool attentionInBothLayouts = false;
    /// What products in a narrower type (producttype.h) read is kept in that type, and their weights are cast once a
    /// step and held besides. Else the wide values are kept, and cast again whenever a product reads them.
    bool narrowInputs = false;
    /// Held all the time: workspaces of matrix libraries, buffers of communication that the framework allocates.
    Bytes buffers = 0;
    /// Of what the framework's allocator reserves of a device, the share that no tensor uses at the peak; 0: not known.
    double cached = 0;
    bool operator==(const FrameworkMemory&) const = default;
};

constexpr std::string_view nameOf(FrameworkMemory::Loss loss) ///< as in files; empty behind the last one
{
    switch (loss) {
    case FrameworkMemory::Loss::Probabilities: return "probabilities";
    case FrameworkMemory::Loss::InPlace: return "in_place";
    case FrameworkMemory::Loss::Plain: return "plain";
    }
    return {};
}

struct FrameworkFacts {
    std::string_view name;
    FrameworkMemory keeps;
};

/// cuBLAS takes 32 MiB on GPUs from Hopper on (PyTorch, CUBLAS_WORKSPACE_CONFIG), and so does Transformer Engine for
/// its own products.
inline constexpr Bytes libraryWorkspace = Bytes(32) << 20;

inline constexpr std::array frameworks{
    FrameworkFacts{"none", {}},
    // Megatron-LM with Transformer Engine: cross entropy fused by the latter, which also keeps what FP8 products read,
    // --make-vocab-size-divisible-by 128,
    // gradients added to fp32 sums by the products, context parallelism by all-to-all.
    FrameworkFacts{"megatron",
                   {.loss = FrameworkMemory::Loss::InPlace,
                    .vocabularyMultiple = 128,
                    .wholeVocabularyGradients = true,
                    .gradientPlaceholders = true,
                    .gatheredSequence = true,
                    .expertsWeightedEarly = true,
                    .attentionInBothLayouts = true,
                    .narrowInputs = true,
                    .buffers = 2 * libraryWorkspace,
                    .cached = 0.06}}, // SimuMax's "mem_factor" of 0.94; its measured rows have 0.03 to 0.09
    // FSDP's mixed precision: fp32 parameters and gradients, no master copies; the loss of torchtitan's models.
    FrameworkFacts{"torchtitan",
                   {.loss = FrameworkMemory::Loss::Plain,
                    .wideParameters = true,
                    .wholeVocabularyGradients = true,
                    .buffers = libraryWorkspace}},
    // The pipeline engine's bf16 optimizer, which sums in fp32; the loss of a user's model is PyTorch's.
    FrameworkFacts{
        "deepspeed",
        {.loss = FrameworkMemory::Loss::Plain, .wholeVocabularyGradients = true, .buffers = libraryWorkspace}},
};

constexpr std::optional<FrameworkMemory> frameworkNamed(std::string_view name)
{
    for (const FrameworkFacts& facts : frameworks)
        if (facts.name == name)
            return facts.keeps;
    return std::nullopt;
}
/// The preset's name; "own" for any other mixture.
constexpr std::string_view nameOf(const FrameworkMemory& framework)
{
    for (const FrameworkFacts& facts : frameworks)
        if (facts.keeps == framework)
            return facts.name;
    return "own";
}

/// "none, megatron, …"
std::string frameworkNames();

/// Its properties but for the usual ones: "a vocabulary padded to multiples of 128".
std::vector<std::string> wordsOf(const FrameworkMemory& framework);

/// Why no backend runs a design with it: none allocates what a framework does. Nothing for the usual properties.
std::optional<Diagnostic> whyNotAllocated(const FrameworkMemory& framework);

/// What the allocator reserves where tensors take `allocated` at most; 0: not known.
Bytes reservedBytes(Bytes allocated, const FrameworkMemory& framework);

} // namespace pipewright
