// SPDX-License-Identifier: GPL-3.0-or-later
// The memory of a reordered device: its instruction list taken apart into what moves with each block and what
// stays, and put together again in another order.
#include "core/predict/orderpreview.h"

#include <algorithm>

namespace pipewright {

void OrderPreview::splitInstructions()
{
    const Program& program = m_present.program;
    const Program::Device& device = program.devices[static_cast<std::size_t>(m_device)];
    const std::size_t count = device.instructions.size();
    m_kept.assign(count, 0);
    m_workspace.assign(count, 0);
    m_segments.clear();
    std::vector<std::uint32_t> frees; // whose they are shows at what follows
    bool atStart = true;              // of a segment: frees that follow the block at once are its own
    const auto settle = [&](bool own) {
        if (!m_segments.empty()) {
            auto& list = own ? m_segments.back().own : m_segments.back().foreign;
            list.insert(list.end(), frees.begin(), frees.end());
        }
        frees.clear();
    };
    for (std::uint32_t i = 0; i < count; ++i) {
        const Instruction& instruction = device.instructions[i];
        const bool defines = instruction.kind != InstructionKind::Send && instruction.kind != InstructionKind::Free;
        if (defines)
            for (const BufferId id : program.writes(instruction.task)) {
                const Buffer& buffer = program.buffers[id];
                if (buffer.device == m_device)
                    (buffer.kind == BufferKind::Workspace ? m_workspace : m_kept)[i] += buffer.bytes;
            }
        if (instruction.kind == InstructionKind::Compute) {
            settle(false);
            if (!m_segments.empty())
                m_segments.back().end = i;
            m_segments.emplace_back();
            m_segments.back().begin = i;
            m_segments.back().own.push_back(i);
            atStart = true;
            continue;
        }
        const TaskId block = m_segments.empty() ? none : device.instructions[m_segments.back().begin].task;
        if (instruction.kind == InstructionKind::Free) {
            if (instruction.buffer != none)
                m_kept[i] -= program.buffers[instruction.buffer].bytes;
            const auto uses = [&](std::span<const BufferId> buffers) {
                return std::find(buffers.begin(), buffers.end(), instruction.buffer) != buffers.end();
            };
            frees.push_back(i);
            if (atStart && block != none && (uses(program.reads(block)) || uses(program.writes(block))))
                settle(true);
            continue;
        }
        // Before a send its channel's older sends are waited for and their buffers freed.
        atStart = false;
        const bool own = block != none && instruction.kind == InstructionKind::Send && program.afterData[instruction.task] == block;
        settle(own);
        frees.push_back(i);
        settle(own);
    }
    settle(false);
    if (!m_segments.empty())
        m_segments.back().end = static_cast<std::uint32_t>(count);
    // What was taken apart must add up to what it was; a Program that counts otherwise is not understood here.
    Bytes live = device.persistentBytes;
    for (std::size_t i = 0; i < count; ++i) {
        live += m_kept[i];
        m_possible = m_possible && device.liveBytes[i] == live + m_workspace[i];
    }
}

void OrderPreview::rebuildMemory(std::span<const std::uint32_t> positions, std::size_t from, std::size_t to)
{
    const Program::Device& present = m_present.program.devices[static_cast<std::size_t>(m_device)];
    Program::Device& device = m_result.program.devices[static_cast<std::size_t>(m_device)];
    device.instructions.clear();
    device.liveBytes.clear();
    device.peakBytes = device.persistentBytes;
    Bytes live = device.persistentBytes;
    const auto add = [&](std::uint32_t i) {
        device.instructions.push_back(present.instructions[i]);
        live += m_kept[i];
        device.liveBytes.push_back(live + m_workspace[i]);
        device.peakBytes = std::max(device.peakBytes, device.liveBytes.back());
    };
    const std::uint32_t begin = m_segments.empty() ? static_cast<std::uint32_t>(present.instructions.size()) : m_segments.front().begin;
    for (std::uint32_t i = 0; i < begin; ++i)
        add(i);
    int liveChunks = 0, mostChunks = 0;
    for (std::size_t place = 0; place < m_segments.size(); ++place) {
        const Segment& here = m_segments[place];
        if (place < from || place >= to) {
            for (std::uint32_t i = here.begin; i < here.end; ++i)
                add(i);
        } else {
            for (const std::uint32_t i : m_segments[positions[place]].own)
                add(i);
            for (const std::uint32_t i : here.foreign)
                add(i);
        }
        const Op op = m_present.program.tasks[m_lanes[static_cast<std::size_t>(m_device)][positions[place]]].op;
        liveChunks += op == Op::F ? 1 : op == Op::B || op == Op::W ? -1 : 0;
        mostChunks = std::max(mostChunks, liveChunks);
    }
    device.peakActivations = static_cast<double>(mostChunks) / m_present.program.chunks;
    m_result.timeline.memory[static_cast<std::size_t>(m_device)] = memoryCurve(m_result.program, m_result.timeline, m_device);
}

} // namespace pipewright
