// SPDX-License-Identifier: GPL-3.0-or-later
// Another tool's recording in memory: slices of time on lanes (streams of devices, threads of processes), counters,
// arrows, and counts of skipped records. Importers fill it, the store (activitystore.h) saves it, alignment and
// analysis read it. A slice takes 32 bytes with its name as a number, so ten million slices take a few hundred
// megabytes. Rare fields (bytes, peers) are stored separately.
#pragma once

#include "core/base/units.h"
#include "traces/store/importreport.h"
#include "traces/store/stringpool.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

enum class ActivityKind : std::uint8_t {
    Kernel, ///< on a device; also the kernels of NCCL
    Memcpy,
    Memset,
    GpuRange,        ///< an annotation on the device
    Synchronization, ///< the host or a stream waits
    Runtime,         ///< a call of the CUDA runtime or driver
    Range,           ///< an annotation of the program: NVTX, record_function
    Operator,        ///< an operator of the framework
    Python,          ///< a Python function
    Overhead,        ///< of the profiler itself
    Mark,            ///< a moment: start = end
    Other,
};
inline constexpr int activityKinds = 12;

bool runsOnDevice(ActivityKind kind);       ///< work of a GPU: a kernel, a copy or a memory set
std::string_view nameOf(ActivityKind kind); ///< "kernel", "copy", "runtime call", …

/// The distinguishing part of a name, for short labels: "layer_norm<float>(int)" of "void at::native::(anonymous
/// namespace)::layer_norm<float>(int)", "Step#3" of "ProfilerStep#3". Names of neither kind stay as they are.
std::string_view withoutScope(std::string_view name);

struct Activity {
    Nanoseconds start = 0, end = 0; ///< since the trace's origin
    std::uint32_t name = 0;         ///< in TraceData::strings
    std::uint32_t correlation = 0;  ///< joins a runtime call and its kernel or copy, per process; 0: none
    std::uint32_t detail = 0;       ///< index into TraceData::details; 0: none
    std::uint32_t lane : 24 = 0;
    std::uint32_t kindNumber : 8 = 0;

    ActivityKind kind() const { return static_cast<ActivityKind>(kindNumber); }
};
static_assert(sizeof(Activity) == 32);

struct ActivityDetail {
    Bytes bytes = -1;               ///< copied, set or sent; -1: unknown
    std::int64_t graphNode = 0;     ///< of a CUDA graph; kernels of one graph share their launch's correlation
    std::uint64_t communicator = 0; ///< NCCL's id of it
    std::uint32_t collective = 0;   ///< "allreduce", "send", … in TraceData::strings
    std::uint32_t group = 0;        ///< name of the process group
    std::int32_t peer = -1;         ///< rank at the other end of a send or receive; of a copy the GPU it goes to
    std::int32_t groupSize = 0;
    std::int32_t copyKind =
        0; ///< as CUPTI numbers them: 1 host to device, 2 device to host, 8 device to device, 10 peer
};

struct TraceLane {
    enum class Kind : std::uint8_t { Thread, Stream };
    Kind kind = Kind::Thread;
    int rank = 0;             ///< of the process in its job
    std::int64_t process = 0; ///< number of the process; on a device lane of its host process where known
    std::int64_t thread = 0;  ///< number of the thread; on a device lane of the stream
    int device = -1;          ///< of a stream
    std::string name;         ///< "stream 7", "thread 1234 (python)"
    std::string processName;  ///< "python", "GPU 0"
    std::int64_t sortIndex = 0;
    bool communication = false; ///< a stream whose kernels are all NCCL's
    // While importing:
    bool unknown = false;   ///< all its slices are of kinds that are not known
    bool predicted = false; ///< its slices were not recorded, in our own exports
};

struct TraceCounter {
    int rank = 0;
    int device = -1;  ///< -1: of the host
    std::string name; ///< "GPU memory", with its unit where it has one
    std::vector<Nanoseconds> time;
    std::vector<double> value; ///< from that time on
};

struct TraceFlow {
    std::uint32_t fromLane = 0, toLane = 0;
    Nanoseconds from = 0, to = 0;
};

/// The shift of a rank's clock to rank 0's.
struct ClockOffset {
    int rank = 0;
    Nanoseconds offset = 0;   ///< was added to the rank's times
    Nanoseconds residual = 0; ///< median absolute deviation of the matched events
    std::int64_t events = 0;
    std::string method; ///< "ping-pong", "shared events", "wall clock", "none"
};

struct TraceData {
    TraceData() { details.emplace_back(); }

    std::string tool;               ///< "PyTorch Kineto", "Nsight Systems 3.25.0", "Chrome JSON"
    std::string source;             ///< the file's name
    std::int64_t originEpochNs = 0; ///< UTC of time 0; 0: not known
    int rank = 0, ranks = 1;
    bool rankKnown = false;

    StringPool strings;
    std::vector<TraceLane> lanes;
    std::vector<Activity> activities;    ///< in any order
    std::vector<ActivityDetail> details; ///< [0] stands for none
    std::vector<TraceCounter> counters;
    std::vector<TraceFlow> flows;
    std::vector<ClockOffset> clocks;
    ImportReport report;
};

} // namespace pipewright
