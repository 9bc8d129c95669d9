// SPDX-License-Identifier: GPL-3.0-or-later
// Transfer inference: one pass over the blocks by start time. A value that another device reads becomes a pending
// transfer when it is produced; pending transfers are written out before the blocks of the next later start time, or
// earlier when their consumer comes first (pendingtransfers.h). Each becomes one task with its buffers on both sides.
// O(blocks + values log values of one start time). Source: JaxPP, arXiv 2412.14374.
#include "core/program/transferinference.h"

#include "core/base/prefetch.h"
#include "core/program/copycollectives.h"
#include "core/program/offloadtasks.h"
#include "core/program/overlaps.h"
#include "core/program/pendingtransfers.h"
#include "core/program/stepbuffers.h"
#include "core/program/stepend.h"
#include "core/program/weightversions.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

namespace pipewright {

namespace {

using SkipInput = OrderGraph::SkipInput;

class TransferInference : TaskWriter {
public:
    TransferInference(Program& program, const Schedule& schedule, const OrderGraph& graph, const Costs& costs,
                      const Dataflow& dataflow, const WeightPlan& weights, StepPlan& plan,
                      const CompileOptions& options)
        : TaskWriter(program, schedule, costs), m_graph(graph), m_dataflow(dataflow),
          m_shares(ReplicaShares::areIn(schedule)
                       ? std::optional(ReplicaShares(program, schedule, costs, dataflow, graph))
                       : std::nullopt),
          m_end(program, schedule, costs, dataflow, m_shares ? &*m_shares : nullptr, options.commuteSharedGradients,
                std::move(plan.sums)),
          m_lastOnDevice(graph.firstOfDevice.size() - 1, none), m_firstOfPair(m_lastOnDevice), m_made(program),
          m_consumer(graph.blocks.size(), none)
    {
        if (!plan.offload.empty())
            m_offload.emplace(program, schedule, costs, graph, plan.offload);
        if (CopyCollectives::areIn(schedule, graph.hasUpdates(), costs))
            m_collectives.emplace(program, schedule, costs, dataflow, graph);
        std::copy_if(graph.skipInputs.begin(), graph.skipInputs.end(), std::back_inserter(m_skipOutputs),
                     [](const SkipInput& input) { return !input.isOfWeights(); });
        std::sort(m_skipOutputs.begin(), m_skipOutputs.end(), [](const SkipInput& a, const SkipInput& b) {
            return std::tie(a.input, a.block, a.kind, a.index) < std::tie(b.input, b.block, b.kind, b.index);
        });
        reserve();
        addPersistentBuffers(dataflow);
        if (weights.versioned())
            m_weights.emplace(program, schedule, costs, graph, weights);
    }

    void run(const StepPlan& plan, const std::vector<Nanoseconds>& earliestStart)
    {
        rankBlocks(plan.order.blocks);
        addBlocks(plan.order, plan.ends, earliestStart);
        joinOverlaps(m_program);
        if (m_weights)
            m_weights->finish(m_lastOnDevice);
        else
            m_end.write(m_lastOnDevice, m_collectives ? &*m_collectives : nullptr);
        m_program.operandBegin.push_back(static_cast<std::uint32_t>(m_program.operands.size()));
    }

private:
    [[gnu::flatten]] void addBlocks(const GlobalOrder& order, const std::vector<Nanoseconds>& ends,
                                    const std::vector<Nanoseconds>& earliestStart)
    {
        for (std::size_t instant = 0; instant + 1 < order.instants.size(); ++instant) {
            const Nanoseconds now = order.starts[instant];
            emitTransfers(now);
            m_end.addSumsBefore(now, m_lastOnDevice);
            if (m_weights)
                sendWeightsOut(order, instant);
            if (m_shares)
                m_shares->addGathersOf(order, instant, m_lastOnDevice);
            for (std::uint32_t rank = order.instants[instant]; rank < order.instants[instant + 1]; ++rank) {
                const BlockIndex i = order.blocks[rank];
                fetchAhead(order.blocks, rank);
                if (!ends.empty())
                    m_dueOf = ends[i];
                addCompute(i, rank, earliestStart.empty() ? 0 : earliestStart[i]);
            }
        }
        emitTransfers();
    }

    static constexpr std::size_t farAhead = 24; ///< blocks of look-ahead for prefetching: covers the latency of memory

    /// Exact sizes, but for skip connections and the gradients of sequences.
    void reserve()
    {
        const std::size_t blocks = m_graph.blocks.size();
        std::size_t transfers = 0;
        for (BlockIndex i = 0; i < blocks; ++i)
            transfers += m_graph.chainInput[i] != noBlock
                         && m_graph.deviceOfBlock[m_graph.chainInput[i]] != m_graph.deviceOfBlock[i];
        reserveTasks(blocks, transfers, m_dataflow.shared.size());
    }

    void rankBlocks(const std::vector<BlockIndex>& order)
    {
        if (!m_skipOutputs.empty() || m_weights)
            m_rank.resize(order.size());
        for (std::uint32_t rank = 0; rank < order.size(); ++rank) {
            if (rank + farAhead < order.size())
                prefetch(&m_graph.chainInput[order[rank + farAhead]]);
            if (const BlockIndex input = m_graph.chainInput[order[rank]]; input != noBlock)
                m_consumer[input] = rank;
            if (!m_rank.empty())
                m_rank[order[rank]] = rank;
        }
    }

    /// The pass jumps from device to device, so nearly every access would miss the cache. Prefetches the block's own
    /// data first, then the cell to which it refers.
    [[gnu::always_inline]] inline void fetchAhead(const std::vector<BlockIndex>& order, std::uint32_t rank)
    {
        if (rank + farAhead >= order.size())
            return;
        const BlockIndex far = order[rank + farAhead];
        prefetch(&m_graph.blocks[far]);
        prefetch(&m_graph.deviceOfBlock[far]);
        prefetch(&m_graph.chainInput[far]);
        prefetch(&m_consumer[far]);
        const Block& near = m_graph.blocks[order[rank + farAhead / 2]];
        prefetch(&m_made.cell(near.stage, near.microbatch));
    }

    void addCompute(BlockIndex index, std::uint32_t rank, Nanoseconds earliestStart)
    {
        const Block& block = m_graph.blocks[index];
        const int device = m_graph.deviceOfBlock[index];
        TaskId& last = m_lastOnDevice[device];
        TaskId& firstOfPair = m_firstOfPair[device];
        const bool second = index > 0 && m_graph.unitSize(index - 1) > 1 && m_graph.deviceOfBlock[index - 1] == device;
        readyInputs(rank + m_graph.unitSize(index) - 1);
        if (m_weights)
            m_weights->prepare(index, last);
        if (m_collectives)
            m_collectives->addGathersBefore(index, last);
        if (m_shares)
            m_shares->addGathersBefore(index, m_lastOnDevice);
        if (m_offload)
            m_offload->addReloadsBefore(index, last);
        const TaskKind kind = block.op == Op::U ? TaskKind::Update : TaskKind::Compute;
        const TaskId task = beginTask(kind, block.op, block.stage, block.microbatch, device, -1,
                                      second ? m_program.afterOnDevice[firstOfPair] : last, none, block.replica);
        if (second)
            m_program.overlaps.push_back(
                {firstOfPair, task, partOrderOf(m_schedule, {m_graph.blocks[index - 1], block}, m_program)});
        else if (m_graph.unitSize(index) > 1)
            firstOfPair = task;
        last = task;
        if (earliestStart > 0)
            m_program.extraDependencies.push_back({task, none, earliestStart});
        if (m_offload)
            m_offload->begin(task, device);
        if (m_collectives)
            m_collectives->begin(task, device);
        switch (block.op) {
        case Op::F: addForward(task, index, block, device); break;
        case Op::B:
        case Op::I:
        case Op::W: addBackward(task, index, block, device); break;
        case Op::U:
            readWeights(task, index);
            endReads();
            writeWeights(task, index);
            break;
        case Op::R: addRecompute(task, index, block, device); break;
        }
        if (m_offload)
            m_offload->addOffloadAfter(index, task, m_made.cell(block.stage, block.microbatch).saved());
        if (m_collectives)
            m_collectives->addSumAfter(index, task, last);
    }

    /// With durations of 0 a block may start when its input is produced: its transfer must be written out before it.
    void readyInputs(std::uint32_t rank)
    {
        if (m_pending.firstConsumer() <= rank)
            emitTransfers();
    }

    void addForward(TaskId task, BlockIndex index, const Block& block, int device)
    {
        const StageCosts& costs = m_costs.stages[block.stage];
        StepBuffers::Cell& here = m_made.cell(block.stage, block.microbatch);
        readForwardInputs(task, index, block, device);
        readEarlierPieces(task, block);
        readWeights(task, index);
        endReads();
        write(here.savedUntilInputGrad, BufferKind::SavedUntilInputGrad, block, device, costs.savedUntilInputGrad);
        write(here.savedUntilWeightGrad, BufferKind::SavedUntilWeightGrad, block, device, costs.savedUntilWeightGrad);
        if (block.stage + 1 < m_program.stages())
            hand(task, BufferKind::Output, block, device, block.stage + 1, m_consumer[index], costs.output, -1,
                 here.output);
        if (!m_skipOutputs.empty())
            handSkips(task, index, block, device);
        writeWeights(task, index);
        writeWorkspace(block, device, costs.workspace(block.op));
    }

    void readForwardInputs(TaskId task, BlockIndex forward, const Block& block, int device)
    {
        if (m_graph.chainInput[forward] != noBlock) {
            const Arrival& input = m_made.cell(block.stage - 1, block.microbatch).output;
            operand(input.buffer);
            waitFor(task, input.task);
        }
        if (!m_graph.skipInputs.empty())
            readSkips(task, forward, device);
    }

    /// Where all layers are recomputed the input of F stays until then. It has already arrived, since F ran earlier on
    /// this device.
    [[gnu::noinline]] void readInputAgain(const Block& block, int device)
    {
        const BlockIndex forward = m_graph.indexOf(Op::F, block.stage, block.microbatch);
        if (m_program.recomputeOf(block.stage).readsInput() && forward != noBlock)
            readForwardInputs(none, forward, block, device);
    }

    [[gnu::noinline]] void addRecompute(TaskId task, BlockIndex index, const Block& block, int device)
    {
        const StageCosts& costs = m_costs.stages[block.stage];
        readInputAgain(block, device);
        readSaved(task, block);
        readEarlierPieces(task, block);
        readWeights(task, index);
        endReads();
        std::array<BufferId, 2>& made = m_made.recomputed(block);
        write(made[0], BufferKind::RecomputedUntilInputGrad, block, device, costs.recomputedUntilInputGrad);
        write(made[1], BufferKind::RecomputedUntilWeightGrad, block, device, costs.recomputedUntilWeightGrad);
        writeWorkspace(block, device, costs.workspace(block.op));
    }

    void readRecomputed(const Block& block, bool inputGrad, bool weightGrad)
    {
        if (!m_made.recomputes())
            return;
        const std::array<BufferId, 2>& made = m_made.recomputed(block);
        if (inputGrad)
            operand(made[0]);
        if (weightGrad)
            operand(made[1]);
    }

    /// Reads the forward's saved buffers, or their reloaded copies.
    void readSaved(TaskId task, const Block& block)
    {
        if (m_offload && m_offload->readReloaded(task, block))
            return;
        const StepBuffers::Cell& here = m_made.cell(block.stage, block.microbatch);
        operand(block.op != Op::W ? here.savedUntilInputGrad : none);
        operand(block.op != Op::I ? here.savedUntilWeightGrad : none);
    }

    void addBackward(TaskId task, BlockIndex index, const Block& block, int device)
    {
        const StageCosts& costs = m_costs.stages[block.stage];
        StepBuffers::Cell& here = m_made.cell(block.stage, block.microbatch);
        const bool inputGrad = makesInputGrad(block.op), weightGrad = makesWeightGrad(block.op);
        if (inputGrad) {
            if (m_graph.chainInput[index] != noBlock) {
                const Arrival& gradient = m_made.cell(block.stage + 1, block.microbatch).gradient;
                operand(gradient.buffer);
                waitFor(task, gradient.task);
            }
            readEarlierPieces(task, block);
            if (!m_made.isLastPiece(block))
                operand(m_made.sequenceGradient(block));
            if (m_program.recomputeOf(block.stage).kind == RecomputeKind::Full)
                readInputAgain(block, device);
        }
        readSaved(task, block);
        if (!inputGrad)
            operand(here.savedFromInputGrad);
        readRecomputed(block, inputGrad, weightGrad);
        if (!m_graph.skipInputs.empty())
            readSkips(task, index, device);
        readWeights(task, index);
        endReads();
        if (inputGrad)
            write(here.savedFromInputGrad, BufferKind::SavedFromInputGrad, block, device,
                  costs.madeForWeightGrad(block.op));
        if (inputGrad && m_made.isLastPiece(block) && m_program.sequencePieces > 1)
            write(m_made.sequenceGradient(block), BufferKind::SequenceGradient, block, device, costs.sequenceGradient);
        if (inputGrad && block.stage > 0)
            hand(task, BufferKind::Gradient, block, device, block.stage - 1, m_consumer[index],
                 m_costs.stages[block.stage - 1].output, block.stage - 1, here.gradient);
        if (!m_skipOutputs.empty())
            handSkips(task, index, block, device);
        writeWeights(task, index);
        writeWorkspace(block, device, costs.workspace(block.op));
    }

    // --- weight versions, where the schedule has U blocks -------------------------------------------

    void readWeights(TaskId task, BlockIndex index)
    {
        if (m_weights)
            m_weights->read(task, index);
        if (m_collectives)
            m_collectives->read(task, m_graph.blocks[index]);
        if (m_shares)
            m_shares->read(task, m_graph.blocks[index]);
    }

    void writeWeights(TaskId task, BlockIndex index)
    {
        if (m_weights)
            writeVersions(task, index);
        if (m_collectives)
            m_collectives->write(m_graph.blocks[index], m_graph.deviceOfBlock[index]);
        if (m_shares)
            m_shares->write(m_graph.blocks[index], m_graph.deviceOfBlock[index]);
    }

    [[gnu::noinline]] void writeVersions(TaskId task, BlockIndex index)
    {
        m_weightsOut.clear();
        m_weights->write(task, index, m_weightsOut);
        notePending(m_weightsOut);
    }

    /// The inputs of the blocks of an instant are sent before any of these blocks begins.
    [[gnu::noinline]] void sendWeightsOut(const GlobalOrder& order, std::size_t instant)
    {
        const std::uint32_t end = order.instants[instant + 1];
        for (std::uint32_t rank = order.instants[instant]; rank < end; ++rank) {
            m_weightsOut.clear();
            m_weights->sendOut(order.blocks[rank], m_lastOnDevice, m_weightsOut);
            notePending(m_weightsOut, true);
        }
        readyInputs(end - 1);
    }

    [[gnu::noinline]] void notePending(const std::vector<WeightTasks::Outgoing>& outgoing, bool heldBack = false)
    {
        for (const WeightTasks::Outgoing& out : outgoing) {
            m_pending.add(out.producer, out.device, out.consumer == noBlock ? none : m_rank[out.consumer], m_dueOf,
                          out.buffer, out.arrival);
            if (heldBack)
                m_pending.holdBack();
        }
    }

    // --- pieces of a sequence: attention looks back at what the earlier ones saved ----------------------

    void readEarlierPieces(TaskId task, const Block& block)
    {
        if (m_program.sequencePieces == 1)
            return; // saves a division per block
        for (int p = block.microbatch - block.microbatch % m_program.sequencePieces; p < block.microbatch; ++p)
            if (!m_offload || !m_offload->readReloadedPiece(task, block, p))
                operand(m_made.cell(block.stage, p).savedUntilInputGrad);
    }
    // --- values that leave a block -------------------------------------------------------------------

    /// Adds the output of a block along the chain of stages, and a pending transfer if its consumer is on another
    /// device. `consumer` is the rank of the block that reads it; none: it is not placed.
    [[gnu::always_inline]] inline void hand(TaskId task, BufferKind kind, const Block& block, int device, int toStage,
                                            std::uint32_t consumer, Bytes bytes, std::int32_t consumerStage,
                                            Arrival& arrival)
    {
        const int destination = m_schedule.deviceOf({block.op, toStage, block.microbatch, block.replica});
        const bool away = consumer != none && destination != device;
        if (bytes == 0 && !away)
            return;
        arrival.buffer = addBufferOf(block, kind, device, bytes, consumerStage);
        operand(arrival.buffer);
        if (away)
            m_pending.add(task, destination, consumer, m_dueOf, arrival.buffer, &arrival);
    }

    [[gnu::noinline]] void handSkips(TaskId task, BlockIndex index, const Block& block, int device)
    {
        const bool gradient = isBackward(block.op);
        auto output = std::lower_bound(m_skipOutputs.begin(), m_skipOutputs.end(), index,
                                       [](const SkipInput& o, BlockIndex b) { return o.input < b; });
        BufferId shared = none;
        for (; output != m_skipOutputs.end() && output->input == index; ++output) {
            const int destination = m_graph.deviceOfBlock[output->block];
            const Block& consumer = m_graph.blocks[output->block];
            if (gradient || shared == none) {
                shared =
                    addBufferOf(block, gradient ? BufferKind::Gradient : BufferKind::Output, device,
                                output->kind == SkipInput::Kind::SharedGradient ? m_dataflow.shared[output->index].bytes
                                                                                : m_dataflow.skipBytes(output->index),
                                gradient ? consumer.stage : -1, true);
                operand(shared);
            }
            const std::uint64_t key = skipKey(m_dataflow, *output, block.microbatch, destination, gradient);
            if (destination == device)
                m_skipArrival[key] = {shared, none};
            else
                m_pending.add(task, destination, m_rank[output->block], m_dueOf, shared, nullptr, key);
        }
    }

    [[gnu::noinline]] void readSkips(TaskId task, BlockIndex index, int device)
    {
        auto input = std::lower_bound(m_graph.skipInputs.begin(), m_graph.skipInputs.end(), index,
                                      [](const OrderGraph::SkipInput& s, BlockIndex b) { return s.block < b; });
        for (; input != m_graph.skipInputs.end() && input->block == index; ++input) {
            if (input->isOfWeights())
                continue;
            const Block& block = m_graph.blocks[index];
            const bool gradient = isBackward(block.op);
            const Arrival& arrival = m_skipArrival[skipKey(m_dataflow, *input, block.microbatch, device, gradient)];
            operand(arrival.buffer);
            waitFor(task, arrival.task);
        }
    }

    /// Transfers that are due later remain pending: one that holds up what its devices do after it would otherwise do
    /// so from the start of its producer on.
    [[gnu::noinline, gnu::flatten]] void emitTransfers(Nanoseconds until = std::numeric_limits<Nanoseconds>::max())
    {
        m_pending.take(until, [this](const PendingTransfers::Transfer& pending) { emitTransfer(pending); });
    }

    void emitTransfer(const PendingTransfers::Transfer& pending)
    {
        const Task producer = m_program.tasks[pending.producer];
        const TaskId task = beginTask(TaskKind::Transfer, sentAs(producer.op), producer.stage, producer.microbatch(),
                                      producer.device, pending.destination, none, pending.producer, producer.replica);
        if (m_program.blocks())
            holdUp(task, producer.device, pending.destination, m_lastOnDevice);
        else if (const TaskId last = m_lastOnDevice[producer.device]; pending.heldBack && last != pending.producer)
            m_program.extraDependencies.push_back({task, last, 0}); // its device comes to it in order
        m_pending.eachValue(pending, [&](const PendingTransfers::Value& value) { operand(value.source); });
        endReads();
        m_pending.eachValue(pending, [&](const PendingTransfers::Value& value) {
            const Buffer source = m_program.buffers[value.source];
            const BufferId received =
                addBuffer(receivedKind(source.kind), pending.destination, source.stage, source.microbatch, source.bytes,
                          source.consumerStage, source.skip, source.replica);
            operand(received);
            (value.chain != nullptr ? *value.chain : m_skipArrival[value.skipKey]) = {received, task};
        });
    }

    const OrderGraph& m_graph;
    const Dataflow& m_dataflow;
    std::optional<ReplicaShares> m_shares; ///< when replicas share out gradients
    StepEnd m_end;
    std::vector<TaskId> m_lastOnDevice;
    std::vector<TaskId> m_firstOfPair; ///< per device: the first block of its last overlapped pair
    StepBuffers m_made;
    std::vector<std::uint32_t> m_consumer; ///< per block: rank of the block that reads its output; none: not placed
    std::vector<std::uint32_t> m_rank;     ///< per block: position in the global order; only with skip connections
    std::map<std::uint64_t, Arrival> m_skipArrival;
    std::vector<SkipInput> m_skipOutputs; ///< sorted by producer
    PendingTransfers m_pending;
    std::optional<WeightTasks> m_weights; ///< when the schedule has U blocks
    std::vector<WeightTasks::Outgoing> m_weightsOut;
    Nanoseconds m_dueOf = 0;               ///< of the transfers of the present block
    std::optional<OffloadTasks> m_offload; ///< when stages offload
    std::optional<CopyCollectives> m_collectives;
};

} // namespace

void inferTransfers(Program& program, const Schedule& schedule, const OrderGraph& graph, StepPlan plan,
                    const std::vector<Nanoseconds>& earliestStart, const Costs& costs, const Dataflow& dataflow,
                    const WeightPlan& weights, const CompileOptions& options)
{
    TransferInference(program, schedule, graph, costs, dataflow, weights, plan, options).run(plan, earliestStart);
}

} // namespace pipewright
