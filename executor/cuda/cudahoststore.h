// SPDX-License-Identifier: GPL-3.0-or-later
// Host memory for buffers that a GPU offloads, copied by its copy engines: one stream in each direction. A copy runs
// after the work that the device's own stream had been given when the copy was requested.
#pragma once

#include "executor/cuda/cudalink.h"

#include <array>

namespace pipewright {

class CudaHostStore final : public HostStore {
public:
    /// Throws Error when that much memory cannot be allocated.
    CudaHostStore(const CudaGpu& gpu, Bytes bytes);
    ~CudaHostStore() override;
    CudaHostStore(const CudaHostStore&) = delete;
    CudaHostStore& operator=(const CudaHostStore&) = delete;

    Region region() const override { return m_region; }
    void copy(Direction direction, Stream& stream, const Copy& what) override;
    void finished(std::vector<Copied>& copies) override;

private:
    struct Pending {
        TaskId task = none;
        CudaEvent* done = nullptr;
        void* started = nullptr;
    };
    void* nextStart();

    CudaGpu m_gpu;
    Region m_region;
    std::array<void*, 2> m_streams{}; ///< out, in
    std::array<void*, 2> m_stamps{};  ///< emulated links: when the copy began, in the GPU's memory
    void* m_ready = nullptr;          ///< the device has reached the copy; each wait for it is issued at once
    std::vector<void*> m_starts;      ///< when timed copies began; made on demand, in the first step
    std::size_t m_used = 0;           ///< of these, since finished() had reported all
    std::vector<Pending> m_pending;   ///< timed copies
};

} // namespace pipewright
