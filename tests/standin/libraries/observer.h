// SPDX-License-Identifier: GPL-3.0-or-later
// The interface through which a profiler observes the stand-in GPUs. libcupti registers itself here.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace standin {

enum class Domain { Runtime, Driver };

/// Something that ran on a stream.
struct Activity {
    enum Kind { Kernel, Copy, PeerCopy, Set } kind = Kernel;
    std::int64_t start = 0, end = 0;
    std::uint32_t device = 0, context = 0, stream = 0, correlation = 0;
    std::uint64_t graphNode = 0, bytes = 0;
    int fromDevice = -1, toDevice = -1; ///< -1: the host's memory
    std::string name{};
};
struct Synchronization {
    enum Kind { EventQuery, StreamQuery, StreamWait, StreamFinish } kind = EventQuery;
    std::int64_t start = 0, end = 0;
    std::uint32_t context = 0, stream = 0, correlation = 0;
    int result = 0; ///< of the call
};

class Observer {
public:
    virtual ~Observer() = default;
    virtual void entered(Domain domain, const char* name, std::uint32_t correlation) = 0;
    virtual void left(Domain domain, const char* name, std::uint32_t correlation, std::int64_t start,
                      std::int64_t end) = 0;
    virtual void happened(const Activity& activity) = 0;
    virtual void synchronized(const Synchronization& synchronization) = 0;
    virtual void allocated(int device, std::int64_t bytes, void* place, std::uint32_t correlation) = 0;
    virtual void contextMade(std::uint32_t context, int device, std::uint32_t parent, int multiprocessors) = 0;
};
extern std::atomic<Observer*> observer;

/// A host call, from begin to end: counted, and numbered for the observer. Nested calls are part of the outer call.
class Call {
public:
    Call(Domain domain, const char* name);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

private:
    Domain m_domain;
    const char* m_name;
    std::uint32_t m_number = 0;
    std::int64_t m_start = 0;
};

} // namespace standin
