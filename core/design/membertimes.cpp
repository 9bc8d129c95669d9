// SPDX-License-Identifier: GPL-3.0-or-later
// O(devices) for the rings, then O(1) per exchange.
#include "core/design/membertimes.h"

#include <algorithm>

namespace pipewright {

MemberTimes::MemberTimes(const Cluster& cluster, const Parallelism& parallel)
    : m_cluster(cluster), m_parallel(parallel),
      m_layout(cluster, {parallel.tensor, parallel.context, parallel.data, static_cast<int>(cluster.devices.size())}),
      m_tensor(m_layout.tensorRing()), m_context(m_layout.contextRing()), m_expert(m_layout.dataRing(parallel.expert)),
      m_gradients(m_layout.gradientRing(parallel.data)),
      m_expertGradients(m_layout.gradientRing(parallel.data / parallel.expert, parallel.expert))
{
}

double MemberTimes::seconds(const GroupTraffic& traffic) const
{
    const auto bytes = static_cast<double>(traffic.bytes);
    const auto measured = [&](Collective kind, int times) -> std::optional<double> {
        const auto found = m_cluster.collectives.find(kind);
        if (traffic.axis != GroupAxis::Tensor || found == m_cluster.collectives.end())
            return std::nullopt;
        const CollectiveSpec& spec = found->second;
        return times * (static_cast<double>(spec.latency) / 1e9 + (spec.bandwidth > 0 ? bytes / spec.bandwidth : 0));
    };
    const auto ring = [&] {
        switch (traffic.axis) {
        case GroupAxis::Tensor: return ringSeconds(m_tensor, m_parallel.tensor, bytes);
        case GroupAxis::Context: return ringSeconds(m_context, m_parallel.context, bytes);
        case GroupAxis::Expert: break;
        }
        return ringSeconds(m_expert, m_parallel.expert, bytes);
    };
    switch (traffic.exchange) {
    case GroupExchange::AllReduce: return measured(Collective::AllReduce, 1).value_or(2 * ring());
    case GroupExchange::GatherOrScatter: return measured(Collective::AllGather, 1).value_or(ring());
    case GroupExchange::AllToAll: break;
    }
    return measured(Collective::AllToAll, 1).value_or(ring());
}

MemberTimes::Seconds MemberTimes::exchanges(const Layer& layer, std::optional<GroupAxis> axis) const
{
    Seconds sum;
    for (const GroupTraffic& traffic : layer.traffic) {
        if (axis && traffic.axis != *axis)
            continue;
        const double once = seconds(traffic);
        sum.forward += traffic.forward * once;
        sum.inputGrad += traffic.inputGrad * once;
        sum.weightGrad += traffic.weightGrad * once;
    }
    return sum;
}

double MemberTimes::exposed(double seconds, double computing) const
{
    return seconds - std::min(m_parallel.overlap * seconds, computing);
}

double MemberTimes::overCopies(std::span<const Layer> layers, std::int64_t heldElsewhere, int bytesPerParameter) const
{
    double experts = 0, others = -static_cast<double>(heldElsewhere);
    for (const Layer& layer : layers) {
        experts += static_cast<double>(layer.expertParameters);
        others += static_cast<double>(layer.parameters - layer.expertParameters);
    }
    const int holders = m_parallel.context * m_parallel.data;
    return ringSeconds(m_gradients, holders, others * bytesPerParameter)
           + (experts > 0 ? ringSeconds(m_expertGradients, holders / m_parallel.expert, experts * bytesPerParameter)
                          : 0);
}

} // namespace pipewright
