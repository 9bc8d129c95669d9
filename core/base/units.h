// SPDX-License-Identifier: GPL-3.0-or-later
// Time and size. Times are whole nanoseconds and sizes whole bytes, so results are reproducible to the bit and two
// schedules can be compared exactly. Text always carries a unit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pipewright {

using Nanoseconds = std::int64_t;
using Bytes = std::int64_t;

/// "18.522ms", "601us", "3ns", "1.5s", "2min". Throws Error (where = `where`) on a missing or unknown unit, a negative
/// value, or more than 100 days. The decimal text is read exactly, not through a double.
Nanoseconds parseDuration(std::string_view text, std::string_view where);

/// Rounded; at most parseDuration's 100 days.
Nanoseconds toNanoseconds(double seconds);

/// "80GiB", "1.5MB", "512B"; binary (KiB, MiB, GiB, TiB) and decimal (KB, MB, GB, TB). Throws Error.
Bytes parseSize(std::string_view text, std::string_view where);

/// part / whole; 0 when `whole` is 0.
inline double shareOf(Nanoseconds part, Nanoseconds whole)
{
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string formatDuration(Nanoseconds value); ///< three or four significant digits: "18.52 ms"
std::string formatSize(Bytes value);           ///< binary units: "68.8 GiB"
std::string exactDuration(Nanoseconds value);  ///< round-trips through parseDuration: "18.522ms"
std::string exactSize(Bytes value);            ///< round-trips through parseSize: "1536MiB", "1000B"

} // namespace pipewright
