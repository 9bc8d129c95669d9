// SPDX-License-Identifier: GPL-3.0-or-later
// The GPUs themselves. A stream is a thread with a queue; it delays operations at random, so that only events order
// streams. Operations pushed onto a capturing stream are recorded (capture.h) and run when their graph is launched.
// Device memory is host memory of limited size; each allocation lies between guard pages and initially holds NaN. A
// lost GPU does nothing more, and every call on it fails.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace standin {

/// CUPTI's numbers of a running operation; a captured one has those of its graph's launch.
struct Running {
    std::uint32_t correlation = 0;
    std::uint64_t graphNode = 0;
};
using Work = std::function<void(const Running&)>;

struct Operation {
    Work work;
    std::uint32_t correlation = 0;
};

/// Records operations for a graph instead of running them; see capture.h.
class Capture;

/// A green context's part of a GPU; see green.h.
struct Slice;

class Stream {
public:
    Stream(int device, Slice* slice, std::uint32_t context);
    void push(Work work);
    bool idle();
    void finish();
    /// As cudaStreamDestroy: returns at once; the thread ends when its work is done.
    void end();

    const int device;
    Slice* const slice;
    const std::uint32_t context, number; ///< of CUPTI
    std::shared_ptr<Capture> capture;    ///< used by the capturing thread only
    std::size_t branch = 0;              ///< of the capture

private:
    void run();
    void dawdle();

    std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    std::deque<Operation> m_queue;
    bool m_working = false, m_ended = false;
    std::uint64_t m_random;
};

struct Event {
    explicit Event(int device, bool timed) : device(device), timed(timed) {}
    const int device;
    const bool timed;
    std::mutex mutex;
    std::condition_variable happened;
    std::uint64_t recorded = 0, done = 0;
    std::int64_t time = 0;
    std::shared_ptr<Capture> capture; ///< in which it was last recorded, if in any
    std::vector<std::size_t> after;   ///< nodes of the capture that it stands for
};
using SharedEvent = std::shared_ptr<Event>;

/// The stream of a live handle; a null handle means the device's legacy stream. Null: no such stream.
Stream* streamOf(void* handle, int device);
Stream* makeStream(int device, Slice* slice, std::uint32_t context);
bool destroyStream(void* handle);
/// Waits until every stream of the GPU has done its work.
void finishDevice(int device);
std::vector<Stream*> streamsOf(const Slice* slice);

enum class Allocated { Yes, NoRoom, Failed };
Allocated allocate(int device, std::size_t bytes, void** place);
/// False: no such allocation.
bool release(void* place, std::size_t* bytes, int* device);
/// The GPU in whose memory the bytes are; -1: in none, so in host memory; -2: they extend beyond an allocation.
int deviceOf(const void* place, std::size_t bytes);
std::size_t freeMemory(int device);

bool isLost(int device);
void lose(int device);
/// A wait that ends when one of the two GPUs is lost. Returns whether `what` became true.
template<typename What>
bool waitUnlessLost(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, int device, int other,
                    What what)
{
    while (!what() && !isLost(device) && !isLost(other))
        changed.wait_for(lock, std::chrono::milliseconds(5));
    return what();
}

int currentDevice(); ///< of the calling thread
void setCurrentDevice(int device);
std::int64_t now(); ///< CLOCK_MONOTONIC

/// CUPTI's correlation of the calling thread's current call; 0: none.
std::uint32_t presentCorrelation();

} // namespace standin
