// SPDX-License-Identifier: GPL-3.0-or-later
// The instruction list of one device while liveness writes it.
#pragma once

#include "core/base/prefetch.h"
#include "core/program/devicepeaks.h"
#include "core/program/program.h"

#include <vector>

namespace pipewright {

/// Outstanding sends from one device to another, oldest first: their buffers are still to be freed.
struct Channel {
    std::int32_t destination;
    std::vector<TaskId> open;
    std::size_t first = 0;

    void push(TaskId t)
    {
        constexpr std::size_t mostClosed = 64; // entries before `first`, before they are erased
        if (first == mostClosed) {
            open.erase(open.begin(), open.begin() + mostClosed);
            first = 0;
        }
        open.push_back(t);
    }
};

struct alignas(128) InstructionList : DevicePeaks { // a power of two, so that indexing is a shift
    std::vector<Instruction> instructions;
    std::vector<Bytes> liveBytes;
    std::vector<Channel> channels; ///< from here; few destinations each
    std::size_t expected = 0;      ///< instructions
    TaskId lastBlock = 0;
    std::vector<TaskId> openOffloads; ///< oldest first: what they read is still to be freed
    std::vector<TaskId> openSums;     ///< likewise: over copies of the pipeline
    bool isWritten = true;            ///< false: only the peaks are wanted

    Channel& channelTo(int destination)
    {
        for (Channel& channel : channels)
            if (channel.destination == destination)
                return channel;
        return channels.emplace_back(Channel{destination, {}, 0});
    }

    /// Appends an instruction that defines `kept` bytes and needs `workspace` more while it runs. The fields are
    /// written in place: copying a just-built Instruction reads it in wider pieces than it was written in, which the
    /// store buffer cannot forward; those stalls took half of the pass.
    [[gnu::always_inline]] inline void add(InstructionKind kind, TaskId task, BufferId buffer, Bytes kept,
                                           Bytes workspace)
    {
        const Bytes running = define(kept, workspace);
        if (!isWritten)
            return;
        Instruction& instruction = instructions.emplace_back();
        instruction.kind = kind;
        instruction.task = task;
        instruction.buffer = buffer;
        liveBytes.push_back(running);
        prefetchForWriting(&instruction + 16);
        prefetchForWriting(&liveBytes.back() + 16);
    }
};

} // namespace pipewright
