// SPDX-License-Identifier: GPL-3.0-or-later
// The GPUs themselves. A stream is a thread with a queue, which begins an operation when it comes to it, often late
// and never in step with other streams; only events order streams. What is pushed onto a capturing stream is noted
// (capture.h) and runs when its graph is launched. Device memory is the host's, bounded, each allocation between pages
// that nobody may touch, and holds no numbers at first. A GPU that is lost does nothing more, and every call on it
// fails.
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

/// What an operation belongs to when it runs: of a captured one, the launch of its graph.
struct Running {
    std::uint32_t correlation = 0;
    std::uint64_t graphNode = 0;
};
using Work = std::function<void(const Running&)>;

struct Operation {
    Work work;
    std::uint32_t correlation = 0;
};

/// What streams put into a graph instead of doing it; see capture.h.
class Capture;

/// A green context's part of a GPU; see green.h.
struct Slice;

class Stream {
public:
    Stream(int device, Slice* slice, std::uint32_t context);
    void push(Work work);
    bool idle();
    void finish();
    /// As cudaStreamDestroy: returns at once, the rest goes when its work is done.
    void end();

    const int device;
    Slice* const slice;
    const std::uint32_t context, number; ///< of CUPTI
    std::shared_ptr<Capture> capture;    ///< set and asked by the thread that captures
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
    std::vector<std::size_t> after;   ///< the capture's nodes that it then stood for
};
using SharedEvent = std::shared_ptr<Event>;

/// A live handle of a stream; null means the device's legacy stream. Null when there is none such.
Stream* streamOf(void* handle, int device);
Stream* makeStream(int device, Slice* slice, std::uint32_t context);
bool destroyStream(void* handle);
/// Every stream of the GPU has done what it was given.
void finishDevice(int device);
std::vector<Stream*> streamsOf(const Slice* slice);

enum class Allocated { Yes, NoRoom, Failed };
Allocated allocate(int device, std::size_t bytes, void** place);
/// False: no such allocation.
bool release(void* place, std::size_t* bytes, int* device);
/// The GPU that the bytes are in; -1: in none, so they are the host's. -2: they begin in an allocation and leave it.
int deviceOf(const void* place, std::size_t bytes);
std::size_t freeMemory(int device);

bool isLost(int device);
void lose(int device);
/// For waits that a lost GPU, one of the two, would never end: whether `what` became true.
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

/// The number that CUPTI gives to the calling thread's present call; 0: there is none.
std::uint32_t presentCorrelation();

} // namespace standin
