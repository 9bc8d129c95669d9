// SPDX-License-Identifier: GPL-3.0-or-later
// Assigns offsets to buffers: a buffer takes the smallest free hole that fits, else the arena grows (best fit; Knuth,
// The Art of Computer Programming 1, section 2.5). Holes are indexed by offset, to merge neighbours on release, and by
// size. n buffers cost O(n log n) time and O(n) memory.
#include "executor/runtime/arena.h"

#include "core/base/diagnostic.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>

namespace pipewright {

namespace {

std::string place(int device, std::size_t instruction)
{
    return "device " + std::to_string(device) + ", instruction " + std::to_string(instruction);
}

Bytes aligned(Bytes bytes)
{
    return (bytes + ArenaPlan::alignment - 1) / ArenaPlan::alignment * ArenaPlan::alignment;
}

/// Free space below the top of the arena: by offset to merge neighbours, by size to find the best fit.
class Holes {
public:
    Bytes take(Bytes bytes)
    {
        const auto best = m_bySize.lower_bound({bytes, 0});
        if (best != m_bySize.end()) {
            const auto [size, offset] = *best;
            erase(offset, size);
            if (size > bytes)
                insert(offset + bytes, size - bytes);
            return offset;
        }
        // Nothing fits: grow the arena, starting in the last hole if it touches the top.
        Bytes offset = m_top;
        if (!m_byOffset.empty()) {
            const auto last = std::prev(m_byOffset.end());
            if (last->first + last->second == m_top) {
                offset = last->first;
                erase(last->first, last->second);
            }
        }
        m_top = offset + bytes;
        return offset;
    }

    void give(Bytes offset, Bytes bytes)
    {
        auto next = m_byOffset.upper_bound(offset);
        if (next != m_byOffset.begin()) {
            const auto previous = std::prev(next);
            if (previous->first + previous->second == offset) {
                offset = previous->first;
                bytes += previous->second;
                erase(previous->first, previous->second);
            }
        }
        next = m_byOffset.upper_bound(offset);
        if (next != m_byOffset.end() && offset + bytes == next->first) {
            const Bytes size = next->second;
            erase(next->first, size);
            bytes += size;
        }
        insert(offset, bytes);
    }

    Bytes top() const { return m_top; }

private:
    void insert(Bytes offset, Bytes bytes)
    {
        m_byOffset.emplace(offset, bytes);
        m_bySize.emplace(bytes, offset);
    }
    void erase(Bytes offset, Bytes bytes)
    {
        m_byOffset.erase(offset);
        m_bySize.erase({bytes, offset});
    }

    std::map<Bytes, Bytes> m_byOffset;
    std::set<std::pair<Bytes, Bytes>> m_bySize;
    Bytes m_top = 0;
};

} // namespace

std::vector<BufferLife> lifetimes(const Program& program, int device)
{
    const auto& instructions = program.devices.at(static_cast<std::size_t>(device)).instructions;
    std::vector<BufferLife> result;
    std::unordered_map<BufferId, std::size_t> indexOf;
    std::vector<bool> freed, passing; ///< passing: workspace, which may end with its instruction
    for (std::size_t i = 0; i < instructions.size(); ++i) {
        const Instruction& instruction = instructions[i];
        if (instruction.kind == InstructionKind::Free) {
            if (instruction.buffer == none)
                continue; // this Free only waits
            const auto found = indexOf.find(instruction.buffer);
            if (found == indexOf.end() || freed[found->second])
                throw Error(place(device, i),
                            "frees buffer " + std::to_string(instruction.buffer) + ", which is not live there",
                            "compile the schedule again");
            result[found->second].end = static_cast<std::uint32_t>(i);
            freed[found->second] = true;
            continue;
        }
        if (instruction.kind == InstructionKind::Send)
            continue;
        for (const BufferId buffer : program.writes(instruction.task)) {
            const Buffer& description = program.buffers[buffer];
            if (description.device != device || isPersistent(description.kind)
                || (instruction.kind == InstructionKind::Receive && isThereBeforeTransfers(description.kind)))
                continue;
            if (!indexOf.emplace(buffer, result.size()).second)
                throw Error(place(device, i), "defines buffer " + std::to_string(buffer) + " a second time",
                            "compile the schedule again");
            const auto at = static_cast<std::uint32_t>(i);
            result.push_back({buffer, at, at});
            freed.push_back(false);
            passing.push_back(description.kind == BufferKind::Workspace);
        }
    }
    for (std::size_t i = 0; i < result.size(); ++i) {
        if (!freed[i] && !passing[i])
            throw Error(place(device, result[i].begin),
                        "defines buffer " + std::to_string(result[i].buffer) + ", which is never freed",
                        "compile the schedule again");
    }
    return result;
}

ArenaPlan planArena(const Program& program, std::span<const BufferLife> lifetimes)
{
    const auto sizeOf = [&](std::size_t index) { return aligned(program.buffers[lifetimes[index].buffer].bytes); };
    ArenaPlan plan;
    plan.offsets.resize(lifetimes.size());

    // Buffers that begin at an instruction are placed before those that end with it are released.
    std::vector<std::size_t> byEnd(lifetimes.size());
    for (std::size_t i = 0; i < byEnd.size(); ++i)
        byEnd[i] = i;
    std::stable_sort(byEnd.begin(), byEnd.end(),
                     [&](std::size_t a, std::size_t b) { return lifetimes[a].end < lifetimes[b].end; });
    Holes ofDevice, ofHost;
    const auto holesOf = [&](std::size_t index) -> Holes& {
        return isInHostMemory(program.buffers[lifetimes[index].buffer].kind) ? ofHost : ofDevice;
    };
    std::size_t ended = 0;
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
        for (; ended < byEnd.size() && lifetimes[byEnd[ended]].end < lifetimes[i].begin; ++ended) {
            if (const Bytes bytes = sizeOf(byEnd[ended]); bytes > 0)
                holesOf(byEnd[ended]).give(plan.offsets[byEnd[ended]], bytes);
        }
        if (const Bytes bytes = sizeOf(i); bytes > 0)
            plan.offsets[i] = holesOf(i).take(bytes);
    }
    plan.bytes = ofDevice.top();
    plan.hostBytes = ofHost.top();
    return plan;
}

BufferPlaces planBuffers(const Program& program, int device)
{
    BufferPlaces places;
    places.lifetimes = lifetimes(program, device);
    places.arena = planArena(program, places.lifetimes);
    for (BufferId buffer = 0; buffer < program.buffers.size(); ++buffer) {
        const Buffer& description = program.buffers[buffer];
        if (!isPersistent(description.kind) || description.device != device)
            continue;
        places.lasting.emplace_back(buffer, places.lastingBytes);
        places.persistent += description.bytes;
        places.lastingBytes += aligned(description.bytes);
    }
    return places;
}

} // namespace pipewright
