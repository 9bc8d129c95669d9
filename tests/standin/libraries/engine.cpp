// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine.h"

#include "capture.h"
#include "machine.h"
#include "observer.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <map>
#include <set>
#include <sys/mman.h>

namespace standin {

std::atomic<Observer*> observer{nullptr};

namespace {

constexpr std::size_t page = 4096, alignment = 256;
constexpr std::size_t filled = std::size_t{1} << 20; ///< bytes of an allocation that are filled with NaN

struct Allocation {
    std::size_t bytes = 0, mapped = 0, wanted = 0;
    char* mapping = nullptr;
    int device = 0;
};

/// Never destroyed: streams may run until the process ends.
struct All {
    std::mutex mutex;
    std::set<Stream*> streams, ended; ///< ended ones may still have work
    std::map<int, Stream*> legacy;
    std::map<const char*, Allocation> memory;
    std::map<int, std::size_t> used;
};
All& all()
{
    static All& only = *new All;
    return only;
}

std::atomic<std::uint64_t> lost{0}; ///< a bit for each GPU
std::atomic<std::uint32_t> streamNumbers{0}, correlations{0};
thread_local int current = 0;
thread_local int depth = 0;
thread_local std::uint32_t callNumber = 0;

} // namespace

std::int64_t now()
{
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

int currentDevice()
{
    return current;
}
void setCurrentDevice(int device)
{
    current = device;
}
std::uint32_t presentCorrelation()
{
    return callNumber;
}

Call::Call(Domain domain, const char* name) : m_domain(domain), m_name(name)
{
    count(name);
    if (depth++ > 0)
        return;
    callNumber = m_number = ++correlations;
    m_start = now();
    if (Observer* const seer = observer.load())
        seer->entered(domain, name, m_number);
}

Call::~Call()
{
    if (--depth > 0)
        return;
    if (Observer* const seer = observer.load())
        seer->left(m_domain, m_name, m_number, m_start, now());
    callNumber = 0;
}

Stream::Stream(int device, Slice* slice, std::uint32_t context)
    : device(device), slice(slice), context(context), number(++streamNumbers),
      m_random(settings().seed * 0x9e3779b97f4a7c15 + number)
{
    std::thread([this] { run(); }).detach();
}

void Stream::push(Work work)
{
    Operation operation{std::move(work), presentCorrelation()};
    if (capture) {
        capture->add(branch, std::move(operation));
        return;
    }
    {
        const std::lock_guard lock(m_mutex);
        m_queue.push_back(std::move(operation));
    }
    m_changed.notify_all();
}

bool Stream::idle()
{
    const std::lock_guard lock(m_mutex);
    return m_queue.empty() && !m_working;
}

void Stream::finish()
{
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [this] { return m_queue.empty() && !m_working; }); // soon on a lost GPU: it runs nothing
}

void Stream::end()
{
    {
        const std::lock_guard lock(m_mutex);
        m_ended = true;
    }
    m_changed.notify_all();
}

/// One in eight operations begins late, by up to the delay.
void Stream::dawdle()
{
    m_random ^= m_random << 13;
    m_random ^= m_random >> 7;
    m_random ^= m_random << 17;
    if (settings().delay > 0 && m_random % 8 == 0)
        std::this_thread::sleep_for(
            std::chrono::microseconds(m_random / 8 % static_cast<std::uint64_t>(settings().delay)));
}

void Stream::run()
{
    setCurrentDevice(device);
    for (std::unique_lock lock(m_mutex);;) {
        m_changed.wait(lock, [this] { return m_ended || !m_queue.empty(); });
        if (m_queue.empty())
            break;
        const Operation operation = std::move(m_queue.front());
        m_queue.pop_front();
        m_working = true;
        lock.unlock();
        dawdle();
        if (!isLost(device))
            operation.work({operation.correlation, 0});
        lock.lock();
        m_working = false;
        m_changed.notify_all();
    }
    // The object is kept: another thread may still ask whether it is idle.
}

Stream* makeStream(int device, Slice* slice, std::uint32_t context)
{
    auto* stream = new Stream(device, slice, context);
    const std::lock_guard lock(all().mutex);
    all().streams.insert(stream);
    return stream;
}

Stream* streamOf(void* handle, int device)
{
    const std::lock_guard lock(all().mutex);
    if (handle)
        return all().streams.contains(static_cast<Stream*>(handle)) ? static_cast<Stream*>(handle) : nullptr;
    Stream*& legacy = all().legacy[device];
    if (!legacy)
        legacy = new Stream(device, nullptr, static_cast<std::uint32_t>(device) + 1);
    return legacy;
}

bool destroyStream(void* handle)
{
    {
        const std::lock_guard lock(all().mutex);
        if (all().streams.erase(static_cast<Stream*>(handle)) == 0)
            return false;
        all().ended.insert(static_cast<Stream*>(handle));
    }
    static_cast<Stream*>(handle)->end();
    return true;
}

std::vector<Stream*> streamsOf(const Slice* slice)
{
    const std::lock_guard lock(all().mutex);
    std::vector<Stream*> found;
    for (Stream* stream : all().streams)
        if (stream->slice == slice)
            found.push_back(stream);
    return found;
}

void finishDevice(int device)
{
    std::vector<Stream*> streams;
    {
        const std::lock_guard lock(all().mutex);
        for (const auto& some : {all().streams, all().ended})
            for (Stream* stream : some)
                if (stream->device == device)
                    streams.push_back(stream);
        if (const auto legacy = all().legacy.find(device); legacy != all().legacy.end())
            streams.push_back(legacy->second);
    }
    for (Stream* stream : streams)
        stream->finish();
}

Allocated allocate(int device, std::size_t bytes, void** place)
{
    if (failsNow("allocate"))
        return Allocated::NoRoom;
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
    const std::size_t body = (rounded + page - 1) / page * page;
    {
        const std::lock_guard lock(all().mutex);
        if (all().used[device] + rounded > settings().memory)
            return Allocated::NoRoom;
        all().used[device] += rounded;
        atMost("bytes of GPU " + std::to_string(device), static_cast<long>(all().used[device]));
    }
    // The page after it is inaccessible: an access one element too far ends the program.
    void* mapping = mmap(nullptr, body + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED || mprotect(static_cast<char*>(mapping) + page, body, PROT_READ | PROT_WRITE) != 0)
        return Allocated::Failed;
    // Copies of what nobody wrote would else take two faults for each page.
    constexpr std::size_t large = 4 << 20;
    if (body > large)
        madvise(static_cast<char*>(mapping) + page, body, MADV_HUGEPAGE);
    char* begin = static_cast<char*>(mapping) + page + (body - rounded);
    std::memset(begin, 0xff, std::min(rounded, filled));
    const std::lock_guard lock(all().mutex);
    all().memory[begin] = {rounded, body + 2 * page, bytes, static_cast<char*>(mapping), device};
    hold("device memory", 1);
    hold("bytes of device memory", static_cast<long>(bytes));
    *place = begin;
    return Allocated::Yes;
}

/// Waits for all work of the GPU, including that of destroyed streams: cudaFree "may perform implicit synchronization"
/// (cuda_runtime_api.h:4728), and does.
bool release(void* place, std::size_t* bytes, int* device)
{
    Allocation gone;
    {
        const std::lock_guard lock(all().mutex);
        const auto found = all().memory.find(static_cast<char*>(place));
        if (found == all().memory.end())
            return false;
        gone = found->second;
        all().memory.erase(found);
        all().used[gone.device] -= gone.bytes;
    }
    finishDevice(gone.device);
    munmap(gone.mapping, gone.mapped);
    hold("device memory", -1);
    hold("bytes of device memory", -static_cast<long>(gone.wanted));
    *bytes = gone.bytes;
    *device = gone.device;
    return true;
}

int deviceOf(const void* place, std::size_t bytes)
{
    const std::lock_guard lock(all().mutex);
    const auto* begin = static_cast<const char*>(place);
    auto next = all().memory.upper_bound(begin);
    if (next == all().memory.begin())
        return -1;
    const auto& [first, allocation] = *--next;
    if (begin >= first + allocation.bytes)
        return -1;
    return begin + bytes <= first + allocation.bytes ? allocation.device : -2;
}

std::size_t freeMemory(int device)
{
    const std::lock_guard lock(all().mutex);
    return settings().memory - all().used[device];
}

bool isLost(int device)
{
    return lost.load() >> device & 1;
}

void lose(int device)
{
    lost |= std::uint64_t{1} << device;
}

} // namespace standin
