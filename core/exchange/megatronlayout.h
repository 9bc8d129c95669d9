// SPDX-License-Identifier: GPL-3.0-or-later
// Megatron-LM's --pipeline-model-parallel-layout: which layers each (virtual) stage holds, as a string such as
// "Et*3|(tt|)*29,m|L". E embedding, t transformer layer, m multi-token prediction, L loss; "|" between
// stages, "x*n" and "(…)*n" repeat, commas are cosmetic. The order is not in the string: Megatron runs 1F1B or its
// interleaved form in any case.
#pragma once

#include "core/exchange/exportedtext.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// The layers of each stage without abbreviations: {"Ettt", "tt", …, "L"}. Throws Error (where = `source`)
/// naming the character at fault. At most 65,536 stages and layers.
std::vector<std::string> parseMegatronLayout(std::string_view layout, const std::string& source);

/// The number of layers of each stage, embedding and loss among them. Multi-token prediction is left out, since models
/// here have none: a note in `notes` counts it. Throws Error as parseMegatronLayout(), and where the embedding does not
/// come first or the loss not last.
std::vector<int> layersOfLayout(std::string_view layout, const std::string& source, Diagnostics& notes);

/// The shortest way to write these stages with "x*n" and repeated stages as "(…|)*n".
std::string megatronLayoutText(const std::vector<std::string>& stages);

/// The arguments that state a design's partition, one per line. Warns when the design's order or placement is not the
/// one that Megatron will run. Throws Error without a model.
ExportedText megatronLayout(const Design& design);

struct MegatronOrder {
    int group = 0;         ///< of microbatches in interleaved 1F1B; 0: 1F1B
    bool combined = false; ///< combined 1F1B (--overlap-moe-expert-parallel-comm)
    bool operator==(const MegatronOrder&) const = default;
};
/// Nothing when the order is none of Megatron's for this placement.
std::optional<MegatronOrder> megatronOrder(const Schedule& schedule);

} // namespace pipewright
