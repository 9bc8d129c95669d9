// SPDX-License-Identifier: GPL-3.0-or-later
// Which stages offload the activations of their forwards, as options and fields take it: "none", "auto", or stages such
// as "0-2,5".
#pragma once

#include "core/base/stageranges.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace pipewright {

struct OffloadChoice {
    enum class Kind : std::uint8_t {
        None,
        Auto, ///< those that cost no time, and as many more as the devices' memory needs
        Stages
    };
    Kind kind = Kind::None;
    StageRanges stages{};
    bool operator==(const OffloadChoice&) const = default;
};

/// Throws Error at `where` for anything else.
OffloadChoice parseOffload(std::string_view text, const std::string& where);

} // namespace pipewright
