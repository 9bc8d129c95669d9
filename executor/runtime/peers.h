// SPDX-License-Identifier: GPL-3.0-or-later
// The other processes of a run that has one process per device: what they must agree on between steps, what
// each lets the others know during a step, and how the end of one of them becomes known to all.
// Process r runs device r; process 0 also writes the trace and speaks to the user.
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

/// Where a device stands; the fields are those of ActorStatus.
struct Standing {
    std::uint64_t progress = 0;
    std::uint32_t instruction = 0;
    std::int32_t transfer = -1;
    std::uint8_t state = 0;
    bool ready = false;
};

/// What each process puts into an all-reduce, and what all get out of it.
struct StepShare {
    Nanoseconds start = 0, end = 0; ///< on process 0's clock; the earliest and the latest
    double loss = 0;                ///< the sum, in the order of the processes
    bool cancelled = false;         ///< any
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

    virtual void publish(const Standing& standing) = 0; ///< of the own device
    virtual Standing standing(int device) const = 0;    ///< as last heard
    virtual bool gone(int device) const = 0;            ///< its process has ended, however

    /// Returns when all processes have come. Throws Error when one cannot come any more, or when no device
    /// has made progress for the deadline.
    virtual StepShare allReduce(const StepShare& own) = 0;
    /// Returns when all processes have come, as allReduce().
    void barrier() { allReduce({}); }
    /// Asks all to end the current step.
    virtual void cancel() = 0;
    virtual bool cancelled() const = 0;
    /// Lets the others know that, and why, this process ends the run.
    virtual void fail(const std::string& why) = 0;
    /// Why another process ends the run, with its device; empty while all is well.
    virtual std::string failureReason() const = 0;
    /// The process that has said nothing for longest, if that is too long for one that runs; otherwise empty.
    virtual std::string silence() const = 0;

    /// Before the memory of the run goes: after a failure or a cancelled step nothing is carried any more.
    virtual void endRun() = 0;

    /// To process 0, in order; on process 0 itself nothing happens. After an all-reduce everything that was posted
    /// before it has arrived.
    virtual void post(std::uint32_t kind, std::uint32_t number, std::span<const std::byte> bytes) = 0;
    virtual std::vector<PeerMessage> takeMessages() = 0;
    /// Between the own device, whose memory the host can touch, and those of some other processes. All that will ever
    /// exchange anything have made theirs before the next all-reduce.
    virtual std::unique_ptr<Exchange> createExchange(std::span<const int> others) = 0;
    /// What to add to times of that process for process 0's clock, known to process 0 and to the process itself.
    virtual Nanoseconds clockOffset(int process) const = 0;
    virtual Nanoseconds clockUncertainty(int process) const = 0;
};

} // namespace pipewright
