// SPDX-License-Identifier: GPL-3.0-or-later
// This process's GPU and another process's, connected by a NCCL communicator of two, for a link or for the sums of a
// pair. This process's side of each operation is kept here, offered to process 0, and issued by the GPU's owner when
// process 0 releases it. So the order is the same on all GPUs, and no kernel spins on one GPU for a side that is not
// there.
#pragma once

#include "executor/cuda/nccllink.h"
#include "executor/mpi/issueorder.h"
#include "executor/runtime/collectives.h"

namespace pipewright {

/// What all connections of a process share; it outlives them.
struct RankGpu {
    RankHub& hub;
    IssueOrder& order;
    NcclOwner& owner;
    CudaGpu gpu;
    Nanoseconds deadline; ///< for connecting
};

class RankPair : private LinkEnd, private NcclWork {
public:
    RankPair(const RankPair&) = delete;
    RankPair& operator=(const RankPair&) = delete;

protected:
    struct Side {
        Posting posting;
        void* ready = nullptr;   ///< recorded on the device's stream: its work up to the posting
        void* started = nullptr; ///< this side begins
    };

    RankPair(const RankGpu& own, std::uint32_t channel, int first, int second, std::size_t postings);
    ~RankPair() override;
    /// Connects the two and warms them up. Called by the constructor of a derived class, since it calls carry(). All
    /// processes do it for all their channels in one order. Throws Error when the other process does not come, or NCCL
    /// cannot connect them within the deadline.
    void connect(int multiprocessors);
    void stop(); ///< called by the derived class's destructor: nothing is issued afterwards

    /// The operation comes after everything that `stream` was given until now.
    void post(std::size_t index, Stream& stream, const Posting& posting);
    /// Makes the NCCL calls, on `m_stream`. Called by the owner's thread, and for warming up by the thread that
    /// connects.
    virtual void carry(std::span<const Region> regions) = 0;
    virtual void began(std::size_t /*index*/, Nanoseconds /*time*/, std::int64_t /*round*/) {} ///< the other side began
    bool isFirst() const { return m_own.hub.self() == m_first; }
    bool drained() const; ///< waits until everything that was issued is done; false when aborted
    void forget();        ///< clears the postings, after all of them have been issued
    void throwIfFailed();
    void abortPair();   ///< waits for no other thread
    void awaitIssued(); ///< after abortPair(): returns when the owner is in no call of NCCL
    void check(int code, const char* what) const { m_own.gpu.check(code, what); }
    const PipewrightCudaTable& table() const { return *m_own.gpu.table; }

    const RankGpu m_own;
    const std::uint32_t m_channel;
    const int m_first, m_second;
    void *m_member = nullptr, *m_stream = nullptr;
    bool m_labels = false; ///< what NCCL runs is part of the posting's task
    std::atomic<bool> m_aborted{false};
    mutable std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    std::vector<Side> m_sides;
    std::vector<std::size_t> m_issued; ///< operations that both sides have offered, in release order
    Link::Heads m_mismatch;

private:
    std::vector<Region> place(const Message&) override { return {}; }
    void received(const Message& message) override;
    void issue(std::size_t index, bool first) override;
    void join(int multiprocessors);
    void warmUp();
    void awaitWarmth();

    std::mutex m_state; ///< guards what follows; held while NCCL is called
    std::exception_ptr m_failure;
};

/// `from` or `to` is this process. Every transfer is a rendezvous; slower links are not emulated.
std::unique_ptr<Link> createRankLink(const RankGpu& own, int from, int to, const LinkOptions& options);
/// a + b has the same bits as b + a, so the sums equal those of the host.
std::unique_ptr<PairSum> createRankSum(const RankGpu& own, int first, int second, std::size_t sums);

} // namespace pipewright
