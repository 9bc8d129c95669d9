// SPDX-License-Identifier: GPL-3.0-or-later
// Rates as people write them: arithmetic ("989 TFLOP/s") and bandwidth ("450 GB/s"), with decimal prefixes as on
// data sheets. Text always carries its unit, as durations and sizes do (units.h).
#pragma once

#include <string>
#include <string_view>

namespace pipewright {

/// FLOP/s, FLOPS or FLOP, with K, M, G, T, P or E before it. Throws Error (where = `where`) on a missing unit, a
/// negative value, or what is no number.
double parseFlops(std::string_view text, std::string_view where);
/// B/s with the same prefixes, "/s" may be left out. Throws Error.
double parseBandwidth(std::string_view text, std::string_view where);

std::string formatFlops(double flopsPerSecond);     ///< "989 TFLOP/s"
std::string formatBandwidth(double bytesPerSecond); ///< "450 GB/s"

} // namespace pipewright
