// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/timeline.h"

#include "core/program/overlaps.h"

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

Nanoseconds firstStart(const Timeline& timeline)
{
    Nanoseconds first = notRun;
    for (const Nanoseconds start : timeline.start)
        if (start != notRun && (first == notRun || start < first))
            first = start;
    return std::max<Nanoseconds>(0, first);
}

Nanoseconds IssueClock::next(const Instruction& instruction)
{
    const bool runs = instruction.kind == InstructionKind::Compute || instruction.kind == InstructionKind::Reduce
                      || instruction.kind == InstructionKind::Update || instruction.kind == InstructionKind::Collective;
    if (!runs)
        return m_now;
    const Nanoseconds begin = std::max(m_now, m_timeline.start[instruction.task]);
    const Nanoseconds end = std::max(begin, m_timeline.end[instruction.task]);
    if (overlapsWith(m_program, instruction.task) != none) {
        m_now = begin;
        m_pairEnd = end;
    } else {
        m_now = std::max(end, m_pairEnd);
        m_pairEnd = 0;
    }
    return begin;
}

std::vector<MemorySample> memoryCurve(const Program& program, const Timeline& timeline, int device)
{
    return memoryCurve(program, timeline, program.devices[device]);
}

std::vector<MemorySample> memoryCurve(const Program& program, const Timeline& timeline, const Program::Device& lane)
{
    std::vector<MemorySample> curve;
    curve.reserve(lane.instructions.size() + 2);
    curve.push_back({0, lane.persistentBytes});
    IssueClock clock(program, timeline);
    for (std::size_t i = 0; i < lane.instructions.size(); ++i)
        addSample(curve, clock.next(lane.instructions[i]), lane.liveBytes[i]);
    if (!lane.liveBytes.empty())
        addSample(curve, clock.now(), lane.persistentBytes);
    return curve;
}

} // namespace pipewright
