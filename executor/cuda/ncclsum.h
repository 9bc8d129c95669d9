// SPDX-License-Identifier: GPL-3.0-or-later
// Sums of two GPUs' values by NCCL: an in-place all-reduce, on a communicator and streams of the pair's own, concurrent
// with maths. It is issued when both sides are posted, by the owners of the two GPUs and in the same order on both;
// until then nothing waits on a GPU. The sum of two numbers has the same bits in either order, so the result equals the
// host's.
#pragma once

#include "executor/cuda/nccllink.h"
#include "executor/runtime/collectives.h"

#include <array>
#include <atomic>

namespace pipewright {

class NcclSum final : public PairSum, private NcclWork {
public:
    /// `devices` are the values of `device` in post(). The owners must outlive it. Throws Error when the two GPUs
    /// cannot be connected within the deadline.
    NcclSum(std::array<int, 2> devices, std::array<CudaGpu, 2> gpus, std::array<NcclOwner*, 2> owners, std::size_t sums,
            Nanoseconds deadline);
    ~NcclSum() override;
    NcclSum(const NcclSum&) = delete;
    NcclSum& operator=(const NcclSum&) = delete;

    void post(std::size_t index, int device, Stream& stream, const Posting& posting) override;
    void finished(std::vector<Copied>& to) override;
    void reset() override;
    void abort() override;
    void awaitCalls() override;

private:
    struct Side {
        Posting posting;
        Region values;           ///< the posting's, kept
        void* ready = nullptr;   ///< GPU event: the values are complete
        void* started = nullptr; ///< the sum begins
        bool posted = false;
    };
    void issue(std::size_t index, bool first) override;
    void throwIfFailed();

    const std::array<int, 2> m_devices;
    const std::array<CudaGpu, 2> m_gpus;
    const std::array<NcclOwner*, 2> m_owners;
    std::array<void*, 2> m_members{}, m_streams{};
    std::mutex m_mutex; ///< guards what follows
    std::vector<std::array<Side, 2>> m_sums;
    std::vector<std::size_t> m_inFlight; ///< not yet reported by finished()
    std::atomic<bool> m_aborted{false};
    std::mutex m_state; ///< guards what follows; held while NCCL is called
    std::exception_ptr m_failure;
};

} // namespace pipewright
