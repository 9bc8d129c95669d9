// SPDX-License-Identifier: GPL-3.0-or-later
// Collectives of several devices, with NCCL's rules. Every member makes the same calls in the same order with the same
// sizes, each from the thread of its device. Calls run in the order of the stream.
#pragma once

#include "executor/runtime/backend.h"

#include <span>

namespace pipewright {

/// Point-to-point transfers of one device, with others named by number. Both devices of a pair make their calls in the
/// same order.
class Exchange {
public:
    virtual ~Exchange() = default;
    virtual void send(Stream& stream, std::span<const float> data, int to) = 0;
    virtual void receive(Stream& stream, std::span<float> data, int from) = 0;
    /// Calls between these two are issued as one, so that a ring of sends and receives cannot deadlock.
    virtual void beginGroup() = 0;
    virtual void endGroup() = 0;
    /// Called by the device's own process: forgets what was sent in the step.
    virtual void endStep() {}
};

/// One member of a group. Members are numbered within the group.
class Communicator : public Exchange, public Abortable {
public:
    /// `to` may be `from`. Every member gets the same bits.
    virtual void allReduce(Stream& stream, std::span<const float> from, std::span<float> to) = 0;
    /// Concatenates the members' pieces, all of one size.
    virtual void allGather(Stream& stream, std::span<const float> mine, std::span<float> all) = 0;
    virtual void reduceScatter(Stream& stream, std::span<const float> all, std::span<float> mine) = 0;
    virtual void broadcast(Stream& stream, std::span<float> data, int root) = 0;
    /// `to` is used on the root only.
    virtual void reduce(Stream& stream, std::span<const float> from, std::span<float> to, int root) = 0;
    /// Calls `give`, which issues on the member's stream a graph captured with calls of this communicator. All members'
    /// graphs are issued in the same turn, in the place of these calls; none after an abort.
    virtual void inTurn(const std::function<void()>& give) { give(); }
};

/// Sums of the values of two devices, with the result on both: reductions of replicas' gradients and of shared
/// parameters, concurrent with the devices' other work.
class PairSum : public Abortable {
public:
    /// Posts one side of sum `index`; each side may post its sums in any order. Does not wait for the other side. The
    /// values are complete when `stream` has done the work it was given before; they become the sum when `done` happens
    /// and must not be touched until then.
    virtual void post(std::size_t index, int device, Stream& stream, const Posting& posting) = 0;
    /// As Link::finished(), for completed sums; called by the thread of the first device.
    virtual void finished(std::vector<Copied>&) = 0;
    /// Forgets all postings; only between steps.
    virtual void reset() = 0;
};

} // namespace pipewright
