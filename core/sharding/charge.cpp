// SPDX-License-Identifier: GPL-3.0-or-later
// Evaluates charges as linear functions of the shares: compute and memory traffic per device, or one collective.
// O(devices) per charge.
#include "core/sharding/charge.h"

#include <algorithm>

namespace pipewright::sharding {

namespace {

double perByte(double bandwidth)
{
    return bandwidth > 0 ? 1 / bandwidth : 0;
}

} // namespace

std::vector<Line> linesOf(const Charge& charge, const Machine& machine)
{
    std::vector<Line> lines;
    const int n = machine.devices();
    if (!charge.communicates) {
        for (int d = 0; d < n; ++d) {
            const auto at = static_cast<std::size_t>(d);
            const double traffic = perByte(machine.memoryBandwidth[at]);
            lines.push_back({charge.fixedFlops / machine.rate[at] + charge.fixedTraffic * traffic,
                             charge.splitFlops / machine.rate[at] + charge.splitTraffic * traffic, d, charge.segment});
        }
        return lines;
    }
    if (n == 1)
        return {{}};
    const CollectiveCost& cost = machine[charge.collective];
    const double whole = charge.bytes * perByte(cost.bandwidth);
    switch (charge.collective) {
    case Collective::AllReduce: return {{cost.latency + whole, 0, 0, -1}};
    case Collective::GroupedBroadcast:
    case Collective::GroupedReduce: return {{n * cost.latency + whole, 0, 0, -1}};
    case Collective::AllGather:
    case Collective::ReduceScatter:
    case Collective::AllToAll: break;
    }
    for (int d = 0; d < n; ++d) {
        lines.push_back({cost.latency, n * whole, d, charge.segment});
        if (charge.otherSegment >= 0 && charge.otherSegment != charge.segment)
            lines.push_back({cost.latency, n * whole, d, charge.otherSegment});
    }
    return lines;
}

double seconds(const Charge& charge, const Machine& machine, const Ratios& ratios)
{
    double longest = 0;
    for (const Line& line : linesOf(charge, machine)) {
        const double share = line.segment < 0 ? 0 : ratios[line.segment][line.device];
        longest = std::max(longest, line.constant + line.slope * share);
    }
    return longest;
}

double seconds(const std::vector<Charge>& charges, const Machine& machine, const Ratios& ratios)
{
    double sum = 0;
    for (const Charge& charge : charges)
        sum += seconds(charge, machine, ratios);
    return sum;
}

Charge cheaperOf(Collective padded, Collective grouped, Charge charge, const Machine& machine, const Ratios& ratios)
{
    charge.communicates = true;
    charge.collective = padded;
    if (!machine.grouped)
        return charge;
    Charge other = charge;
    other.collective = grouped;
    return seconds(other, machine, ratios) < seconds(charge, machine, ratios) ? other : charge;
}

} // namespace pipewright::sharding
