// SPDX-License-Identifier: GPL-3.0-or-later
// The hardware interface of the runtime: devices with memory, streams on which work is issued, events that order
// streams, and links that carry buffers one way between two devices. The host backend implements it with threads and
// memory copies; a GPU backend issues the same calls on its own streams, where they run later: only its stopwatch knows
// when. All waits go through a Stream, so a run can always be interrupted.
// tests/executor/runtime/tst_backend_conformance.cpp says what every implementation must do.
#pragma once

#include "core/base/diagnostic.h"
#include "core/base/units.h"
#include "core/program/program.h"
#include "executor/runtime/abortable.h"
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
    /// Work proceeds without a thread of this process (streams run by themselves, data is in flight). When false, a
    /// deadlock can be proven from the waits of the device threads.
    bool asynchronous = false;
    bool flashAttention = false; ///< its attention keeps one number per query and head, not the probabilities
    bool bf16Arithmetic = false; ///< it computes directly with stored bf16 values, without fp32 copies
    /// Device memory that maths keeps in addition to the Program's buffers, from the first createOperations() on. Known
    /// beforehand, so that predictions can include it.
    Bytes workspaceBytes = 0;
};

/// Memory of one device, released on destruction. Aligned to at least 64 bytes; contents undefined.
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
    /// Lets it happen again in the next step. Call only while no stream waits for it and no posting refers to it.
    virtual void reset() = 0;
};

/// An ordered queue of one device's work.
class Stream {
public:
    virtual ~Stream() = default;
    /// Work issued from now on runs after `event`. False when interrupted: issue nothing more.
    virtual bool wait(Event& event) = 0;
    /// Returns when everything issued so far is done; false when interrupted.
    virtual bool synchronize() = 0;
    /// Keeps the device busy for this time, in stream order. False: not supported, the calling thread must spend it.
    virtual bool spend(Nanoseconds) { return false; }
    /// Makes the current wait and all later ones return false until resume(). Any thread may call it.
    virtual void interrupt() = 0;
    virtual void resume() = 0;
};

/// Tells when an asynchronous device reached given points of its stream.
class Stopwatch {
public:
    virtual ~Stopwatch() = default;
    /// `place` is passed when everything issued so far is done. Places are marked again in every step.
    virtual void mark(std::size_t place) = 0;
    virtual bool passed(std::size_t place) const = 0;
    /// The time of a passed place, on the clock of steadyNow().
    virtual Nanoseconds at(std::size_t place) const = 0;
};

/// Calls `give`, which issues work on a device's stream, in its turn: all devices issue such work in the same order.
using InTurn = std::function<void(const std::function<void()>& give)>;

/// Labels a device's blocks for external profilers, and replays captured blocks as a whole.
class BlockMarks {
public:
    virtual ~BlockMarks() = default;
    /// Everything issued between the two calls belongs to the task.
    virtual void begin(TaskId task, const char* label) = 0;
    /// `turn`: for a captured block in which other devices take part; null: it is issued at once.
    virtual void end(const InTurn* turn) = 0;
    /// True: the captured block was issued. False: the caller must issue the block, between begin() and end(), which
    /// may capture it.
    virtual bool replay(TaskId, const InTurn* /*turn*/) { return false; }
};

/// A copy that was carried out; task `none` if none was.
struct Copied {
    TaskId task = none;
    Nanoseconds start = 0, end = 0;
};

/// Host memory for offloaded buffers of a device, and the copies there and back. They run concurrently with the
/// device's stream, one after another in each direction.
class HostStore {
public:
    enum class Direction : std::uint8_t { Out, In };
    struct Copy {
        TaskId task = none;
        std::span<const Region> from, to; ///< equal sizes, valid until `done` has happened
        Event* done = nullptr;
        Nanoseconds atLeast = 0; ///< emulates a slower link: least duration of the copy
        bool timed = true;       ///< finished() may be asked for it
    };
    virtual ~HostStore() = default;
    virtual Region region() const = 0;
    /// Does not wait for the copy, which runs after the work that `stream` was given before.
    virtual void copy(Direction direction, Stream& stream, const Copy& what) = 0;
    /// Appends the timed copies that ended since the last call, including every one whose event has happened.
    virtual void finished(std::vector<Copied>& copies) = 0;
};

class Device {
public:
    virtual ~Device() = default;
    virtual std::string name() const = 0;
    virtual Capabilities capabilities() const = 0;
    /// Throws Error when the device lacks that much memory.
    virtual std::unique_ptr<Allocation> allocate(Bytes bytes) = 0;
    /// Bytes of its memory that this process holds now, as requested by allocate(), its maths and its links. Does not
    /// include rounding by allocators, nor memory of the driver, NCCL or a profiler.
    virtual Bytes heldBytes() const = 0;
    struct Pool {
        Bytes bytes = 0; ///< total, including memory used by other processes; 0: unknown
        int number = 0;  ///< devices with the same number share the pool
    };
    virtual Pool memory() const { return {}; }
    virtual std::unique_ptr<Stream> createStream() = 0;
    /// An event for which only `waiter` ever waits.
    virtual std::unique_ptr<Event> createEvent(Stream& waiter) = 0;
    /// Maths in this device's memory, in the order of `stream`. All Operations of a device share one workspace: only
    /// one at a time may multiply matrices or add up losses.
    virtual std::unique_ptr<kernels::Operations> createOperations(Stream& stream) = 0;
    /// Null when the calling thread does the work itself, so that the host's clock gives its times.
    virtual std::unique_ptr<Stopwatch> createStopwatch(Stream&, std::size_t /*places*/) { return nullptr; }
    /// Null when the device has no profilers and no capture. `capture`: see replay().
    virtual std::unique_ptr<BlockMarks> createBlockMarks(Stream&, bool /*capture*/) { return nullptr; }
    /// Copies between the host's memory and the device's, after the work that `stream` was given. Returns when done.
    virtual void write(Stream& stream, Region to, const void* from) = 0;
    virtual void read(Stream& stream, Region from, void* to) = 0;
    /// Host memory that write() and read() copy without a detour of the driver. Null: the host addresses the device's
    /// memory itself.
    virtual std::unique_ptr<Allocation> createStaging(Bytes /*bytes*/) { return nullptr; }
    /// Copies from another device of the same backend to this one, in the order of this device's `stream`. The source
    /// must be complete by then: the owner's stream is not waited for.
    virtual void fetch(Stream& stream, Region to, const Device& owner, Region from) = 0;
    /// Allocates host memory for offloading. Null: the backend cannot offload.
    virtual std::unique_ptr<HostStore> createHostStore(Bytes /*bytes*/) { return nullptr; }
    /// Whether maths of this device can access the other's memory directly.
    virtual bool reaches(const Device& other) const = 0;
};

class Bus;

/// One side of a transfer. The regions and the event stay valid until the link is reset.
struct Posting {
    TaskId task = none;
    std::span<const Region> regions;
    Event* done = nullptr;   ///< sender: the source may be reused; receiver: the data has arrived
    Nanoseconds atLeast = 0; ///< emulates a slower link: least time from the start of the copy to the arrival
    bool blocks = false;     ///< `atLeast` holds for the sender's `done` too
    Bus* bus = nullptr;      ///< of an emulated link: the copy begins when this bus has been reserved for `held`
    Nanoseconds held = 0;
    /// finished() may be asked for it. If not, an asynchronous device is spared the events that would tell its times.
    bool timed = true;
};

/// A one-way link between two devices. Postings match in order, as in NCCL: no tags can repair a wrong order. The n-th
/// send and the n-th receive must be of the same task and sizes; if not, the link is stuck and nothing more arrives.
class Link : public Abortable {
public:
    /// The first send and receive that cannot proceed.
    struct Heads {
        TaskId send = none, receive = none; ///< none: nothing posted yet
        bool mismatch = false;
    };

    /// Neither call waits for the other side; each returns the copy that it carried out itself. Without slots the side
    /// that posts later copies (rendezvous); with a free slot the send is copied there at once (eager).
    virtual Copied send(Stream& stream, const Posting& posting) = 0;
    virtual Copied receive(Stream& stream, const Posting& posting) = 0;
    virtual Heads heads() const = 0;
    /// Appends the copies that ended since the last call and that neither send() nor receive() returned. Called in the
    /// receiver's process. Includes every timed receive whose event has happened.
    virtual void finished(std::vector<Copied>&) {}
    /// Called by the sender's thread when everything that it sent in this step has left.
    virtual void settled() {}
    /// Forgets all postings; only between steps.
    virtual void reset() = 0;
};

struct LinkOptions {
    int storedSends = 0;      ///< 0: rendezvous; k: eager, at most k sends stored
    Bytes slotBytes = 0;      ///< larger transfers always rendezvous
    std::size_t postings = 0; ///< most sends (and receives) between two resets; all memory is allocated for them
    bool mayBeSlowed = true;  ///< a posting's `atLeast` may be more than 0

    /// Bytes from one slot to the next.
    Bytes stride(Bytes alignment) const { return (slotBytes + alignment - 1) / alignment * alignment; }
};

/// Memory that a link keeps on its two devices.
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
    /// Whether this process runs the device. Of other devices only the sizes are known.
    virtual bool isLocal(int) const { return true; }
    /// The other processes of the run; null when there are none.
    virtual Peers* peers() { return nullptr; }
    /// Between two steps: compares the clocks again.
    virtual void beginStep() {}
    /// Starts the devices' own recorder (CUPTI), if any. Returns empty, or why it does not record.
    virtual std::string startRecording() { return {}; }
    /// Number of records so far that were left out because their times are unknown.
    virtual std::int64_t untimedRecords() const { return 0; }
    virtual std::string recorderNote() const { return {}; } ///< what it cannot do, and why; empty: nothing
    /// Between steps: appends the records since the last call, with their step. Returns how many were lost.
    virtual std::int64_t takeRecords(std::int32_t /*step*/, std::vector<GpuRecord>&) { return 0; }
    /// Since the last call: where the devices' maths needed extra steps, and which kernels computed attention.
    virtual Diagnostics takeNotes() { return {}; }
    /// The shapes of bf16 attention that the devices will compute. Called before memory is predicted or allocated, as
    /// they may need a larger workspace.
    virtual void expectAttention(std::span<const kernels::GroupedAttentionShape>) {}
    /// At least one of the two devices is local. At most one link per directed pair.
    virtual std::unique_ptr<Link> createLink(int from, int to, const LinkOptions& options) = 0;
    /// Device memory that such a link allocates when it is made, and keeps: room for all the sends that it can store.
    virtual LinkMemory linkMemory(int from, int to, const LinkOptions& options) const = 0;
    /// The communicators of a group of these devices, in order; empty when the devices have no collectives of their
    /// own. Throws Error when the user asked for one (NCCL) that is not available.
    virtual std::vector<std::unique_ptr<Communicator>> createCommunicators(std::span<const int> members);
    std::vector<std::unique_ptr<Communicator>> createCommunicators(); ///< of all devices
    /// Whether createCommunicators() is not empty for them.
    virtual bool hasCommunicators(std::span<const int> /*members*/) { return false; }
    /// `sums`: number of sums of the two devices in a step. Null: they exchange their values over links and add them
    /// up.
    virtual std::unique_ptr<PairSum> createPairSum(int first, int second, std::size_t sums);
    /// Ends what all of them have in flight, when a run is given up. May return only when captured graphs that hold
    /// some of it are gone, so whoever owns graphs calls it on a thread of its own.
    virtual void giveUp(std::span<Abortable* const> all);
};

} // namespace pipewright
