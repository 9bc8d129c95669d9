// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/timeline.h"

#include <algorithm>

namespace pipewright {

namespace {

/// Appends samples so that a moment keeps two of them at most: its highest and its last value.
class CurveBuilder {
public:
    explicit CurveBuilder(Bytes base) : m_bytes(base) { m_curve.push_back({0, base}); }

    void change(Nanoseconds time, Bytes difference)
    {
        if (difference == 0)
            return;
        m_bytes += difference;
        const std::size_t size = m_curve.size();
        const bool sameMoment = m_curve[size - 1].time == time;
        const bool full = sameMoment && size >= 2 && m_curve[size - 2].time == time;
        if (full && m_curve[size - 1].bytes > m_curve[size - 2].bytes)
            m_curve[size - 2].bytes = m_curve[size - 1].bytes;
        if (full)
            m_curve[size - 1].bytes = m_bytes;
        else
            m_curve.push_back({time, m_bytes});
    }

    std::vector<MemorySample> take() { return std::move(m_curve); }

private:
    Bytes m_bytes;
    std::vector<MemorySample> m_curve;
};

} // namespace

std::vector<MemorySample> memoryCurve(const Program& program, const Timeline& timeline, int device)
{
    const Program::Device& lane = program.devices[static_cast<std::size_t>(device)];
    CurveBuilder curve(lane.persistentBytes);
    Nanoseconds now = 0; // the device issues sends, receives and frees as soon as it has ended its last block
    const auto writes = [&](TaskId t, bool workspace) {
        Bytes bytes = 0;
        for (const BufferId b : program.writes(t)) {
            const Buffer& buffer = program.buffers[b];
            if (buffer.device == device && (buffer.kind == BufferKind::Workspace) == workspace)
                bytes += buffer.bytes;
        }
        return bytes;
    };
    for (const Instruction& instruction : lane.instructions) {
        switch (instruction.kind) {
        case InstructionKind::Compute:
        case InstructionKind::Reduce:
        case InstructionKind::Update: {
            const TaskId t = instruction.task;
            const Bytes workspace = writes(t, true);
            curve.change(std::max(now, timeline.start[t]), writes(t, false) + workspace);
            now = std::max(now, timeline.end[t]);
            curve.change(now, -workspace);
            break;
        }
        case InstructionKind::Receive: curve.change(now, writes(instruction.task, false)); break;
        case InstructionKind::Free:
            if (instruction.buffer != none)
                curve.change(now, -program.buffers[instruction.buffer].bytes);
            break;
        case InstructionKind::Send: break;
        }
    }
    return curve.take();
}

} // namespace pipewright
