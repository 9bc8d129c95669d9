// SPDX-License-Identifier: GPL-3.0-or-later
// The memory of a reordered device: divides its instruction list into the instructions that move with each block and
// those that stay, and joins them in the new order.
#include "core/predict/orderpreview.h"

#include <algorithm>

namespace pipewright {

void OrderPreview::splitInstructions()
{
    const Program& program = m_present.program;
    const Program::Device& device = program.devices[m_device];
    const std::size_t count = device.instructions.size();
    m_kept.assign(count, 0);
    m_workspace.assign(count, 0);
    m_segments.clear();
    std::vector<std::uint32_t> frees; // their owner is decided by the next instruction
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
                // Where blocks overlap, the first one's workspace stays until it is freed.
                if (buffer.device == m_device)
                    (buffer.kind == BufferKind::Workspace && !isFirstOfPair(instruction.task) ? m_workspace
                                                                                              : m_kept)[i] +=
                        buffer.bytes;
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
        const bool own =
            block != none && instruction.kind == InstructionKind::Send && program.afterData[instruction.task] == block;
        settle(own);
        frees.push_back(i);
        settle(own);
    }
    settle(false);
    if (!m_segments.empty())
        m_segments.back().end = static_cast<std::uint32_t>(count);
    // The divided bytes must add up to the original ones; otherwise the preview does not support this Program.
    Bytes live = device.persistentBytes;
    for (std::size_t i = 0; i < count; ++i) {
        live += m_kept[i];
        m_possible = m_possible && device.liveBytes[i] == live + m_workspace[i];
    }
}

void OrderPreview::arrangeInstructions(std::span<const std::uint32_t> positions, std::size_t from, std::size_t to)
{
    const auto index = static_cast<std::size_t>(m_device);
    const Program::Device& present = m_present.program.devices[index];
    Program::Device& device = m_result.program.devices[index];
    if (device.instructions.size() != present.instructions.size()) {
        device.instructions = present.instructions;
        device.liveBytes = present.liveBytes;
        m_movedFrom = m_movedTo = 0;
    }
    // In any order, all blocks together leave the same bytes live; only the range between them changes.
    const auto restore = [&](std::size_t begin, std::size_t end) {
        if (begin >= end)
            return;
        const auto first = static_cast<std::ptrdiff_t>(m_segments[begin].begin),
                   last = static_cast<std::ptrdiff_t>(m_segments[end - 1].end);
        std::copy(present.instructions.begin() + first, present.instructions.begin() + last,
                  device.instructions.begin() + first);
        std::copy(present.liveBytes.begin() + first, present.liveBytes.begin() + last,
                  device.liveBytes.begin() + first);
    };
    restore(m_movedFrom, m_movedTo);
    m_movedFrom = from;
    m_movedTo = to;
    if (from == to)
        return;
    std::size_t next = m_segments[from].begin;
    Bytes live = next == 0 ? device.persistentBytes : present.liveBytes[next - 1] - m_workspace[next - 1];
    const auto add = [&](std::uint32_t i) {
        device.instructions[next] = present.instructions[i];
        live += m_kept[i];
        device.liveBytes[next++] = live + m_workspace[i];
    };
    for (std::size_t place = from; place < to; ++place) {
        for (const std::uint32_t i : m_segments[positions[place]].own)
            add(i);
        for (const std::uint32_t i : m_segments[place].foreign)
            add(i);
    }
}

void OrderPreview::rebuildMemory(std::span<const std::uint32_t> positions, std::size_t from, std::size_t to)
{
    arrangeInstructions(positions, from, to);
    const auto index = static_cast<std::size_t>(m_device);
    Program::Device& device = m_result.program.devices[index];
    device.peakBytes = device.persistentBytes;
    for (const Bytes live : device.liveBytes)
        device.peakBytes = std::max(device.peakBytes, live);
    int liveChunks = 0, mostChunks = 0;
    for (const std::uint32_t position : positions) {
        const Op op = m_present.program.tasks[m_lanes[index][position]].op;
        liveChunks += activationsKept(op);
        mostChunks = std::max(mostChunks, liveChunks);
    }
    device.peakActivations = static_cast<double>(mostChunks) / m_present.program.chunks();
    m_result.timeline.memory[index] = memoryCurve(m_result.program, m_result.timeline, m_device);
}

} // namespace pipewright
