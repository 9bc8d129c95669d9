// SPDX-License-Identifier: GPL-3.0-or-later
// The highest sums of live bytes of a device, which follow from its instruction list alone.
#pragma once

#include "buffersizes.h"

#include <algorithm>
#include <set>
#include <string>

namespace pipewright::test {

struct ListPeaks {
    Bytes onDevice = 0, onHost = 0;
};

/// `fault` is empty when every buffer is defined once, read only while it lives, and freed at the end.
template<typename IsFirstOfPair>
ListPeaks listPeaks(const Program& program, const BufferSizes& sizes, IsFirstOfPair isFirstOfPair, std::size_t device,
                    std::string& fault)
{
    const auto isOnHost = [](const Buffer& buffer) {
        return buffer.kind == BufferKind::OffloadedUntilInputGrad
               || buffer.kind == BufferKind::OffloadedUntilWeightGrad;
    };
    const auto isLasting = [](const Buffer& buffer) {
        return buffer.kind == BufferKind::Parameters || buffer.kind == BufferKind::Gradients;
    };
    const auto& list = program.devices[device].instructions;
    std::set<BufferId> live;
    Bytes bytes = sizes.persistentBytes(static_cast<int>(device)), onHost = 0;
    ListPeaks peaks{bytes, 0};
    const Bytes atFirst = bytes;
    for (const Instruction& instruction : list) {
        Bytes transient = 0;
        const auto define = [&](BufferId b) {
            const Buffer& buffer = program.buffers[b];
            const bool isPart = instruction.kind == InstructionKind::Receive
                                && buffer.kind == BufferKind::GatheredParameters; // there is room for it
            if (buffer.device != static_cast<int>(device) || isLasting(buffer) || isPart)
                return;
            if (buffer.kind == BufferKind::Workspace && !isFirstOfPair(instruction.task)) {
                transient += sizes.sizeOf(buffer);
            } else {
                (isOnHost(buffer) ? onHost : bytes) += sizes.sizeOf(buffer);
                if (!live.insert(b).second)
                    fault = "a buffer is defined twice";
            }
        };
        switch (instruction.kind) {
        case InstructionKind::Collective: fault = "a collective in a program without members"; break;
        case InstructionKind::Compute:
        case InstructionKind::Update:
        case InstructionKind::Offload:
        case InstructionKind::Reload:
        case InstructionKind::Gather:
        case InstructionKind::ReduceGradients:
        case InstructionKind::Send:
            for (const BufferId b : program.reads(instruction.task))
                if (!live.contains(b) && !isLasting(program.buffers[b]))
                    fault = program.label(instruction.task) + " reads what is not there";
            if (instruction.kind != InstructionKind::Send)
                for (const BufferId b : program.writes(instruction.task))
                    define(b);
            break;
        case InstructionKind::Receive:
            for (const BufferId b : program.writes(instruction.task))
                if (program.buffers[b].kind == BufferKind::GatheredParameters && !live.contains(b))
                    fault = program.label(instruction.task) + " comes where there is no room for it";
            [[fallthrough]];
        case InstructionKind::Reduce:
            for (const BufferId b : program.writes(instruction.task))
                define(b);
            break;
        case InstructionKind::Free:
            if (instruction.buffer != none) {
                const Buffer& buffer = program.buffers[instruction.buffer];
                (isOnHost(buffer) ? onHost : bytes) -= sizes.sizeOf(buffer);
                if (live.erase(instruction.buffer) == 0)
                    fault = "a buffer is freed that is not there";
            }
            break;
        }
        peaks.onDevice = std::max(peaks.onDevice, bytes + transient);
        peaks.onHost = std::max(peaks.onHost, onHost);
    }
    if (bytes != atFirst || onHost != 0)
        fault = "bytes are left over";
    return peaks;
}

} // namespace pipewright::test
