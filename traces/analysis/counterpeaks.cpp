// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/analysis/counterpeaks.h"

#include <algorithm>

namespace pipewright {

std::vector<CounterPeak> memoryPeaks(const StoredActivities& trace, Nanoseconds from, Nanoseconds to)
{
    std::vector<CounterPeak> peaks;
    for (const TraceCounter& counter : trace.counters) {
        if (counter.name.find("bytes") == std::string::npos)
            continue;
        const auto first = std::upper_bound(counter.time.begin(), counter.time.end(), from) - counter.time.begin();
        const auto last = std::lower_bound(counter.time.begin(), counter.time.end(), to) - counter.time.begin();
        if (last == 0)
            continue;
        CounterPeak peak{counter.rank, counter.device, counter.name};
        peak.first = peak.highest = counter.value[std::max<std::ptrdiff_t>(0, first - 1)];
        peak.highestAt = first == 0 ? counter.time.front() : from; // what was reported before holds on
        peak.last = counter.value[last - 1];
        for (std::ptrdiff_t i = first; i < last; ++i)
            if (counter.value[i] > peak.highest) {
                peak.highest = counter.value[i];
                peak.highestAt = counter.time[i];
            }
        peaks.push_back(std::move(peak));
    }
    return peaks;
}

} // namespace pipewright
