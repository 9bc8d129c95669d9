// SPDX-License-Identifier: GPL-3.0-or-later
// Collectives among the devices of a shared stage, one thread each, all of which call the same in the same order. A
// device whose piece is empty takes part like the others, and every device gets the same bits of a sum.
//
// Three ways: where devices have a communicator (NCCL), what is to move is packed, padded to the largest piece or moved
// piece by piece as the program chose for the site, and issued without anybody waiting on the host. Devices of several
// processes send each other their tensors. Everywhere else each device publishes the address of its tensor,
// all wait, and each reads what it needs from the others. The last two add up in the order of the devices, and come to
// the same bits.
#pragma once

#include "executor/runtime/collectives.h"
#include "executor/sharding/memberdevice.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace pipewright::sharding {

/// How the devices share a tensor: the lengths of their pieces along a dimension.
struct Cut {
    int dim = 0;
    std::vector<std::int64_t> lengths;
    bool pieceByPiece = false; ///< grouped broadcasts or reductions of exact sizes, instead of one of padded ones

    std::int64_t first(int device) const;
    std::int64_t length(int device) const { return lengths[device]; }
    std::int64_t whole() const { return first(static_cast<int>(lengths.size())); }
    std::int64_t largest() const;
};

class MemberCollectives {
public:
    explicit MemberCollectives(std::vector<MemberDevice*> members);
    virtual ~MemberCollectives() = default;

    int devices() const { return static_cast<int>(m_members.size()); }
    /// Until all devices are here. Throws Stopped when one has failed, or when `stopped` has turned true.
    void wait();
    /// Looked at while a device waits; null: only fail() ends a wait. `waiter` is interrupted then: where another
    /// process is waited for, on it.
    void stopWith(const std::atomic<bool>* stopped, Stream* waiter = nullptr)
    {
        m_stopped.store(stopped, std::memory_order_relaxed);
        m_waiter = waiter;
    }
    /// Once a device has failed: lets the others go, from any thread.
    void fail();
    /// The device's own: whether what it shows holds nothing but bf16 values, which go to other processes as such.
    char& narrow(int device) { return m_narrow[static_cast<std::size_t>(device)]; }

    /// Whether a collective only issues, the same each time, so that it can be captured. It is then launched in the
    /// device's turn among the others.
    virtual bool repeats() const { return false; }
    virtual void inTurn(int /*device*/, const std::function<void()>& give) { give(); }

    virtual Tensor allGather(int device, const Tensor& piece, const Cut& cut) = 0;
    virtual Tensor allReduce(int device, const Tensor& part) = 0;
    /// The device's own piece of the sum.
    virtual Tensor reduceScatter(int device, const Tensor& part, const Cut& cut) = 0;
    /// From pieces along one dimension to pieces along another, or other pieces along the same.
    virtual Tensor allToAll(int device, const Tensor& piece, const Cut& from, const Cut& to) = 0;

protected:
    bool isStopped() const
    {
        const std::atomic<bool>* flag = m_stopped.load(std::memory_order_relaxed);
        return flag && flag->load(std::memory_order_relaxed);
    }
    Stream* waiter() const { return m_waiter; }
    MemberDevice& member(int device) { return *m_members[device]; }
    virtual void abort() {}

    std::vector<MemberDevice*> m_members;
    std::vector<char> m_narrow;

private:
    std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    int m_come = 0;
    std::uint64_t m_round = 0;
    bool m_failed = false;
    std::atomic<const std::atomic<bool>*> m_stopped{nullptr};
    std::atomic<Stream*> m_waiter{nullptr};
};

/// Through `communicators`, one per member, null where another process has it, or, when there are none, by reading each
/// other's memory.
std::unique_ptr<MemberCollectives> createCollectives(std::vector<MemberDevice*> members,
                                                     std::vector<std::unique_ptr<Communicator>> communicators);

/// Of a process that has one of the members, `own`, and null for the others, which are devices `numbers` of the run.
std::unique_ptr<MemberCollectives> createCollectives(std::vector<MemberDevice*> members, Exchange& exchange,
                                                     std::vector<int> numbers);

/// How a member would get at what the others have.
struct ImaginedOthers {
    enum class Way {
        Memory,       ///< it reads theirs, or has copies of what it does not reach
        Apart,        ///< they are processes, of whose tensors it has copies
        Communicator, ///< one that moves and adds up for it
    };
    Way way = Way::Memory;
    std::vector<bool> reached{}; ///< per member; empty: all
};
/// Of one device that does all of it alone: it makes the tensors that it would make with the others there, whose own
/// hold nothing. For finding out how much memory it takes.
std::unique_ptr<MemberCollectives> createLoneCollectives(MemberDevice& member, int devices, ImaginedOthers others);

} // namespace pipewright::sharding
