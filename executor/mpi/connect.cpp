// SPDX-License-Identifier: GPL-3.0-or-later
// Connects the sockets of a mesh over TCP: all ranks come to rank 0, which tells them where the others are; then each
// goes to those of lower rank. Ranks that meet on a loopback address listen there only.
#include "core/base/diagnostic.h"
#include "executor/mpi/rankdoor.h"
#include "executor/mpi/ranksecret.h"
#include "executor/mpi/socketmesh.h"
#include "executor/runtime/steadyclock.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <netinet/in.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace pipewright {

namespace {

[[noreturn]] void give(const std::string& what, const std::string& hint)
{
    throw Error("ranks", what, hint);
}

class Bootstrap {
public:
    Bootstrap(int rank, int size, int port, const std::string& secret, Nanoseconds deadline)
        : m_rank(rank), m_size(size), m_key(rankKey(secret, size, port)), m_until(steadyNow() + deadline),
          m_sockets(static_cast<std::size_t>(size), -1), m_door(rank, size, m_key)
    {
    }
    ~Bootstrap()
    {
        for (const int socket : m_sockets)
            if (socket >= 0)
                close(socket);
    }
    Bootstrap(const Bootstrap&) = delete;
    Bootstrap& operator=(const Bootstrap&) = delete;

    std::vector<int> lead(const std::string& address, int port)
    {
        listen(placesToListen(address), port);
        std::vector<TcpAddress> all(static_cast<std::size_t>(m_size));
        for (int come = 1; come < m_size; ++come) {
            const RankDoor::Guest guest = admit();
            all[static_cast<std::size_t>(guest.rank)] = guest.where;
        }
        for (int r = 1; r < m_size; ++r) // who is gone is noticed when the mesh is used
            sendAll(m_sockets[static_cast<std::size_t>(r)], all.data(), all.size() * sizeof(TcpAddress), m_until);
        return std::move(m_sockets);
    }

    std::vector<int> follow(const std::string& address, int port)
    {
        m_sockets[0] = goToFirst(address, port);
        std::vector<TcpAddress> all(static_cast<std::size_t>(m_size));
        if (!receiveAll(m_sockets[0], all.data(), all.size() * sizeof(TcpAddress), m_until))
            give("rank 0 went away, or has waited in vain for other ranks", "look at what rank 0 says");
        for (int r = 1; r < m_rank; ++r) { // goes to lower ranks; higher ranks come to this one
            m_sockets[static_cast<std::size_t>(r)] = goTo(all[static_cast<std::size_t>(r)], r);
            if (m_sockets[static_cast<std::size_t>(r)] < 0)
                give(fmt::format("rank {} cannot reach rank {}: {}", m_rank, r, std::strerror(errno)),
                     "let the hosts reach each other on all TCP ports");
        }
        for (int r = m_rank + 1; r < m_size; ++r)
            admit();
        return std::move(m_sockets);
    }

private:
    /// All addresses, unless `address` itself shows that all ranks are on this machine. A host's own name does not show
    /// it: Debian maps it to a loopback address on the host itself.
    static std::vector<TcpAddress> placesToListen(const std::string& address)
    {
        std::vector<TcpAddress> here(2);
        auto& four = reinterpret_cast<sockaddr_in&>(here[0].address);
        auto& six = reinterpret_cast<sockaddr_in6&>(here[1].address);
        here[0].length = sizeof four;
        here[1].length = sizeof six;
        four.sin_family = AF_INET;
        four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        six.sin6_family = AF_INET6;
        six.sin6_addr = in6addr_loopback;
        if (address == "localhost")
            return here;
        if (inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1)
            return here[0].isLoopback() ? std::vector{here[0]} : everyAddress();
        if (inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) == 1)
            return here[1].isLoopback() ? std::vector{here[1]} : everyAddress();
        return everyAddress();
    }

    void listen(std::vector<TcpAddress> places, int port)
    {
        if (!m_door.open(std::move(places), port))
            give(fmt::format("cannot listen on port {}: {}", port, std::strerror(errno)),
                 "set MASTER_PORT to another one: the port after it must be free on rank 0's host");
    }

    RankDoor::Guest admit()
    {
        const auto awaited = [this](int rank) {
            return rank > m_rank && m_sockets[static_cast<std::size_t>(rank)] < 0;
        };
        const std::optional<RankDoor::Guest> guest = m_door.admit(awaited, m_until);
        if (!guest)
            give(fmt::format("not all of the {} processes have come; missing are ranks{}{}", m_size, missing(),
                             m_door.refused() == 0
                                 ? std::string()
                                 : fmt::format("; {} came with another secret ({} is to be the same for all)",
                                               m_door.refused(), rankSecretVariable)),
                 "start one process per device, all with the same WORLD_SIZE and MASTER_ADDR");
        m_sockets[static_cast<std::size_t>(guest->rank)] = guest->socket;
        return *guest;
    }

    std::string missing() const
    {
        std::string list;
        for (int r = 0; r < m_size; ++r)
            if (r != m_rank && m_sockets[static_cast<std::size_t>(r)] < 0)
                list += " " + std::to_string(r);
        return list;
    }

    /// -1 with errno when it does not answer.
    int goTo(const TcpAddress& place, int rank)
    {
        const int made = connectTcp(place, m_until);
        if (made < 0)
            return -1;
        try {
            if (!m_door.isOpen()) // reached over loopback, it listens there only: the other ranks come the same way
                listen(ownAddressOf(made).isLoopback() ? std::vector{ownAddressOf(made)} : everyAddress(), 0);
            if (proveAtDoor(made, m_rank, rank, m_size, m_door.port(), m_key, m_until))
                return made;
        } catch (...) {
            close(made);
            throw;
        }
        close(made);
        errno = ECONNRESET;
        return -1;
    }

    int goToFirst(const std::string& address, int port)
    {
        int why = 0;
        do {
            for (const TcpAddress& place : addressesOf(address, port, m_until)) {
                if (const int made = goTo(place, 0); made >= 0)
                    return made;
                why = errno;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(20)); // rank 0 may not listen yet
        } while (steadyNow() < m_until);
        give(fmt::format("rank 0 does not answer at {} port {}: {}", address, port, std::strerror(why)),
             "start rank 0 too, and let the hosts reach each other");
    }

    const int m_rank, m_size;
    const RankKey m_key;
    const Nanoseconds m_until;
    std::vector<int> m_sockets;
    RankDoor m_door;
};

} // namespace

std::unique_ptr<Mesh> connectSocketMesh(int rank, int size, const std::string& address, int port,
                                        const std::string& secret, Nanoseconds deadline)
{
    Bootstrap bootstrap(rank, size, port, secret, deadline);
    return createSocketMesh(rank, rank == 0 ? bootstrap.lead(address, port) : bootstrap.follow(address, port));
}

} // namespace pipewright
