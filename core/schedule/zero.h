// SPDX-License-Identifier: GPL-3.0-or-later
// How the copies of a pipeline share out what a stage holds besides activations (ZeRO, arXiv 1910.02054; level 3 is
// PyTorch's FSDP). A device has its share of what is shared out all the time. It gathers the parameters before they are
// read (UNSHARD in PyTorch's schedules), frees what it gathered (RESHARD), and scatters the sums of its gradients to
// those that have the shares (REDUCE_GRAD); when, is in core/program/gatherplan.h.
#pragma once

#include "core/base/stageranges.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// The stages whose gathered parameters are freed after each visit: a run of blocks of one stage on its device. Those
/// of other stages stay until the end of the step.
struct Reshard {
    bool every = false;
    std::vector<int> stages; ///< ascending; empty with `every`
    bool of(int stage) const { return every || std::binary_search(stages.begin(), stages.end(), stage); }
    bool any() const { return every || !stages.empty(); }
    bool operator==(const Reshard&) const = default;
};

struct Zero {
    /// Which devices share: those with the same layers and other sequences, or those with other parts of a sequence
    /// too, as Megatron's distributed optimizer and FSDP do.
    enum class Over : std::uint8_t { Data, DataAndContext };
    /// When gradients are scattered: after the last microbatch, as Megatron and torchtitan do, or after each, so that
    /// no device keeps whole sums.
    enum class Reduce : std::uint8_t { Last, Each };

    int level = 0; ///< 0: nothing is shared out; 1: the optimizer's state; 2: gradients too; 3: parameters too
    Over over = Over::DataAndContext;
    Reshard reshard{};            ///< level 3
    int prefetch = 1;             ///< level 3: how many stages ahead of the one that runs are gathered
    Reduce reduce = Reduce::Last; ///< levels 2 and 3
    bool operator==(const Zero&) const = default;

    static constexpr int highestLevel = 3;
    static constexpr int mostPrefetch = 1'000;
    bool sharesGradients() const { return level >= 2; }
    bool sharesParameters() const { return level >= 3; }
};

constexpr std::string_view nameOf(Zero::Over over) ///< as in files; empty behind the last one
{
    switch (over) {
    case Zero::Over::Data: return "data";
    case Zero::Over::DataAndContext: return "data and context";
    }
    return {};
}

constexpr std::string_view nameOf(Zero::Reduce reduce) ///< as in files and options; empty behind the last one
{
    switch (reduce) {
    case Zero::Reduce::Last: return "last";
    case Zero::Reduce::Each: return "each";
    }
    return {};
}

/// Stages by their ranges, before their number is known: "always", "never", "0-2,5".
struct ReshardChoice {
    bool every = false;
    StageRanges stages{};
};
/// Both throw Error at `where`.
ReshardChoice parseReshard(std::string_view text, const std::string& where);
Reshard reshardOf(const ReshardChoice& choice, int stages, const std::string& where);

/// "last" or "each". Throws Error at `where`.
Zero::Reduce parseReduce(std::string_view text, const std::string& where);

/// "ZeRO 3 over data and context, freed after each visit, 1 stage ahead, gradients after each microbatch".
std::string textOf(const Zero& zero);

} // namespace pipewright
