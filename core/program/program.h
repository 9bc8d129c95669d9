// SPDX-License-Identifier: GPL-3.0-or-later
// The compiled schedule, the only input of the predictor and of every executor.
//
// A Program is one global sequence of tasks (block computations, transfers, reductions, updates) in an
// order that respects every dependency, and for each device the projection of that sequence: the list
// of instructions the device issues in order. A transfer is one task and two instructions, the send of
// its source and the receive of its destination. Timelines are indexed by task, so a prediction and a measurement of
// the same Program are compared by subtraction.
//
// Memory is decided by the instruction lists alone: a buffer begins with the instruction that defines it
// and ends with its Free, which stands after the last use and, for a sent buffer, waits for the send.
// Hence the memory curve and its peak are known without running anything.
#pragma once

#include "core/design/communication.h"
#include "core/program/buffers.h"
#include "core/program/taskkind.h"
#include "core/schedule/schedule.h"

#include <cassert>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipewright {

using TaskId = std::uint32_t;

struct Task {
    TaskKind kind = TaskKind::Compute;
    Op op = Op::F; ///< Compute: the block's; Transfer: F for activations, I for gradients; Update: U
    std::uint16_t replica = 0;
    std::int32_t stage = 0;  ///< Compute, Update: its stage; Transfer: the producing stage; Reduce: the root's stage
    std::int32_t device = 0; ///< where it runs; a transfer's source; a reduction's root; a collective's first member

    Task() = default;
    /// `microbatch`: a reduction's otherStage(). `peer`: otherDevice(), lastMember() or owner(); other kinds have none.
    Task(TaskKind itsKind, Op itsOp, int itsReplica, int itsStage, int microbatch, int itsDevice, int peer = -1)
        : kind(itsKind), op(itsOp), replica(static_cast<std::uint16_t>(itsReplica)), stage(itsStage), device(itsDevice),
          m_microbatch(microbatch), m_peer(peer)
    {
    }

    std::int32_t microbatch() const
    {
        assert(!isReduction(kind));
        return m_microbatch;
    }
    void setMicrobatch(std::int32_t number)
    {
        assert(!isReduction(kind));
        m_microbatch = number;
    }
    /// A reduction is no block: where one is taken for what makes a value, its otherStage() stands for a microbatch.
    Block block() const { return {op, stage, m_microbatch, replica}; }
    /// A reduction's: the stage of the other owner, over replicas its own stage.
    std::int32_t otherStage() const
    {
        assert(isReduction(kind));
        return m_microbatch;
    }
    std::int32_t destination() const
    {
        assert(kind == TaskKind::Transfer);
        return m_peer;
    }
    /// A transfer's destination; the device of a reduction's other owner, which may be the root's.
    std::int32_t otherDevice() const
    {
        assert(joinsDevices(kind));
        return m_peer;
    }
    bool joinsTwoDevices() const { return joinsDevices(kind) && m_peer != device; }
    /// The device that records it and shows it: a transfer's destination.
    std::int32_t recordedOn() const { return kind == TaskKind::Transfer ? m_peer : device; }
    /// A collective's members are all devices from the first to the last. A block is its device's alone.
    std::int32_t firstMember() const
    {
        assert(isOfBlock(kind));
        return device;
    }
    std::int32_t lastMember() const
    {
        assert(isOfBlock(kind));
        return kind == TaskKind::Collective ? m_peer : device;
    }
    std::int32_t memberCount() const { return lastMember() - firstMember() + 1; }
    /// CopyWeightsIn, CopyWeightsOut: the device that updates the weights.
    std::int32_t owner() const
    {
        assert(kind == TaskKind::CopyWeightsIn || kind == TaskKind::CopyWeightsOut);
        return m_peer;
    }

    /// The columns of that name in traces, whatever they mean for the kind.
    std::int32_t storedMicrobatch() const { return m_microbatch; }
    std::int32_t storedPeer() const { return m_peer; }
    /// The task of such columns, which tell kinds with one key apart; nothing for a key of no kind.
    static std::optional<Task> stored(std::string_view key, Op op, int replica, int stage, int microbatch, int device,
                                      int peer);

    bool operator==(const Task&) const = default;

private:
    std::int32_t m_microbatch = 0;
    std::int32_t m_peer = -1;
};

/// Which weights a Compute task reads, and which update its gradient feeds (schedule/weightplan.h).
struct WeightUse {
    std::int32_t version = 0;   ///< updates applied to them; Update: before it
    std::int32_t steps = 0;     ///< predicted this many updates ahead
    std::int32_t update = 0;    ///< counted from 0; Update: the one it makes; CopyWeightsIn: the version less one
    std::int32_t batchSize = 1; ///< microbatches of that update
    std::int32_t staleness() const { return update - version; }
    bool operator==(const WeightUse&) const = default;
};

struct Instruction {
    InstructionKind kind = InstructionKind::Compute;
    TaskId task = none;     ///< Free of a sent or offloaded buffer: the last transfer that reads it, to be waited for
    BufferId buffer = none; ///< Free only; none: wait for the task and free nothing (a buffer sent twice)

    bool operator==(const Instruction&) const = default;
};

struct MemorySample {
    Nanoseconds time = 0;
    Bytes bytes = 0; ///< live from this time on
    bool operator==(const MemorySample&) const = default;
};

class Program : public PipelineShape {
public:
    // Out of line: inlined, each is kilobytes of code in every file that uses one.
    Program();
    Program(const Program& other);
    Program(Program&& other) noexcept;
    Program& operator=(const Program& other);
    Program& operator=(Program&& other) noexcept;
    ~Program();

    std::vector<Task> tasks; ///< the global sequence; index = TaskId; also a topological order

    /// Buffers read and written by a task: Compute reads inputs and writes outputs on its device; Transfer
    /// reads `reads` on the source and fills `writes` (same count, same sizes) on the destination.
    std::span<const BufferId> reads(TaskId task) const
    {
        return {operands.data() + operandBegin[task], operands.data() + operandSplit[task]};
    }
    std::span<const BufferId> writes(TaskId task) const
    {
        return {operands.data() + operandSplit[task], operands.data() + operandBegin[task + 1]};
    }
    std::vector<std::uint32_t> operandBegin; ///< per task, into operands: reads start here …
    std::vector<std::uint32_t> operandSplit; ///< … writes start here and end at operandBegin[task + 1]
    std::vector<BufferId> operands;

    /// When a task may start: after `afterOnDevice` (its predecessor in its device's compute order) and
    /// after `afterData` (the task whose value arrives last in the usual case). Tasks with more inputs,
    /// or with an earliest start, are rare and listed apart, sorted by task.
    std::vector<TaskId> afterOnDevice;
    std::vector<TaskId> afterData;
    struct ExtraDependency {
        enum class When : std::uint8_t {
            Ended,  ///< `after` has ended
            Started ///< `after` has started: the second of an overlapped pair
        };
        TaskId task = none;
        TaskId after = none;           ///< none: only the time counts
        Nanoseconds earliestStart = 0; ///< a pin
        When when = When::Ended;

        bool operator==(const ExtraDependency&) const = default;
    };
    std::vector<ExtraDependency> extraDependencies;
    /// Pairs of Compute tasks that run at the same time; sorted. What the second waits for, the first does too.
    struct Overlap {
        TaskId first = none, second = none;
        std::uint32_t order = none; ///< into partOrders: the stated order of their parts; none: the shortest
        bool operator==(const Overlap&) const = default;
    };
    std::vector<Overlap> overlaps;
    std::vector<PartSequence> partOrders;

    /// Persistent ones first: Parameters, Gradients and OptimizerState of replica 0's stage 0, stage 1, …, replica 1's
    /// … Saved and workspace buffers exist only where they have bytes, outputs and gradients wherever they are sent.
    Buffers buffers;

    struct Device {
        std::vector<Instruction> instructions;
        std::vector<Bytes> liveBytes; ///< per instruction: live on the device while it runs, persistent included
        Bytes persistentBytes = 0;    ///< parameters, gradients, optimizer state
        Bytes peakBytes = 0;          ///< highest live total over the instruction list, persistent included
        Bytes hostPeakBytes = 0;      ///< the same for its bytes in host memory
        double peakActivations = 0;   ///< live activations, unit: one microbatch on one device (a chunk is 1/v)

        bool operator==(const Device&) const = default;
    };
    std::vector<Device> devices;

    /// Per task, when the schedule has U blocks; else empty, and every stage is updated once, at the end.
    std::vector<WeightUse> weights;
    bool versioned() const { return !weights.empty(); }

    Communication communication = Communication::Overlapped;
    bool blocks() const { return communication == Communication::Blocking; }

    /// When the devices are members of groups (memberprogram.h): per device its group, as a device of the schedule; per
    /// task its number among the parts or the collectives of its block. Otherwise empty.
    std::vector<std::int32_t> groupOfDevice;
    std::vector<std::int32_t> partOfTask;
    bool hasMembers() const { return !groupOfDevice.empty(); }

    /// The shared bus of each pair of devices (from, to) whose transfers or gradient sums use one; other pairs have
    /// their own link. A bus serves the transfer that is ready first, with equal times the lowest task, and is occupied
    /// for its bytes but not for its latency. So the order on a bus is not part of the Program: it follows from the
    /// times.
    std::map<std::pair<int, int>, std::string> busOfLink;

    std::int64_t computeCount() const; ///< the schedule's blocks, U among them
    std::int64_t transferCount() const;
    /// Whether a transfer brings another replica's share of a stage's parameters. Its numbers are those of the block
    /// that is the first to read them, which runs on its destination.
    bool bringsParameters(const Task& task) const;
    /// "F0.3", "F0.3 to device 1", "reduce stage 0 + stage 3", "U2": for traces, tooltips and messages.
    std::string label(TaskId task) const;
    bool operator==(const Program& other) const;
};

} // namespace pipewright
