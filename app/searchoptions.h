// SPDX-License-Identifier: GPL-3.0-or-later
// The options of `search`, as given and as what the searches take. Each function throws Error for what it cannot read,
// and for options that do not go together.
#pragma once

#include "app/command.h"
#include "app/costschoice.h"
#include "app/noiseoptions.h"

#include "core/search/variants.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::app {

struct SearchCommandOptions {
    explicit SearchCommandOptions(CLI::App& command);

    std::string file, output, limit, timeLimit = "10s", objective = "makespan", progress = "auto";
    std::string backward = "given";
    CostsChoice costs;
    NoiseOptions noise;
    std::vector<std::string> locked, placement;
    std::string recompute, offload;
    std::uint64_t seed = 1;
    int threads = 0, rounds = 0, points = 9;
    bool pareto = false, partition = false, force = false, json = false;
};

/// "1x:2x"; without a colon the range begins at 1x.
std::pair<double, double> parseRange(const std::string& text);
SearchOptions searchOptions(const SearchCommandOptions& given); ///< without the limit
PartitionOptions partitionOptions(const SearchCommandOptions& given, const SearchOptions& options);
/// Nothing where neither the style of backwards nor recomputation is searched.
std::optional<VariantOptions> variantOptions(const SearchCommandOptions& given, const SearchOptions& options);

} // namespace pipewright::app
