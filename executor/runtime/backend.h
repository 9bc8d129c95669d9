// SPDX-License-Identifier: GPL-3.0-or-later
// What the runtime needs from hardware, and no more: devices with memory, streams that things are issued
// on, events that order streams, and links that carry buffers one way between two devices. The host
// backend implements it with threads and memory copies; a GPU backend issues the same calls on its own
// streams, and what was issued runs later: only its stopwatch knows when. Whatever is waited for is waited for through
// a Stream, so a run can always be interrupted. tests/executor/runtime/tst_backend_conformance.cpp says what every
// implementation must do.
#pragma once

#include "core/base/diagnostic.h"
#include "core/base/units.h"
#include "core/program/program.h"
#include "kernels/operations.h"
#include "traces/store/tracewriter.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pipewright {

/// A piece of a device's memory.
struct Region {
    std::byte* data = nullptr; ///< an address of the device; the host may touch it only if hostAddressable
    Bytes bytes = 0;
};

struct Capabilities {
    bool hostAddressable = false; ///< regions can be read and written by the calling thread
    /// Things happen that no thread of this process does (streams run by themselves, data is in flight). When
    /// false, a deadlock can be proven from who waits for what.
    bool asynchronous = false;
    bool flashAttention = false; ///< its attention keeps one number per query and head, not the probabilities
    bool bf16Arithmetic = false; ///< it computes with bf16 as it lies in memory, and not in fp32 copies
    /// What maths keeps of the device's memory beside the Program's buffers, from the first createOperations() on. Told
    /// beforehand, so that it can be part of a prediction.
    Bytes workspaceBytes = 0;
};

/// Memory of one device, given back on destruction. Aligned to at least 64 bytes; contents undefined.
class Allocation {
public:
    virtual ~Allocation() = default;
    virtual Region region() const = 0;
};

/// Something that happens once per step: a buffer arrived, a sent buffer may be reused.
class Event {
public:
    virtual ~Event() = default;
    virtual bool complete() const = 0;
    /// Makes it happen again next step. Only while no stream waits for it and no posting refers to it.
    virtual void reset() = 0;
};

/// The order in which one device does things.
class Stream {
public:
    virtual ~Stream() = default;
    /// What is issued from now on runs after `event`. False when interrupted: issue nothing more.
    virtual bool wait(Event& event) = 0;
    /// Returns when everything issued so far is done; false when interrupted.
    virtual bool synchronize() = 0;
    /// The device is busy for so long from when it comes to it. False: the calling thread is to see to it itself.
    virtual bool spend(Nanoseconds) { return false; }
    /// Makes the current wait and all later ones return false until resume(). Any thread may call it.
    virtual void interrupt() = 0;
    virtual void resume() = 0;
};

/// When a device came to what it was given; on one that does things later than they are issued.
class Stopwatch {
public:
    virtual ~Stopwatch() = default;
    /// Place `place` is passed when everything issued so far is done. Marked again in every step.
    virtual void mark(std::size_t place) = 0;
    virtual bool passed(std::size_t place) const = 0;
    /// Of a passed place, on the clock of steadyNow().
    virtual Nanoseconds at(std::size_t place) const = 0;
};

/// Calls `give`, which gives a device's stream something, when it is its turn: other devices are given theirs in the
/// same order.
using InTurn = std::function<void(const std::function<void()>& give)>;

/// What a device's blocks are called in a profiler of another maker; and blocks that were issued once and are
/// issued again as a whole.
class BlockMarks {
public:
    virtual ~BlockMarks() = default;
    /// Everything issued between the two calls belongs to the task.
    virtual void begin(TaskId task, const char* label) = 0;
    /// `turn`: of a captured block that other devices take part in; null: it is issued at once.
    virtual void end(const InTurn* turn) = 0;
    /// True: the block was issued as it was captured. False: it is to be issued now, between begin() and end(), and
    /// is captured on the way.
    virtual bool replay(TaskId, const InTurn* /*turn*/) { return false; }
};

/// A copy that was carried out; task `none` when it was not.
struct Copied {
    TaskId task = none;
    Nanoseconds start = 0, end = 0;
};

/// Host memory for what a device's buffers keep meanwhile, and the copies there and back: they run beside the device's
/// stream, each way one after the other.
class HostStore {
public:
    enum class Direction : std::uint8_t { Out, In };
    struct Copy {
        TaskId task = none;
        std::span<const Region> from, to; ///< of equal sizes, valid until `done` has happened
        Event* done = nullptr;
        Nanoseconds atLeast = 0; ///< emulates a slower link: it ends no earlier than this after it began
    };
    virtual ~HostStore() = default;
    virtual Region region() const = 0;
    /// Does not wait for the copy. What is read must be there when `stream` comes to it.
    virtual void copy(Direction direction, Stream& stream, const Copy& what) = 0;
    /// Appends the copies that ended since the last call. One whose event has happened is among them.
    virtual void finished(std::vector<Copied>& copies) = 0;
};

class Device {
public:
    virtual ~Device() = default;
    virtual std::string name() const = 0;
    virtual Capabilities capabilities() const = 0;
    /// Throws Error when the device has not that much memory.
    virtual std::unique_ptr<Allocation> allocate(Bytes bytes) = 0;
    /// What this process holds of its memory now: the bytes that were asked for, by allocate(), by its maths and by its
    /// links. What an allocator rounds up, and what a driver, NCCL or a profiler has of its own, is not known here.
    virtual Bytes heldBytes() const = 0;
    struct Pool {
        Bytes bytes = 0; ///< all of it, including what other processes use; 0: unknown
        int number = 0;  ///< devices of one pool share it
    };
    virtual Pool memory() const { return {}; }
    virtual std::unique_ptr<Stream> createStream() = 0;
    /// An event that only `waiter` ever waits for.
    virtual std::unique_ptr<Event> createEvent(Stream& waiter) = 0;
    /// Maths in this device's memory, in the order of `stream`. All of a device share one workspace: only one at a
    /// time may multiply matrices or add up losses.
    virtual std::unique_ptr<kernels::Operations> createOperations(Stream& stream) = 0;
    /// Null when the calling thread does the work itself, and a look at the clock is the truth.
    virtual std::unique_ptr<Stopwatch> createStopwatch(Stream&, std::size_t /*places*/) { return nullptr; }
    /// Null when there is nobody to tell. `capture`: see replay().
    virtual std::unique_ptr<BlockMarks> createBlockMarks(Stream&, bool /*capture*/) { return nullptr; }
    /// Between the host's memory and the device's, behind what `stream` was given. Return when it is done.
    virtual void write(Stream& stream, Region to, const void* from) = 0;
    virtual void read(Stream& stream, Region from, void* to) = 0;
    /// From another device of the same backend to this one, in the order of `stream`, which is this one's. What is read
    /// must be there by then: the other's stream is not waited for.
    virtual void fetch(Stream& stream, Region to, const Device& owner, Region from) = 0;
    /// Host memory of so many bytes for this device. Null: the backend cannot offload.
    virtual std::unique_ptr<HostStore> createHostStore(Bytes /*bytes*/) { return nullptr; }
    /// Whether maths of this device reads the other's memory as if it were its own.
    virtual bool reaches(const Device& other) const = 0;
};

class Bus;

/// One side of a transfer. The regions, the event and what they refer to stay valid until the link is reset.
struct Posting {
    TaskId task = none;
    std::span<const Region> regions;
    Event* done = nullptr;   ///< sender: the source may be reused; receiver: the data is there
    Nanoseconds atLeast = 0; ///< emulates a slower link: the data is there no earlier than this after the copy began
    bool blocks = false;     ///< `atLeast` holds for the sender's `done` too
    Bus* bus = nullptr;      ///< of an emulated link: the copy begins when this has been taken for `held`
    Nanoseconds held = 0;
};

/// A link one way between two devices. Postings match strictly first to first, as NCCL matches them: there
/// are no tags that could repair a wrong order. The n-th send and the n-th receive must be of the same
/// task and sizes; if they are not, the link is stuck from there on and nothing more arrives.
class Link {
public:
    /// What stands at the first place that cannot proceed.
    struct Heads {
        TaskId send = none, receive = none; ///< none: nothing posted there yet
        bool mismatch = false;
    };

    virtual ~Link() = default;
    /// Neither call waits for the other side; a copy that it carried out itself is returned. Without slots nothing is
    /// copied before both sides are posted (rendezvous), and the later one copies; with a free slot the send is copied
    /// there at once (eager).
    virtual Copied send(Stream& stream, const Posting& posting) = 0;
    virtual Copied receive(Stream& stream, const Posting& posting) = 0;
    virtual Heads heads() const = 0;
    /// Appends the copies that ended since the last call and that neither send() nor receive() returned, to
    /// the receiver's process. A receive whose event has happened is among them, at the latest, by then.
    virtual void finished(std::vector<Copied>&) {}
    /// By the sender's thread: everything that it sent in this step has left.
    virtual void settled() {}
    /// Forgets all postings; only between steps.
    virtual void reset() = 0;
    /// Gives up what is in flight and would wait for the other side for ever; the link is of no further use.
    virtual void abort() {}
};

struct LinkOptions {
    int storedSends = 0;      ///< 0: rendezvous; k: eager, at most k sends stored on the way
    Bytes slotBytes = 0;      ///< larger transfers always rendezvous
    std::size_t postings = 0; ///< most sends (and receives) between two resets; nothing is allocated later
    bool mayBeSlowed = true;  ///< a posting's `atLeast` may be more than 0

    /// From one slot to the next.
    Bytes stride(Bytes alignment) const { return (slotBytes + alignment - 1) / alignment * alignment; }
};

/// What a link keeps of its two devices' memory.
struct LinkMemory {
    Bytes sender = 0, receiver = 0;
};

class Peers;
class Communicator;
class PairSum;

class Backend {
public:
    virtual ~Backend() = default;
    virtual std::string name() const = 0; ///< "host", "cuda", "mpi"
    virtual int devices() const = 0;
    virtual Device& device(int index) = 0;
    /// Whether this process runs the device. Of others nothing but the sizes is known here.
    virtual bool isLocal(int) const { return true; }
    /// The other processes of the run; null when there are none.
    virtual Peers* peers() { return nullptr; }
    /// Between two steps: clocks are compared anew.
    virtual void beginStep() {}
    /// From now on the devices' own recorder, where there is one, sees what they do. Empty, or why it does not.
    virtual std::string startRecording() { return {}; }
    /// Between steps: what it saw since the last call, with `step` put in. Returns how many records it lost.
    virtual std::int64_t untimedRecords() const { return 0; } ///< seen so far, and left out: their times are unknown
    virtual std::string unrecorded() const { return {}; } ///< what it cannot see, and why; empty: nothing of the kind
    virtual std::int64_t takeRecords(std::int32_t /*step*/, std::vector<GpuRecord>&) { return 0; }
    /// What the devices' maths did in more steps than it might have, since the last call.
    virtual Diagnostics takeNotes() { return {}; }
    /// Attention in bf16 that its devices are to compute, before their memory is predicted or anything is allocated:
    /// they may want a larger workspace for it.
    virtual void expectAttention(std::span<const kernels::GroupedAttentionShape>) {}
    /// At least one of the two devices is local. At most one link per directed pair.
    virtual std::unique_ptr<Link> createLink(int from, int to, const LinkOptions& options) = 0;
    /// What such a link takes of the devices' memory when it is made, and keeps: all the sends that it can store,
    /// whether or not so many are ever on their way.
    virtual LinkMemory linkMemory(int from, int to, const LinkOptions& options) const = 0;
    /// One group of these devices, in their order; empty when they have no way of their own to move data together.
    /// Throws Error when one was asked for and cannot be had.
    virtual std::vector<std::unique_ptr<Communicator>> createCommunicators(std::span<const int> members);
    std::vector<std::unique_ptr<Communicator>> createCommunicators(); ///< of all devices
    /// Whether createCommunicators() gives them some.
    virtual bool hasCommunicators(std::span<const int> /*members*/) { return false; }
    /// So many sums of two devices' values in a step. Null: the two send them to each other over links and add them up.
    virtual std::unique_ptr<PairSum> createPairSum(int first, int second, std::size_t sums);
};

} // namespace pipewright
