// SPDX-License-Identifier: GPL-3.0-or-later
// A link over NCCL, with a communicator for this directed pair, so that the two directions, and other pairs, never wait
// for each other. NCCL requires all its calls for one GPU from one thread: the GPU's owner, to which links queue their
// calls. A send and its receive are issued only when both are posted, so a deadlocked schedule stays on the host, where
// it can be explained, and no kernel spins on a GPU.
#pragma once

#include "executor/cuda/cudalink.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <thread>

namespace pipewright {

/// An operation with two sides, each issued by the owner of its GPU.
class NcclWork {
public:
    virtual ~NcclWork() = default;
    /// Called on the owner's thread. Throws nothing.
    virtual void issue(std::size_t index, bool first) = 0;
};

/// The one thread of a GPU that calls NCCL.
class NcclOwner {
public:
    NcclOwner();
    ~NcclOwner();
    NcclOwner(const NcclOwner&) = delete;
    NcclOwner& operator=(const NcclOwner&) = delete;

    /// Reserves queue space for `jobs` more jobs; call before the first step.
    void makeRoom(std::size_t jobs);
    /// Queues both sides atomically: operations that two GPUs have in common have the same order in both queues, since
    /// NCCL kernels that start in different orders may deadlock.
    static void post(NcclOwner& first, NcclOwner& second, NcclWork& work, std::size_t index);
    /// The same for a group; the owners are those of different GPUs.
    static void post(std::span<NcclOwner* const> owners, std::span<NcclWork* const> works);
    /// Queues the only side in this process.
    void post(NcclWork& work, std::size_t index, bool first);
    /// Waits until nothing is queued and nothing is being issued.
    void drain();

private:
    struct Job {
        NcclWork* work = nullptr;
        std::size_t index = 0;
        bool first = false;
    };
    void push(const Job& job);
    void work();

    std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    std::vector<Job> m_jobs; ///< a ring
    std::size_t m_first = 0, m_count = 0;
    bool m_working = false, m_quit = false;
    std::thread m_thread;
};

class NcclLink final : public CudaLink, private NcclWork {
public:
    /// The owners must outlive it. Throws Error when the two GPUs cannot be connected within the deadline. Stores no
    /// sends (all rendezvous) and cannot be slowed.
    NcclLink(const CudaGpu& from, const CudaGpu& to, NcclOwner& fromOwner, NcclOwner& toOwner,
             const LinkOptions& options, Nanoseconds deadline);
    ~NcclLink() override;

    void finished(std::vector<Copied>& to) override;
    void reset() override;
    void abort() override;
    void awaitCalls() override;

private:
    void move(std::size_t index) override;
    void issue(std::size_t index, bool sends) override;
    void fail(std::exception_ptr why);
    void throwIfFailed();

    NcclOwner &m_fromOwner, &m_toOwner;
    void *m_sender = nullptr, *m_receiver = nullptr;
    std::atomic<bool> m_aborted{false};
    std::mutex m_state; ///< guards what follows; held while NCCL is called
    std::exception_ptr m_failure;
};

} // namespace pipewright
