// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/timeline.h"

#include <algorithm>

namespace pipewright {

namespace {

/// Appends samples so that a moment keeps two of them at most: its highest and its last value.
void addSample(std::vector<MemorySample>& curve, Nanoseconds time, Bytes bytes)
{
    const std::size_t size = curve.size();
    if (size > 0 && curve[size - 1].bytes == bytes)
        return;
    if (size >= 2 && curve[size - 1].time == time && curve[size - 2].time == time) {
        curve[size - 2].bytes = std::max(curve[size - 2].bytes, curve[size - 1].bytes);
        curve[size - 1].bytes = bytes;
    } else {
        curve.push_back({time, bytes});
    }
}

} // namespace

std::vector<MemorySample> memoryCurve(const Program& program, const Timeline& timeline, int device)
{
    const Program::Device& lane = program.devices[static_cast<std::size_t>(device)];
    std::vector<MemorySample> curve{{0, lane.persistentBytes}};
    Nanoseconds now = 0; // the device issues sends, receives and frees as soon as it has ended its last block
    for (std::size_t i = 0; i < lane.instructions.size(); ++i) {
        const Instruction& instruction = lane.instructions[i];
        const bool runs = instruction.kind == InstructionKind::Compute || instruction.kind == InstructionKind::Reduce
                          || instruction.kind == InstructionKind::Update;
        addSample(curve, runs ? std::max(now, timeline.start[instruction.task]) : now, lane.liveBytes[i]);
        if (runs)
            now = std::max(now, timeline.end[instruction.task]);
    }
    if (!lane.liveBytes.empty())
        addSample(curve, now, lane.persistentBytes);
    return curve;
}

} // namespace pipewright
