// SPDX-License-Identifier: GPL-3.0-or-later
// Repeated measurements of one quantity: the typical value is the median, and its certainty the median distance from it
// and the count. The same in every table and file.
#pragma once

#include "core/base/median.h"
#include "core/base/units.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace pipewright {

struct Typical {
    Nanoseconds value = 0;  ///< the median
    Nanoseconds spread = 0; ///< half of the samples lie within so much of it
    std::int64_t samples = 0;
};

/// Nothing of nothing.
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

/// The standard deviation relative to the value, from the median distance, which outliers do not move: of a normal
/// distribution the one is 1.4826 times the other. 0 when nothing is known.
inline double relativeDeviation(const Typical& typical)
{
    return typical.value <= 0 ? 0 : 1.4826 * static_cast<double>(typical.spread) / static_cast<double>(typical.value);
}

} // namespace pipewright
