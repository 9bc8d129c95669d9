// SPDX-License-Identifier: GPL-3.0-or-later
// Size limits: larger designs count as typing errors.
#pragma once

#include <cstdint>

namespace pipewright {

inline constexpr int maxMicrobatches = 65'536;
inline constexpr int maxDevices = 4'096;
inline constexpr std::int64_t maxBlocks = 8'388'608;

} // namespace pipewright
