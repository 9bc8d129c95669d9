// SPDX-License-Identifier: GPL-3.0-or-later
// How the sockets of a mesh come about over TCP.
#include "core/base/diagnostic.h"
#include "executor/mpi/socketmesh.h"
#include "executor/runtime/clock.h"

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace pipewright {

namespace {

/// What a rank says first on every connection.
struct Introduction {
    std::uint32_t magic = 0x50577231; ///< "PWr1"
    std::int32_t rank = 0, size = 0;
    std::int32_t port = 0; ///< where it listens itself
};

/// Where a rank can be reached, as rank 0 saw it.
struct Whereabouts {
    sockaddr_storage address{};
    socklen_t length = 0;
};

[[noreturn]] void give(const std::string& what, const std::string& hint)
{
    throw Error("ranks", what, hint);
}

class Bootstrap {
public:
    Bootstrap(int rank, int size, Nanoseconds deadline)
        : m_rank(rank), m_size(size), m_until(steadyNow() + deadline), m_sockets(static_cast<std::size_t>(size), -1)
    {
    }
    ~Bootstrap()
    {
        for (const int socket : m_sockets)
            if (socket >= 0)
                close(socket);
        if (m_listener >= 0)
            close(m_listener);
    }
    Bootstrap(const Bootstrap&) = delete;
    Bootstrap& operator=(const Bootstrap&) = delete;

    std::vector<int> lead(int port)
    {
        listenOn(port);
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
        listenOn(0);
        sockaddr_in6 own{};
        socklen_t length = sizeof own;
        getsockname(m_listener, reinterpret_cast<sockaddr*>(&own), &length);
        m_ownPort = ntohs(own.sin6_port);
        m_sockets[0] = connectByName(address, port);
        std::vector<Whereabouts> all(static_cast<std::size_t>(m_size));
        readAll(m_sockets[0], all.data(), all.size() * sizeof(Whereabouts));
        for (int r = 1; r < m_rank; ++r) { // to those before; those behind come here
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

    void listenOn(int port)
    {
        m_listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int on = 1, off = 0;
        setsockopt(m_listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        setsockopt(m_listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        sockaddr_in6 address{};
        address.sin6_family = AF_INET6;
        address.sin6_port = htons(static_cast<std::uint16_t>(port));
        if (m_listener < 0 || bind(m_listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0
            || listen(m_listener, m_size) != 0)
            give("cannot listen on port " + std::to_string(port) + ": " + std::strerror(errno),
                 "set MASTER_PORT to another one: the port after it must be free on rank 0's host");
    }

    Introduction acceptOne(Whereabouts& where)
    {
        for (;;) {
            pollfd waiting{m_listener, POLLIN, 0};
            if (::poll(&waiting, 1, millisecondsLeft()) <= 0)
                give("not all of the " + std::to_string(m_size) + " processes have come; missing are ranks" + missing(),
                     "start one process per device, all with the same WORLD_SIZE and MASTER_ADDR");
            where.length = sizeof where.address;
            const int come =
                accept4(m_listener, reinterpret_cast<sockaddr*>(&where.address), &where.length, SOCK_CLOEXEC);
            Introduction who;
            if (come < 0)
                continue;
            const Introduction expected;
            if (!readAll(come, &who, sizeof who, false) || who.magic != expected.magic || who.size != m_size
                || who.rank <= 0 || who.rank >= m_size || m_sockets[who.rank] >= 0) {
                close(come); // a stranger
                continue;
            }
            m_sockets[who.rank] = come;
            return who;
        }
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
            Introduction self;
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

    bool readAll(int socket, void* to, std::size_t bytes, bool orThrow = true)
    {
        auto* place = static_cast<char*>(to);
        while (bytes > 0) {
            pollfd waiting{socket, POLLIN, 0};
            const ssize_t got = ::poll(&waiting, 1, millisecondsLeft()) > 0 ? recv(socket, place, bytes, 0) : -1;
            if (got <= 0) {
                if (orThrow)
                    give("rank 0 went away, or has waited in vain for other ranks", "look at what rank 0 says");
                return false;
            }
            place += got;
            bytes -= static_cast<std::size_t>(got);
        }
        return true;
    }

    static void writeAll(int socket, const void* from, std::size_t bytes)
    {
        const auto* place = static_cast<const char*>(from);
        while (bytes > 0) {
            const ssize_t done = ::send(socket, place, bytes, MSG_NOSIGNAL);
            if (done <= 0)
                return; // the other side's end shows when it is read from
            place += done;
            bytes -= static_cast<std::size_t>(done);
        }
    }

    int m_rank, m_size;
    Nanoseconds m_until;
    std::vector<int> m_sockets;
    int m_listener = -1, m_ownPort = 0;
};

} // namespace

std::unique_ptr<Mesh> connectSocketMesh(int rank, int size, const std::string& address, int port, Nanoseconds deadline)
{
    Bootstrap bootstrap(rank, size, deadline);
    return createSocketMesh(rank, rank == 0 ? bootstrap.lead(port) : bootstrap.follow(address, port));
}

} // namespace pipewright
