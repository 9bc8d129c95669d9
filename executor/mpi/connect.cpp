// SPDX-License-Identifier: GPL-3.0-or-later
// Connects the sockets of a mesh over TCP. A connecting rank introduces itself with the secret of the run. All
// connections without a complete introduction are polled together, so a silent one delays no other and is closed after
// a while. Ranks that meet on a loopback address listen there only.
#include "core/base/diagnostic.h"
#include "executor/mpi/ranksecret.h"
#include "executor/mpi/socketmesh.h"
#include "executor/runtime/clock.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace pipewright {

namespace {

/// Where a rank can be reached, as rank 0 saw it.
struct Whereabouts {
    sockaddr_storage address{};
    socklen_t length = 0;
};

/// What a rank says first on every connection.
struct Introduction {
    std::uint32_t magic = 0x50577232; ///< "PWr2"
    std::int32_t rank = 0, size = 0;
    std::int32_t port = 0; ///< where it listens itself
    std::array<char, longestRankSecret> secret{};
};

/// A connection before its introduction is complete.
struct Newcomer {
    int socket = -1;
    Nanoseconds until = 0; ///< when it is given up
    Whereabouts where{};
    Introduction said{};
    std::size_t bytes = 0; ///< received bytes of `said`
};
constexpr Nanoseconds introductionTime = 5'000'000'000;
constexpr std::size_t mostStrangers = 256; ///< allowed beside the ranks; beyond it the oldest is closed

/// Takes as long for a wrong secret as for the right one.
bool sameSecret(const std::array<char, longestRankSecret>& a, const std::array<char, longestRankSecret>& b)
{
    unsigned difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
    return difference == 0;
}

bool isLoopback(const sockaddr_storage& address)
{
    if (address.ss_family == AF_INET)
        return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
    const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

[[noreturn]] void give(const std::string& what, const std::string& hint)
{
    throw Error("ranks", what, hint);
}

class Bootstrap {
public:
    Bootstrap(int rank, int size, const std::string& secret, Nanoseconds deadline)
        : m_rank(rank), m_size(size), m_until(steadyNow() + deadline), m_sockets(static_cast<std::size_t>(size), -1)
    {
        std::copy_n(secret.begin(), std::min(secret.size(), m_secret.size()), m_secret.begin());
    }
    ~Bootstrap()
    {
        for (const Newcomer& newcomer : m_newcomers)
            close(newcomer.socket);
        for (const int socket : m_sockets)
            if (socket >= 0)
                close(socket);
        if (m_listener >= 0)
            close(m_listener);
    }
    Bootstrap(const Bootstrap&) = delete;
    Bootstrap& operator=(const Bootstrap&) = delete;

    std::vector<int> lead(const std::string& address, int port)
    {
        listenAt(placesToListen(address), port);
        std::vector<Whereabouts> all(static_cast<std::size_t>(m_size));
        for (int come = 1; come < m_size; ++come) {
            Whereabouts where;
            const Introduction who = acceptOne(where);
            if (where.address.ss_family == AF_INET)
                reinterpret_cast<sockaddr_in&>(where.address).sin_port = htons(static_cast<std::uint16_t>(who.port));
            else
                reinterpret_cast<sockaddr_in6&>(where.address).sin6_port = htons(static_cast<std::uint16_t>(who.port));
            all[who.rank] = where;
        }
        for (int r = 1; r < m_size; ++r)
            writeAll(m_sockets[r], all.data(), all.size() * sizeof(Whereabouts));
        return std::move(m_sockets);
    }

    std::vector<int> follow(const std::string& address, int port)
    {
        m_sockets[0] = connectByName(address, port);
        std::vector<Whereabouts> all(static_cast<std::size_t>(m_size));
        readAll(m_sockets[0], all.data(), all.size() * sizeof(Whereabouts));
        for (int r = 1; r < m_rank; ++r) { // connects to lower ranks; higher ranks connect to this one
            const Whereabouts& where = all[r];
            const int socket = tryConnect(reinterpret_cast<const sockaddr*>(&where.address), where.length);
            if (socket < 0)
                give("rank " + std::to_string(m_rank) + " cannot reach rank " + std::to_string(r) + ": "
                         + std::strerror(errno),
                     "let the hosts reach each other on all TCP ports");
            m_sockets[r] = socket;
        }
        for (int r = m_rank + 1; r < m_size; ++r) {
            Whereabouts ignored;
            acceptOne(ignored);
        }
        return std::move(m_sockets);
    }

private:
    int millisecondsLeft() const
    {
        return static_cast<int>(std::max<Nanoseconds>(0, (m_until - steadyNow()) / 1'000'000));
    }

    /// All addresses of the machine; IPv4 alone where there is no IPv6.
    static std::vector<sockaddr_storage> everywhere()
    {
        std::vector<sockaddr_storage> places(2);
        places[0].ss_family = AF_INET6;
        places[1].ss_family = AF_INET;
        return places;
    }

    /// All addresses, unless `address` itself shows that all ranks are on this machine. A host's own name does not show
    /// it: Debian maps it to a loopback address on the host itself.
    static std::vector<sockaddr_storage> placesToListen(const std::string& address)
    {
        std::vector<sockaddr_storage> places;
        addrinfo hints{}, *found = nullptr;
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = address == "localhost" ? 0 : AI_NUMERICHOST;
        if (getaddrinfo(address.c_str(), nullptr, &hints, &found) == 0) {
            for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
                sockaddr_storage place{};
                std::memcpy(&place, each->ai_addr, each->ai_addrlen);
                if (isLoopback(place))
                    places.push_back(place);
            }
            freeaddrinfo(found);
        }
        return places.empty() ? everywhere() : places;
    }

    /// Listens at the first of the places where this works.
    void listenAt(const std::vector<sockaddr_storage>& places, int port)
    {
        for (sockaddr_storage place : places) {
            const bool six = place.ss_family == AF_INET6;
            in_port_t& portThere =
                six ? reinterpret_cast<sockaddr_in6&>(place).sin6_port : reinterpret_cast<sockaddr_in&>(place).sin_port;
            portThere = htons(static_cast<std::uint16_t>(port));
            socklen_t length = six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
            m_listener = socket(place.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            if (m_listener < 0)
                continue;
            const int on = 1, off = 0;
            setsockopt(m_listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
            if (six)
                setsockopt(m_listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
            if (bind(m_listener, reinterpret_cast<sockaddr*>(&place), length) == 0
                && listen(m_listener, SOMAXCONN) == 0) {
                getsockname(m_listener, reinterpret_cast<sockaddr*>(&place), &length);
                m_ownPort = ntohs(portThere);
                return;
            }
            const int why = errno;
            close(std::exchange(m_listener, -1));
            errno = why;
        }
        give("cannot listen on port " + std::to_string(port) + ": " + std::strerror(errno),
             "set MASTER_PORT to another one: the port after it must be free on rank 0's host");
    }

    /// A rank that reached rank 0 over loopback listens there only: the other ranks come the same way.
    void listenBeside(int connected)
    {
        sockaddr_storage place{};
        socklen_t length = sizeof place;
        const bool here =
            getsockname(connected, reinterpret_cast<sockaddr*>(&place), &length) == 0 && isLoopback(place);
        listenAt(here ? std::vector{place} : everywhere(), 0);
    }

    Introduction acceptOne(Whereabouts& where)
    {
        for (;;) {
            std::vector<pollfd> waiting{{m_listener, POLLIN, 0}};
            for (const Newcomer& newcomer : m_newcomers)
                waiting.push_back({newcomer.socket, POLLIN, 0});
            const int left = millisecondsLeft();
            if (left <= 0)
                give("not all of the " + std::to_string(m_size) + " processes have come; missing are ranks" + missing()
                         + refusals(),
                     "start one process per device, all with the same WORLD_SIZE and MASTER_ADDR");
            ::poll(waiting.data(), waiting.size(), std::min(left, 500));
            const Nanoseconds now = steadyNow();
            for (std::size_t i = m_newcomers.size(); i-- > 0;) {
                Newcomer& newcomer = m_newcomers[i];
                const Hearing heard = waiting[i + 1].revents != 0 ? hear(newcomer)
                                      : now > newcomer.until      ? Hearing::Stranger
                                                                  : Hearing::Unfinished;
                if (heard == Hearing::Unfinished)
                    continue;
                const Newcomer come = newcomer;
                m_newcomers.erase(m_newcomers.begin() + static_cast<std::ptrdiff_t>(i));
                if (heard == Hearing::Stranger) {
                    close(come.socket);
                    continue;
                }
                fcntl(come.socket, F_SETFL, fcntl(come.socket, F_GETFL) & ~O_NONBLOCK);
                m_sockets[come.said.rank] = come.socket;
                where = come.where;
                return come.said;
            }
            if (waiting.front().revents != 0)
                letIn(now);
        }
    }

    void letIn(Nanoseconds now)
    {
        Newcomer newcomer;
        newcomer.where.length = sizeof newcomer.where.address;
        newcomer.socket = accept4(m_listener, reinterpret_cast<sockaddr*>(&newcomer.where.address),
                                  &newcomer.where.length, SOCK_CLOEXEC | SOCK_NONBLOCK);
        newcomer.until = now + introductionTime;
        if (newcomer.socket < 0)
            return;
        if (m_newcomers.size() >= static_cast<std::size_t>(m_size) + mostStrangers) {
            close(m_newcomers.front().socket);
            m_newcomers.erase(m_newcomers.begin());
        }
        m_newcomers.push_back(newcomer);
    }

    enum class Hearing : std::uint8_t { Unfinished, Rank, Stranger };
    Hearing hear(Newcomer& newcomer)
    {
        Introduction& who = newcomer.said;
        const ssize_t got =
            recv(newcomer.socket, reinterpret_cast<char*>(&who) + newcomer.bytes, sizeof who - newcomer.bytes, 0);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return Hearing::Unfinished;
        if (got <= 0)
            return Hearing::Stranger;
        newcomer.bytes += static_cast<std::size_t>(got);
        if (newcomer.bytes < sizeof who)
            return Hearing::Unfinished;
        if (who.magic != Introduction().magic || who.size != m_size || who.rank <= 0 || who.rank >= m_size)
            return Hearing::Stranger;
        if (!sameSecret(who.secret, m_secret)) {
            ++m_otherSecrets;
            return Hearing::Stranger;
        }
        return m_sockets[who.rank] >= 0 ? Hearing::Stranger : Hearing::Rank;
    }

    std::string refusals() const
    {
        return m_otherSecrets == 0 ? std::string()
                                   : fmt::format("; {} came with another secret ({} is to be the same for all)",
                                                 m_otherSecrets, rankSecretVariable);
    }

    std::string missing() const
    {
        std::string list;
        for (int r = 0; r < m_size; ++r)
            if (r != m_rank && m_sockets[r] < 0)
                list += " " + std::to_string(r);
        return list;
    }

    /// -1 with errno when it does not answer.
    int tryConnect(const sockaddr* address, socklen_t length)
    {
        const int made = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (made >= 0 && connect(made, address, length) == 0) {
            if (m_listener < 0)
                listenBeside(made);
            Introduction self;
            self.secret = m_secret;
            self.rank = m_rank;
            self.size = m_size;
            self.port = m_ownPort;
            writeAll(made, &self, sizeof self);
            return made;
        }
        const int why = errno;
        if (made >= 0)
            close(made);
        errno = why;
        return -1;
    }

    int connectByName(const std::string& address, int port)
    {
        addrinfo hints{}, *found = nullptr;
        hints.ai_socktype = SOCK_STREAM;
        int why = 0;
        do {
            if (const int code = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found); code != 0)
                give("MASTER_ADDR " + address + ": " + gai_strerror(code),
                     "give a host name or an address of rank 0's host");
            for (const addrinfo* each = found; each != nullptr; each = each->ai_next)
                if (const int made = tryConnect(each->ai_addr, each->ai_addrlen); made >= 0) {
                    freeaddrinfo(found);
                    return made;
                }
            why = errno;
            freeaddrinfo(found);
            std::this_thread::sleep_for(std::chrono::milliseconds(20)); // rank 0 may not listen yet
        } while (millisecondsLeft() > 0);
        give("rank 0 does not answer at " + address + " port " + std::to_string(port) + ": " + std::strerror(why),
             "start rank 0 too, and let the hosts reach each other");
    }

    void readAll(int socket, void* to, std::size_t bytes)
    {
        auto* place = static_cast<char*>(to);
        while (bytes > 0) {
            pollfd waiting{socket, POLLIN, 0};
            const ssize_t got = ::poll(&waiting, 1, millisecondsLeft()) > 0 ? recv(socket, place, bytes, 0) : -1;
            if (got <= 0)
                give("rank 0 went away, has waited in vain for other ranks, or knows another secret",
                     fmt::format("look at what rank 0 says; {} is to be the same for all", rankSecretVariable));
            place += got;
            bytes -= static_cast<std::size_t>(got);
        }
    }

    static void writeAll(int socket, const void* from, std::size_t bytes)
    {
        const auto* place = static_cast<const char*>(from);
        while (bytes > 0) {
            const ssize_t done = ::send(socket, place, bytes, MSG_NOSIGNAL);
            if (done <= 0)
                return; // a closed connection is noticed when reading
            place += done;
            bytes -= static_cast<std::size_t>(done);
        }
    }

    int m_rank, m_size;
    Nanoseconds m_until;
    std::vector<int> m_sockets;
    std::array<char, longestRankSecret> m_secret{};
    std::vector<Newcomer> m_newcomers;
    int m_otherSecrets = 0;
    int m_listener = -1, m_ownPort = 0;
};

} // namespace

std::unique_ptr<Mesh> connectSocketMesh(int rank, int size, const std::string& address, int port,
                                        const std::string& secret, Nanoseconds deadline)
{
    Bootstrap bootstrap(rank, size, secret, deadline);
    return createSocketMesh(rank, rank == 0 ? bootstrap.lead(address, port) : bootstrap.follow(address, port));
}

} // namespace pipewright
