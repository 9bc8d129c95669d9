// SPDX-License-Identifier: GPL-3.0-or-later
// Designs on changed clusters.
#pragma once

#include "core/design/redesign.h"

#include <utility>

namespace pipewright::test {

inline Design withHalfRateWidth(const Design& design, double width)
{
    Cluster cluster = design.cluster;
    for (DeviceSpec& device : cluster.devices)
        device.halfRateWidth = width;
    return withCluster(design, std::move(cluster));
}

/// By the devices' efficiency, whatever was measured of them.
inline Design withoutRates(const Design& design)
{
    Cluster cluster = design.cluster;
    for (DeviceSpec& device : cluster.devices)
        device.rates = nullptr;
    return withCluster(design, std::move(cluster));
}

} // namespace pipewright::test
