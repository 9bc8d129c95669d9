// SPDX-License-Identifier: GPL-3.0-or-later
// How the copies of a pipeline share out what a stage holds besides activations (ZeRO, arXiv 1910.02054).
#pragma once

#include <cstdint>
#include <string_view>

namespace pipewright {

struct Zero {
    /// Which devices share: those with the same layers and other sequences, or those with other parts of a sequence
    /// too, as Megatron's distributed optimizer and FSDP do.
    enum class Over : std::uint8_t { Data, DataAndContext };

    int level = 0; ///< 0: nothing is shared out; 1: the optimizer's state
    Over over = Over::DataAndContext;
    bool operator==(const Zero&) const = default;

    static constexpr int highestLevel = 1;
};

constexpr std::string_view nameOf(Zero::Over over) ///< as in files; empty behind the last one
{
    switch (over) {
    case Zero::Over::Data: return "data";
    case Zero::Over::DataAndContext: return "data and context";
    }
    return {};
}

} // namespace pipewright
