// SPDX-License-Identifier: GPL-3.0-or-later
// Where the time of every device of an imported trace went: computing, communication and copies that are not
// overlapped, and idle time by cause, as in Holistic Trace Analysis. The cause of an idle gap is
// - the host, when the call that launched the next slice was made after the gap began;
// - kernel launching, when the gap is no longer than backToBackGap;
// - not known, when the call that launched the next slice was not recorded;
// - otherwise a wait (for an event or another stream).
// Among several devices the straggler is the one with the longest own time (all but waiting inside communication),
// unless a link explains more: its transfers take longer than those of other links and are not overlapped
// (traces/store/linktransfers.h).
#pragma once

#include "traces/store/launchcalls.h"

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class DeviceTimeCause : std::uint8_t { Computing, Communication, Copies, HostGap, BackToBack, Waiting, NotKnown };
inline constexpr int deviceTimeCauses = 7;
constexpr std::size_t indexOf(DeviceTimeCause cause)
{
    return static_cast<std::size_t>(cause);
}
std::string_view nameOf(DeviceTimeCause cause);   ///< "host gap"
std::string_view describe(DeviceTimeCause cause); ///< one sentence

struct TraceStep {
    std::string name; ///< "ProfilerStep#3"
    Nanoseconds start = 0, end = 0;
};
/// The ranges ProfilerStep#N of the lowest rank that has any, in order, but not steps that were recognised from a
/// pipeline's blocks. For a run of Pipewright its steps. Empty when there are none. O(slices of ranges).
std::vector<TraceStep> stepsOf(const StoredActivities& trace);

/// Stands for a GPU's number if no GPU was recorded: a process whose operators count as computing.
inline constexpr int hostDevice = -1;

struct DeviceTime {
    int rank = 0, device = 0;
    std::string name; ///< "GPU 0", "rank 1, GPU 0" of several ranks, or a run's own name
    std::array<Nanoseconds, deviceTimeCauses> time{}; ///< add up to the stretch
    Nanoseconds communicating = 0, copying = 0;       ///< whether overlapped with other work or not
    Nanoseconds finished = 0; ///< part of the host gaps: after the last slice of the whole trace
    std::int64_t slices = 0;

    struct Gap { ///< a stretch in which nothing runs
        Nanoseconds start = 0, end = 0;
        DeviceTimeCause cause = DeviceTimeCause::Waiting;
        std::size_t track = 0, slice = 0; ///< the slice that ends it
        bool ended = false;               ///< false: the stretch ends it
    };
    std::vector<Gap> gaps; ///< the longest, longest first, at most `gapsKept`
    static constexpr std::size_t gapsKept = 20;

    Nanoseconds of(DeviceTimeCause cause) const { return time[indexOf(cause)]; }
    Nanoseconds idle() const
    {
        return of(DeviceTimeCause::HostGap) + of(DeviceTimeCause::BackToBack) + of(DeviceTimeCause::Waiting)
               + of(DeviceTimeCause::NotKnown);
    }
    /// Share of the communication that is overlapped with computing; 0 without any.
    double overlap() const;
};

struct LinkTime { ///< of one LinkTransfers::Link, for the transfers that end in the stretch
    std::uint32_t link = 0;
    std::string name;
    std::int64_t transfers = 0;
    Bytes bytes = 0;                 ///< of transfers with known size
    Nanoseconds time = 0, usual = 0; ///< sums; `usual`: what the median link would have taken
    Nanoseconds waited = 0;          ///< waiting of the first rank for the last one, not part of the link's time
    Nanoseconds excess = 0;          ///< time above the usual that is not overlapped with computing
    double slowness() const { return usual > 0 ? static_cast<double>(time) / static_cast<double>(usual) : 1; }
};

struct DeviceTimes {
    Nanoseconds from = 0, to = 0;
    std::vector<DeviceTime> devices; ///< by rank, then device; those with a kernel or copy anywhere in the trace;
                                     ///< without any, the processes with operators
    int straggler = -1;  ///< the device that the others wait for: its own time is 10 % above the median; -1: none
    double slowness = 1; ///< its own time against the median's
    DeviceTimeCause reason = DeviceTimeCause::Computing; ///< where it differs most from the median device
    Nanoseconds excess = 0;                              ///< by how much
    std::vector<LinkTime> links;                         ///< with a transfer in the stretch
    int slowLink = -1; ///< the one with the largest excess, if 1.5 times as slow as usual and significant; -1: none

    /// True when the slow link explains more than the straggler.
    bool linkFirst() const;
};

/// "GPU 1 holds up the others: …" or "the link from rank 0 to rank 1 holds up …", the larger cause first; without
/// either, the largest part of the devices' time.
std::string verdict(const DeviceTimes& times);

/// Gaps up to this between two kernels count as launching (Holistic Trace Analysis' default).
inline constexpr Nanoseconds backToBackGap = 30;

/// O(slices in the stretch x log streams). `stopped` is polled; when true, the result is invalid.
DeviceTimes deviceTimes(const StoredActivities& trace, const LaunchCalls& launches, Nanoseconds from, Nanoseconds to,
                        const std::function<bool()>& stopped = {});

/// End of the last slice of the trace.
Nanoseconds endOf(const StoredActivities& trace);

/// The default stretch for analyses: "the whole trace", or "the devices' activity", from their first kernel or copy to
/// their last, if that is less than half of the trace.
TraceStep deviceActivity(const StoredActivities& trace);

} // namespace pipewright
