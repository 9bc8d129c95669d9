// SPDX-License-Identifier: GPL-3.0-or-later
// Traces of other tools, made up.
#pragma once

#include "traces/store/activity.h"

#include <algorithm>

namespace pipewright::test {

inline std::uint32_t addLane(TraceData& data, TraceLane::Kind kind, int rank, std::int64_t process, std::int64_t thread,
                             int device, const std::string& name)
{
    TraceLane lane;
    lane.kind = kind;
    lane.rank = rank;
    lane.process = process;
    lane.thread = thread;
    lane.device = device;
    lane.name = name;
    lane.processName = device >= 0 ? "GPU " + std::to_string(device) : "python";
    data.lanes.push_back(lane);
    return static_cast<std::uint32_t>(data.lanes.size() - 1);
}

inline Activity& addActivity(TraceData& data, std::uint32_t lane, ActivityKind kind, const std::string& name,
                             Nanoseconds start, Nanoseconds end, std::uint32_t correlation = 0)
{
    Activity activity;
    activity.start = start;
    activity.end = end;
    activity.name = data.strings.id(name);
    activity.correlation = correlation;
    activity.lane = lane & 0xffffff;
    activity.kindNumber = static_cast<std::uint8_t>(kind);
    data.activities.push_back(activity);
    return data.activities.back();
}

/// `slices` kernels on `lanes` streams, 600 to 1500 ns long, one behind the other.
inline TraceData manyKernels(std::size_t slices, int lanes)
{
    TraceData data;
    data.tool = "made up";
    data.activities.reserve(slices);
    std::vector<Nanoseconds> clock(static_cast<std::size_t>(lanes), 0);
    std::vector<std::uint32_t> names;
    for (int i = 0; i < 500; ++i)
        names.push_back(data.strings.id("kernel_" + std::to_string(i)));
    for (int lane = 0; lane < lanes; ++lane)
        addLane(data, TraceLane::Kind::Stream, 0, 1, lane, lane, "stream " + std::to_string(lane));
    std::uint32_t random = 1;
    for (std::size_t i = 0; i < slices; ++i) {
        random = random * 1664525u + 1013904223u;
        const auto lane = static_cast<std::uint32_t>(i % static_cast<std::size_t>(lanes));
        Activity activity;
        activity.start = clock[lane] + random % 200;
        activity.end = activity.start + 600 + (random >> 8) % 900;
        clock[lane] = activity.end;
        activity.name = names[(random >> 20) % names.size()];
        activity.correlation = static_cast<std::uint32_t>(i + 1);
        activity.lane = lane & 0xffffff;
        activity.kindNumber = static_cast<std::uint8_t>(ActivityKind::Kernel);
        data.activities.push_back(activity);
    }
    data.report.read = static_cast<std::int64_t>(slices);
    return data;
}

/// As PyTorch's profiler records them: per rank a thread whose operators launch kernels on one stream, 1/3 of the
/// slices each, cut into steps.
inline TraceData manyLaunches(std::size_t slices, int ranks)
{
    TraceData data;
    data.tool = "made up";
    data.ranks = ranks;
    data.activities.reserve(slices);
    const auto rounds = static_cast<int>(slices / 3) / ranks, perStep = std::max(1, rounds / 20);
    for (int rank = 0; rank < ranks; ++rank) {
        const auto thread = addLane(data, TraceLane::Kind::Thread, rank, 100 + rank, 1, -1, "thread 1");
        const auto stream = addLane(data, TraceLane::Kind::Stream, rank, 100 + rank, 7, rank, "stream 7");
        for (int i = 0; i < rounds; ++i) {
            const Nanoseconds at = Nanoseconds{1000} * i;
            const auto correlation = static_cast<std::uint32_t>(i + 1);
            const std::string number = std::to_string(i % 200);
            if (i % perStep == 0)
                addActivity(data, thread, ActivityKind::Range, "ProfilerStep#" + std::to_string(i / perStep), at,
                            at + Nanoseconds{1000} * std::min(perStep, rounds - i));
            addActivity(data, thread, ActivityKind::Operator, "aten::op" + number, at, at + 900);
            addActivity(data, thread, ActivityKind::Runtime, "cudaLaunchKernel", at + 100, at + 300, correlation);
            addActivity(data, stream, ActivityKind::Kernel, "kernel_" + number, at + 400, at + 1000 + i % 7 * 50,
                        correlation);
        }
    }
    data.report.read = static_cast<std::int64_t>(data.activities.size());
    return data;
}

} // namespace pipewright::test
