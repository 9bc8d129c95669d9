// SPDX-License-Identifier: GPL-3.0-or-later
// Collectives among the devices of a shared stage. Each device has a thread, and all call the same collectives in the
// same order. A device whose piece is empty takes part like the others, and every device gets the same bits of a sum.
//
// There are three ways. Devices with a communicator (NCCL) pack the data, padded to the largest piece or piece by piece
// as the program chose for this site, and issue the call without waiting on the host. Devices of several processes send
// each other their tensors. All others publish the address of their tensor, wait for each other, and read what they
// need. The last two add up in the order of the devices and give the same bits.
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

class MemberCollectives : public Abortable {
public:
    explicit MemberCollectives(std::vector<MemberDevice*> members);

    int devices() const { return static_cast<int>(m_members.size()); }
    /// Waits until all devices are here. Throws Stopped when one has failed, or when `stopped` has become true.
    void wait();
    /// `stopped` is checked while a device waits; null: only abort() ends a wait. `waiter`: the stream that waits for
    /// other processes; the runtime interrupts it.
    void stopWith(const std::atomic<bool>* stopped, Stream* waiter = nullptr)
    {
        m_stopped.store(stopped, std::memory_order_relaxed);
        m_waiter = waiter;
    }
    /// Called once a device has failed: releases the devices that wait.
    void abort() final;
    /// Set by each device for itself: whether its tensor holds only bf16 values. They are then sent to other processes
    /// in two bytes.
    char& narrow(int device) { return m_narrow[static_cast<std::size_t>(device)]; }

    /// Whether a collective only issues calls, the same ones every time, so that it can be captured. It is then
    /// launched in the device's turn among the others.
    virtual bool repeats() const { return false; }
    virtual void inTurn(int /*device*/, const std::function<void()>& give) { give(); }

    virtual Tensor allGather(int device, const Tensor& piece, const Cut& cut) = 0;
    virtual Tensor allReduce(int device, const Tensor& part) = 0;
    /// This device's piece of the sum.
    virtual Tensor reduceScatter(int device, const Tensor& part, const Cut& cut) = 0;
    /// From pieces along one dimension to pieces along another dimension, or to other pieces along the same.
    virtual Tensor allToAll(int device, const Tensor& piece, const Cut& from, const Cut& to) = 0;

protected:
    bool isStopped() const
    {
        const std::atomic<bool>* flag = m_stopped.load(std::memory_order_relaxed);
        return flag && flag->load(std::memory_order_relaxed);
    }
    Stream* waiter() const { return m_waiter; }
    MemberDevice& member(int device) { return *m_members[device]; }
    virtual void abortCommunicators() {}

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

/// With `communicators`, one per member (null: another process's). Without any, members read each other's memory.
std::unique_ptr<MemberCollectives> createCollectives(std::vector<MemberDevice*> members,
                                                     std::vector<std::unique_ptr<Communicator>> communicators);

/// For a process with one of the members; the others are null. `numbers`: the members' device numbers in the run.
std::unique_ptr<MemberCollectives> createCollectives(std::vector<MemberDevice*> members, Exchange& exchange,
                                                     std::vector<int> numbers);

/// How a member would access the other members' data.
struct ImaginedOthers {
    enum class Way {
        Memory,       ///< reads it, or copies what it cannot read
        Apart,        ///< the others are processes; it has copies of their tensors
        Communicator, ///< moves the data and adds up for it
    };
    Way way = Way::Memory;
    std::vector<bool> reached{}; ///< per member: whether it can be read; empty: all
};
/// For one device alone, to find out how much memory it needs: it makes the tensors that it would make together with
/// the others, whose own tensors have no memory.
std::unique_ptr<MemberCollectives> createLoneCollectives(MemberDevice& member, int devices, ImaginedOthers others);

} // namespace pipewright::sharding
