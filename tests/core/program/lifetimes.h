// SPDX-License-Identifier: GPL-3.0-or-later
// A recount of a Program's memory for tests: every instruction list replayed with a set of live buffers.
#pragma once

#include "core/program/overlaps.h"
#include "core/program/program.h"

#include <QString>

#include <algorithm>
#include <map>
#include <set>

namespace pipewright::test {

/// Every buffer begins before its uses, ends once, after its last use, and nothing is left at the end;
/// recomputes the peaks on the way. Empty when all is well.
inline QString checkLifetimes(const Program& program)
{
    for (std::size_t d = 0; d < program.devices.size(); ++d) {
        std::map<BufferId, bool> live;
        std::set<TaskId> posted, waited;
        const auto name = [](BufferId b) { return QString("buffer %1").arg(b); };
        Bytes bytes = 0;
        for (const Buffer& b : program.buffers)
            if (b.device == static_cast<int>(d) && b.microbatch < 0 && b.kind <= BufferKind::Framework)
                bytes += b.bytes;
        const Bytes persistent = bytes;
        Bytes peak = bytes;
        // A block in parts keeps its workspace until its last part, which reads it.
        std::set<BufferId> read;
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            for (const BufferId b : program.reads(t))
                read.insert(b);
        for (const Instruction& i : program.devices[d].instructions) {
            Bytes workspace = 0;
            const auto define = [&](BufferId b) -> QString {
                if (isPersistent(program.buffers[b].kind))
                    return {}; // a sum of gradients that another replica sent
                if (i.kind == InstructionKind::Receive && program.buffers[b].kind == BufferKind::GatheredParameters) {
                    if (!live.count(b) || !live[b])
                        return "no room for a share of " + name(b);
                    return {};
                }
                // An overlapped pair's first block needs its workspace until the second has run.
                if (program.buffers[b].kind == BufferKind::Workspace && overlapsWith(program, i.task) == none
                    && !read.contains(b)) {
                    workspace += program.buffers[b].bytes;
                    return {};
                }
                if (live.count(b))
                    return name(b) + " defined twice";
                live[b] = true;
                if (!isInHostMemory(program.buffers[b].kind))
                    bytes += program.buffers[b].bytes;
                return {};
            };
            QString fault;
            switch (i.kind) {
            case InstructionKind::Collective: break;
            case InstructionKind::Compute:
            case InstructionKind::Update:
            case InstructionKind::Offload:
            case InstructionKind::Reload:
            case InstructionKind::Gather:
            case InstructionKind::ReduceGradients:
            case InstructionKind::Send:
                for (const BufferId b : program.reads(i.task))
                    if (!isPersistent(program.buffers[b].kind) && (!live.count(b) || !live[b]))
                        return QString("%1 reads dead %2").arg(QString::fromStdString(program.label(i.task)), name(b));
                if (i.kind == InstructionKind::Send || i.kind == InstructionKind::Offload
                    || (i.kind == InstructionKind::ReduceGradients && !program.reads(i.task).empty()))
                    posted.insert(i.task);
                if (i.kind != InstructionKind::Send)
                    for (const BufferId b : program.writes(i.task))
                        fault += define(b);
                break;
            case InstructionKind::Receive:
            case InstructionKind::Reduce:
                for (const BufferId b : program.writes(i.task))
                    if (program.buffers[b].device == static_cast<int>(d))
                        fault += define(b);
                break;
            case InstructionKind::Free:
                if (i.task != none && !posted.count(i.task))
                    return "waits for a send that was not posted";
                if (i.task != none)
                    waited.insert(i.task);
                if (i.buffer != none) {
                    if (!live.count(i.buffer) || !live[i.buffer])
                        return "frees dead " + name(i.buffer);
                    live[i.buffer] = false;
                    if (!isInHostMemory(program.buffers[i.buffer].kind))
                        bytes -= program.buffers[i.buffer].bytes;
                }
                break;
            }
            if (!fault.isEmpty())
                return fault;
            peak = std::max(peak, bytes + workspace);
        }
        if (bytes != persistent)
            return QString("device %1 ends with %2 bytes too many").arg(d).arg(bytes - persistent);
        if (posted != waited)
            return "a send is never waited for";
        if (peak != program.devices[d].peakBytes)
            return QString("peak %1, promised %2").arg(peak).arg(program.devices[d].peakBytes);
    }
    return {};
}

} // namespace pipewright::test
