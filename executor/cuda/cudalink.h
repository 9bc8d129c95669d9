// SPDX-License-Identifier: GPL-3.0-or-later
// Streams, events and links of GPUs. An event has two stages: first a host flag that is set when both sides of the copy
// are posted, then the GPU's own event.
#pragma once

#include "executor/cuda/table.h"
#include "executor/runtime/backend.h"
#include "executor/runtime/streamsignal.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace pipewright {

class CudaClock;

/// A GPU, or a slice of one.
struct CudaGpu {
    const PipewrightCudaTable* table = nullptr;
    int index = 0;
    void* slice = nullptr;                        ///< null: the whole GPU
    const CudaClock* clock = nullptr;             ///< of the whole GPU
    void check(int code, const char* what) const; ///< throws Error
};

/// What profilers are told of work; task `none`: it belongs to no block.
struct CudaBlock {
    TaskId task = none;
    const char* label = "";
};

/// Labels what the calling thread issues during its life, such as calls of NCCL that a GPU's owner makes for a block.
class CudaBlockLabel {
public:
    CudaBlockLabel(const CudaGpu& gpu, const CudaBlock& block) : m_table(block.task == none ? nullptr : gpu.table)
    {
        if (m_table)
            gpu.check(m_table->beginBlock(block.label, block.task), "name a block");
    }
    ~CudaBlockLabel()
    {
        if (m_table)
            m_table->endBlock();
    }
    CudaBlockLabel(const CudaBlockLabel&) = delete;
    CudaBlockLabel& operator=(const CudaBlockLabel&) = delete;

private:
    const PipewrightCudaTable* m_table;
};

class CudaStream final : public Stream {
public:
    explicit CudaStream(const CudaGpu& gpu);
    ~CudaStream() override;
    CudaStream(const CudaStream&) = delete;
    CudaStream& operator=(const CudaStream&) = delete;

    bool wait(Event& event) override;
    bool synchronize() override;
    void finish(); ///< as synchronize(), but nothing interrupts it
    bool spend(Nanoseconds time) override;
    void interrupt() override;
    void resume() override { m_interrupted.store(false, std::memory_order_release); }

    const SharedStreamSignal& signal() const { return m_signal; }
    void* handle() const { return m_handle; }
    const CudaGpu& gpu() const { return m_gpu; }
    /// The block whose work its device's thread issues now; of that thread only.
    CudaBlock block() const { return m_block; }
    void setBlock(const CudaBlock& block) { m_block = block; }

private:
    bool done() const;

    CudaGpu m_gpu;
    void* m_handle = nullptr;
    SharedStreamSignal m_signal = std::make_shared<StreamSignal>();
    std::atomic<bool> m_interrupted{false};
    CudaBlock m_block;
};

class CudaEvent final : public Event {
public:
    CudaEvent(const CudaGpu& gpu, const CudaStream& waiter);
    ~CudaEvent() override;
    CudaEvent(const CudaEvent&) = delete;
    CudaEvent& operator=(const CudaEvent&) = delete;

    bool complete() const override;
    void reset() override { m_posted.store(false, std::memory_order_release); }
    bool posted() const { return m_posted.load(std::memory_order_acquire); }
    /// Records it after all work that `stream`, a stream of its GPU, has been given.
    void post(void* stream);
    /// It happens when `event` does, which is recorded already, on any GPU, and not again before the reset.
    void postWith(void* event);
    /// The GPU's event with which it happens; valid once it is posted.
    void* handle() const { return m_happens; }

private:
    CudaGpu m_gpu;
    SharedStreamSignal m_waiter;
    void* m_own = nullptr;
    void* m_happens = nullptr; ///< written before m_posted is set
    std::atomic<bool> m_posted{false};
};

inline CudaEvent& cudaEvent(Event* event) ///< every event of the CUDA backend is a CudaEvent
{
    return static_cast<CudaEvent&>(*event);
}

/// Matches the two sides and copies, within a GPU or from one to another. Subclasses move the bytes in other ways. A
/// copy needs three records of events (each side is ready, the bytes are there) and four waits (of the copy for both
/// sides, of each side for the copy); if it is timed, another record.
class CudaLink : public Link {
public:
    /// `storage` and `stamps` have the sizes of memoryFor(); without them no send is stored and no transfer can be
    /// slowed.
    CudaLink(const CudaGpu& from, const CudaGpu& to, const LinkOptions& options, std::unique_ptr<Allocation> storage,
             std::unique_ptr<Allocation> stamps);
    static LinkMemory memoryFor(const LinkOptions& options);
    ~CudaLink() override;
    CudaLink(const CudaLink&) = delete;
    CudaLink& operator=(const CudaLink&) = delete;

    Copied send(Stream& stream, const Posting& posting) override;
    Copied receive(Stream& stream, const Posting& posting) override;
    Heads heads() const override;
    void finished(std::vector<Copied>& to) override;
    void reset() override;

protected:
    struct Side {
        Posting posting;
        int slot = -1; ///< a stored send
    };
    /// The GPU events of one posting, created beforehand.
    struct Events {
        void* senderReady = nullptr;   ///< on the sender's GPU: the data is complete
        void* receiverReady = nullptr; ///< on the receiver's GPU: the destination is free
        void* started = nullptr;       ///< on the sender's: both were ready; only of timed and slowed transfers
        void* over = nullptr;          ///< on the sender's: the bytes are there
    };
    /// Both sides are posted, with the same sizes: issues everything, up to the posting of both `done`.
    virtual void move(std::size_t index);
    void begin(std::size_t index);
    void depart(std::size_t index);
    void arrive(std::size_t index);
    void noteCopy(std::size_t index, const CudaGpu& arrivedOn);

    CudaGpu m_from, m_to;
    void* m_stream = nullptr;  ///< where copies are issued, on the sender's GPU
    void* m_arrival = nullptr; ///< on the receiver's GPU, of a link that may be slowed
    std::vector<Events> m_events;
    mutable std::mutex m_mutex; ///< guards what follows
    std::vector<Side> m_sends, m_receives;

private:
    void issueLocked();
    std::byte* slot(int index) const;

    struct Copy {
        TaskId task = none;
        CudaEvent* arrived = nullptr;
        const CudaClock* clock = nullptr; ///< of the GPU on which the arrival was recorded
        void* started = nullptr;
    };
    const LinkOptions m_options;
    std::unique_ptr<Allocation> m_storage; ///< of stored sends, on the sender's GPU
    std::unique_ptr<Allocation> m_stamps;  ///< emulated links: when each transfer began, on the receiver's GPU
    std::vector<int> m_freeSlots;
    std::vector<Copy> m_copies;
    std::size_t m_matched = 0;
    bool m_mismatch = false;
};

} // namespace pipewright
