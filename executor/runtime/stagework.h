// SPDX-License-Identifier: GPL-3.0-or-later
// The work of blocks. The runtime moves buffers and keeps the order; a StageWork fills the buffers. There are two:
// training (real layers, real gradients) and timed (a block sleeps, keeps its core busy or lets a virtual clock pass),
// so schedules can be run without a model. Each task is called by the thread of its device: different devices call at
// the same time, one device never does.
#pragma once

#include "executor/runtime/backend.h"

#include <atomic>
#include <limits>
#include <span>

namespace pipewright {

struct BufferView {
    BufferId id = none;
    Buffer description;
    Region region;
};

struct TaskContext {
    TaskId id = none;
    const Task* task = nullptr;
    int step = 0;
    std::span<const BufferView> reads;
    std::span<const BufferView> writes;
    Stream* stream = nullptr;                   ///< the device's
    const std::atomic<bool>* stopped = nullptr; ///< long work gives up when it turns true
    /// The device's; all buffers that are read and written are in its memory.
    const kernels::Operations* operations = &kernels::hostOperations();
    int device = 0; ///< that runs the task; a collective is called once for each member
};

/// Giving it up ends what its stages have in flight between the devices.
class StageWork : public Abortable {
public:
    /// Call before prepare(): the backend in whose memory the regions are. Default: the host's memory.
    void useDevices(Backend& backend) { m_backend = &backend; }
    /// Device memory that prepare() allocates and keeps, in addition to the Program's buffers.
    virtual Bytes bytesBeside(const Program&, int /*device*/, const Capabilities&) const { return 0; }
    /// Called once, before the first step, with the place of every buffer (index = BufferId). Must fill the persistent
    /// buffers of this process's devices; regions of other processes' devices are null. The program and the regions
    /// stay valid until the end.
    virtual void prepare(const Program& program, std::span<const Region> regions) = 0;
    /// Between steps, while no device runs.
    virtual void beginStep(int step) = 0;
    virtual double endStep(int step) = 0; ///< the step's loss; NaN when there is none
    /// Between steps: records of parts of its blocks since the last call, where it times them itself.
    virtual std::vector<GpuRecord> takeParts() { return {}; }

    virtual void compute(const TaskContext& context) = 0;
    /// Whether compute() of the first task of an overlapped pair has also run this one, the second.
    virtual bool endsWithFirst(TaskId) const { return false; }
    /// Whether compute() or collective() of this task only issues work, and the same work in every step.
    virtual bool repeats(const Task&) const { return false; }
    virtual void update(const TaskContext& context) = 0;
    /// Before a collective: waits for members in other processes, unless collective() itself waits for them.
    virtual void beforeCollective(const TaskContext&) {}
    /// Called by every member of the group, each from its own thread, after all have arrived.
    virtual void collective(const TaskContext&) {}
    /// For a collective that repeats: calls `give`, which issues all of it on the device's stream, in its turn among
    /// the group's collectives.
    virtual void inTurn(const TaskContext&, const std::function<void()>& give) { give(); }
    /// For asynchronous devices: whether their streams start a collective only when all members have reached it.
    /// Otherwise the host waits for them.
    virtual bool collectivesOnStreams() const { return false; }
    /// The part of a stage's gradient sums that this reduction adds up: a shared parameter's, or all of it
    /// when the two owners are replicas of the same stage.
    virtual Region sharedPart(const Task& reduce, const BufferView& gradients) = 0;
    /// own := own + theirs, element by element. Addition commutes, so both owners get the same bits. With
    /// `both`, theirs := the sum as well (the two owners are on one device).
    virtual void reduce(const TaskContext& context, Region own, Region theirs, bool both) = 0;
    /// Whether reduce() is just this addition, so that the backend may do it instead.
    virtual bool addsUp() const { return false; }

protected:
    Backend* m_backend = nullptr;
};

inline constexpr double noLoss = std::numeric_limits<double>::quiet_NaN();

} // namespace pipewright
