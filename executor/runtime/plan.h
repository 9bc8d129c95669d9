// SPDX-License-Identifier: GPL-3.0-or-later
// A Program with all addresses resolved: per device a flat list that its actor walks without look-ups, and per transfer
// the source and destination that its link needs. Made once, before the first step.
#pragma once

#include "executor/runtime/arena.h"
#include "executor/runtime/stagework.h"

#include <map>
#include <utility>
#include <vector>

namespace pipewright {

/// Data that is moved once per step from one device to another (a transfer, or one half of a reduction), or between a
/// device and the host's memory.
struct PlannedTransfer {
    TaskId task = none;
    int from = -1, to = -1;
    int link = -1; ///< index into Plan::links; -1: between the device and the host's memory
    std::vector<Region> source, destination;
    /// Virtual clock: a given order of transfers places it after later blocks than the one that made its value.
    bool behindBlocks = false;
    /// Virtual clock: it begins when both devices have come to it, though neither waits: a share of gathered
    /// parameters.
    bool meets = false;
};

struct PlannedInstruction {
    /// A range [begin, end) of one of the lists below.
    struct Range {
        std::uint32_t begin = 0, end = 0;
    };
    /// Which block of an overlapped pair. A device walks its list in order, so the second block follows the first.
    enum class Pair : std::uint8_t { None, First, Second };
    InstructionKind kind = InstructionKind::Compute;
    Pair pair = Pair::None;
    TaskId task = none;
    Range reads, writes; ///< into DevicePlan::views
    Range acquired;      ///< into DevicePlan::lifetimes: those that begin here
    /// Into DevicePlan::arrivals: transfers that must have arrived and for which no earlier instruction of the device
    /// waits; a pair's first block has those of both.
    Range arrivals;
    BufferId freed = none;         ///< Free only; none: it only waits
    int send = -1;                 ///< transfer sent here; for a Free: the send to wait for
    int receive = -1;              ///< transfer received here
    int sum = -1;                  ///< Reduce with another device: index into Plan::sums
    bool postsSum = false;         ///< this device's values are posted only here
    Range posts;                   ///< into DevicePlan::posts: sums whose values on this device are complete after this
    Nanoseconds earliestStart = 0; ///< a pin, counted from the start of the step
};

struct DevicePlan {
    std::vector<PlannedInstruction> instructions;
    std::vector<BufferLife> lifetimes;
    std::vector<BufferView> views;
    std::vector<std::uint32_t> arrivals;
    std::vector<std::uint32_t> posts; ///< indices into Plan::sums
    std::size_t mostLive = 0;         ///< most buffers live at one time
};

struct PlannedLink {
    int from = -1, to = -1;
    std::size_t postings = 0;
    Bytes largest = 0; ///< bytes of the largest transfer
};

/// A reduction of two devices as one operation, where the backend has it: see Backend::createPairSum.
struct PlannedSum {
    TaskId task = none;
    std::size_t pair = 0;  ///< index into Plan::sumPairs
    std::size_t index = 0; ///< among those of the pair
    int transfer = -1;     ///< the transfer from the root; that from the other device is the next
};
struct SumPair {
    int first = -1, second = -1;
    std::size_t sums = 0;
};

struct Plan {
    std::vector<DevicePlan> devices;
    std::vector<PlannedTransfer> transfers;
    std::vector<PlannedLink> links;
    std::vector<PlannedSum> sums;
    std::vector<SumPair> sumPairs;
    /// Gradients of the two owners, per Reduce task.
    std::map<TaskId, std::pair<BufferView, BufferView>> reductions;
};

/// `regions` per buffer; `lifetimes` per device, as used to plan the regions. `work` says which part of a gradient a
/// reduction sends. Throws Error when the program is not consistent.
Plan planRun(const Program& program, std::span<const Region> regions, std::vector<std::vector<BufferLife>> lifetimes,
             StageWork& work);

/// The links alone, which need no addresses, so this can run before anything is allocated.
std::vector<PlannedLink> planLinks(const Program& program, StageWork& work);

} // namespace pipewright
