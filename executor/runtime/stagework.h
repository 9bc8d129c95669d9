// SPDX-License-Identifier: GPL-3.0-or-later
// What the blocks do. The runtime moves buffers and keeps the order; a StageWork fills them. There are two:
// training (real layers, real gradients) and timed (a block sleeps, keeps its core busy or lets a virtual clock pass),
// so schedules can be run without a model. Each task is called by the thread of its device: different devices
// call at the same time, one device never does.
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
    Stream* stream = nullptr;                   ///< what the device does, in order
    const std::atomic<bool>* stopped = nullptr; ///< long work gives up when it turns true
    /// The device's; in its memory lies all that is read and written.
    const kernels::Operations* operations = &kernels::hostOperations();
    int device = 0; ///< that does it; of a collective each member in turn
};

class StageWork {
public:
    virtual ~StageWork() = default;
    /// Before prepare(): whose memory the regions are in. Without it, the host's.
    void useDevices(Backend& backend) { m_backend = &backend; }
    /// What prepare() will take of a device's memory beside the Program's buffers, and keep.
    virtual Bytes bytesBeside(const Program&, int /*device*/, const Capabilities&) const { return 0; }
    /// Once, before the first step: where every buffer of the program will be (index = BufferId). The
    /// persistent ones of this process's devices are this work's to fill, those of others are null; the program and the
    /// regions stay valid until the end.
    virtual void prepare(const Program& program, std::span<const Region> regions) = 0;
    /// Between steps, while no device runs.
    virtual void beginStep(int step) = 0;
    virtual double endStep(int step) = 0; ///< the step's loss; NaN when there is none

    virtual void compute(const TaskContext& context) = 0;
    /// Whether this task, the second of an overlapped pair, is done when compute() of the first returns, since both ran
    /// at the same time.
    virtual bool endsWithFirst(TaskId) const { return false; }
    /// Whether compute() or collective() of this task only issues, and the same in every step.
    virtual bool repeats(const Task&) const { return false; }
    virtual void update(const TaskContext& context) = 0;
    /// Before a collective: waits for members in other processes, unless collective() itself waits for them.
    virtual void beforeCollective(const TaskContext&) {}
    /// Called by every member of the group, each from its own thread, after all have arrived.
    virtual void collective(const TaskContext&) {}
    /// Of one that repeats: `give` gives the device's stream all of it, in its turn among what the members do together.
    virtual void inTurn(const TaskContext&, const std::function<void()>& give) { give(); }
    /// Of devices that do things later than they are issued: whether none of them begins a collective before all have
    /// come to it. Otherwise they are waited for on the host.
    virtual bool collectivesOnStreams() const { return false; }
    /// From any thread, when nothing is to go on: gives up what is in flight between the devices.
    virtual void abort() {}
    /// The part of a stage's gradient sums that this reduction adds up: a shared parameter's, or all of it
    /// when the two owners are replicas of the same stage.
    virtual Region sharedPart(const Task& reduce, const BufferView& gradients) = 0;
    /// own := own + theirs, element by element. Addition commutes, so both owners get the same bits. With
    /// `both`, theirs := the sum as well (the two owners are on one device).
    virtual void reduce(const TaskContext& context, Region own, Region theirs, bool both) = 0;
    /// Whether reduce() does only this, so that the backend may do it instead.
    virtual bool addsUp() const { return false; }

protected:
    Backend* m_backend = nullptr;
};

inline constexpr double noLoss = std::numeric_limits<double>::quiet_NaN();

} // namespace pipewright
