// SPDX-License-Identifier: GPL-3.0-or-later
// How ranks find out which of them share a machine: only those can send buffers through its memory.
#pragma once

#include <cstdint>

namespace pipewright {

/// Equal for processes of one machine since its last start, in one process namespace.
std::int64_t thisMachine();

} // namespace pipewright
