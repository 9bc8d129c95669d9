// SPDX-License-Identifier: GPL-3.0-or-later
// Which activations a stage recomputes for its backward instead of keeping them from its forward, and the notation for
// a whole pipeline: "full", "every:4", or a kind for some stages, such as "full:0-2,5".
//
// As frameworks do it, the backward itself recomputes, layer by layer: it needs room for what one layer keeps. Or a
// block of its own, R, recomputes a stage before the backward: then all layers are there at once, but R can run while
// the device would wait.
#pragma once

#include "core/base/stageranges.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class RecomputeKind : std::uint8_t {
    None,
    Selective,      ///< inside the backward: the attention core (scores and softmax) of one layer after another
    Full,           ///< inside the backward: layer by layer, of which the inputs are kept; not embedding and head
    BlockSelective, ///< by an R block: the attention core of every layer
    Block,          ///< by an R block: everything but the stage's input
};

struct Recompute {
    RecomputeKind kind = RecomputeKind::None;
    /// Of Full: layers that are recomputed together; the input of the first one is kept.
    int layers = 1;

    static const Recompute None, Selective, Full, BlockSelective, Block;
    static constexpr Recompute every(int layers) { return {RecomputeKind::Full, layers}; }

    /// Whether R blocks recompute.
    constexpr bool byBlock() const { return kind == RecomputeKind::Block || kind == RecomputeKind::BlockSelective; }
    /// Whether I, or B, recomputes.
    constexpr bool insideBackward() const { return kind == RecomputeKind::Full || kind == RecomputeKind::Selective; }
    /// The attention cores alone.
    constexpr bool coresOnly() const
    {
        return kind == RecomputeKind::Selective || kind == RecomputeKind::BlockSelective;
    }
    /// Whether the stage's input is needed again.
    constexpr bool readsInput() const { return kind == RecomputeKind::Block || kind == RecomputeKind::Full; }
    constexpr auto operator<=>(const Recompute&) const = default;
};

inline constexpr Recompute Recompute::None{};
inline constexpr Recompute Recompute::Selective{RecomputeKind::Selective};
inline constexpr Recompute Recompute::Full{RecomputeKind::Full};
inline constexpr Recompute Recompute::BlockSelective{RecomputeKind::BlockSelective};
inline constexpr Recompute Recompute::Block{RecomputeKind::Block};

/// The kinds without a number of layers, in the order in which they are offered.
inline constexpr Recompute recomputeKinds[] = {Recompute::None, Recompute::Selective, Recompute::Full,
                                               Recompute::BlockSelective, Recompute::Block};

/// As in files and options: "full", "every:4".
std::string nameOf(Recompute recompute);

/// What a person reads where these are offered.
inline constexpr std::string_view recomputeHint =
    "use none, selective, full, every:4 (layers), block or block-selective";

/// The user's choice before the number of stages is known.
struct RecomputeChoice {
    Recompute kind;
    StageRanges stages; ///< empty: all
    bool operator==(const RecomputeChoice&) const = default;
};

/// A name without stages. Throws Error at `where` for anything else.
Recompute recomputeOfName(std::string_view name, const std::string& where);

/// A name, or one for some stages: "full:0-2,5". Stages without a name mean "full". Throws Error at `where`.
RecomputeChoice parseRecompute(std::string_view text, const std::string& where);

/// One entry per stage; empty when none recomputes. Throws Error at `where` for a stage that does not exist.
std::vector<Recompute> ofStages(const RecomputeChoice& choice, int stages, const std::string& where);

/// "full", "stages 0, 1 full", "stage 0 selective, stage 3 full"; empty for none.
std::string textOf(const std::vector<Recompute>& ofStage);

} // namespace pipewright
