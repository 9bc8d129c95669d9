// SPDX-License-Identifier: GPL-3.0-or-later
// Statistics of the devices between two times: busy and idle time, time by operation, causes of idle time and the
// memory peak. For the whole step they equal Metrics. An index stores the sums up to every 64th task of a device and
// the peak of every 64 memory samples, so a query, made at every mouse move, takes O(devices * log tasks) for a range
// of any length. Building the index takes O(tasks + samples).
#pragma once

#include "core/predict/lanemeter.h"

#include <array>
#include <optional>
#include <vector>

namespace pipewright {

struct RangeStatistics {
    struct Device {
        Nanoseconds busy = 0;                     ///< blocks that overlap keep a device busy once
        std::array<Nanoseconds, opCount> perOp{}; ///< both blocks of an overlapped pair in full: may exceed `busy`
        IdleCauses causes;                        ///< of the idle time; warm-up and cool-down clipped to the range
        std::optional<Bytes> peak;                ///< none: its memory is not known
    };
    Nanoseconds from = 0, to = 0; ///< as requested, clipped to the step
    std::vector<Device> devices;

    Nanoseconds length() const { return to - from; }
    double busyShare(std::size_t device) const; ///< 0 of an empty range
    double busyShare() const;                   ///< of all devices
    Device total() const;                       ///< sums, and the highest peak
    int fullest() const;                        ///< the device with the highest peak; -1: none is known
};

/// Of a prediction or a recording; keeps references to all three. Tasks that were not run count as absent.
class RangeIndex {
public:
    using MemoryCurves = std::vector<std::vector<MemorySample>>;
    RangeIndex(const Program& program, const Timeline& timeline, const MemoryCurves& memory);
    RangeStatistics between(Nanoseconds from, Nanoseconds to) const;
    Nanoseconds begin() const { return m_begin; } ///< first start of all tasks

private:
    struct Sums {
        LaneMeter meter;
        std::array<Nanoseconds, opCount> perOp{};
    };
    struct Lane {
        std::vector<TaskId> tasks; ///< that ran, in the order of the device
        std::vector<Sums> before;  ///< of every 64th task: the tasks before it
        std::vector<Bytes> peaks;  ///< of every 64 memory samples
    };
    void addTo(Sums& sums, TaskId task, ExtraCursor& extras) const;
    Sums until(const Lane& lane, Nanoseconds time, ExtraCursor& extras) const;
    std::optional<Bytes> peak(std::size_t device, Nanoseconds from, Nanoseconds to) const;

    const Program& m_program;
    const Timeline& m_timeline;
    const MemoryCurves& m_memory;
    std::vector<Lane> m_lanes;
    Nanoseconds m_begin = 0, m_finish = 0;
};

} // namespace pipewright
