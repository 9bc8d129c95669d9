// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cluster/cluster.h"

#include "core/rates/operationrates.h"

#include <algorithm>

namespace pipewright {

Cluster::Cluster() = default;
Cluster::Cluster(const Cluster& other) = default;
Cluster::Cluster(Cluster&& other) noexcept = default;
Cluster& Cluster::operator=(const Cluster& other) = default;
Cluster& Cluster::operator=(Cluster&& other) noexcept = default;
Cluster::~Cluster() = default;
bool Cluster::operator==(const Cluster& other) const = default;

namespace {

template<class Value>
bool sameContents(const std::shared_ptr<const Value>& a, const std::shared_ptr<const Value>& b)
{
    return a == b || (a && b && *a == *b);
}

} // namespace

bool DeviceSpec::operator==(const DeviceSpec& other) const
{
    return sameContents(group, other.group) && sameContents(rates, other.rates) && name == other.name
           && memory == other.memory && peakFlops == other.peakFlops && peakFp8 == other.peakFp8
           && peakNvfp4 == other.peakNvfp4 && memoryBandwidth == other.memoryBandwidth && efficiency == other.efficiency
           && halfRateWidth == other.halfRateWidth;
}

const double& DeviceSpec::peakOf(ProductType products) const
{
    switch (products) {
    case ProductType::Own: break;
    case ProductType::Fp8: return peakFp8;
    case ProductType::Nvfp4: return peakNvfp4;
    }
    return peakFlops;
}

DeviceSpec asOneDevice(Cluster members)
{
    DeviceSpec one{members.name, 0, 0, 0, 0.5};
    double rate = 0;
    for (const DeviceSpec& member : members.devices) {
        one.peakFlops += member.peakFlops;
        rate += member.peakFlops * member.efficiency;
        one.memoryBandwidth += member.memoryBandwidth;
    }
    if (one.peakFlops > 0)
        one.efficiency = rate / one.peakFlops;
    if (!members.devices.empty())
        one.memory = std::min_element(members.devices.begin(), members.devices.end(),
                                      [](const DeviceSpec& a, const DeviceSpec& b) { return a.memory < b.memory; })
                         ->memory;
    one.group = std::make_shared<const Cluster>(std::move(members));
    return one;
}

} // namespace pipewright
