// SPDX-License-Identifier: GPL-3.0-or-later
// Replays one device's instruction list up to the instruction at its peak, keeping the set of live buffers.
// O(instructions + buffers of the device).
#include "core/predict/peakbreakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace pipewright {

namespace {

/// The live buffers of a device, summed by purpose.
class LiveParts {
public:
    LiveParts(const Program& program, MemoryPeak& peak) : m_program(program), m_peak(peak)
    {
        for (const Instruction& instruction : program.devices[peak.device].instructions)
            if (instruction.kind == InstructionKind::Free && instruction.buffer != none
                && program.buffers[instruction.buffer].kind == BufferKind::Workspace)
                m_freed.insert(instruction.buffer);
    }

    /// Sends define no buffers; buffers that a task writes on another device belong to that device.
    void define(const Instruction& instruction)
    {
        if (instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Free)
            return;
        for (const BufferId id : m_program.writes(instruction.task)) {
            const Buffer& buffer = m_program.buffers[id];
            if (buffer.device != m_peak.device || isInHostMemory(buffer.kind))
                continue;
            add(buffer, 1);
            if (buffer.kind == BufferKind::Workspace && !m_freed.contains(id))
                m_passing += buffer.bytes;
        }
    }

    /// After an instruction: removes its workspace, and the buffer of a Free.
    void leave(const Instruction& instruction)
    {
        m_peak.workspace -= std::exchange(m_passing, 0);
        if (instruction.kind == InstructionKind::Free && instruction.buffer != none
            && !isInHostMemory(m_program.buffers[instruction.buffer].kind))
            add(m_program.buffers[instruction.buffer], -1);
    }

    void sumUpStages()
    {
        std::map<std::pair<int, int>, std::pair<int, Bytes>> stages; // by stage and replica
        for (const auto& [of, live] : m_saved)
            if (live.first > 0) {
                auto& sum = stages[{of.first, static_cast<int>(of.second & 0xffff)}];
                ++sum.first;
                sum.second += live.second;
            }
        for (const auto& [of, sum] : stages)
            m_peak.saved.push_back({of.first, sum.first, sum.second, of.second});
    }

private:
    void add(const Buffer& buffer, int sign)
    {
        const Bytes bytes = sign * buffer.bytes;
        switch (traitsOf(buffer.kind).use) {
        case BufferUse::Workspace: m_peak.workspace += bytes; break;
        case BufferUse::Received: m_peak.received += bytes; break;
        case BufferUse::Made: m_peak.made += bytes; break;
        case BufferUse::Weights: m_peak.weights += bytes; break;
        case BufferUse::Gathered:
            (traitsOf(buffer.kind).isWeights ? m_peak.gathered : m_peak.wholeGradients) += bytes;
            break;
        case BufferUse::Saved: {
            auto& [count, sum] = m_saved[{buffer.stage, std::int64_t(buffer.microbatch) << 16 | buffer.replica}];
            count += sign;
            sum += bytes;
            break;
        }
        case BufferUse::State:
        case BufferUse::OnHost: break;
        }
    }

    const Program& m_program;
    MemoryPeak& m_peak;
    std::set<BufferId> m_freed; ///< workspaces of overlapped pairs, and of blocks in several parts
    Bytes m_passing = 0;        ///< workspace of the instruction that runs
    /// (stage, microbatch and replica) -> live buffers and their bytes
    std::map<std::pair<int, std::int64_t>, std::pair<int, Bytes>> m_saved;
};

} // namespace

Bytes MemoryPeak::savedBytes() const
{
    Bytes sum = 0;
    for (const Saved& stage : saved)
        sum += stage.bytes;
    return sum;
}

int MemoryPeak::savedActivations() const
{
    int sum = 0;
    for (const Saved& stage : saved)
        sum += stage.microbatches;
    return sum;
}

MemoryPeak memoryPeak(const Program& program, const Timeline& timeline, int device)
{
    const Program::Device& lane = program.devices[device];
    MemoryPeak peak;
    peak.device = device;
    peak.peak = lane.peakBytes;
    peak.persistent = lane.persistentBytes;
    for (std::size_t b = 0; b < program.buffers.size() && isPersistent(program.buffers[b].kind); ++b)
        if (program.buffers[b].kind == BufferKind::Framework && program.buffers[b].device == device)
            peak.framework += program.buffers[b].bytes; // states are the first buffers
    const auto highest = std::find(lane.liveBytes.begin(), lane.liveBytes.end(), lane.peakBytes);
    if (highest == lane.liveBytes.end())
        return peak; // only persistent buffers
    const auto last = static_cast<std::size_t>(highest - lane.liveBytes.begin());
    LiveParts parts(program, peak);
    IssueClock clock(program, timeline);
    for (std::size_t i = 0; i <= last; ++i) {
        const Instruction& instruction = lane.instructions[i];
        parts.define(instruction);
        peak.time = clock.next(instruction);
        if (i == last) {
            peak.during = instruction.task == none ? std::string() : program.label(instruction.task);
            break;
        }
        parts.leave(instruction);
    }
    parts.sumUpStages();
    return peak;
}

std::string describeParts(const MemoryPeak& peak)
{
    std::string text;
    const auto part = [&text](Bytes bytes, std::string_view what) {
        if (bytes > 0)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", formatSize(bytes), what);
    };
    part(peak.persistent - peak.framework, "all the time (parameters, gradients, optimizer)");
    part(peak.framework, "that the framework holds besides");
    if (peak.savedBytes() > 0) {
        std::string stages;
        for (const MemoryPeak::Saved& saved : peak.saved)
            stages += fmt::format("{}stage {}{}: {} of {} microbatch{}", stages.empty() ? "" : ", ", saved.stage,
                                  saved.replica == 0 ? std::string() : fmt::format("/{}", saved.replica),
                                  formatSize(saved.bytes), saved.microbatches, saved.microbatches == 1 ? "" : "es");
        part(peak.savedBytes(), fmt::format("of saved activations ({})", stages));
    }
    part(peak.weights, "of further weight versions (older, or predicted)");
    part(peak.gathered, "of gathered parameters");
    part(peak.wholeGradients, "of gradients that are still to be shared out");
    part(peak.received, "received");
    part(peak.made, "made here and not yet sent or used");
    part(peak.workspace, "of workspace");
    return text;
}

std::string remedy(const MemoryPeak& peak)
{
    const std::string more = "spread the layers over more devices, or take devices with more memory";
    if (peak.persistent >= peak.limit)
        return "the weights and their state alone fill it: " + more;
    const Bytes saved = peak.savedBytes(), others = peak.peak - peak.persistent - saved;
    const Bytes room = peak.limit - peak.persistent - others; // for saved activations
    if (saved >= others) {
        // Activations differ in size between stages; the proportional number is an approximation.
        const auto fit =
            room <= 0
                ? 0
                : static_cast<int>(static_cast<double>(room) / static_cast<double>(saved) * peak.savedActivations());
        if (fit > 0)
            return fmt::format(
                "about {} of its {} saved activations fit: keep fewer microbatches alive (a family of lower peak, "
                "--memory-limit), use smaller microbatches, or {}",
                fit, peak.savedActivations(), more);
    }
    return "use smaller microbatches, or " + more;
}

} // namespace pipewright
