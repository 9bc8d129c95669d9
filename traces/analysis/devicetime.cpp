// SPDX-License-Identifier: GPL-3.0-or-later
// Sweeps each device's streams merged by start, with interval covers per kind of work and a heap of the longest gaps;
// stragglers and slow links by comparison with the median. O(slices log streams).
#include "traces/analysis/devicetime.h"

#include "core/base/median.h"
#include "core/base/units.h"
#include "traces/store/kernelgroups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace pipewright {

namespace {

enum class Class { Compute, Communication, Copy, None };

Class classOf(ActivityKind kind, bool communication)
{
    switch (kind) {
    case ActivityKind::Kernel: return communication ? Class::Communication : Class::Compute;
    case ActivityKind::Memcpy:
    case ActivityKind::Memset: return Class::Copy;
    // Of the host, only without GPUs. Gloo's transfers are ranges, beside the operators that wait for them.
    case ActivityKind::Operator: return communication ? Class::Communication : Class::Compute;
    case ActivityKind::Range: return communication ? Class::Communication : Class::None;
    case ActivityKind::GpuRange:
    case ActivityKind::Synchronization:
    case ActivityKind::Runtime:
    case ActivityKind::Python:
    case ActivityKind::Overhead:
    case ActivityKind::Mark:
    case ActivityKind::Other: break; // does not occupy the device
    }
    return Class::None;
}

/// Length of the union of slices. Slices must be added in order of start.
struct Cover {
    Nanoseconds until = 0, covered = 0;
    /// Returns where the part that the slice adds begins.
    Nanoseconds add(Nanoseconds start, Nanoseconds end)
    {
        start = std::max(start, until);
        covered += std::max<Nanoseconds>(0, end - start);
        until = std::max(until, end); // a slice of no length also ends the gap before it
        return start;
    }
};

/// The overlap of each transfer with its device's computing.
struct HiddenTransfers {
    const std::vector<LinkTransfer>& all;
    std::vector<Nanoseconds>& hidden;
    std::vector<std::size_t> own; ///< indices of the device's transfers, by ready time
    std::size_t next = 0;

    /// Adds a stretch of computing; stretches must come in order.
    void computes(Nanoseconds start, Nanoseconds end)
    {
        while (next < own.size() && all[own[next]].end <= start)
            ++next;
        for (std::size_t i = next; i < own.size() && all[own[i]].ready < end; ++i)
            hidden[own[i]] +=
                std::max<Nanoseconds>(0, std::min(end, all[own[i]].end) - std::max(start, all[own[i]].ready));
    }
};

/// One device, its streams' slices merged by start.
class Sweep {
public:
    Sweep(const StoredActivities& trace, const std::vector<bool>& collective, const LaunchCalls& launches,
          HiddenTransfers transfers)
        : m_trace(trace), m_collective(collective), m_launches(launches), m_transfers(std::move(transfers))
    {
    }

    void run(const std::vector<std::size_t>& tracks, Nanoseconds from, Nanoseconds to, DeviceTime& device,
             const std::function<bool()>& stopped)
    {
        for (Cover* cover : {&m_compute, &m_communication, &m_copies, &m_work, &m_any})
            cover->until = from;
        struct Head {
            Nanoseconds start;
            std::size_t track, slice;
            bool operator>(const Head& o) const { return std::tie(start, track) > std::tie(o.start, o.track); }
        };
        std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
        const auto push = [&](std::size_t t, std::size_t slice) {
            const Track& track = m_trace.tracks[t];
            while (slice < track.size() && classOf(track, slice) == Class::None)
                ++slice;
            if (slice < track.size())
                heads.push({track.start[slice], t, slice});
        };
        m_began = std::min<Nanoseconds>(from, 0); // with the trace, where nothing ran before
        for (const std::size_t t : tracks) {
            const Track& track = m_trace.tracks[t];
            const auto first = static_cast<std::size_t>(std::upper_bound(track.end.begin(), track.end.end(), from)
                                                        - track.end.begin());
            push(t, first);
            for (std::size_t before = first; before-- > 0;)
                if (classOf(track, before) != Class::None) {
                    m_began = std::max(m_began, track.end[before]);
                    break;
                }
        }
        bool open = true; // the last gap may be explained by a slice after the stretch
        while (open && !heads.empty()) {
            if ((++m_steps & 0xffff) == 0 && stopped && stopped())
                return;
            const Head head = heads.top();
            heads.pop();
            const Track& track = m_trace.tracks[head.track];
            if (head.start > m_any.until)
                addGap({m_any.until, std::min(head.start, to), DeviceTimeCause::Waiting, head.track, head.slice, true},
                       head.start, device);
            open = head.start < to;
            if (!open)
                break;
            ++device.slices;
            const Nanoseconds end = std::min(track.end[head.slice], to);
            const Class what = classOf(track, head.slice);
            if (what == Class::Compute)
                m_transfers.computes(m_compute.add(head.start, end), end);
            else
                (what == Class::Communication ? m_communication : m_copies).add(head.start, end);
            if (what != Class::Copy)
                m_work.add(head.start, end);
            m_any.add(head.start, end);
            push(head.track, head.slice + 1);
        }
        if (open && m_any.until < to)
            device.finished = to - m_any.until;
        if (device.finished > 0)
            addGap({m_any.until, to, DeviceTimeCause::HostGap, 0, 0, false}, to, device);
        auto& time = device.time;
        time[indexOf(DeviceTimeCause::Computing)] = m_compute.covered;
        time[indexOf(DeviceTimeCause::Communication)] = m_work.covered - m_compute.covered;
        time[indexOf(DeviceTimeCause::Copies)] = m_any.covered - m_work.covered;
        device.communicating = m_communication.covered;
        device.copying = m_copies.covered;
        std::sort(device.gaps.begin(), device.gaps.end(), longer);
    }

private:
    Class classOf(const Track& track, std::size_t slice) const
    {
        return pipewright::classOf(track.kind[slice],
                                   m_trace.lanes[track.lane].communication || m_collective[track.name[slice]]);
    }

    static bool longer(const DeviceTime::Gap& a, const DeviceTime::Gap& b)
    {
        return std::pair(b.end - b.start, a.start) < std::pair(a.end - a.start, b.start);
    }

    /// `until`: the gap's real end, which may be after the stretch, as the first gap's beginning may be before it.
    void addGap(DeviceTime::Gap gap, Nanoseconds until, DeviceTime& device) const
    {
        if (gap.ended) {
            const Nanoseconds launched = m_launches.of(m_trace.tracks[gap.track], gap.slice);
            const Nanoseconds began = device.slices == 0 ? m_began : gap.start;
            gap.cause = device.device == hostDevice        ? DeviceTimeCause::HostGap // no operator ran
                        : launched > began                 ? DeviceTimeCause::HostGap
                        : until - began <= backToBackGap   ? DeviceTimeCause::BackToBack
                        : launched == LaunchCalls::unknown ? DeviceTimeCause::NotKnown
                                                           : DeviceTimeCause::Waiting;
        }
        device.time[indexOf(gap.cause)] += gap.end - gap.start;
        // A min-heap by length.
        std::vector<DeviceTime::Gap>& kept = device.gaps;
        if (kept.size() == DeviceTime::gapsKept) {
            if (!longer(gap, kept.front()))
                return;
            std::pop_heap(kept.begin(), kept.end(), longer);
            kept.pop_back();
        }
        kept.push_back(gap);
        std::push_heap(kept.begin(), kept.end(), longer);
    }

    const StoredActivities& m_trace;
    const std::vector<bool>& m_collective;
    const LaunchCalls& m_launches;
    HiddenTransfers m_transfers;
    Cover m_compute, m_communication, m_copies, m_work, m_any; ///< m_work: computing or communicating
    std::size_t m_steps = 0;
    Nanoseconds m_began = 0; ///< when the gap at the stretch's beginning really began
};

/// `hidden`: per transfer the overlap with computing.
void addLinks(const LinkTransfers& transfers, const std::vector<Nanoseconds>& hidden, DeviceTimes& times)
{
    std::vector<LinkTime> links(transfers.links.size());
    for (std::size_t i = 0; i < transfers.transfers.size(); ++i) {
        const LinkTransfer& t = transfers.transfers[i];
        if (t.end <= times.from || t.end > times.to)
            continue;
        LinkTime& link = links[t.link];
        ++link.transfers;
        link.bytes += std::max<Bytes>(0, t.bytes);
        link.time += t.time();
        link.usual += t.usual;
        link.waited += t.waited;
        link.excess += std::clamp<Nanoseconds>(t.time() - t.usual, 0, std::max<Nanoseconds>(0, t.time() - hidden[i]));
    }
    for (std::size_t l = 0; l < links.size(); ++l) {
        if (links[l].transfers == 0)
            continue;
        links[l].link = static_cast<std::uint32_t>(l);
        links[l].name = transfers.links[l].what;
        times.links.push_back(std::move(links[l]));
    }
    constexpr double slow = 1.5, matters = 0.02; // ratio to the usual time; share of the stretch
    Nanoseconds largest = static_cast<Nanoseconds>(matters * static_cast<double>(times.to - times.from));
    for (std::size_t l = 0; l < times.links.size(); ++l)
        if (times.links[l].slowness() >= slow && times.links[l].excess > largest) {
            largest = times.links[l].excess;
            times.slowLink = static_cast<int>(l);
        }
}

void findStraggler(DeviceTimes& times)
{
    if (times.devices.size() < 2)
        return;
    // Without recorded communication, waits for other devices and for the host look alike, so only computing counts.
    const bool communicates = std::all_of(times.devices.begin(), times.devices.end(),
                                          [](const DeviceTime& device) { return device.communicating > 0; });
    const auto ownOf = [&](const DeviceTime& device) {
        return communicates ? times.to - times.from - device.of(DeviceTimeCause::Communication) - device.finished
                            : device.of(DeviceTimeCause::Computing);
    };
    std::vector<Nanoseconds> own;
    for (const DeviceTime& device : times.devices)
        own.push_back(ownOf(device));
    const Nanoseconds median = medianOf(own);
    const auto slowest = std::max_element(own.begin(), own.end());
    if (median <= 0 || static_cast<double>(*slowest) <= 1.1 * static_cast<double>(median))
        return;
    times.straggler = static_cast<int>(slowest - own.begin());
    times.slowness = static_cast<double>(*slowest) / static_cast<double>(median);
    if (!communicates) {
        times.excess = *slowest - median;
        return;
    }
    for (const DeviceTimeCause cause :
         {DeviceTimeCause::Computing, DeviceTimeCause::Copies, DeviceTimeCause::HostGap, DeviceTimeCause::BackToBack,
          DeviceTimeCause::Waiting, DeviceTimeCause::NotKnown}) {
        std::vector<Nanoseconds> all;
        for (const DeviceTime& device : times.devices)
            all.push_back(device.of(cause));
        const Nanoseconds excess = times.devices[times.straggler].of(cause) - medianOf(all);
        if (excess > times.excess) {
            times.excess = excess;
            times.reason = cause;
        }
    }
}

} // namespace

std::string_view nameOf(DeviceTimeCause cause)
{
    switch (cause) {
    case DeviceTimeCause::Computing: return "computing";
    case DeviceTimeCause::Communication: return "communication";
    case DeviceTimeCause::Copies: return "copies";
    case DeviceTimeCause::HostGap: return "host gap";
    case DeviceTimeCause::BackToBack: return "launching";
    case DeviceTimeCause::Waiting: return "waiting";
    case DeviceTimeCause::NotKnown: return "not known";
    }
    return {};
}

std::string_view describe(DeviceTimeCause cause)
{
    switch (cause) {
    case DeviceTimeCause::Computing: return "Kernels that are no communication run";
    case DeviceTimeCause::Communication: return "Only communication runs; it counts the waiting for other devices";
    case DeviceTimeCause::Copies: return "Only copies and sets of memory run";
    case DeviceTimeCause::HostGap: return "Nothing runs, since the host had not launched what comes next";
    case DeviceTimeCause::BackToBack: return "The moment between two kernels that follow one another";
    case DeviceTimeCause::Waiting: return "What comes next was launched and waits: for an event, or another stream";
    case DeviceTimeCause::NotKnown: return "Nothing runs, and when what comes next was launched was not recorded";
    }
    return {};
}

double DeviceTime::overlap() const
{
    return communicating > 0
               ? 1 - static_cast<double>(of(DeviceTimeCause::Communication)) / static_cast<double>(communicating)
               : 0;
}

std::vector<TraceStep> stepsOf(const StoredActivities& trace)
{
    std::vector<bool> isStep(trace.strings.size());
    for (std::size_t name = 0; name < trace.strings.size(); ++name)
        isStep[name] = trace.strings[name].starts_with(trace.deviceNames.empty() ? "ProfilerStep#" : "step ");
    std::vector<TraceStep> steps;
    int rank = -1;
    for (const Track& track : trace.tracks) {
        const TraceLane& lane = trace.lanes[track.lane];
        if (lane.kind != TraceLane::Kind::Thread)
            continue;
        for (std::size_t i = 0; i < track.size(); ++i) {
            if (!isStep[track.name[i]])
                continue;
            if (rank >= 0 && lane.rank > rank)
                break;
            if (lane.rank < rank)
                steps.clear();
            rank = lane.rank;
            steps.push_back({trace.strings[track.name[i]], track.start[i], track.end[i]});
        }
    }
    std::sort(steps.begin(), steps.end(), [](const TraceStep& a, const TraceStep& b) { return a.start < b.start; });
    // Some profilers write a step's range on more than one thread.
    steps.erase(std::unique(steps.begin(), steps.end(),
                            [](const TraceStep& a, const TraceStep& b) { return a.name == b.name; }),
                steps.end());
    return steps;
}

DeviceTimes deviceTimes(const StoredActivities& trace, const LaunchCalls& launches, Nanoseconds from, Nanoseconds to,
                        const std::function<bool()>& stopped)
{
    std::vector<bool> collective(trace.strings.size());
    for (std::size_t name = 0; name < trace.strings.size(); ++name)
        collective[name] = KernelGroups::standard().isCommunication(trace.strings[name]);
    std::map<std::pair<int, int>, std::vector<std::size_t>> tracks;
    for (std::size_t t = 0; t < trace.tracks.size(); ++t) {
        const Track& track = trace.tracks[t];
        const TraceLane& lane = trace.lanes[track.lane];
        const bool works = lane.device >= 0 && std::any_of(track.kind.begin(), track.kind.end(), [](ActivityKind kind) {
                               return classOf(kind, false) != Class::None;
                           });
        if (works)
            tracks[{lane.rank, lane.device}].push_back(t);
    }
    if (tracks.empty()) // without GPUs the host's operators count as the work
        for (std::size_t t = 0; t < trace.tracks.size(); ++t) {
            const Track& track = trace.tracks[t];
            for (std::size_t i = 0; i < track.size(); ++i)
                if (classOf(track.kind[i], collective[track.name[i]]) != Class::None) {
                    tracks[{trace.lanes[track.lane].rank, hostDevice}].push_back(t);
                    break;
                }
        }
    DeviceTimes times;
    times.from = from;
    times.to = std::max(from, to);
    std::vector<Nanoseconds> hidden(trace.transfers.transfers.size(), 0);
    std::map<std::pair<int, int>, std::vector<std::size_t>> transfers;
    for (std::size_t i = 0; i < hidden.size(); ++i)
        transfers[{trace.transfers.transfers[i].rank, trace.transfers.transfers[i].device}].push_back(i);
    for (const auto& [which, ofDevice] : tracks) {
        DeviceTime& device = times.devices.emplace_back();
        std::tie(device.rank, device.device) = which;
        const std::string what = device.device == hostDevice ? "CPU" : fmt::format("GPU {}", device.device);
        device.name = device.device >= 0 && device.device < std::ssize(trace.deviceNames)
                          ? trace.deviceNames[device.device]
                      : trace.ranks > 1 ? fmt::format("rank {}, {}", device.rank, what)
                                        : what;
        HiddenTransfers own{trace.transfers.transfers, hidden, std::move(transfers[which])};
        Sweep(trace, collective, launches, std::move(own)).run(ofDevice, times.from, times.to, device, stopped);
    }
    findStraggler(times);
    addLinks(trace.transfers, hidden, times);
    return times;
}

bool DeviceTimes::linkFirst() const
{
    if (slowLink < 0 || straggler < 0)
        return slowLink >= 0;
    // A slow link also causes host and stream waits, so only computing and copies identify a straggler.
    const bool sure = reason == DeviceTimeCause::Computing || reason == DeviceTimeCause::Copies;
    return links[slowLink].excess >= (sure ? excess : excess / 2);
}

std::string verdict(const DeviceTimes& times)
{
    if (times.devices.empty())
        return "no kernels of a device were recorded";
    if (times.to == times.from)
        return "an empty stretch";
    std::string device, link;
    if (times.straggler >= 0) {
        const DeviceTime& slow = times.devices[times.straggler];
        device = fmt::format(
            "{} holds up the others: its own time is {:.2f} times the median device's, most of it {} ({} more)",
            slow.name, times.slowness, nameOf(times.reason), formatDuration(times.excess));
    }
    if (times.slowLink >= 0) {
        const LinkTime& slow = times.links[times.slowLink];
        link = fmt::format("{} holds up the others: {:.2f} times the usual time, and {} more that no computing hides",
                           slow.name, slow.slowness(), formatDuration(slow.excess));
    }
    if (!device.empty() && !link.empty())
        return times.linkFirst() ? link + "; " + device : device + "; " + link;
    if (!device.empty() || !link.empty())
        return device + link;
    std::array<Nanoseconds, deviceTimeCauses> sum{};
    Nanoseconds all = 0;
    for (const DeviceTime& device : times.devices)
        for (std::size_t i = 0; i < sum.size(); ++i) {
            sum[i] += device.time[i];
            all += device.time[i];
        }
    const auto lost = std::max_element(sum.begin() + 1, sum.end());
    const auto share = [all](Nanoseconds part) { return 100 * static_cast<double>(part) / static_cast<double>(all); };
    if (*lost == 0)
        return "all of the devices' time is computing";
    return fmt::format("{:.1f} % of the devices' time is computing; most of the rest is {} ({:.1f} %)", share(sum[0]),
                       nameOf(static_cast<DeviceTimeCause>(lost - sum.begin())), share(*lost));
}

Nanoseconds endOf(const StoredActivities& trace)
{
    Nanoseconds end = 0;
    for (const Track& track : trace.tracks)
        if (track.size() > 0)
            end = std::max(end, track.end.back());
    return end;
}

TraceStep deviceActivity(const StoredActivities& trace)
{
    TraceStep whole{"the whole trace", 0, endOf(trace)}, busy{"the devices' activity", whole.end, 0};
    for (const Track& track : trace.tracks)
        for (std::size_t i = 0; i < track.size() && trace.lanes[track.lane].device >= 0; ++i)
            if (classOf(track.kind[i], false) != Class::None) {
                busy.start = std::min(busy.start, track.start[i]);
                busy.end = std::max(busy.end, track.end[i]);
            }
    return busy.start < busy.end && busy.end - busy.start < whole.end / 2 ? busy : whole;
}

} // namespace pipewright
