// SPDX-License-Identifier: GPL-3.0-or-later
// What the processes of a run know and strangers do not: who connects to a rank's port says it first. It goes over the
// network as it is, so it keeps out other users and lost connections, not somebody who can read the network.
#pragma once

#include "executor/mpi/launch.h"

#include <string>

namespace pipewright {

inline constexpr const char* rankSecretVariable = "PIPEWRIGHT_RANK_SECRET";
inline constexpr std::size_t shortestRankSecret = 16, longestRankSecret = 64;

/// PIPEWRIGHT_RANK_SECRET where it is set; otherwise 64 random hexadecimal digits in
/// ~/.local/state/pipewright/rank-secret (XDG_STATE_HOME), which only this user can read and whoever comes first makes:
/// the same for all ranks of a machine, and of all machines that share home folders. Throws Error when it is too short
/// or long, or the file cannot be made, is another user's or can be read by others.
std::string rankSecret(const EnvironmentLookup& lookup);

} // namespace pipewright
