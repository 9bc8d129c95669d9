// SPDX-License-Identifier: GPL-3.0-or-later
// Designs as JSON files. Reading is strict: an unknown key, a wrong type or an impossible value is a diagnostic that
// names file and line. Writing is atomic (a temporary file in the same folder, renamed).
//
// A schedule may be given by a building block (buildingblock/buildingblock.h) instead of an order:
//
//   "building_block": {
//     "name": "…",                 optional
//     "interval": 6,               a new microbatch starts every 6 units
//     "microbatches": 8,
//     "placement": [0, 1, 1, 0],   stage -> device
//     "backward": "split",         or "full", the default
//     "reorder": true,             false: repeat and squeeze only
//     "F": [0, 2, 5, 7],           start of every stage's pass, in units, in the first microbatch
//     "I": […], "W": […],          of a split backward, one unit each; without "W" every W takes the first free cell
//     "B": […],                    of a full one
//     "lengths": {"F": […], "B": […]}   of a full one; 1 and 2 units when left out
//   }
// Then "schedule" and each of its keys are optional and default to the unrolled building block. A given "order" takes
// precedence, and the building block is only stored.
//
// In "costs", what lies before the blocks of every device (launch, autograd, Python), none where it is left out:
//
//   "host_gaps": [{"forward": "60us", "backward": "85us", "origin": {"forward": "measured"}}, …]
//
// In a stage of "costs", what its blocks do one behind the other (design/blockparts.h); the block's time is then their
// sum, and may be left out. The stream is "compute" where it is left out, and "awaited" true:
//
//   "parts": {"forward": [{"name": "attention", "time": "4ms"},
//                         {"name": "dispatch", "time": "6ms", "stream": "communication"}, …],
//             "backward": […, {"name": "weights", "time": "5ms", "awaited": false}]}
//
// In "schedule", the order of an overlapped pair's parts where it is not to be the shortest: whose part is next.
//
//   "part_orders": [{"pair": "F0.3&B7.1", "order": "12212"}]
//
// How the groups that hold stages share them out, synthesised for stages that are not named:
//
//   "sharding": [
//     {"stages": [0, 1],               whose layers are alike, and whose groups are
//      "strategy": "megatron",         sharding/strategy.h; "hap" when left out
//      "ratios": [0.6, 0.4],           a member's share each; as the strategy has it when left out
//      "program": ["0.query: …", …]}   sharding/statedplan.h; found when left out
//   ]
#pragma once

#include "core/design/design.h"

#include <string>
#include <string_view>

namespace pipewright {

std::string designToJson(const Design& design);
/// `where` names the text in diagnostics ("design.json" gives "design.json:12"). Throws Error. Checks form and ranges
/// only; whether the schedule can run is validate()'s business.
Design designFromJson(std::string_view text, const std::string& where);

Design readDesign(const std::string& path);
/// Throws Error when the file exists and `overwrite` is false, or cannot be written.
void writeDesign(const Design& design, const std::string& path, bool overwrite);
} // namespace pipewright
