// SPDX-License-Identifier: GPL-3.0-or-later
// Several devices that move and add up data together, as NCCL has it. Every member calls the same things in the same
// order with the same sizes, each from the one thread of its device; what a call issues runs behind what the stream
// was given before, and what it is given later runs behind it.
#pragma once

#include "executor/runtime/backend.h"

#include <span>

namespace pipewright {

/// What one device sends to and receives from others by their numbers, each pair of them in the same order on both
/// sides.
class Exchange {
public:
    virtual ~Exchange() = default;
    virtual void send(Stream& stream, std::span<const float> data, int to) = 0;
    virtual void receive(Stream& stream, std::span<float> data, int from) = 0;
    /// What is called between the two is issued as one, so that no member of a ring waits for itself.
    virtual void beginGroup() = 0;
    virtual void endGroup() = 0;
    /// Of the run, by the device's own process: forgets what was sent in it.
    virtual void endStep() {}
};

/// One device's part in a group, whose members are numbered within it.
class Communicator : public Exchange {
public:
    /// `to` may be `from`. Every member gets the same bits.
    virtual void allReduce(Stream& stream, std::span<const float> from, std::span<float> to) = 0;
    /// Pieces of one size, put one after another.
    virtual void allGather(Stream& stream, std::span<const float> mine, std::span<float> all) = 0;
    virtual void reduceScatter(Stream& stream, std::span<const float> all, std::span<float> mine) = 0;
    virtual void broadcast(Stream& stream, std::span<float> data, int root) = 0;
    /// `to` is the root's alone.
    virtual void reduce(Stream& stream, std::span<const float> from, std::span<float> to, int root) = 0;
    /// `give`, which gives the member's stream what was captured with calls of this, is called in the same turn for all
    /// members, where these calls would be; not any more once aborted.
    virtual void inTurn(const std::function<void()>& give) { give(); }
    /// From any thread: what is in flight ends, and nothing more can be done with it.
    virtual void abort() = 0;
};

/// Two devices of which each holds some values, and both are to have their sum: the reductions of replicas' gradients
/// and of shared parameters, while the devices go on with something else.
class PairSum {
public:
    virtual ~PairSum() = default;
    /// One side of sum `index`, in whatever order either side comes to its sums. Does not wait for the other side. What
    /// `stream` was given before makes the values; they are the sum when `done` has happened, and untouched until then.
    virtual void post(std::size_t index, int device, Stream& stream, const Posting& posting) = 0;
    /// As a link's, of sums that are over; called by the thread of the first device.
    virtual void finished(std::vector<Copied>&) = 0;
    /// Forgets all postings; only between steps.
    virtual void reset() = 0;
    /// From any thread: gives up what is in flight.
    virtual void abort() = 0;
};

} // namespace pipewright
