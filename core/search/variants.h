// SPDX-License-Identifier: GPL-3.0-or-later
// Freedoms beside the order: backwards in one block or in two, and stages that keep only their input and compute
// their activations again before their gradient. Either changes the blocks or the costs and not the search, so each
// choice is a design of its own that is searched as any other, and the best of them counts. O(blocks) per design.
#pragma once

#include "core/search/search.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipewright {

/// The design with all of its backwards in that style: an I becomes the B and its W goes, or a B becomes an I with its
/// W behind it. `locked` and overlaps follow. Throws Error for a pin on a W that goes.
Design withBackward(const Design& design, BackwardStyle style, std::vector<Block>& locked);

/// What a stage that receives `input` bytes costs when it recomputes: F keeps these alone; I, or B, takes longer by the
/// recomputation and holds meanwhile what F would have kept, of which W's share stays until W.
StageCosts recomputed(const StageCosts& stage, Bytes input);

/// The design with these stages recomputed, said in its name. Throws Error for an unknown stage.
Design withRecompute(const Design& design, std::span<const int> stages);

enum class BackwardChoice { Given, Split, Full, Either };

struct VariantOptions {
    SearchOptions search; ///< its time is shared out among the choices
    BackwardChoice backward = BackwardChoice::Given;
    std::vector<int> recompute;   ///< these stages do
    bool chooseRecompute = false; ///< the first stages may, as many as pay: they hold the most microbatches at once
};

/// A choice that was searched.
struct VariantTrial {
    BackwardStyle backward = BackwardStyle::Full;
    std::vector<int> recompute;
    std::optional<Nanoseconds> value; ///< nothing: no schedule fits
};

struct VariantResult {
    Design design;       ///< with the schedule found
    SearchResult result; ///< its proof and its bound hold for this choice
    BackwardStyle backward = BackwardStyle::Full;
    std::vector<int> recompute;
    std::vector<VariantTrial> trials;
};

/// Throws Error as search() does, when no choice fits the last one's; and for recomputation under a limit that is a
/// factor, since that counts in the activations which it saves.
VariantResult searchVariants(const Design& design, const VariantOptions& options);

} // namespace pipewright
