// SPDX-License-Identifier: GPL-3.0-or-later
// O(devices) for the rings, then O(1) per exchange.
#include "core/design/membertimes.h"

#include <algorithm>

namespace pipewright {

MemberTimes::MemberTimes(const Cluster& cluster, const Parallelism& parallel)
    : m_cluster(cluster), m_parallel(parallel),
      m_layout(cluster, {parallel.tensor, parallel.context, parallel.data, static_cast<int>(cluster.devices.size())}),
      m_tensor(m_layout.tensorRing()), m_context(m_layout.contextRing()),
      m_expert(parallel.foldedExperts ? m_layout.stageRing(parallel.expert) : m_layout.dataRing(parallel.expert)),
      m_gradients(m_layout.gradientRing(parallel.data)),
      m_expertGradients(parallel.foldedExperts
                            ? m_layout.stageRing(static_cast<int>(parallel.holdersOfExpert()), parallel.expert)
                            : m_layout.gradientRing(parallel.data / parallel.expert, parallel.expert)),
      m_expertsOnNode(parallel.foldedExperts ? m_layout.devicesOnNode(parallel.expert)
                                             : m_layout.copiesOnNode(parallel.expert))
{
}

void PassOrigins::add(const PassOrigins& other)
{
    for (std::size_t i = 0; i < forward.size(); ++i) {
        forward[i] += other.forward[i];
        inputGrad[i] += other.inputGrad[i];
        weightGrad[i] += other.weightGrad[i];
    }
}

MemberTimes::Timed MemberTimes::once(const GroupTraffic& traffic) const
{
    const auto bytes = static_cast<double>(traffic.bytes);
    const auto measured = [&](Collective kind) -> std::optional<Timed> {
        const auto found = m_cluster.collectives.find(kind);
        if (traffic.axis != GroupAxis::Tensor || found == m_cluster.collectives.end())
            return std::nullopt;
        const CollectiveSpec& spec = found->second;
        return Timed{static_cast<double>(spec.latency) / 1e9 + (spec.bandwidth > 0 ? bytes / spec.bandwidth : 0),
                     RateOrigin::Measured};
    };
    const auto over = [&](RatedOperation kind) {
        switch (traffic.axis) {
        case GroupAxis::Tensor: return ringOrRated(kind, m_tensor, m_parallel.tensor, bytes);
        case GroupAxis::Context: return ringOrRated(kind, m_context, m_parallel.context, bytes);
        case GroupAxis::Expert: break;
        }
        return toExperts(traffic);
    };
    switch (traffic.exchange) {
    case GroupExchange::AllReduce: return measured(Collective::AllReduce).value_or(over(RatedOperation::AllReduce));
    case GroupExchange::GatherOrScatter:
        return measured(Collective::AllGather).value_or(over(RatedOperation::AllGather));
    case GroupExchange::AllToAll: break;
    }
    return measured(Collective::AllToAll).value_or(over(RatedOperation::AllToAll));
}

// As libraries count it, each device of n sends (n - 1) / n of the tensor, twice for an all-reduce.
MemberTimes::Timed MemberTimes::ringOrRated(RatedOperation kind, const LinkSpec& link, int count, double bytes) const
{
    if (count < 2)
        return {};
    const double rings = kind == RatedOperation::AllReduce ? 2 : 1;
    const double steps = kind == RatedOperation::AllToAll ? 1 : rings * (count - 1); // it sends to all at once
    return sentOrRated(kind, link, count, bytes, steps, rings * bytes * (count - 1) / count);
}

MemberTimes::Timed MemberTimes::sentOrRated(RatedOperation kind, const LinkSpec& link, int count, double bytes,
                                            double steps, double sent) const
{
    const std::shared_ptr<const OperationRates>& rates = m_cluster.devices.front().rates;
    if (rates && link.bandwidth > 0)
        if (const auto rate =
                rates->find({kind, {}, {}, link.name, {static_cast<double>(count), std::max(1.0, bytes)}}))
            return {rate->of(link.bandwidth).seconds(sent), rate->origin};
    return {static_cast<double>(link.latency) / 1e9 * steps + (link.bandwidth > 0 ? sent / link.bandwidth : 0),
            RateOrigin::Formula};
}

MemberTimes::Timed MemberTimes::toExperts(const GroupTraffic& traffic) const
{
    constexpr RatedOperation kind = RatedOperation::AllToAll;
    const auto bytes = static_cast<double>(traffic.bytes);
    const int all = m_parallel.expert, here = m_expertsOnNode;
    if (here == all)
        return ringOrRated(kind, m_expert, all, bytes);
    const int nodes = (all + here - 1) / here;
    // Handed on within a node, copies for experts of all nodes arrive there over its links.
    const Timed inside = ringOrRated(kind, m_cluster.link, here, traffic.oncePerNode ? bytes : bytes * here / all);
    const Timed between =
        traffic.oncePerNode
            ? sentOrRated(kind, m_expert, all, bytes, 1,
                          bytes / traffic.oncePerNode->perToken * traffic.oncePerNode->otherNodes(nodes))
            : sentOrRated(kind, m_expert, all, bytes, 1, bytes * (all - here) / all);
    return inside.seconds > between.seconds ? inside : between;
}

MemberTimes::Seconds MemberTimes::exchanges(const Layer& layer, std::optional<GroupAxis> axis) const
{
    Seconds sum;
    for (const GroupTraffic& traffic : layer.traffic) {
        if (axis && traffic.axis != *axis)
            continue;
        const double seconds = once(traffic).seconds;
        sum.forward += traffic.forward * seconds;
        sum.inputGrad += traffic.inputGrad * seconds;
        sum.weightGrad += traffic.weightGrad * seconds;
    }
    return sum;
}

PassOrigins MemberTimes::origins(const Layer& layer) const
{
    PassOrigins sum;
    for (const GroupTraffic& traffic : layer.traffic) {
        const Timed timed = once(traffic);
        const auto origin = static_cast<std::size_t>(timed.origin);
        sum.forward[origin] += traffic.forward * timed.seconds;
        sum.inputGrad[origin] += traffic.inputGrad * timed.seconds;
        sum.weightGrad[origin] += traffic.weightGrad * timed.seconds;
    }
    return sum;
}

double MemberTimes::exposed(double seconds, double computing) const
{
    return seconds - std::min(m_parallel.overlap * seconds, computing);
}

double MemberTimes::overCopies(Collective kind, std::span<const Layer> layers, std::int64_t heldElsewhere,
                               const BytesPerParameter& each) const
{
    const RatedOperation operation =
        kind == Collective::ReduceScatter ? RatedOperation::ReduceScatter : RatedOperation::AllGather;
    const auto bytesOf = [&each](std::int64_t all, std::int64_t narrow) {
        return static_cast<double>(all - narrow) * each.usual + static_cast<double>(narrow) * each.narrow;
    };
    double experts = 0, others = bytesOf(-heldElsewhere, 0);
    for (const Layer& layer : layers) {
        experts += bytesOf(layer.expertParameters, layer.narrowExpertParameters);
        others +=
            bytesOf(layer.parameters - layer.expertParameters, layer.narrowParameters - layer.narrowExpertParameters);
    }
    const int holders = m_parallel.context * m_parallel.data;
    return ringOrRated(operation, m_gradients, holders, others).seconds
           + (experts > 0
                  ? ringOrRated(operation, m_expertGradients, static_cast<int>(m_parallel.holdersOfExpert()), experts)
                        .seconds
                  : 0);
}

} // namespace pipewright
