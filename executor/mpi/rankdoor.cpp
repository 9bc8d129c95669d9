// SPDX-License-Identifier: GPL-3.0-or-later
// Three messages: the comer's name and nonce; the listener's nonce and proof; the comer's port and proof.
#include "executor/mpi/rankdoor.h"

#include "core/base/diagnostic.h"
#include "executor/mpi/ranksecret.h"
#include "executor/runtime/steadyclock.h"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace pipewright {

// What is said at a door, as it crosses the wire.
struct RankHello {
    std::uint32_t magic = 0x50577233; ///< "PWr3"
    std::int32_t size = 0, comer = 0, listener = 0;
    RankNonce nonce{};
};
struct RankChallenge {
    RankNonce nonce{};
    RankProof proof{};
};
struct RankAnswer {
    std::int32_t port = 0;
    RankProof proof{};
};

namespace {

constexpr Nanoseconds introductionTime = 5'000'000'000;
constexpr std::size_t mostStrangers = 256; ///< allowed beside the ranks; beyond it the oldest is closed

} // namespace

/// A connection that has not proved itself.
struct RankDoor::Newcomer {
    int socket = -1;
    Nanoseconds until = 0; ///< when it is given up
    TcpAddress from{};
    RankHello hello{};
    RankAnswer answer{};
    std::size_t bytes = 0; ///< received, of `hello` and then of `answer`
    RankNonce nonce{};     ///< given to it
};

RankDoor::RankDoor(int rank, int size, const RankKey& key) : m_rank(rank), m_size(size), m_key(key) {}

RankDoor::~RankDoor()
{
    for (const Newcomer& newcomer : m_newcomers)
        close(newcomer.socket);
    if (m_listener >= 0)
        close(m_listener);
}

bool RankDoor::open(std::vector<TcpAddress> places, int port)
{
    for (TcpAddress& place : places) {
        place.setPort(port);
        m_listener = listenTcp(place);
        if (m_listener < 0)
            continue;
        m_port = ownAddressOf(m_listener).port();
        return true;
    }
    return false;
}

std::optional<RankDoor::Guest> RankDoor::admit(const std::function<bool(int rank)>& awaited, Nanoseconds until)
{
    for (;;) {
        std::vector<pollfd> waiting{{m_listener, POLLIN, 0}};
        for (const Newcomer& newcomer : m_newcomers)
            waiting.push_back({newcomer.socket, POLLIN, 0});
        const Nanoseconds left = until - steadyNow();
        if (left <= 0)
            return std::nullopt;
        ::poll(waiting.data(), waiting.size(), static_cast<int>(std::clamp<Nanoseconds>(left / 1'000'000, 1, 500)));
        const Nanoseconds now = steadyNow();
        for (std::size_t i = m_newcomers.size(); i-- > 0;) {
            const Hearing heard = waiting[i + 1].revents != 0  ? hear(m_newcomers[i], awaited)
                                  : now > m_newcomers[i].until ? Hearing::Stranger
                                                               : Hearing::Unfinished;
            if (heard == Hearing::Unfinished)
                continue;
            const Newcomer come = m_newcomers[i];
            m_newcomers.erase(m_newcomers.begin() + static_cast<std::ptrdiff_t>(i));
            if (heard == Hearing::Stranger) {
                close(come.socket);
                continue;
            }
            Guest guest{come.hello.comer, come.socket, come.from};
            guest.where.setPort(come.answer.port);
            return guest;
        }
        if (waiting.front().revents != 0)
            letIn(now);
    }
}

void RankDoor::letIn(Nanoseconds now)
{
    Newcomer newcomer;
    newcomer.from.length = sizeof newcomer.from.address;
    newcomer.socket = accept4(m_listener, reinterpret_cast<sockaddr*>(&newcomer.from.address), &newcomer.from.length,
                              SOCK_CLOEXEC | SOCK_NONBLOCK);
    newcomer.until = now + introductionTime;
    if (newcomer.socket < 0)
        return;
    if (m_newcomers.size() >= static_cast<std::size_t>(m_size) + mostStrangers) {
        close(m_newcomers.front().socket);
        m_newcomers.erase(m_newcomers.begin());
    }
    m_newcomers.push_back(newcomer);
}

RankDoor::Hearing RankDoor::hear(Newcomer& newcomer, const std::function<bool(int rank)>& awaited)
{
    const bool named = newcomer.bytes >= sizeof(RankHello);
    char* const to = named ? reinterpret_cast<char*>(&newcomer.answer) + (newcomer.bytes - sizeof(RankHello))
                           : reinterpret_cast<char*>(&newcomer.hello) + newcomer.bytes;
    const std::size_t wanted = (named ? sizeof(RankHello) + sizeof(RankAnswer) : sizeof(RankHello)) - newcomer.bytes;
    const ssize_t got = recv(newcomer.socket, to, wanted, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return Hearing::Unfinished;
    if (got <= 0) {
        m_refused += named ? 1 : 0; // it did not like this rank's proof
        return Hearing::Stranger;
    }
    newcomer.bytes += static_cast<std::size_t>(got);
    if (newcomer.bytes == sizeof(RankHello))
        return challenge(newcomer, awaited);
    if (newcomer.bytes < sizeof(RankHello) + sizeof(RankAnswer))
        return Hearing::Unfinished;
    const RankConversation said{newcomer.hello.comer, m_rank, newcomer.answer.port, newcomer.hello.nonce,
                                newcomer.nonce};
    if (!isProof(newcomer.answer.proof, Prover::Comer, said, m_key)) {
        ++m_refused;
        return Hearing::Stranger;
    }
    return awaited(newcomer.hello.comer) ? Hearing::Rank : Hearing::Stranger;
}

RankDoor::Hearing RankDoor::challenge(Newcomer& newcomer, const std::function<bool(int rank)>& awaited)
{
    const RankHello& who = newcomer.hello;
    if (who.magic != RankHello().magic || who.size != m_size || who.listener != m_rank || who.comer < 0
        || who.comer >= m_size || !awaited(who.comer))
        return Hearing::Stranger;
    newcomer.nonce = freshNonce();
    const RankChallenge told{newcomer.nonce,
                             prove(Prover::Listener, {who.comer, m_rank, 0, who.nonce, newcomer.nonce}, m_key)};
    // Nothing was sent on this connection before, so there is room for it.
    return send(newcomer.socket, &told, sizeof told, MSG_NOSIGNAL) == ssize_t(sizeof told) ? Hearing::Unfinished
                                                                                           : Hearing::Stranger;
}

bool proveAtDoor(int socket, int rank, int listener, int size, int port, const RankKey& key, Nanoseconds until)
{
    const RankHello hello{.size = size, .comer = rank, .listener = listener, .nonce = freshNonce()};
    RankChallenge told;
    if (!sendAll(socket, &hello, sizeof hello, until) || !receiveAll(socket, &told, sizeof told, until))
        return false;
    const RankConversation said{rank, listener, port, hello.nonce, told.nonce};
    if (!isProof(told.proof, Prover::Listener, said, key))
        throw Error("ranks", fmt::format("who listens as rank {} knows another secret, or none", listener),
                    fmt::format("{} is to be the same for all; is another program at this port?", rankSecretVariable));
    const RankAnswer answer{port, prove(Prover::Comer, said, key)};
    return sendAll(socket, &answer, sizeof answer, until);
}

} // namespace pipewright
