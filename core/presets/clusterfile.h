// SPDX-License-Identifier: GPL-3.0-or-later
// A cluster in a file of its own, such as the one that `devices --measure` writes: {"title", "origin", "cluster"}, the
// last as in a design. Its path (it ends with .json) is accepted wherever a cluster preset is named.
#pragma once

#include "core/cluster/cluster.h"

#include <string>
#include <string_view>

namespace pipewright {

bool namesClusterFile(std::string_view presetOrFile); ///< it ends with ".json"

std::string clusterFileText(const Cluster& cluster, const std::string& title, const std::string& origin);

/// `devices`: take only that many, from the first; 0: all. Throws Error: the file's faults by line, or more devices
/// than it has.
Cluster readClusterFile(const std::string& path, int devices = 0);

} // namespace pipewright
