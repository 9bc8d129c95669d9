// SPDX-License-Identifier: GPL-3.0-or-later
// A block's threads run on the calling thread, each until it waits or ends. A thread that waits for a barrier or for
// other lanes is ready again when the last of them arrives. Under the thread sanitizer each GPU thread has a fibre of
// its own and neighbouring blocks share none, so that only barriers order threads, and nothing orders such blocks. This
// file is compiled without the thread sanitizer, which sees the kernels but not the engine.
#include "engine.h"

#include "fibre.h"
#include "runorder.h"
#include "sharedmemory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace standin {

constinit thread_local Extent currentThread, currentBlock, currentGridSize, currentBlockSize;

namespace {

constexpr std::size_t mostThreads = 1024;

struct GpuThread {
    enum class State { NotStarted, Ready, AtBarrier, InWarp, Returned };

    unsigned number = 0;
    Extent index;
    State state = State::NotStarted;
    Fibre* fibre = nullptr;
    // While it waits:
    Where where;
    const char* what = nullptr;
    std::uint32_t mask = 0;
    std::uint64_t given = 0, taken = 0;
    unsigned source = 0; ///< the lane whose bits it takes, or `votes` (one bit of each lane), or `products`
};

constexpr unsigned votes = warpLanes, products = warpLanes + 1;

bool isSame(const Where& a, const Where& b)
{
    return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

/// First in, first out. Neither it nor other engine code on fibres allocates, since the thread sanitizer sees
/// allocations.
class Queue {
public:
    void push(GpuThread* thread) { m_threads[m_end++ % mostThreads] = thread; }
    GpuThread* pop() { return m_begin == m_end ? nullptr : m_threads[m_begin++ % mostThreads]; }

private:
    std::array<GpuThread*, mostThreads> m_threads{};
    std::size_t m_begin = 0, m_end = 0;
};

Extent placeOf(std::size_t number, const Extent& of)
{
    return {unsigned(number % of.x), unsigned(number / of.x % of.y), unsigned(number / of.x / of.y)};
}

std::string text(const Extent& place)
{
    return "(" + std::to_string(place.x) + "," + std::to_string(place.y) + "," + std::to_string(place.z) + ")";
}

std::string text(const Where& where)
{
    const std::string file = where.file;
    return file.substr(file.rfind('/') + 1) + ":" + std::to_string(where.line);
}

/// A lane's fragments of a product on tensor cores.
struct Fragments {
    float* sums;
    const std::uint32_t *left, *right;
};

/// Each lane's sums, in the layout of mma.m16n8k16. The factors are unpacked first, so that the compiler can multiply a
/// whole row at once.
void multiply(std::span<const GpuThread> warp)
{
    const auto of = [&](unsigned lane) -> const Fragments& {
        return *reinterpret_cast<const Fragments*>(std::uintptr_t(warp[lane].given));
    };
    const auto number = [](std::uint32_t pair, unsigned second) {
        return std::bit_cast<float>(second ? pair & 0xffff0000 : pair << 16);
    };
    std::array<std::array<float, 16>, 16> left;
    std::array<std::array<float, 8>, 16> right;
    for (unsigned lane = 0; lane < warpLanes; ++lane)
        for (unsigned upper = 0; upper < 2; ++upper)
            for (unsigned second = 0; second < 2; ++second) {
                const unsigned row = lane / 4, k = lane % 4 * 2 + upper * 8 + second;
                left[row][k] = number(of(lane).left[2 * upper], second);
                left[row + 8][k] = number(of(lane).left[2 * upper + 1], second);
                right[k][row] = number(of(lane).right[upper], second);
            }
    for (unsigned row = 0; row < 16; ++row) {
        std::array<float, 8> sums{};
        for (unsigned k = 0; k < 16; ++k)
            for (unsigned column = 0; column < 8; ++column)
                sums[column] += left[row][k] * right[k][column];
        for (unsigned column = 0; column < 8; ++column)
            of(row % 8 * 4 + column / 2).sums[row / 8 * 2 + column % 2] += sums[column];
    }
}

/// Runs grids on one thread of the host, one at a time.
class Engine {
public:
    void run(const Launch& launch);

    GpuThread& running() { return *m_running; }
    unsigned multiprocessor() const
    {
        return m_launch->firstMultiprocessor
               + unsigned((m_blockInSlot * slots + m_slot) % std::max(1u, m_launch->multiprocessors));
    }
    void waitForBlock(const Where& where);
    std::uint64_t waitInWarp(const char* what, std::uint32_t mask, std::uint64_t bits, unsigned source,
                             const Where& where);
    void* sharedMemory(const void* key, std::size_t bytes, std::size_t alignment)
    {
        void* place = m_shared[m_slot].find(key, bytes, alignment);
        if (!place)
            fault(*m_running, "has more than " + std::to_string(SharedMemory::most) + " bytes of shared memory");
        return place;
    }

private:
    /// Bit masks of a warp's lanes: those that wait for other lanes, and those that have returned.
    struct Lanes {
        std::uint32_t waiting = 0, returned = 0;
    };
    static void onFibre();
    void runBlock(std::size_t block);
    void runThread();
    GpuThread* next();
    std::span<GpuThread> warpOf(const GpuThread& thread)
    {
        const std::size_t first = thread.number / warpLanes * warpLanes;
        return std::span(m_threads).subspan(first, std::min<std::size_t>(warpLanes, m_count - first));
    }
    Lanes& lanesOf(const GpuThread& thread) { return m_lanes[thread.number / warpLanes]; }
    static std::uint32_t bitOf(const GpuThread& thread) { return 1u << thread.number % warpLanes; }
    void leave();
    void switchTo(GpuThread& thread);
    bool finishWarp(GpuThread& any);
    [[noreturn]] void fault(const GpuThread& thread, const std::string& what) const;
    [[noreturn]] void deadlock() const;
    std::string name(const GpuThread& thread) const { return "thread " + text(thread.index); }

    RunOrder m_order;
    const Launch* m_launch = nullptr;
    std::vector<std::size_t> m_blockOrder, m_threadOrder;
    std::array<GpuThread, mostThreads> m_threads;
    std::size_t m_count = 0, m_started = 0, m_returned = 0, m_atBarrier = 0;
    std::array<Lanes, mostThreads / warpLanes> m_lanes{}; ///< of each warp
    Queue m_ready;
    GpuThread *m_running = nullptr, *m_firstAtBarrier = nullptr;
    Fibre m_main;
    Fibre* m_current = nullptr;
    std::vector<std::unique_ptr<Fibre>> m_fibres;
    std::vector<Fibre*> m_free; ///< used only if fibres are not watched
    // Neighbouring blocks have different slots, each with its own fibres and shared memory.
    static constexpr std::size_t slots = 2;
    std::size_t m_slot = 0, m_blockInSlot = 0, m_barrier = 0;
    std::array<SharedMemory, slots> m_shared;
    // Synchronisation places for the thread sanitizer. Two alternate for each slot and each barrier: with one, a thread
    // that leaves late would be ordered after what others did since.
    char m_begun = 0, m_ended = 0;
    std::array<std::array<char, 2>, slots> m_slotFree{};
    std::array<char, 2> m_barriers{};
};

/// Of this thread, since its first grid. Like currentThread, read without a check for initialisation.
constinit thread_local Engine* engine = nullptr;

void Engine::run(const Launch& launch)
{
    if (const std::string reason = whyNot(launch); !reason.empty()) {
        std::fprintf(stderr, "stand-in GPU: kernel %s (%s) cannot be launched: %s\n", launch.kernel, launch.place,
                     reason.c_str());
        std::abort();
    }
    m_launch = &launch;
    m_count = launch.block.count();
    while (m_fibres.size() < (fibresAreWatched ? slots * m_count : m_count)) {
        m_fibres.push_back(std::make_unique<Fibre>(onFibre));
        m_free.push_back(m_fibres.back().get());
    }
    for (std::size_t i = 0; i < m_count; ++i) {
        m_threads[i].number = unsigned(i);
        m_threads[i].index = placeOf(i, launch.block);
    }
    currentGridSize = launch.grid;
    currentBlockSize = launch.block;
    for (SharedMemory& each : m_shared)
        each.forget();
    m_order.restart();
    m_order.fill(m_blockOrder, launch.grid.count());
    orderBefore(&m_begun);
    for (std::size_t i = 0; i < m_blockOrder.size(); ++i) {
        m_slot = i % slots;
        m_blockInSlot = i / slots;
        runBlock(m_blockOrder[i]);
    }
    orderAfter(&m_ended);
    m_launch = nullptr;
}

void Engine::runBlock(std::size_t block)
{
    currentBlock = placeOf(block, m_launch->grid);
    m_shared[m_slot].begin();
    m_order.fill(m_threadOrder, m_count);
    m_started = m_returned = m_atBarrier = 0;
    m_lanes = {};
    for (GpuThread& each : std::span(m_threads).first(m_count))
        each.state = GpuThread::State::NotStarted;
    m_current = &m_main;
    leave();
}

/// The thread to run next: ready threads first, then threads that have not begun.
GpuThread* Engine::next()
{
    if (GpuThread* waited = m_ready.pop())
        return waited;
    return m_started < m_count ? &m_threads[m_threadOrder[m_started++]] : nullptr;
}

void Engine::switchTo(GpuThread& thread)
{
    m_running = &thread;
    currentThread = thread.index;
    if (!thread.fibre) {
        if (fibresAreWatched) {
            thread.fibre = m_fibres[m_slot * m_count + thread.number].get();
        } else {
            thread.fibre = m_free.back();
            m_free.pop_back();
        }
    }
    Fibre* from = std::exchange(m_current, thread.fibre);
    if (from != thread.fibre)
        thread.fibre->switchFrom(*from);
}

/// Called by a waiting GPU thread, or by the host thread.
void Engine::leave()
{
    if (GpuThread* thread = next())
        switchTo(*thread);
    else
        deadlock();
}

void Engine::onFibre()
{
    for (;;)
        engine->runThread();
}

void Engine::runThread()
{
    Fibre* const own = m_current;
    orderAfter(&m_begun);
    orderAfter(&m_slotFree[m_slot][m_blockInSlot % 2]);
    m_running->state = GpuThread::State::Ready;
    m_launch->body();
    m_running->state = GpuThread::State::Returned;
    orderBefore(&m_slotFree[m_slot][(m_blockInSlot + 1) % 2]);
    orderBefore(&m_ended);
    ++m_returned;
    Lanes& lanes = lanesOf(*m_running);
    lanes.returned |= bitOf(*m_running);
    if (m_atBarrier > 0)
        fault(*m_running, "returned, and " + name(*m_firstAtBarrier) + " waits for it at the barrier in "
                              + text(m_firstAtBarrier->where));
    if (lanes.waiting != 0)
        for (GpuThread& each : warpOf(*m_running))
            if (each.state == GpuThread::State::InWarp)
                finishWarp(each); // this thread may have been the last one missing
    m_running->fibre = nullptr;
    if (!fibresAreWatched)
        m_free.push_back(own); // the next thread may reuse it
    if (m_returned == m_count) {
        m_current = &m_main;
        m_main.switchFrom(*own);
    } else {
        leave();
    }
}

void Engine::waitForBlock(const Where& where)
{
    GpuThread& own = *m_running;
    own.where = where;
    if (m_returned > 0) {
        const auto gone = std::find_if(m_threads.begin(), m_threads.end(),
                                       [](const GpuThread& each) { return each.state == GpuThread::State::Returned; });
        fault(own, "waits at the barrier in " + text(where) + ", and " + name(*gone) + " has returned");
    }
    if (m_atBarrier == 0)
        m_firstAtBarrier = &own;
    else if (!isSame(m_firstAtBarrier->where, where))
        fault(own, "waits at the barrier in " + text(where) + ", and " + name(*m_firstAtBarrier) + " at another, in "
                       + text(m_firstAtBarrier->where));
    char* const place = &m_barriers[m_barrier % 2];
    orderBefore(place);
    if (++m_atBarrier < m_count) {
        own.state = GpuThread::State::AtBarrier;
        leave();
    } else {
        m_atBarrier = 0;
        ++m_barrier;
        for (GpuThread& each : std::span(m_threads).first(m_count))
            if (each.state == GpuThread::State::AtBarrier) {
                each.state = GpuThread::State::Ready;
                m_ready.push(&each);
            }
    }
    orderAfter(place);
}

/// Shuffles order no memory (CUDA C++ Programming Guide, "Warp Shuffle Functions"), so they tell the sanitizer nothing.
std::uint64_t Engine::waitInWarp(const char* what, std::uint32_t mask, std::uint64_t bits, unsigned source,
                                 const Where& where)
{
    GpuThread& own = *m_running;
    own.what = what;
    own.where = where;
    own.mask = mask;
    own.given = bits;
    own.source = source;
    if ((mask >> own.number % warpLanes & 1) == 0)
        fault(own, std::string("calls ") + what + " in " + text(where) + " with a mask that lacks its own lane");
    own.state = GpuThread::State::InWarp;
    lanesOf(own).waiting |= bitOf(own);
    if (!finishWarp(own))
        leave();
    return own.taken;
}

/// Whether all lanes for which `any` waits have arrived; if so, gives each its result and makes it ready.
bool Engine::finishWarp(GpuThread& any)
{
    const std::span<GpuThread> warp = warpOf(any);
    Lanes& lanes = lanesOf(any);
    if ((any.mask & ~(lanes.waiting | lanes.returned) & (~0u >> (warpLanes - warp.size()))) != 0)
        return false;
    std::uint32_t present = 0, voted = 0;
    for (unsigned lane = 0; lane < warp.size(); ++lane) {
        const GpuThread& each = warp[lane];
        if ((any.mask >> lane & 1) == 0 || each.state == GpuThread::State::Returned)
            continue;
        if (each.mask != any.mask || !isSame(each.where, any.where))
            fault(any, std::string("waits in ") + any.what + " in " + text(any.where) + " for " + name(each)
                           + ", which waits in " + each.what + " in " + text(each.where)
                           + (each.mask != any.mask ? " with another mask" : ""));
        present |= 1u << lane;
        voted |= unsigned(each.given != 0) << lane;
    }
    if (any.source == products) {
        if (present != ~0u)
            fault(any, std::string("calls ") + any.what + " in " + text(any.where) + " without all lanes of its warp");
        multiply(warp);
    }
    for (unsigned lane = 0; lane < warp.size(); ++lane) {
        GpuThread& each = warp[lane];
        if ((present >> lane & 1) == 0)
            continue;
        if (each.source < warpLanes && (present >> each.source & 1) == 0)
            fault(each, std::string("takes by ") + each.what + " in " + text(each.where) + " from lane "
                            + std::to_string(each.source) + ", which has returned, is not in the mask or is not there");
        each.taken = each.source >= warpLanes ? voted : warp[each.source].given;
        each.state = GpuThread::State::Ready;
        lanes.waiting &= ~bitOf(each);
        if (&each != m_running) // the running thread simply continues
            m_ready.push(&each);
    }
    return true;
}

void Engine::fault(const GpuThread& thread, const std::string& what) const
{
    std::fprintf(stderr, "stand-in GPU: kernel %s (%s), block %s, %s: %s\n", m_launch->kernel, m_launch->place,
                 text(currentBlock).c_str(), name(thread).c_str(), what.c_str());
    std::abort();
}

void Engine::deadlock() const
{
    std::string all;
    const GpuThread* first = nullptr;
    for (const GpuThread& each : std::span(m_threads).first(m_count))
        if (each.state == GpuThread::State::AtBarrier || each.state == GpuThread::State::InWarp) {
            const char* what = each.state == GpuThread::State::AtBarrier ? "the barrier" : each.what;
            if (first)
                all += "\n  " + name(each);
            else
                first = &each;
            all += std::string(" waits for others at ") + what + " in " + text(each.where);
        }
    fault(*first, "all wait and none comes:" + all);
}

} // namespace

std::string whyNot(const Launch& launch)
{
    const Extent &grid = launch.grid, &block = launch.block;
    if (grid.count() == 0 || block.count() == 0)
        return "no blocks or no threads";
    if (block.count() > mostThreads || block.x > 1024 || block.y > 1024 || block.z > 64)
        return "a block " + text(block) + " is more than 1024 threads, or than (1024,1024,64)";
    if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
        return "a grid " + text(grid) + " is more than (2^31 - 1,65535,65535) blocks";
    if (launch.sharedBytes > SharedMemory::most)
        return "it asks for " + std::to_string(launch.sharedBytes) + " bytes of shared memory, more than "
               + std::to_string(SharedMemory::most);
    return {};
}

void runGrid(const Launch& launch)
{
    static thread_local const auto own = std::make_unique<Engine>(); // too large for thread-local storage
    engine = own.get();
    engine->run(launch);
}

unsigned multiprocessor()
{
    return engine->multiprocessor();
}

unsigned threadNumber()
{
    return engine->running().number;
}

void waitForBlock(const Where& where)
{
    engine->waitForBlock(where);
}

std::uint64_t exchangeInWarp(const char* what, std::uint32_t mask, std::uint64_t bits, unsigned source,
                             const Where& where)
{
    return engine->waitInWarp(what, mask, bits, source, where);
}

std::uint32_t voteInWarp(const char* what, std::uint32_t mask, bool vote, const Where& where)
{
    return std::uint32_t(engine->waitInWarp(what, mask, vote ? 1 : 0, votes, where));
}

void multiplyInWarp(float* sums, const std::uint32_t* left, const std::uint32_t* right, const Where& where)
{
    const Fragments own{sums, left, right};
    engine->waitInWarp("mma.sync", ~0u, reinterpret_cast<std::uintptr_t>(&own), products, where);
}

void* sharedMemory(const void* key, std::size_t bytes, std::size_t alignment)
{
    return engine->sharedMemory(key, bytes, alignment);
}

} // namespace standin
