// SPDX-License-Identifier: GPL-3.0-or-later
// The other processes of a run with one process per device: agreement between steps, status messages during a step, and
// detection of processes that end. Process r runs device r; process 0 also writes the trace and speaks to the user.
#pragma once

#include "core/base/unfilled.h"
#include "core/base/units.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pipewright {

class Exchange;

/// A device's progress and status; the fields are those of ActorStatus.
struct Standing {
    std::uint64_t progress = 0;
    std::uint32_t instruction = 0;
    std::int32_t transfer = -1;
    std::uint8_t state = 0;
    bool ready = false;
};

/// A process's input to the all-reduce after a step, and its result.
struct StepShare {
    Nanoseconds start = 0, end = 0; ///< on process 0's clock; the earliest and the latest
    double loss = 0;                ///< the sum, in the order of the processes
    bool cancelled = false;         ///< true if any process was cancelled
};

/// Bytes that a process sent to process 0, with a kind and a number of the sender's choice.
struct PeerMessage {
    int from = 0;
    std::uint32_t kind = 0, number = 0;
    UnfilledVector<std::byte> bytes;
};

class Peers {
public:
    virtual ~Peers() = default;
    virtual int self() const = 0;
    virtual int count() const = 0;

    virtual void publish(const Standing& standing) = 0; ///< of this process's device
    virtual Standing standing(int device) const = 0;    ///< as last received
    virtual bool gone(int device) const = 0;            ///< its process has ended, for whatever reason

    /// Returns when all processes have called it. Throws Error when one no longer can, or when no device has made
    /// progress for the deadline.
    virtual StepShare allReduce(const StepShare& own) = 0;
    /// Returns when all processes have called it; throws as allReduce().
    void barrier() { allReduce({}); }
    /// Asks all processes to end the current step.
    virtual void cancel() = 0;
    virtual bool cancelled() const = 0;
    /// Tells the others that this process ends the run, and why.
    virtual void fail(const std::string& why) = 0;
    /// Why another process ended the run, with its device; empty otherwise.
    virtual std::string failureReason() const = 0;
    /// Names the process that has been silent longest, if too long for a running one; otherwise empty.
    virtual std::string silence() const = 0;

    /// Call before the run's memory is released: after a failure or a cancelled step, nothing is transferred any more.
    virtual void endRun() = 0;

    /// To process 0, in order; on process 0 itself nothing happens. After an all-reduce everything that was posted
    /// before it has arrived.
    virtual void post(std::uint32_t kind, std::uint32_t number, std::span<const std::byte> bytes) = 0;
    virtual std::vector<PeerMessage> takeMessages() = 0;
    /// An exchange between this process's device, whose memory the host can access, and the devices of some other
    /// processes. All processes that exchange anything must create theirs before the next all-reduce.
    virtual std::unique_ptr<Exchange> createExchange(std::span<const int> others) = 0;
    /// Offset that converts times of that process to process 0's clock; known to process 0 and to that process.
    virtual Nanoseconds clockOffset(int process) const = 0;
    virtual Nanoseconds clockUncertainty(int process) const = 0;
};

} // namespace pipewright
