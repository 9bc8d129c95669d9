// SPDX-License-Identifier: GPL-3.0-or-later
// Repeated measurements of one quantity. The typical value is the median; its certainty is given by the median distance
// from it and by the count. The same in all tables and files.
#pragma once

#include "core/base/median.h"
#include "core/base/units.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace pipewright {

struct Typical {
    Nanoseconds value = 0;  ///< the median
    Nanoseconds spread = 0; ///< median distance from the value
    std::int64_t samples = 0;
};

/// All zero without samples.
inline Typical typicalOf(std::vector<Nanoseconds> samples)
{
    if (samples.empty())
        return {};
    Typical typical{medianOf(samples), 0, static_cast<std::int64_t>(samples.size())};
    for (Nanoseconds& sample : samples)
        sample = std::abs(sample - typical.value);
    typical.spread = medianOf(std::move(samples));
    return typical;
}

/// The standard deviation relative to the value, estimated from the median distance, which is robust against outliers:
/// for a normal distribution it is 1.4826 times that distance. 0 when nothing is known.
inline double relativeDeviation(const Typical& typical)
{
    return typical.value <= 0 ? 0 : 1.4826 * static_cast<double>(typical.spread) / static_cast<double>(typical.value);
}

} // namespace pipewright
