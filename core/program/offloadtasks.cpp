// SPDX-License-Identifier: GPL-3.0-or-later
// Writes an Offload after each forward that the plan offloads (of pieces of a sequence: after the last one's) and a
// Reload before the block that the plan names, each after the previous copy in its direction. When the sources of two
// offloads are on a device, the next block waits for the first offload, and liveness frees its source there. O(1) per
// copy.
#include "core/program/offloadtasks.h"

#include <utility>

namespace pipewright {

OffloadTasks::OffloadTasks(Program& program, const Schedule& schedule, const Costs& costs, const OrderGraph& graph,
                           const OffloadPlan& plan)
    : TaskWriter(program, schedule, costs), m_graph(graph), m_plan(plan),
      m_trips(static_cast<std::size_t>(program.stages()) * static_cast<std::size_t>(program.microbatches)),
      m_wires(graph.firstOfDevice.size() - 1)
{
}

OffloadTasks::Trip& OffloadTasks::tripOf(int stage, int microbatch)
{
    return m_trips[static_cast<std::size_t>(microbatch) * static_cast<std::size_t>(m_program.stages())
                   + static_cast<std::size_t>(stage)];
}

void OffloadTasks::addReloadsBefore(BlockIndex block, TaskId last)
{
    const int device = m_graph.deviceOfBlock[block];
    Wires& wires = m_wires[static_cast<std::size_t>(device)];
    if (wires.openBefore != none)
        wires.waitedFor = std::exchange(wires.openBefore, none);
    for (const BlockIndex forward : m_plan.reloadsBefore(block))
        addReload(m_graph.blocks[forward], device, last);
}

void OffloadTasks::begin(TaskId task, int device)
{
    waitFor(task, std::exchange(m_wires[static_cast<std::size_t>(device)].waitedFor, none));
}

void OffloadTasks::addOffloadAfter(BlockIndex block, TaskId task, std::array<BufferId, 2> kept)
{
    const bool forward = m_graph.blocks[block].op == Op::F;
    if (forward)
        tripOf(m_graph.blocks[block]).kept = kept;
    Forward& firstOfPair = m_wires[static_cast<std::size_t>(m_graph.deviceOfBlock[block])].firstOfPair;
    if (m_graph.unitSize(block) > 1) { // nothing comes between the two of a pair
        firstOfPair = forward ? Forward{block, task} : Forward{};
        return;
    }
    if (const Forward first = std::exchange(firstOfPair, {}); first.block != noBlock)
        addOffloads(first);
    if (forward)
        addOffloads({block, task});
}

void OffloadTasks::addOffloads(const Forward& last)
{
    const Block& block = m_graph.blocks[last.block];
    const int pieces = m_program.sequencePieces;
    if ((block.microbatch + 1) % pieces != 0)
        return;
    for (int piece = block.microbatch + 1 - pieces; piece <= block.microbatch; ++piece)
        if (const BlockIndex forward = m_graph.indexOf(Op::F, block.stage, piece);
            forward != noBlock && m_plan.offloads(forward))
            addOffload(forward, last.task);
}

void OffloadTasks::addOffload(BlockIndex forward, TaskId behind)
{
    const Block& block = m_graph.blocks[forward];
    const int device = m_graph.deviceOfBlock[forward];
    Wires& wires = m_wires[static_cast<std::size_t>(device)];
    Trip& trip = tripOf(block);
    trip.offload = beginTask(TaskKind::Offload, Op::F, block.stage, block.microbatch, device, -1, wires.lastOut, behind,
                             block.replica);
    for (const BufferId buffer : trip.kept)
        operand(buffer);
    endReads();
    trip.onHost = copies(trip.kept);
    wires.lastOut = trip.offload;
    if (wires.openBefore != none) // both of a pair are offloaded: the next block waits for the later of the two before
        wires.waitedFor = wires.openBefore;
    wires.openBefore = std::exchange(wires.open, trip.offload);
}

/// Issued when the device has done what precedes it.
void OffloadTasks::addReload(const Block& block, int device, TaskId last)
{
    Wires& wires = m_wires[static_cast<std::size_t>(device)];
    Trip& trip = tripOf(block);
    if (wires.open == trip.offload)
        wires.waitedFor = std::exchange(wires.open, none);
    trip.reload = beginTask(TaskKind::Reload, Op::F, block.stage, block.microbatch, device, -1, wires.lastIn,
                            trip.offload, block.replica);
    waitFor(trip.reload, last);
    waitFor(trip.reload, wires.waitedFor);
    for (const BufferId buffer : trip.onHost)
        operand(buffer);
    endReads();
    trip.back = copies(trip.onHost);
    wires.lastIn = trip.reload;
}

std::array<BufferId, 2> OffloadTasks::copies(std::array<BufferId, 2> of)
{
    std::array<BufferId, 2> made{none, none};
    for (std::size_t i = 0; i < of.size(); ++i) {
        if (of[i] == none)
            continue;
        const Buffer source = m_program.buffers[of[i]];
        made[i] = addBuffer(receivedKind(source.kind), source.device, source.stage, source.microbatch, source.bytes, -1,
                            false, source.replica);
        operand(made[i]);
    }
    return made;
}

bool OffloadTasks::readReloaded(TaskId task, const Block& block)
{
    const Trip& trip = tripOf(block);
    if (trip.reload == none)
        return false;
    waitFor(task, trip.reload);
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
        if (i == 0 && block.op == Op::W)
            continue;
        operand(trip.back[i]);
        operand(trip.onHost[i]); // ends here too, since the copy back has certainly ended
    }
    return true;
}

bool OffloadTasks::readReloadedPiece(TaskId task, const Block& block, int piece)
{
    const Trip& trip = tripOf(block.stage, piece);
    if (trip.reload == none)
        return false;
    if (trip.back[0] != none) { // what comes back may be for W alone
        waitFor(task, trip.reload);
        operand(trip.back[0]);
    }
    return true;
}

} // namespace pipewright
