// SPDX-License-Identifier: GPL-3.0-or-later
// Offloaded buffers of a device whose memory is the host's already: a second area of the same memory. One thread per
// direction copies beside the computing thread, like the copy engines of a GPU.
#pragma once

#include "executor/runtime/backend.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace pipewright {

class HostCopies final : public HostStore {
public:
    /// Throws bad_alloc when there is not that much memory, system_error when no thread can be started.
    explicit HostCopies(Bytes bytes);
    ~HostCopies() override;
    HostCopies(const HostCopies&) = delete;
    HostCopies& operator=(const HostCopies&) = delete;

    Region region() const override { return m_region; }
    void copy(Direction direction, Stream& stream, const Copy& what) override;
    void finished(std::vector<Copied>& copies) override;

private:
    struct Lane {
        std::deque<Copy> waiting;
        std::thread thread;
    };
    void run(Lane& lane);

    Region m_region;
    std::mutex m_mutex; ///< guards all below
    std::condition_variable m_changed;
    std::vector<Copied> m_finished;
    bool m_quit = false;
    Lane m_lanes[2];
};

} // namespace pipewright
