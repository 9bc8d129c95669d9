// SPDX-License-Identifier: GPL-3.0-or-later
// Times every collective at several sizes and skews on all devices together, each the median of its repetitions;
// calibrated() fits the cluster's links to them. O(collectives x sizes x skews x repetitions).
#include "executor/sharding/collectivetimes.h"

#include "core/base/median.h"
#include "core/sharding/machine.h"
#include "core/sharding/shards.h"
#include "executor/runtime/devicethreads.h"
#include "executor/sharding/membercollectives.h"
#include "executor/sharding/onedevice.h"
#include "executor/sharding/runnablegraph.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <numeric>

namespace pipewright::sharding {

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point from)
{
    return std::chrono::duration<double>(Clock::now() - from).count();
}

/// Shares of the devices: even, twice as much for the first as for the others, and everything on the first.
std::vector<std::vector<double>> skewsFor(int devices)
{
    std::vector<std::vector<double>> shares;
    for (const double first : {1.0, 2.0, 1e9}) {
        auto& one = shares.emplace_back(static_cast<std::size_t>(devices), 1.0);
        one.front() = first;
        const double sum = std::accumulate(one.begin(), one.end(), 0.0);
        for (double& share : one)
            share /= sum;
    }
    if (devices == 1)
        shares.resize(1);
    return shares;
}

void onThreads(Backend& backend, MemberCollectives& collectives, const std::function<void(int)>& work)
{
    onDeviceThreads(
        static_cast<std::size_t>(collectives.devices()),
        [&](std::size_t device) {
            try {
                work(static_cast<int>(device));
            } catch (const Stopped&) { // another device failed
            }
        },
        [&](std::size_t) { backend.giveUp(std::array<Abortable*, 1>{&collectives}); });
}

/// One collective on a tensor of 64 columns that is cut into pieces by the given shares.
class TimedCollective {
public:
    TimedCollective(Collective kind, std::int64_t elements, const std::vector<double>& shares)
        : m_kind(kind), m_rows(std::max<std::int64_t>(2, elements / columns)), // a single one is not cut: all have it
          m_lengths(shardLengths(m_rows, shares)), m_columnLengths(shardLengths(columns, shares))
    {
    }

    CollectiveSample sample(double seconds) const
    {
        const double devices = static_cast<double>(m_lengths.size());
        const auto largest = static_cast<double>(*std::max_element(m_lengths.begin(), m_lengths.end()));
        return {m_kind, static_cast<double>(m_rows * columns) * sizeof(float),
                devices * largest / static_cast<double>(m_rows), seconds};
    }

    /// Seconds, from the moment when all devices have their input.
    double run(int device, MemberDevice& member, MemberCollectives& collectives) const
    {
        const Cut rows{0, m_lengths, m_kind == Collective::GroupedBroadcast || m_kind == Collective::GroupedReduce};
        const Tensor whole = member.zeros({m_rows, columns}), piece = member.zeros({rows.length(device), columns});
        member.synchronize();
        collectives.wait();
        const auto from = Clock::now();
        switch (m_kind) {
        case Collective::AllGather:
        case Collective::GroupedBroadcast: collectives.allGather(device, piece, rows); break;
        case Collective::AllReduce: collectives.allReduce(device, whole); break;
        case Collective::ReduceScatter:
        case Collective::GroupedReduce: collectives.reduceScatter(device, whole, rows); break;
        case Collective::AllToAll: collectives.allToAll(device, piece, rows, {1, m_columnLengths}); break;
        }
        member.synchronize();
        collectives.wait();
        return secondsSince(from);
    }

private:
    static constexpr std::int64_t columns = 64;
    Collective m_kind;
    std::int64_t m_rows;
    std::vector<std::int64_t> m_lengths, m_columnLengths;
};

double timeOf(Backend& backend, const TimedCollective& collective,
              const std::vector<std::unique_ptr<MemberDevice>>& members, MemberCollectives& collectives,
              int repetitions)
{
    std::vector<double> times;
    onThreads(backend, collectives, [&](int device) {
        for (int i = 0; i <= repetitions; ++i) {
            const double seconds = collective.run(device, *members[device], collectives);
            if (device == 0 && i > 0)
                times.push_back(seconds);
        }
    });
    return medianOf(std::move(times));
}

} // namespace

MeasuredGroup measureDevices(const TensorGraph& graph, Backend& backend, const MeasuredGroupOptions& options)
{
    if (Diagnostics found = whyNotRunnable(graph); !found.empty())
        throw Error(std::move(found));
    double flops = 0;
    for (int t = 0; t < graph.size(); ++t)
        flops += forwardFlops(graph, t) + backwardFlops(graph, t);
    if (!(flops > 0))
        throw Error(graph.name, "a model without matrix products says nothing about a device's rate",
                    "calibrate with a model that has linear layers");
    MeasuredGroup times;
    const int devices = backend.devices();
    const LeafValues leaves = randomLeaves(graph, 1);
    std::vector<std::unique_ptr<MemberDevice>> members;
    std::vector<MemberDevice*> pointers;
    for (int d = 0; d < devices; ++d)
        pointers.push_back(members.emplace_back(std::make_unique<MemberDevice>(backend.device(d))).get());
    const auto collectives = createCollectives(pointers, backend.createCommunicators());
    std::vector<std::vector<double>> seconds(static_cast<std::size_t>(devices));
    onThreads(backend, *collectives, [&](int device) {
        const auto at = static_cast<std::size_t>(device);
        OneDevice whole(*members[at], graph, leaves);
        for (int i = 0; i <= options.repetitions; ++i) {
            collectives->wait();
            const auto from = Clock::now();
            whole.step();
            members[at]->synchronize();
            if (i > 0)
                seconds[at].push_back(secondsSince(from));
        }
    });
    for (std::vector<double>& own : seconds)
        times.rates.push_back(flops / medianOf(std::move(own)));
    for (int kind = 0; kind < collectiveKinds; ++kind)
        for (const std::int64_t elements : options.elements)
            for (const std::vector<double>& shares : skewsFor(devices)) {
                const TimedCollective collective(static_cast<Collective>(kind), elements, shares);
                times.samples.push_back(
                    collective.sample(timeOf(backend, collective, members, *collectives, options.repetitions)));
            }
    return times;
}

Cluster calibrated(Cluster cluster, const MeasuredGroup& times)
{
    for (std::size_t d = 0; d < times.rates.size(); ++d) {
        cluster.devices[d].peakFlops = times.rates[d];
        cluster.devices[d].efficiency = 1;
        cluster.devices[d].memoryBandwidth = 0;
    }
    cluster.collectives.clear();
    for (int kind = 0; kind < collectiveKinds; ++kind)
        cluster.collectives[static_cast<Collective>(kind)] =
            fitted(static_cast<Collective>(kind), times.samples, static_cast<int>(cluster.devices.size()));
    return cluster;
}

} // namespace pipewright::sharding
