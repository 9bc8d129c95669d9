// SPDX-License-Identifier: GPL-3.0-or-later
// A link that NCCL carries: a communicator for this directed pair, so that the two directions, and other pairs, never
// wait for each other. NCCL wants all its calls for one GPU from one thread: that thread is the GPU's owner here, and
// what a link has to say there is queued to it. A send and its receive are issued only when both are posted, so a
// schedule that is stuck stays stuck on the host, where it can be explained, and no kernel spins on a GPU for it.
#pragma once

#include "executor/cuda/cudalink.h"

#include <condition_variable>
#include <exception>
#include <thread>

namespace pipewright {

/// Something of which both sides are to be issued, each by the owner of its GPU.
class NcclWork {
public:
    virtual ~NcclWork() = default;
    /// On the owner's thread. Throws nothing.
    virtual void issue(std::size_t index, bool first) = 0;
};

/// The one thread of a GPU that calls NCCL.
class NcclOwner {
public:
    NcclOwner();
    ~NcclOwner();
    NcclOwner(const NcclOwner&) = delete;
    NcclOwner& operator=(const NcclOwner&) = delete;

    /// Memory for so many more jobs at a time; before the first step.
    void makeRoom(std::size_t jobs);
    /// Both sides at one time: whatever two GPUs have in common stands in the same order in the queues of both, since
    /// kernels of NCCL that start in different orders may wait for each other for ever.
    static void post(NcclOwner& first, NcclOwner& second, NcclWork& work, std::size_t index);
    /// The same of a group: each owner is of another GPU.
    static void post(std::span<NcclOwner* const> owners, std::span<NcclWork* const> works);
    /// The only side of this process.
    void post(NcclWork& work, std::size_t index, bool first);
    /// Until nothing is queued and nothing is being issued.
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
    /// sends: all of them rendezvous, and none is made slower.
    NcclLink(const CudaGpu& from, const CudaGpu& to, NcclOwner& fromOwner, NcclOwner& toOwner,
             const LinkOptions& options, Nanoseconds deadline);
    ~NcclLink() override;

    void finished(std::vector<Copied>& to) override;
    void reset() override;
    void abort() override;

private:
    void move(std::size_t index) override;
    void issue(std::size_t index, bool sends) override;
    void fail(std::exception_ptr why);
    void throwIfFailed();

    NcclOwner &m_fromOwner, &m_toOwner;
    void *m_sender = nullptr, *m_receiver = nullptr;
    std::mutex m_state; ///< guards what follows
    bool m_aborted = false;
    std::exception_ptr m_failure;
};

} // namespace pipewright
