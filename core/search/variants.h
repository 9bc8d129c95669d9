// SPDX-License-Identifier: GPL-3.0-or-later
// Choices other than the order: backward as one block or split in two, and which stages recompute their activations
// before the gradient. Each choice changes blocks or costs but not the search, so it is searched as a separate design,
// for each of them with its own cut of the layers where that is searched too; the best one wins. The design's own
// choice is always among those that were asked for. O(blocks) per design.
#pragma once

#include "core/search/partition.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipewright {

/// The design with all backwards in that style: I and W are joined to B, or B is split into I followed by W. `locked`
/// and overlaps follow. Throws Error for a pin on a W that is removed.
Design withBackward(const Design& design, BackwardStyle style, std::vector<Block>& locked);

/// The one style of all placed backwards, else that of missing blocks; nothing where both are placed.
std::optional<BackwardStyle> styleOf(const Schedule& schedule);

enum class BackwardChoice { Given, Split, Full, Either };

struct VariantOptions {
    SearchOptions search; ///< its time is divided among the choices
    BackwardChoice backward = BackwardChoice::Given;
    std::optional<RecomputeChoice> recompute; ///< instead of the design's own
    bool chooseRecompute = false;             ///< also try the first stages, which hold the most microbatches at once
    std::optional<PartitionOptions>
        partition; ///< for each choice also the cut and the placement; its `search` is unused
};

/// One searched choice.
struct VariantTrial {
    std::optional<BackwardStyle> backward; ///< nothing: both, as the design has them
    std::vector<Recompute> recompute;      ///< per stage; empty: none
    std::optional<Nanoseconds> value;      ///< nothing: no schedule fits
    std::vector<PartitionTrial> cuts;      ///< with VariantOptions::partition
};

struct VariantResult {
    Design design;       ///< with the schedule found
    SearchResult result; ///< its proof and its bound hold for this choice
    std::optional<BackwardStyle> backward;
    std::vector<Recompute> recompute;
    std::vector<VariantTrial> trials;
};

/// Throws the last choice's Error when no choice fits. Throws Error for recomputation with a limit given as a factor:
/// its unit is the saved activations, which recomputation changes.
VariantResult searchVariants(const Design& design, const VariantOptions& options);

} // namespace pipewright
