// SPDX-License-Identifier: GPL-3.0-or-later
// How much memory the orders that a search finds may take on a device. memorylimit.cpp says what every task of the
// search's model takes and frees, and what that leaves of the limit.
#pragma once

#include "core/base/units.h"

#include <optional>

namespace pipewright {

/// The memory limit of a schedule. With neither, the memory of the cluster's devices.
struct MemoryLimit {
    std::optional<Bytes> bytes; ///< all of a device's memory, weights and buffers included
    /// In units of (devices × one microbatch's saved activations on a device), as in the zero-bubble papers: I frees
    /// what W does not need. Without bytes in the costs an activation is kept until its W or B.
    std::optional<double> factor;
};

} // namespace pipewright
