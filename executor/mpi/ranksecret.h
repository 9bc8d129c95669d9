// SPDX-License-Identifier: GPL-3.0-or-later
// A secret that only the processes of a run know: each proves to the others that it knows it (rankproof.h), and never
// sends it.
#pragma once

#include "executor/mpi/launch.h"

#include <string>

namespace pipewright {

inline constexpr const char* rankSecretVariable = "PIPEWRIGHT_RANK_SECRET";
inline constexpr std::size_t shortestRankSecret = 16, longestRankSecret = 64;

/// PIPEWRIGHT_RANK_SECRET where it is set; otherwise 64 random hexadecimal digits in
/// ~/.local/state/pipewright/rank-secret (XDG_STATE_HOME). Only this user can read the file; the first process to need
/// it creates it. So it is the same for all ranks of a machine, and of all machines that share home folders. Throws
/// Error when the secret is too short or too long, or the file cannot be made, belongs to another user or can be read
/// by others.
std::string rankSecret(const EnvironmentLookup& lookup = std::getenv);

/// 64 random hexadecimal digits.
std::string freshSecret();

} // namespace pipewright
