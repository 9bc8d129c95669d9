// SPDX-License-Identifier: GPL-3.0-or-later
// A Program with every address filled in: per device a flat list that its actor can walk without looking
// anything up, and per transfer the two sides that its link needs. Made once, before the first step.
#pragma once

#include "executor/arena.h"
#include "executor/maths.h"

#include <map>
#include <utility>
#include <vector>

namespace pipewright {

/// Data that crosses one directed pair of devices once per step: a transfer, or one half of a reduction.
struct Exchange {
    TaskId task = none;
    int from = -1, to = -1;
    int link = -1;                   ///< index into Plan::links
    std::vector<Region> source, destination;
    int behind = -1; ///< virtual clock: the exchange that must have left the shared link before this one
    /// Virtual clock: a stated order of transfers puts it behind other blocks than the one whose value it carries.
    bool behindBlocks = false;
};

struct PlannedInstruction {
    /// A range [begin, end) of one of the lists below.
    struct Range {
        std::uint32_t begin = 0, end = 0;
    };
    /// Which block of an overlapped pair. A device does one thing at a time, so the second follows the first.
    enum class Pair : std::uint8_t { None, First, Second };
    InstructionKind kind = InstructionKind::Compute;
    Pair pair = Pair::None;
    TaskId task = none;
    Range reads, writes;    ///< into DevicePlan::views
    Range acquired;         ///< into DevicePlan::lifetimes: what begins here
    Range arrivals;         ///< into DevicePlan::arrivals: exchanges that must have arrived, for a pair's first those of both
    BufferId freed = none;  ///< Free only; none: it only waits
    int send = -1;          ///< exchange sent here; for a Free: the send to wait for
    int receive = -1;       ///< exchange received here
    Nanoseconds earliestStart = 0; ///< a pin, from the beginning of the step
};

struct DevicePlan {
    std::vector<PlannedInstruction> instructions;
    std::vector<BufferLife> lifetimes;
    std::vector<BufferView> views;
    std::vector<std::uint32_t> arrivals;
    std::size_t mostLive = 0; ///< buffers at one time
};

struct PlannedLink {
    int from = -1, to = -1;
    std::size_t postings = 0;
    Bytes largest = 0; ///< bytes of the largest exchange
};

struct Plan {
    std::vector<DevicePlan> devices;
    std::vector<Exchange> exchanges;
    std::vector<PlannedLink> links;
    /// Gradient sums of the two owners, per Reduce task.
    std::map<TaskId, std::pair<BufferView, BufferView>> reductions;
};

/// `regions` per buffer; `lifetimes` per device, with which the regions were planned. `work` says which
/// part of a gradient a reduction exchanges. Throws Error when the program is not consistent.
Plan planRun(const Program& program, std::span<const Region> regions, std::vector<std::vector<BufferLife>> lifetimes,
             StageWork& work);

} // namespace pipewright
