// SPDX-License-Identifier: GPL-3.0-or-later
// Why a measured step took longer, or less, than predicted. Each difference is attributed to a cause: slower blocks on
// a device, faster ones, transfers and sums of a link, waits for a busy link, idle gaps of the host, waits for memory
// and for processor cores. A cause's contribution is the change of the makespan when the step is replayed without it
// (replay.h). Causes can hide each other, so contributions need not add up; the makespan without all of them is given
// as well. What waited for a block without a record has no cause.
#pragma once

#include "core/design/costs.h"
#include "traces/analysis/replay.h"

#include <functional>
#include <string>
#include <vector>

namespace pipewright {

struct Cause {
    enum class Kind { SlowerBlocks, Transfer, Contention, HostGap, MemoryWait, CoreWait };
    Kind kind = Kind::SlowerBlocks;
    bool faster = false;          ///< its tasks took less than predicted: it holds either these or the slower ones
    int device = 0;               ///< -1 for CoreWait: all of them
    int peer = -1;                ///< Transfer, Contention: the link's other end
    Nanoseconds contribution = 0; ///< to the makespan; negative: it made the step shorter
    Nanoseconds excess = 0;       ///< time above the prediction, summed over all tasks
    std::vector<TaskId> tasks;    ///< affected tasks, largest change first
};

std::string_view nameOf(const Cause& cause); ///< "slower blocks", "faster blocks", "transfer", …
std::string describe(const Cause& cause);    ///< "slower blocks on device 1", "transfers from device 0 to device 1"
/// The same with names of the devices: "slower blocks on GPU 1".
std::string describe(const Cause& cause, const std::function<std::string(int)>& nameOfDevice);

struct BlockDifference { ///< of a compute block, measured minus predicted
    TaskId task = none;
    Nanoseconds start = 0, duration = 0;
    /// Why it started late: its device was busy, its data was late, the transfer took longer, and so on.
    enum class Why { OnTime, DeviceBusy, LateData, Transfer, HostGap, MemoryWait } why = Why::OnTime;
};
std::string_view nameOf(BlockDifference::Why why);

struct DeviceExplanation {
    Nanoseconds computing = 0;
    Nanoseconds warmUp = 0, lateData = 0, transfer = 0, pinned = 0, hostGap = 0, memoryWait = 0, coolDown = 0,
                notRecorded = 0;  ///< idle times; together with `computing` they add up to the makespan
    Nanoseconds transferring = 0; ///< time in which it sends or receives
    Nanoseconds overlapped = 0;   ///< of that, while it computes
    double slowness = 1;          ///< measured time of its blocks / predicted time, relative to the median device
};

/// An idle gap of a device in the measured step, by what it waited for; the parts add up to its length. `transfer`
/// counts sums of gradients too; `pinned` the wait for an earliest start; `notRecorded` gaps in which blocks without a
/// record ran.
struct IdleGap {
    int device = 0;
    TaskId before = none; ///< the block that ends it; none: the device's last block is done
    Nanoseconds start = 0, end = 0;
    Nanoseconds warmUp = 0, lateData = 0, transfer = 0, pinned = 0, hostGap = 0, memoryWait = 0, coolDown = 0,
                notRecorded = 0;
};

struct PathShare { ///< of the critical path of the measured step
    Nanoseconds computing = 0, transferring = 0, waiting = 0;
};

struct Explanation {
    Nanoseconds predicted = 0, measured = 0;
    Nanoseconds allRight = 0;  ///< makespan without any of the causes
    std::vector<Cause> causes; ///< those with the sign of the difference first; of these the largest |contribution|
    std::vector<BlockDifference> blocks; ///< in the Program's order; only recorded blocks
    std::vector<DeviceExplanation> devices;
    std::vector<IdleGap> gaps; ///< by device, then time; the idle parts of `devices` are their sums
    Timeline completed;        ///< the measured step with every task filled in, see Replay
    std::vector<TaskId> criticalPath;
    PathShare path;
    /// The device with the slowest blocks, if by more than 10 % and by more than it may have waited for cores; -1:
    /// none.
    int straggler = -1;

    /// What no record explains: the step with every cause put right, less the prediction.
    Nanoseconds unexplained() const { return allRight - predicted; }
};

/// `measured` and `predicted` are timelines of the program; `costs` are the prediction's. `coreWait`: how long a
/// device's thread waited for a processor core in this step, on average, as StepRecord has it; of the time that blocks
/// and gaps took beyond the prediction, as much counts as these waits. O(causes x tasks).
Explanation explain(const Program& program, const Costs& costs, const Timeline& predicted, const Timeline& measured,
                    Nanoseconds coreWait = -1);

} // namespace pipewright
