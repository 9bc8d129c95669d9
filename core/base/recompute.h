// SPDX-License-Identifier: GPL-3.0-or-later
// Which activations a stage recomputes before its backward instead of saving them in its forward, and the notation for
// a whole pipeline: "none", "selective", "full", or the stages that do so fully, such as "0-2,5".
#pragma once

#include "core/base/stageranges.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class Recompute : std::uint8_t {
    None,
    Selective, ///< the attention core: scores and softmax
    Full,      ///< everything but the stage's input
};

constexpr std::string_view nameOf(Recompute recompute) ///< as in files and options; empty behind the last one
{
    switch (recompute) {
    case Recompute::None: return "none";
    case Recompute::Selective: return "selective";
    case Recompute::Full: return "full";
    }
    return {};
}

/// The user's choice before the number of stages is known.
struct RecomputeChoice {
    Recompute kind = Recompute::None;
    StageRanges stages; ///< empty: all
    bool operator==(const RecomputeChoice&) const = default;
};

/// Throws Error at `where` for anything but a name or ranges of stages.
RecomputeChoice parseRecompute(std::string_view text, const std::string& where);

/// One entry per stage; empty when none recomputes. Throws Error at `where` for a stage that does not exist.
std::vector<Recompute> ofStages(const RecomputeChoice& choice, int stages, const std::string& where);

/// "full", "stages 0, 1 full", "stage 0 selective, stage 3 full"; empty for none.
std::string textOf(const std::vector<Recompute>& ofStage);

} // namespace pipewright
