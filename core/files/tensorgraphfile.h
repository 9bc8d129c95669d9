// SPDX-License-Identifier: GPL-3.0-or-later
// The input of sharding as a JSON file: a tensor graph, or a model from which one is made, and a cluster.
//
//   {
//     "pipewright": 1,
//     "name": "…",
//     "graph": [                        inputs, parameters and operations, each before its use; the last is the loss
//       {"name": "x", "op": "input", "shape": [6, 4]},
//       {"name": "w", "op": "parameter", "shape": [8, 4]},        "received": an input whose gradient is handed back
//       {"name": "y", "op": "linear", "of": ["x", "w"], "segment": 0},
//       {"name": "loss", "op": "sum", "of": ["y"]}
//     ],
//     "bytes_per_element": 4,           of every tensor
//     "state_bytes_per_parameter": 4,   kept for every element of a parameter
//     "cluster": {…}                    as in a design, or a preset's name
//   }
//
// Attributes of an operation stand in its node ("heads": 12). Instead of "graph": "model", a shape as in a design or a
// preset's name, with "segments" to divide its layers into; or "mlp": {"batch": 6, "widths": [4, 8, 4], "activation":
// "gelu", "bias": true}. A design file with a model is read as well.
#pragma once

#include "core/cluster/cluster.h"
#include "core/model/tensorgraph.h"

#include <memory>
#include <string>
#include <string_view>

namespace pipewright {

struct LocatedJson;

struct GraphFile {
    TensorGraph graph;
    Cluster cluster;
    std::shared_ptr<const LocatedJson> document; ///< for places; null when the graph was not read from a text

    /// "cluster.devices.1.memory" and names of nodes become file and line, where the file holds them.
    Diagnostics locate(Diagnostics diagnostics) const;
};

/// Throws Error, as designFromJson does. Presets are looked up only where a text names one.
GraphFile graphFileFromJson(std::string_view text, const std::string& where);
GraphFile readGraphFile(const std::string& path);
/// One stage of a design whose device is a group: its part of the model, on the group's devices. Throws Error.
GraphFile readStageFile(const std::string& path, int stage);
/// Always writes the graph itself, also when it was made from a model.
std::string graphFileToJson(const GraphFile& file);

} // namespace pipewright
