// SPDX-License-Identifier: GPL-3.0-or-later
// Designs as JSON files. Reading is strict: an unknown key, a wrong type or an impossible value is a diagnostic that
// names file and line. Writing is atomic (a temporary file in the same folder, renamed).
//
// In "schedule", how each stage recomputes activations (base/recompute.h): none, selective, full, every:4, block or
// block-selective. In files of version 1 "full" and "selective" mean R blocks: block and block-selective.
//
//   "recompute": ["full", "full", "none", "none"]
//
// and what the copies of the pipeline share out of their states (schedule/zero.h); "over" is "data and context" when
// left out. Version 1 had "sharded_optimizer": true, which is level 1 over data.
//
//   "zero": {"level": 1, "over": "data"}
//
// Of level 3 a file may say which stages free what they gathered after each visit, "reshard": "always" or
// "reshard_stages": [0, 2], and how many stages ahead are gathered, "prefetch": 1; of levels 2 and 3 when gradients are
// reduced, "reduce": "each", or "last" when left out. In "schedule", gathers of level 3 that do not stand where these
// rules put them (schedule/statedgather.h), named by the stage and the first block that reads them, before a block of
// the same device; or left out, since the device holds the parameters:
//
//   "gathers": [{"gather": "2UNSHARD@F0", "before": "F0.0"}, {"gather": "2UNSHARD@B1", "held": true}]
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
// In "costs", the nodes that the devices stand on: devices of one node have the link of "link", others that of the
// sender's node, unless "links" lists their pair.
//
//   "nodes": {"of_devices": [0, 0, 1, 1],
//             "links": [{"under_switch": 0, "network": {"latency": "15us", "bytes_per_second": 5e10},
//                        "beyond_switch": {…}}, …]}   of every node
//
// In "costs", the host's gap before the blocks of every device (launch, autograd, Python); left out: no gap.
//
//   "host_gaps": [{"forward": "60us", "backward": "85us", "origin": {"forward": "measured"}}, …]
//
// In a stage of "costs", the parts of its blocks, one after another (design/blockparts.h). The block's time is then
// their sum, and may be left out. Defaults: "stream" is "compute", "awaited" is true.
//
//   "parts": {"forward": [{"name": "attention", "time": "4ms"},
//                         {"name": "dispatch", "time": "6ms", "stream": "communication"}, …],
//             "backward": […, {"name": "weights", "time": "5ms", "awaited": false}]}
//
// In "schedule", the order of an overlapped pair's parts where it is not the shortest one: 1 or 2, the block whose part
// is next.
//
//   "part_orders": [{"pair": "F0.3&B7.1", "order": "12212"}]
//
// The plans by which groups of devices share stages; stages that are not named get a synthesised plan.
//
//   "sharding": [
//     {"stages": [0, 1],               stages with equal layers and equal groups
//      "strategy": "megatron",         sharding/strategy.h; "hap" when left out
//      "ratios": [0.6, 0.4],           the share of each member; the strategy's own when left out
//      "program": ["0.query: …", …]}   sharding/statedplan.h; synthesised when left out
//   ]
#pragma once

#include "core/design/design.h"

#include <string>
#include <string_view>

namespace pipewright {

/// Of the files that are written; older ones are read too.
inline constexpr int designVersion = 2;

std::string designToJson(const Design& design);
/// `where` names the text in diagnostics ("design.json" gives "design.json:12"). Throws Error. Checks form and ranges
/// only; validate() checks whether the schedule can run.
Design designFromJson(std::string_view text, const std::string& where);

Design readDesign(const std::string& path);
/// Throws Error when the file exists and `overwrite` is false, or cannot be written.
void writeDesign(const Design& design, const std::string& path, bool overwrite);
} // namespace pipewright
