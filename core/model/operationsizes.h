// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of a layer by their shapes, for rates that go by the shape (core/rates): of one microbatch, and on one
// member where devices form groups.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace pipewright {

/// Products of one part that read the same tensor are one, as wide as all of them: rows × inner by inner × columns.
struct ProductSize {
    std::int64_t rows = 0, inner = 0, columns = 0;
    std::int64_t experts = 0;                   ///< that share the rows, in one call; 0: a plain product
    bool inputGrad = false, weightGrad = false; ///< whether these passes have a product for it too
    bool narrow = false;                        ///< multiplies the model's ProductType
    double flops() const
    {
        return 2.0 * static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns);
    }
    bool operator==(const ProductSize&) const = default;
};

struct AttentionSize {
    std::int64_t sequences = 0, heads = 0, keyValueHeads = 0, querySize = 0, valueSize = 0, queries = 0, keys = 0;
    std::int64_t window = 0; ///< keys that a query meets at most; 0: no limit
    bool causal = true;
    /// The scores are kept: products of whole matrices make them, and the mask is laid over what they made. Else a
    /// kernel goes over them tile by tile (flash attention) and leaves out what the mask hides.
    bool storesScores = false;
    /// Keys that a query meets, on average over the sequence: of a causal mask half, less with a window. Of scores that
    /// are kept all.
    double keysMet() const
    {
        if (storesScores)
            return static_cast<double>(keys);
        const auto all = static_cast<double>(keys),
                   most = window > 0 ? std::min(static_cast<double>(window), all) : all;
        return causal ? most - most * most / (2 * all) : most;
    }
    /// Of the forward: scores and the sum of values.
    double flops() const { return flopsWith(keysMet()); }
    /// Four such products for the forward's two, and a fifth where the scores have to be made again.
    double backwardFlops() const { return (storesScores ? 2 : 2.5) * flops(); }
    /// Of the forward, as published FLOPs of models count it: every query with every key, whatever the mask.
    double wholeFlops() const { return flopsWith(static_cast<double>(keys)); }
    bool operator==(const AttentionSize&) const = default;

private:
    double flopsWith(double keysEach) const
    {
        return 2.0 * static_cast<double>(sequences * heads * queries) * keysEach
               * static_cast<double>(querySize + valueSize);
    }
};

/// What is bound by memory: kernels of different kinds reach different shares of its bandwidth.
enum class Movement : std::uint8_t {
    Elementwise, ///< norms, activations, sums, rotations
    Permutation, ///< of tokens, to experts and back
    Loss,        ///< of the logits
    Cast,        ///< to the narrower type that products multiply
};
inline constexpr int movementCount = 4;
constexpr std::string_view nameOf(Movement movement) ///< empty behind the last one
{
    switch (movement) {
    case Movement::Elementwise: return "elementwise";
    case Movement::Permutation: return "permutation";
    case Movement::Loss: return "loss";
    case Movement::Cast: return "cast";
    }
    return {};
}

/// Bytes through memory, and the kernels that move them.
struct MovedBytes {
    double bytes = 0;
    int kernels = 0;
    void add(double more)
    {
        bytes += more;
        ++kernels;
    }
    bool operator==(const MovedBytes&) const = default;
};
/// In the three passes.
struct Movements {
    MovedBytes forward, inputGrad, weightGrad;
    bool operator==(const Movements&) const = default;
};
using MovedByKind = std::array<Movements, movementCount>;

} // namespace pipewright
