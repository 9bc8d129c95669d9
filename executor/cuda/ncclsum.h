// SPDX-License-Identifier: GPL-3.0-or-later
// Sums of two GPUs' values by NCCL: an all-reduce in place, on a communicator and on streams of the pair's own, so that
// maths goes on beside it. It is issued when both sides are posted, by the owners of the two GPUs and in the same order
// on both; until then nothing waits on a GPU. Two numbers give the same bits in either order, so it gives those of the
// host.
#pragma once

#include "executor/cuda/nccllink.h"
#include "executor/runtime/collectives.h"

#include <array>

namespace pipewright {

class NcclSum final : public PairSum, private NcclWork {
public:
    /// `devices` are those that post(). The owners must outlive it. Throws Error when the two GPUs cannot be connected
    /// within the deadline.
    NcclSum(std::array<int, 2> devices, std::array<CudaGpu, 2> gpus, std::array<NcclOwner*, 2> owners, std::size_t sums,
            Nanoseconds deadline);
    ~NcclSum() override;
    NcclSum(const NcclSum&) = delete;
    NcclSum& operator=(const NcclSum&) = delete;

    void post(std::size_t index, int device, Stream& stream, const Posting& posting) override;
    void finished(std::vector<Copied>& to) override;
    void reset() override;
    void abort() override;

private:
    struct Side {
        Posting posting;
        Region values;           ///< the posting's, kept
        void* ready = nullptr;   ///< the values are there, on the GPU's own event
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
    std::vector<std::size_t> m_inFlight; ///< of which the end has not been told
    std::mutex m_state;                  ///< guards what follows; held while NCCL is called
    bool m_aborted = false;
    std::exception_ptr m_failure;
};

} // namespace pipewright
