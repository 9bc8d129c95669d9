// SPDX-License-Identifier: GPL-3.0-or-later
// Where the time of every device of another tool's trace went, without a design to hold it against: computing,
// communication and copies that nothing hides, and idle time by its cause, told as Holistic Trace Analysis does. A
// gap in which nothing runs on a device belongs to the host when the call that launched what ends it was made
// after the gap began; to the launching itself when it is no longer than two kernels of a stream are apart anyhow;
// and otherwise to whatever the device waited for (an event, another stream). Over several devices the one whose own
// time - all but its waiting inside communication - is longest holds up the others; unless a link does, whose transfers
// take longer than those of the others and are not hidden behind computing (traces/store/linktransfers.h).
#pragma once

#include "traces/store/launchcalls.h"

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class DeviceTimeCause : std::uint8_t { Computing, Communication, Copies, HostGap, BackToBack, Waiting };
inline constexpr int deviceTimeCauses = 6;
std::string_view nameOf(DeviceTimeCause cause);   ///< "host gap"
std::string_view describe(DeviceTimeCause cause); ///< one sentence

struct TraceStep {
    std::string name; ///< "ProfilerStep#3"
    Nanoseconds start = 0, end = 0;
};
/// Ranges that the profiler names so (ProfilerStep#N) of the lowest rank that has any, in order; steps that were
/// recognised from a pipeline's blocks do not count. Empty: the trace is not cut into steps. O(slices of ranges).
std::vector<TraceStep> stepsOf(const StoredActivities& trace);

struct DeviceTime {
    int rank = 0, device = 0;
    std::string name;                                 ///< "GPU 0", or "rank 1, GPU 0" where there are several ranks
    std::array<Nanoseconds, deviceTimeCauses> time{}; ///< add up to the stretch
    Nanoseconds communicating = 0, copying = 0;       ///< hidden behind other work or not
    Nanoseconds finished = 0;                         ///< of the host gaps: after the last slice of the whole trace
    std::int64_t slices = 0;

    struct Gap { ///< of nothing running
        Nanoseconds start = 0, end = 0;
        DeviceTimeCause cause = DeviceTimeCause::Waiting;
        std::size_t track = 0, slice = 0; ///< what ends it
        bool ended = false;               ///< false: the stretch does, with nothing more to come
    };
    std::vector<Gap> gaps; ///< the longest, longest first, at most `gapsKept`
    static constexpr std::size_t gapsKept = 20;

    Nanoseconds of(DeviceTimeCause cause) const { return time[static_cast<std::size_t>(cause)]; }
    Nanoseconds idle() const
    {
        return of(DeviceTimeCause::HostGap) + of(DeviceTimeCause::BackToBack) + of(DeviceTimeCause::Waiting);
    }
    /// Share of the communication that computing hides; 0 without any.
    double overlap() const;
};

struct LinkTime { ///< of one LinkTransfers::Link, of the transfers that end in the stretch
    std::uint32_t link = 0;
    std::string name;
    std::int64_t transfers = 0;
    Bytes bytes = 0;                 ///< of those that say theirs
    Nanoseconds time = 0, usual = 0; ///< summed; what the median link would have taken
    Nanoseconds waited = 0;          ///< by the first for the last to come; nothing of the link's
    Nanoseconds excess = 0;          ///< beyond the usual, as far as computing did not hide it
    double slowness() const { return usual > 0 ? static_cast<double>(time) / static_cast<double>(usual) : 1; }
};

struct DeviceTimes {
    Nanoseconds from = 0, to = 0;
    std::vector<DeviceTime> devices; ///< by rank, then device; those with a kernel or copy anywhere in the trace
    int straggler = -1;  ///< the device that the others wait for, when its own time is a tenth above the median's
    double slowness = 1; ///< its own time against the median's
    DeviceTimeCause reason = DeviceTimeCause::Computing; ///< in what it differs most from the median device
    Nanoseconds excess = 0;                              ///< by how much
    std::vector<LinkTime> links;                         ///< with a transfer in the stretch
    int slowLink = -1; ///< that with the largest excess, when half as slow again as usual and it matters

    /// Whether the slow link explains more than the straggler.
    bool linkFirst() const;
};

/// "GPU 1 holds up the others: …" or "the link from rank 0 to rank 1 holds up …", the larger cause first; of a trace
/// without either, what most of the devices' time goes to.
std::string verdict(const DeviceTimes& times);

/// Gaps no longer than this between two kernels are of the launching (Holistic Trace Analysis' default).
inline constexpr Nanoseconds backToBackGap = 30;

/// O(slices in the stretch x log streams). `stopped` is asked now and then; when it says true the result is of no use.
DeviceTimes deviceTimes(const StoredActivities& trace, const LaunchCalls& launches, Nanoseconds from, Nanoseconds to,
                        const std::function<bool()>& stopped = {});

/// End of the last slice of a device or host: where a stretch of the whole trace ends.
Nanoseconds endOf(const StoredActivities& trace);

} // namespace pipewright
