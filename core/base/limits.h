// SPDX-License-Identifier: GPL-3.0-or-later
// Limits beyond which a design is taken for a typing error rather than work.
#pragma once

#include <cstdint>

namespace pipewright {

inline constexpr int maxMicrobatches = 65'536;
inline constexpr int maxDevices = 4'096;
inline constexpr std::int64_t maxBlocks = 8'388'608;

} // namespace pipewright
