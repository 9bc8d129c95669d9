// SPDX-License-Identifier: GPL-3.0-or-later
// A V schedule under construction by the adaptive search: per device the passes in order. A pass is one byte, its leg,
// since every leg takes the microbatches in order; so thousands of candidates can be built and timed. Squeezing is a
// longest path, O(passes).
#pragma once

#include "core/families/family.h"
#include "core/schedule/block.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace pipewright {

/// Legs of a microbatch in the order of its data, and the two weight gradients. On device i the first forward,
/// the last gradient and its W belong to stage i, the others to stage 2p - 1 - i.
enum VPass : std::uint8_t {
    forwardFirst,
    forwardBack,
    gradientFirst,
    gradientBack,
    weightFirst,
    weightBack,
    vPasses,
    vIdle = vPasses
};

/// Durations by pass and device.
using VTimes = std::array<std::vector<Nanoseconds>, vPasses>;

struct VLanes {
    using Lane = std::vector<std::uint8_t>;
    int devices = 0, microbatches = 0;
    std::vector<Lane> lanes;

    int peak(int device) const; ///< chunk activations alive at once, released by W
    int peak() const;
    std::vector<std::vector<Block>> blocks() const;
};

/// Times the lanes. Returns the longest span of a device, or nothing on a deadlock. `start`, if given, receives the
/// start of every pass, lane by lane.
class VClock {
public:
    std::optional<Nanoseconds> run(const VLanes& lanes, const VTimes& times, Nanoseconds transfer,
                                   std::vector<std::vector<int>>* start = nullptr);

private:
    std::array<std::vector<Nanoseconds>, gradientBack + 1> m_end; ///< [leg][device x microbatches]
    struct Device {
        std::size_t next = 0;                     ///< in its lane
        std::array<std::size_t, vPasses> count{}; ///< how many of each pass are done
        Nanoseconds free = 0, first = 0;          ///< the end of its last pass, the start of its first
        const Nanoseconds* waitsFor = nullptr;
        std::array<const Nanoseconds*, vPasses> source{}; ///< per microbatch, the end that a pass waits for …
        std::array<Nanoseconds, vPasses> delay{};         ///< … and its transfer time
        std::array<Nanoseconds, vPasses> duration{};
        std::array<Nanoseconds*, gradientBack + 1> end{}; ///< its own part of m_end
    };
    std::vector<Device> m_devices;
};

/// Every pass takes one unit.
VTimes unitTimes(int devices);

/// Fewest microbatches of a construction; surplus ones are left out afterwards.
inline int constructed(int devices, int microbatches)
{
    return microbatches > 2 * devices ? microbatches : 2 * devices;
}

/// From a repeated building block to a schedule (arXiv 2405.15362, section 4): reorder warm-up, drop surplus
/// microbatches, reorder cool-down, fill idle cells, reassign W. Nothing when a step fails or more than `limit` chunk
/// activations are needed.
class VReorder {
public:
    VReorder(int devices, int microbatches, int limit);
    std::optional<VLanes> run(VLanes stamped, int stampedPeak);

private:
    using Cells = std::vector<VLanes::Lane>; ///< lanes with idle cells

    void reorderWarmUp(VLanes& lanes, int peak) const;
    void leaveSurplusOut(VLanes& lanes, int peak) const;
    bool reorderCoolDown(VLanes& lanes);
    std::optional<Cells> cellsOf(const VLanes& lanes);
    void fillHoles(Cells& cells, int peak) const;
    void toLanes(const Cells& cells, VLanes& lanes) const;
    void dealWeightGrads(VLanes& lanes) const;

    int m_devices, m_microbatches, m_limit;
    VTimes m_unit;
    VClock m_clock;
    std::vector<std::vector<int>> m_start;
};

} // namespace pipewright
