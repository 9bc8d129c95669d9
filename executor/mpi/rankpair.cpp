// SPDX-License-Identifier: GPL-3.0-or-later
// Each side offers its n-th operation to process 0, which releases it when both have offered; NCCL calls are then
// issued in the order of the releases. O(1) messages per operation.
#include "executor/mpi/rankpair.h"

#include "core/base/diagnostic.h"
#include "executor/cuda/cudaclock.h"
#include "executor/cuda/ncclgroup.h"
#include "executor/mpi/remotelink.h"
#include "executor/runtime/steadyclock.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <thread>
#include <utility>

namespace pipewright {

namespace {

constexpr auto pollInterval = std::chrono::microseconds(50);
constexpr int multiprocessors = 4; // that a connection takes away from computation

} // namespace

RankPair::RankPair(const RankGpu& own, std::uint32_t channel, int first, int second, std::size_t postings)
    : m_own(own), m_channel(channel), m_first(first), m_second(second), m_sides(postings)
{
    check(table().createStream(own.gpu.index, own.gpu.slice, &m_stream), "create a stream");
    for (Side& side : m_sides)
        for (void** event : {&side.ready, &side.started})
            check(table().createEvent(own.gpu.index, event), "create an event");
    m_issued.reserve(postings);
    own.owner.makeRoom(postings);
}

RankPair::~RankPair()
{
    if (m_member && !m_own.hub.failureReason().empty())
        abortPair(); // closing it would wait for the other process
    if (m_member)
        table().ncclClose(m_member);
    for (const Side& side : m_sides)
        for (void* event : {side.ready, side.started})
            table().destroyEvent(event);
    table().destroyStream(m_stream);
}

void RankPair::connect(int most)
{
    join(most);
    warmUp();
    m_own.hub.setLink(m_channel, this);
}

/// The first process names the pair. Neither waits in NCCL before it knows that the other is there.
void RankPair::join(int most)
{
    RankHub& hub = m_own.hub;
    std::array<std::uint8_t, PIPEWRIGHT_NCCL_NAME> name{};
    if (isFirst()) {
        check(table().ncclName(name.data()), "name a group of NCCL");
        hub.sendSetup(m_second, m_channel, std::as_bytes(std::span(name)));
        hub.awaitSetup(m_channel);
    } else {
        const UnfilledVector<std::byte> told = hub.awaitSetup(m_channel);
        if (told.size() != name.size())
            throw Error("ranks", "the processes are of different builds", "start the same program everywhere");
        std::memcpy(name.data(), told.data(), name.size());
        hub.sendSetup(m_first, m_channel, {});
    }
    const int other = isFirst() ? m_second : m_first;
    std::string why;
    if (table().ncclJoin(m_own.gpu.index, name.data(), isFirst() ? 0 : 1, 2, most, &m_member) != 0)
        why = table().lastError();
    else
        why =
            whyNotJoined(table(), {&m_member, 1}, m_own.deadline, fmt::format("device {} has not come to NCCL", other),
                         [&hub] { return hub.failureReason(); });
    if (why.empty())
        return;
    abortPair();
    throw Error(
        "device " + std::to_string(hub.self()),
        fmt::format("its GPU {} cannot be connected with that of device {} by NCCL: {}", m_own.gpu.index, other, why),
        "NCCL_DEBUG=INFO makes NCCL say more; NCCL_SOCKET_IFNAME names the network to meet on");
}

/// One small and one large transfer: NCCL has a protocol for each, and connects at first use.
void RankPair::warmUp()
{
    constexpr Bytes large = 1 << 20;
    void* data = nullptr;
    check(table().allocate(m_own.gpu.index, large, &data), "allocate what connecting needs");
    const auto release = [this](void* memory) { table().release(m_own.gpu.index, memory); };
    const std::unique_ptr<void, decltype(release)> memory(data, release);
    for (const Bytes bytes : {Bytes{256}, large}) {
        const Region region{static_cast<std::byte*>(data), bytes};
        carry({&region, 1});
        awaitWarmth();
    }
}

void RankPair::awaitWarmth()
{
    const Nanoseconds start = steadyNow();
    for (std::int32_t done = 0;;) {
        check(table().streamDone(m_stream, &done), "be connected by NCCL");
        if (done)
            return;
        std::string why = m_own.hub.failureReason();
        if (why.empty() && steadyNow() - start > m_own.deadline)
            why = fmt::format("device {} and device {} are not connected by NCCL within {}", m_first, m_second,
                              formatDuration(m_own.deadline));
        if (!why.empty()) {
            abortPair();
            throw Error("device " + std::to_string(m_own.hub.self()), why, "NCCL_DEBUG=INFO makes NCCL say more");
        }
        std::this_thread::sleep_for(pollInterval);
    }
}

void RankPair::stop()
{
    m_own.hub.setLink(m_channel, nullptr);
    m_own.owner.drain();
}

void RankPair::post(std::size_t index, Stream& stream, const Posting& posting)
{
    throwIfFailed(); // an error of an earlier operation
    {
        const std::lock_guard lock(m_mutex);
        if (index >= m_sides.size())
            throw Error("link", "more transfers than were announced");
        m_sides[index].posting = posting;
        check(table().recordEvent(m_sides[index].ready, static_cast<CudaStream&>(stream).handle()), "record an event");
    }
    m_own.order.offer(
        {m_channel, static_cast<std::uint32_t>(index), posting.task, shapeOf(posting.regions), !isFirst()});
}

/// On the hub's thread.
void RankPair::received(const Message& message)
{
    switch (static_cast<RankHub::Kind>(message.kind)) {
    case RankHub::LinkReady: {
        {
            const std::lock_guard lock(m_mutex);
            if (m_mismatch.mismatch)
                break; // both ends are stuck from here on
            m_issued.push_back(message.sequence);
            m_own.owner.post(*this, message.sequence, isFirst());
        }
        m_changed.notify_all();
        break;
    }
    case RankHub::LinkMismatch: {
        const std::lock_guard lock(m_mutex);
        if (!m_mismatch.mismatch)
            m_mismatch = {message.task, static_cast<TaskId>(message.a), true};
        break;
    }
    case RankHub::LinkData:
        began(message.sequence, message.time - m_own.hub.clockOffset(m_own.hub.self()), message.a);
        break;
    case RankHub::Hello:
    case RankHub::Bye:
    case RankHub::Ping:
    case RankHub::Pong:
    case RankHub::Clock:
    case RankHub::Status:
    case RankHub::AllReduce:
    case RankHub::AllReduced:
    case RankHub::Cancel:
    case RankHub::Failed:
    case RankHub::Posted:
    case RankHub::Setup: break; // the hub's own, which it does not pass to links
    }
}

/// On the owner's thread.
void RankPair::issue(std::size_t index, bool)
{
    try {
        Side side;
        {
            const std::lock_guard lock(m_mutex);
            side = m_sides[index];
        }
        const std::lock_guard lock(m_state);
        if (m_aborted)
            return;
        const CudaBlockLabel label(m_own.gpu, m_labels ? CudaBlock{side.posting.task, "transfer"} : CudaBlock());
        check(table().streamWaits(m_stream, side.ready), "wait for an event");
        if (side.posting.timed)
            check(table().recordEvent(side.started, m_stream), "record an event");
        carry(side.posting.regions);
        cudaEvent(side.posting.done).post(m_stream);
    } catch (...) {
        const std::lock_guard lock(m_state);
        if (!m_failure)
            m_failure = std::current_exception();
    }
}

bool RankPair::drained() const
{
    for (std::int32_t done = 0; !m_aborted;) {
        check(table().streamDone(m_stream, &done), "run what was issued");
        if (done)
            return true;
        std::this_thread::sleep_for(pollInterval);
    }
    return false;
}

void RankPair::forget()
{
    m_own.owner.drain();
    throwIfFailed();
    const std::lock_guard lock(m_mutex);
    m_issued.clear();
    m_mismatch = {};
}

void RankPair::throwIfFailed()
{
    const std::lock_guard lock(m_state);
    if (m_failure)
        std::rethrow_exception(std::exchange(m_failure, nullptr));
}

void RankPair::abortPair()
{
    {
        const std::lock_guard lock(m_mutex);
        if (m_aborted.exchange(true))
            return;
    }
    m_changed.notify_all();
    if (m_member)
        table().ncclAbort(m_member);
}

void RankPair::awaitIssued()
{
    const std::lock_guard lock(m_state);
}

namespace {

/// Either end of a link. Only the sender knows when the bytes begin to move; it tells the receiver after each step.
class RankLink final : public Link, private RankPair {
public:
    RankLink(const RankGpu& own, int from, int to, const LinkOptions& options)
        : RankPair(own, own.order.linkChannel(from, to), from, to, options.postings), m_starts(options.postings)
    {
        m_labels = true;
        connect(multiprocessors);
    }
    ~RankLink() override { stop(); }

    Copied send(Stream& stream, const Posting& posting) override
    {
        if (isFirst())
            post(m_posted++, stream, posting);
        return {};
    }
    Copied receive(Stream& stream, const Posting& posting) override
    {
        if (!isFirst())
            post(m_posted++, stream, posting);
        return {};
    }
    Heads heads() const override
    {
        const std::lock_guard lock(m_mutex);
        if (m_mismatch.mismatch || m_issued.size() >= m_posted)
            return m_mismatch;
        const TaskId own = m_sides[m_issued.size()].posting.task; // of the other end nothing is known here
        return isFirst() ? Heads{own, none, false} : Heads{none, own, false};
    }
    void settled() override
    {
        if (!isFirst() || !allIssued() || !drained())
            return;
        for (std::size_t i = 0; i < m_posted; ++i)
            if (m_sides[i].posting.timed)
                m_own.hub.send(m_second, {.kind = RankHub::LinkData,
                                          .link = m_channel,
                                          .sequence = static_cast<std::uint32_t>(i),
                                          .time = m_own.gpu.clock->timeOf(m_sides[i].started)
                                                  + m_own.hub.clockOffset(m_own.hub.self()),
                                          .a = m_round});
    }
    /// When the sender's side has told its times, which it does as soon as its step is over.
    void finished(std::vector<Copied>& to) override
    {
        throwIfFailed();
        if (isFirst() || !drained())
            return;
        std::unique_lock lock(m_mutex);
        if (!m_changed.wait_for(lock, std::chrono::nanoseconds(m_own.hub.deadline()),
                                [this] { return m_aborted || m_known >= m_issued.size(); })
            || m_aborted)
            return;
        for (; m_told < m_issued.size(); ++m_told) {
            const Posting& posting = m_sides[m_told].posting;
            if (!posting.timed)
                continue;
            const Nanoseconds end = m_own.gpu.clock->timeOf(cudaEvent(posting.done).handle());
            to.push_back({posting.task, std::min(m_starts[m_told], end), end}); // two clocks may differ a little
        }
    }
    void reset() override
    {
        forget();
        const std::lock_guard lock(m_mutex);
        m_posted = m_known = m_told = 0;
        ++m_round;
    }
    void abort() override { abortPair(); }
    void awaitCalls() override { awaitIssued(); }

private:
    /// False when it will not be any more.
    bool allIssued()
    {
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock, [this] { return m_aborted || m_issued.size() >= m_posted; });
        lock.unlock();
        m_own.owner.drain();
        return !m_aborted;
    }
    void carry(std::span<const Region> regions) override
    {
        check(table().ncclGroup(1), "begin a group of NCCL");
        for (const Region& region : regions)
            if (region.bytes > 0) {
                if (isFirst())
                    check(table().ncclSendTo(m_member, 1, region.data, region.bytes, m_stream), "send through NCCL");
                else
                    check(table().ncclReceiveFrom(m_member, 0, region.data, region.bytes, m_stream),
                          "receive through NCCL");
            }
        check(table().ncclGroup(0), "end a group of NCCL");
    }
    void began(std::size_t index, Nanoseconds time, std::int64_t round) override
    {
        {
            const std::lock_guard lock(m_mutex);
            if (round != m_round) // a run without a trace does not wait for them
                return;
            m_starts.at(index) = time;
            ++m_known;
        }
        m_changed.notify_all();
    }

    std::vector<Nanoseconds> m_starts; ///< guarded by m_mutex, as is what follows
    std::size_t m_known = 0, m_told = 0;
    std::int64_t m_round = 0;
    std::atomic<std::size_t> m_posted{0};
};

class RankSum final : public PairSum, private RankPair {
public:
    RankSum(const RankGpu& own, int first, int second, std::size_t sums)
        : RankPair(own, own.order.sumChannel(first, second), first, second, sums)
    {
        connect(multiprocessors);
    }
    ~RankSum() override { stop(); }

    void post(std::size_t index, int, Stream& stream, const Posting& posting) override
    {
        RankPair::post(index, stream, posting);
    }
    /// A sum's time starts when this side's values were ready.
    void finished(std::vector<Copied>& to) override
    {
        throwIfFailed();
        if (!drained())
            return;
        const std::lock_guard lock(m_mutex);
        for (const std::size_t index : m_issued) {
            const Side& side = m_sides[index];
            if (!side.posting.timed)
                continue;
            to.push_back({side.posting.task, m_own.gpu.clock->timeOf(side.started),
                          m_own.gpu.clock->timeOf(cudaEvent(side.posting.done).handle())});
        }
        m_issued.clear();
    }
    void reset() override { forget(); }
    void abort() override { abortPair(); }
    void awaitCalls() override { awaitIssued(); }

private:
    void carry(std::span<const Region> regions) override
    {
        auto* values = reinterpret_cast<float*>(regions.front().data);
        check(table().ncclAllReduce(m_member, values, values, regions.front().bytes / static_cast<Bytes>(sizeof(float)),
                                    m_stream),
              "add up with another GPU through NCCL");
    }
};

} // namespace

std::unique_ptr<Link> createRankLink(const RankGpu& own, int from, int to, const LinkOptions& options)
{
    return std::make_unique<RankLink>(own, from, to, options);
}

std::unique_ptr<PairSum> createRankSum(const RankGpu& own, int first, int second, std::size_t sums)
{
    return std::make_unique<RankSum>(own, first, second, sums);
}

} // namespace pipewright
