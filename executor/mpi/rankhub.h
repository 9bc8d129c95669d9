// SPDX-License-Identifier: GPL-3.0-or-later
// One thread per process that sends and receives everything. It carries messages between the mesh and the links, keeps
// the state that the other processes report, does all-reduces, and notices when a process has ended: its connection
// ends with it, or it has been silent for the deadline.
#pragma once

#include "executor/mpi/mesh.h"
#include "executor/runtime/peers.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace pipewright {

/// The side of a link that a process holds, for the hub.
class LinkEnd {
public:
    virtual ~LinkEnd() = default;
    virtual std::vector<Region> place(const Message& message) = 0;
    virtual void received(const Message& message) = 0;
};

class RankHub final : public Peers, private MeshHandler {
public:
    /// Returns when all processes have connected. Throws Error when that takes longer than `deadline`, which is also
    /// how long the run may later go without progress.
    RankHub(std::unique_ptr<Mesh> mesh, Nanoseconds deadline);
    ~RankHub() override;
    RankHub(const RankHub&) = delete;
    RankHub& operator=(const RankHub&) = delete;

    int self() const override { return m_self; }
    int count() const override { return static_cast<int>(m_others.size()); }
    void publish(const Standing& standing) override;
    Standing standing(int device) const override;
    bool gone(int device) const override;
    StepShare allReduce(const StepShare& own) override;
    void cancel() override;
    bool cancelled() const override { return m_cancelled.load(std::memory_order_acquire); }
    void fail(const std::string& why) override;
    std::string failureReason() const override;
    std::string silence() const override
    {
        const std::lock_guard lock(m_mutex);
        return silenceLocked();
    }
    void endRun() override;
    void post(std::uint32_t kind, std::uint32_t number, std::span<const std::byte> bytes) override;
    std::vector<PeerMessage> takeMessages() override;
    std::unique_ptr<Exchange> createExchange(std::span<const int> others) override;
    Nanoseconds clockOffset(int process) const override;
    Nanoseconds clockUncertainty(int process) const override;

    enum Kind : std::uint32_t {
        Hello,
        Bye,
        Ping,
        Pong,
        Clock,
        Status,
        AllReduce,
        AllReduced,
        Cancel,
        Failed,
        Posted,
        Setup,
        LinkReady,
        LinkData,
        LinkMismatch
    };

    /// Registers the receiver of messages of kind LinkReady … with this number. Null: removes it; it is not called any
    /// more.
    void setLink(std::uint32_t link, LinkEnd* end);
    /// From any thread. `sent` is called by the hub's thread when the payload may be overwritten. A message to the own
    /// process, without payload, is received in the same order as messages to others.
    void send(int to, const Message& message, std::vector<Region> payload = {}, std::function<void()> sent = {});

    /// Information that the receiver needs before it can make a link; kept there until it is asked for.
    void sendSetup(int to, std::uint32_t number, std::span<const std::byte> bytes);
    /// Throws Error when the information cannot arrive any more, or does not within the deadline.
    UnfilledVector<std::byte> awaitSetup(std::uint32_t number);

    struct LocalRank {
        int rank = 0, count = 0; ///< among the processes of its machine
    };
    LocalRank localRank(int process) const;
    bool onOneMachine(int first, int second) const;
    Nanoseconds deadline() const { return m_deadline; }

private:
    struct Other {
        std::int64_t process = 0, machine = 0; ///< number, hash of the boot
        bool known = false, lost = false, clockKnown = false;
        bool left = false; ///< ended in order
        Nanoseconds heard = 0;
        Standing standing;
        Nanoseconds offset = 0, uncertainty = 0;
        std::string failure;
    };
    struct Letter {
        int to = 0;
        Message message;
        std::vector<Region> payload;
        std::function<void()> sent;
    };

    std::vector<Region> place(int from, const Message& message) override;
    void received(int from, const Message& message) override;
    void sent(std::uint64_t ticket) override;
    void lost(int rank) override;

    void talk();
    void sendLetters();
    void lookAfterOthers();
    void answerAllReduce();
    void receivedClock(int from, const Message& message);
    void passToLink(const Message& message);
    LinkEnd* endOf(const Message& message); ///< requires m_linkMutex; null: no such link yet
    Other& other(int rank) { return m_others[rank]; }
    std::string failureReasonLocked() const;
    std::string silenceLocked() const;
    void shutDown();
    template<typename Condition>
    void waitFor(std::unique_lock<std::mutex>& lock, const char* what, Condition condition);

    std::unique_ptr<Mesh> m_mesh;
    const int m_self;
    const Nanoseconds m_deadline;
    std::atomic<bool> m_cancelled{false};

    std::mutex m_linkMutex;     ///< held while a link is called
    mutable std::mutex m_mutex; ///< guards what follows
    std::condition_variable m_changed;
    std::vector<Other> m_others; ///< the own process among them
    std::vector<Letter> m_letters;
    std::map<std::uint32_t, LinkEnd*> m_links;
    std::map<std::uint32_t, UnfilledVector<std::byte>> m_setups;
    std::vector<PeerMessage> m_peerMessages;
    std::uint64_t m_round = 0, m_answeredRound = 0;
    std::vector<StepShare> m_shares;
    std::size_t m_sharesHere = 0;
    StepShare m_agreed;
    bool m_quit = false, m_failed = false, m_silenced = false, m_silent = false;
    std::size_t m_inFlight = 0; ///< letters taken but not sent

    // The hub's thread only.
    std::map<std::uint64_t, std::function<void()>> m_tickets;
    std::uint64_t m_nextTicket = 0;
    /// Per process: payloads of the messages in flight, in order; empty entries for payloads that go to a link.
    std::map<int, std::deque<UnfilledVector<std::byte>>> m_incoming;
    Nanoseconds m_lastLook = 0;
    int m_pings = 0;
    std::thread m_thread;
};

} // namespace pipewright
