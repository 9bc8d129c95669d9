// SPDX-License-Identifier: GPL-3.0-or-later
// When the host made the call that launched a kernel or copy: found by process and correlation, which is unique within
// a process only. Kernels of a CUDA graph share their launch's call. 24 bytes per call.
#pragma once

#include "traces/store/activitystore.h"

#include <functional>
#include <utility>
#include <vector>

namespace pipewright {

class LaunchCalls {
public:
    LaunchCalls() = default;
    /// O(calls log calls). `stopped` is polled; when true, calls are missing.
    explicit LaunchCalls(const StoredActivities& trace, const std::function<bool()>& stopped = {});

    /// Start of the earliest call (of the runtime or the driver); nothing before the trace when none is known.
    static constexpr Nanoseconds unknown = -1;
    Nanoseconds of(const Track& track, std::size_t slice) const { return callOf(track, slice).start; }
    struct Call {
        Nanoseconds start = unknown, end = unknown;
    };
    Call callOf(const Track& track, std::size_t slice) const;

private:
    std::uint64_t key(std::uint32_t lane, std::uint32_t correlation) const
    {
        return std::uint64_t{m_process[lane]} << 32 | correlation;
    }

    std::vector<std::uint32_t> m_process;                ///< by lane: a number for its rank and process
    std::vector<std::pair<std::uint64_t, Call>> m_calls; ///< by key, then start
};

} // namespace pipewright
