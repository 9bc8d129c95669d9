// SPDX-License-Identifier: GPL-3.0-or-later
// Clock offsets: from the ping with the shortest of 20 round trips, half a round trip away (Cristian 1989). O(ranks)
// per check of the others.
#include "executor/mpi/rankhub.h"

#include "core/base/diagnostic.h"
#include "executor/mpi/samemachine.h"
#include "executor/runtime/steadyclock.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <new>
#include <unistd.h>
#include <utility>

namespace pipewright {

namespace {

constexpr Nanoseconds lookInterval = 50'000'000;
constexpr int pings = 20;
constexpr Bytes largestMessage = Bytes{1} << 30; ///< for messages that are not a buffer's content: records, texts

} // namespace

RankHub::RankHub(std::unique_ptr<Mesh> mesh, Nanoseconds deadline)
    : m_mesh(std::move(mesh)), m_self(m_mesh->rank()), m_deadline(deadline),
      m_others(static_cast<std::size_t>(m_mesh->size())), m_shares(m_others.size())
{
    Other& own = other(m_self);
    own.process = getpid();
    own.machine = thisMachine();
    own.known = own.clockKnown = true;
    const Message hello{.kind = Hello, .a = own.process, .b = own.machine};
    for (Other& each : m_others)
        each.heard = steadyNow();
    for (int r = 0; r < count(); ++r)
        if (r != m_self)
            send(r, hello);
    m_thread = std::thread([this] { talk(); });
    try {
        std::unique_lock lock(m_mutex);
        waitFor(lock, "has come", [this] {
            return std::all_of(m_others.begin(), m_others.end(), [](const Other& each) { return each.known; });
        });
        lock.unlock();
        if (m_self != 0)
            send(0, {.kind = Ping, .time = steadyNow()});
        lock.lock();
        waitFor(lock, "has compared its clock", [this] {
            return m_self != 0 ? other(m_self).clockKnown && m_pings >= pings
                               : std::all_of(m_others.begin(), m_others.end(),
                                             [](const Other& each) { return each.clockKnown; });
        });
    } catch (...) {
        shutDown();
        throw;
    }
}

RankHub::~RankHub()
{
    bool orderly = true;
    {
        const std::lock_guard lock(m_mutex);
        orderly = !m_failed && !cancelled() && failureReasonLocked().empty();
    }
    for (int r = 0; orderly && r < count(); ++r)
        if (r != m_self)
            send(r, {.kind = Bye});
    shutDown();
}

void RankHub::endRun()
{
    std::unique_lock lock(m_mutex);
    if (m_silenced || (!m_failed && !cancelled() && failureReasonLocked().empty()))
        return;
    // The last messages still go out; data for a process that is gone never will.
    m_changed.wait_for(lock, std::chrono::milliseconds(300), [this] { return m_letters.empty() && m_inFlight == 0; });
    m_silenced = true;
    m_mesh->wake();
    m_changed.wait(lock, [this] { return m_silent; });
}

/// Messages that wait to be sent still go out, for a limited time.
void RankHub::shutDown()
{
    {
        std::unique_lock lock(m_mutex);
        m_changed.wait_for(lock, std::chrono::seconds(1),
                           [this] { return m_silenced || (m_letters.empty() && m_inFlight == 0); });
        m_quit = true;
    }
    m_changed.notify_all();
    m_mesh->wake();
    if (m_thread.joinable())
        m_thread.join();
    m_mesh->close();
}

void RankHub::setLink(std::uint32_t link, LinkEnd* end)
{
    const std::scoped_lock lock(m_linkMutex, m_mutex);
    if (end)
        m_links[link] = end;
    else
        m_links.erase(link);
}

void RankHub::send(int to, const Message& message, std::vector<Region> payload, std::function<void()> sent)
{
    {
        const std::lock_guard lock(m_mutex);
        m_letters.push_back({to, message, std::move(payload), std::move(sent)});
    }
    m_mesh->wake();
}

void RankHub::talk()
{
    Nanoseconds pause = 20'000;
    for (;;) {
        {
            std::unique_lock lock(m_mutex);
            if (m_silenced) {
                m_silent = true;
                m_changed.notify_all();
                m_changed.wait(lock, [this] { return m_quit; });
            }
            if (m_quit)
                return;
        }
        sendLetters();
        const bool busy = m_mesh->poll(*this);
        if (const Nanoseconds now = steadyNow(); now - m_lastLook >= lookInterval) {
            m_lastLook = now;
            lookAfterOthers();
        }
        pause = busy ? 20'000 : std::min<Nanoseconds>(2 * pause, 500'000);
        if (!busy)
            m_mesh->idle(pause);
    }
}

void RankHub::sendLetters()
{
    std::vector<Letter> letters;
    {
        const std::lock_guard lock(m_mutex);
        letters.swap(m_letters);
        m_inFlight += letters.size();
    }
    for (Letter& letter : letters) {
        if (letter.to == m_self)
            received(m_self, letter.message);
        if (std::unique_lock lock(m_mutex); letter.to == m_self || other(letter.to).left || other(letter.to).lost) {
            --m_inFlight; // the receiver does not read it any more
            lock.unlock();
            m_changed.notify_all();
            continue;
        }
        const std::uint64_t ticket = m_nextTicket++;
        m_tickets.emplace(ticket, std::move(letter.sent));
        m_mesh->send(letter.to, letter.message, std::move(letter.payload), ticket);
    }
}

void RankHub::sent(std::uint64_t ticket)
{
    const auto found = m_tickets.find(ticket);
    if (found == m_tickets.end())
        return;
    if (found->second)
        found->second();
    m_tickets.erase(found);
    {
        const std::lock_guard lock(m_mutex);
        --m_inFlight;
    }
    m_changed.notify_all();
}

void RankHub::lost(int rank)
{
    {
        const std::lock_guard lock(m_mutex);
        other(rank).lost = true;
    }
    m_changed.notify_all();
}

/// Sends this device's state to the others, and checks whether they are silent.
void RankHub::lookAfterOthers()
{
    std::unique_lock lock(m_mutex);
    const Standing own = other(m_self).standing;
    const Message status{.kind = Status,
                         .link = own.state,
                         .sequence = own.instruction,
                         .task = own.ready ? 1u : 0u,
                         .a = static_cast<std::int64_t>(own.progress),
                         .b = own.transfer};
    for (int r = 0; r < count(); ++r) {
        Other& each = other(r);
        if (r == m_self || each.lost || each.left)
            continue;
        m_letters.push_back({r, status, {}, {}});
        if (steadyNow() - each.heard > m_deadline) {
            each.lost = true;
            m_changed.notify_all();
        }
    }
}

std::vector<Region> RankHub::place(int from, const Message& message)
{
    if (message.kind == LinkData && message.bytes > 0) {
        const std::lock_guard calling(m_linkMutex);
        if (LinkEnd* const end = endOf(message))
            if (auto places = end->place(message); totalBytes(places) == message.bytes) {
                m_incoming[from].emplace_back();
                return places;
            }
    }
    UnfilledVector<std::byte> bytes; // uses memory only for what really arrives, not for what is announced
    try {
        if (message.bytes >= 0 && message.bytes <= largestMessage)
            bytes.resize(static_cast<std::size_t>(message.bytes));
    } catch (const std::bad_alloc&) { // refused below, too
    }
    if (static_cast<Bytes>(bytes.size()) != message.bytes) {
        const std::lock_guard lock(m_mutex);
        other(from).failure =
            fmt::format("it announced {} bytes, for which there is no use or no memory", message.bytes);
        return {};
    }
    auto& kept = m_incoming[from].emplace_back(std::move(bytes)); // a deque: it does not move when others are added
    return {{kept.data(), message.bytes}};
}

void RankHub::received(int from, const Message& message)
{
    UnfilledVector<std::byte> bytes;
    if (message.bytes != 0) {
        bytes = std::move(m_incoming[from].front());
        m_incoming[from].pop_front();
    }
    bool forLink = false;
    {
        const std::lock_guard lock(m_mutex);
        Other& sender = other(from);
        sender.heard = steadyNow();
        switch (static_cast<Kind>(message.kind)) {
        case Hello:
            sender.process = message.a;
            sender.machine = message.b;
            sender.known = true;
            break;
        case Bye: sender.left = true; break;
        case Ping: m_letters.push_back({from, {.kind = Pong, .time = message.time, .a = steadyNow()}, {}, {}}); break;
        case Pong:
        case Clock: receivedClock(from, message); break;
        case Status:
            sender.standing = {static_cast<std::uint64_t>(message.a), message.sequence,
                               static_cast<std::int32_t>(message.b), static_cast<std::uint8_t>(message.link),
                               message.task != 0};
            break;
        case AllReduce:
            m_shares[from] = {plausible(message.time), plausible(message.a), std::bit_cast<double>(message.b),
                              message.task != 0};
            ++m_sharesHere;
            break;
        case AllReduced:
            m_agreed = {plausible(message.time), plausible(message.a), std::bit_cast<double>(message.b),
                        message.task != 0};
            ++m_answeredRound;
            break;
        case Cancel: m_cancelled.store(true, std::memory_order_release); break;
        case Failed: sender.failure.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size()); break;
        case Posted: m_peerMessages.push_back({from, message.link, message.sequence, std::move(bytes)}); break;
        case Setup: m_setups[message.link] = std::move(bytes); break;
        case LinkReady:
        case LinkData:
        case LinkMismatch: forLink = true; break;
        }
    }
    if (forLink)
        passToLink(message);
    m_changed.notify_all();
}

void RankHub::passToLink(const Message& message)
{
    const std::lock_guard calling(m_linkMutex);
    if (LinkEnd* const end = endOf(message))
        end->received(message);
}

LinkEnd* RankHub::endOf(const Message& message)
{
    const std::lock_guard lock(m_mutex);
    const auto found = m_links.find(message.link);
    return found == m_links.end() ? nullptr : found->second;
}

UnfilledVector<std::byte> RankHub::awaitSetup(std::uint32_t number)
{
    std::unique_lock lock(m_mutex);
    waitFor(lock, "has come to be connected with the others", [&] { return m_setups.contains(number); });
    return std::move(m_setups.extract(number).mapped());
}

/// Process 0 answers pings; the others keep the offset of the fastest answer and report it at the end. Two processes of
/// one machine share its clock, whatever the answers say.
void RankHub::receivedClock(int from, const Message& message)
{
    Other& own = other(m_self);
    if (message.kind == Clock) {
        other(from).offset = plausible(message.a);
        other(from).uncertainty = plausible(message.b);
        other(from).clockKnown = true;
        return;
    }
    const Nanoseconds now = steadyNow(), asked = plausible(message.time), roundTrip = now - asked;
    if (m_pings == 0 || roundTrip / 2 < own.uncertainty) {
        own.uncertainty = roundTrip / 2;
        own.offset = plausible(message.a) - (asked + roundTrip / 2);
    }
    if (++m_pings < pings) {
        m_letters.push_back({0, {.kind = Ping, .time = steadyNow()}, {}, {}});
        return;
    }
    if (other(0).machine == own.machine)
        own.offset = own.uncertainty = 0;
    m_letters.push_back({0, {.kind = Clock, .a = own.offset, .b = own.uncertainty}, {}, {}});
}

void RankHub::publish(const Standing& standing)
{
    const std::lock_guard lock(m_mutex);
    other(m_self).standing = standing;
}

Standing RankHub::standing(int device) const
{
    const std::lock_guard lock(m_mutex);
    return m_others[device].standing;
}

bool RankHub::gone(int device) const
{
    const std::lock_guard lock(m_mutex);
    return m_others[device].lost;
}

/// Waits for `condition` while every process lives and any device makes progress.
template<typename Condition>
void RankHub::waitFor(std::unique_lock<std::mutex>& lock, const char* what, Condition condition)
{
    const auto progress = [this] {
        std::uint64_t sum = 0;
        for (const Other& each : m_others)
            sum += each.standing.progress + (each.known ? 1 : 0);
        return sum;
    };
    std::uint64_t last = progress();
    Nanoseconds changed = steadyNow();
    while (!m_changed.wait_for(lock, std::chrono::milliseconds(20), condition)) {
        if (const std::string why = failureReasonLocked(); !why.empty())
            throw Error("ranks", why, "look for what ended that process before this message");
        if (const std::uint64_t now = progress(); now != last) {
            last = now;
            changed = steadyNow();
        }
        if (steadyNow() - changed <= m_deadline)
            continue;
        const std::string silent = silenceLocked();
        throw Error("ranks",
                    fmt::format("not every process {} within {}{}{}", what, formatDuration(m_deadline),
                                silent.empty() ? "" : "; ", silent),
                    "give the run a longer deadline if that is only slow");
    }
}

StepShare RankHub::allReduce(const StepShare& own)
{
    StepShare mine = own;
    mine.cancelled = mine.cancelled || cancelled();
    std::unique_lock lock(m_mutex);
    mine.start += other(m_self).offset;
    mine.end += other(m_self).offset;
    const std::uint64_t round = ++m_round;
    if (m_self == 0) {
        m_shares[0] = mine;
        waitFor(lock, "has come to the end of the step", [this] { return m_sharesHere + 1 == m_others.size(); });
        answerAllReduce();
        lock.unlock();
        m_mesh->wake();
        return m_agreed;
    }
    m_letters.push_back({0,
                         {.kind = AllReduce,
                          .task = mine.cancelled ? 1u : 0u,
                          .time = mine.start,
                          .a = mine.end,
                          .b = std::bit_cast<std::int64_t>(mine.loss)},
                         {},
                         {}});
    m_mesh->wake();
    waitFor(lock, "has come to the end of the step", [&] { return m_answeredRound == round; });
    return m_agreed;
}

/// On process 0, when all shares have arrived: no process sends another before it has the answer.
void RankHub::answerAllReduce()
{
    m_sharesHere = 0;
    m_agreed = m_shares[0];
    for (std::size_t r = 1; r < m_shares.size(); ++r) {
        m_agreed.start = std::min(m_agreed.start, m_shares[r].start);
        m_agreed.end = std::max(m_agreed.end, m_shares[r].end);
        m_agreed.loss += m_shares[r].loss;
        m_agreed.cancelled = m_agreed.cancelled || m_shares[r].cancelled;
    }
    const Message answer{.kind = AllReduced,
                         .task = m_agreed.cancelled ? 1u : 0u,
                         .time = m_agreed.start,
                         .a = m_agreed.end,
                         .b = std::bit_cast<std::int64_t>(m_agreed.loss)};
    for (int r = 1; r < count(); ++r)
        m_letters.push_back({r, answer, {}, {}});
}

void RankHub::cancel()
{
    if (m_cancelled.exchange(true, std::memory_order_acq_rel))
        return;
    for (int r = 0; r < count(); ++r)
        if (r != m_self)
            send(r, {.kind = Cancel});
}

void RankHub::fail(const std::string& why)
{
    const auto text = std::make_shared<std::string>(why);
    {
        const std::lock_guard lock(m_mutex);
        m_failed = true;
    }
    for (int r = 0; r < count(); ++r)
        if (r != m_self)
            send(r, {.kind = Failed}, {{reinterpret_cast<std::byte*>(text->data()), static_cast<Bytes>(text->size())}},
                 [text] {});
}

std::string RankHub::failureReason() const
{
    const std::lock_guard lock(m_mutex);
    return failureReasonLocked();
}

std::string RankHub::silenceLocked() const
{
    const Other* longest = nullptr;
    for (const Other& each : m_others)
        if (&each != &m_others[static_cast<std::size_t>(m_self)] && !each.left
            && (!longest || each.heard < longest->heard))
            longest = &each;
    const Nanoseconds silent = longest ? steadyNow() - longest->heard : 0;
    if (silent < std::max(m_deadline / 2, 10 * lookInterval))
        return {};
    const auto rank = longest - m_others.data();
    return fmt::format("the process of device {} (rank {}, process {}) has said nothing for {}", rank, rank,
                       longest->process, formatDuration(silent));
}

std::string RankHub::failureReasonLocked() const
{
    for (std::size_t r = 0; r < m_others.size(); ++r)
        if (!m_others[r].failure.empty())
            return fmt::format("the process of device {} ended the run: {}", r, m_others[r].failure);
    for (std::size_t r = 0; r < m_others.size(); ++r)
        if (m_others[r].lost && !m_others[r].left)
            return fmt::format("the process of device {} (rank {}, process {}) is gone: it was killed or has crashed",
                               r, r, m_others[r].process);
    return {};
}

} // namespace pipewright
