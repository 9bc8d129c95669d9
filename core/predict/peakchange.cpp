// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/peakchange.h"

#include <algorithm>

namespace pipewright {

PeakChange peakChange(std::span<const Bytes> before, std::span<const Bytes> after)
{
    PeakChange most;
    for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
        const Bytes difference = after[i] - before[i];
        if (most.difference <= 0 ? difference > 0 || difference < most.difference : difference > most.difference)
            most = {static_cast<int>(i), difference};
    }
    return most;
}

std::vector<Bytes> devicePeaks(const Metrics& metrics)
{
    std::vector<Bytes> peaks;
    for (const DeviceMetrics& device : metrics.devices)
        peaks.push_back(device.peakBytes);
    return peaks;
}

} // namespace pipewright
