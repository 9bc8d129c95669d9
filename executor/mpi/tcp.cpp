// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/mpi/tcp.h"

#include "core/base/diagnostic.h"
#include "executor/runtime/steadyclock.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <thread>
#include <unistd.h>

namespace pipewright {

namespace {

int millisecondsUntil(Nanoseconds until)
{
    return static_cast<int>(std::clamp<Nanoseconds>((until - steadyNow() + 999'999) / 1'000'000, 0, 1'000'000));
}

/// Whether the socket is ready in time.
bool awaits(int socket, short events, Nanoseconds until)
{
    for (;;) {
        pollfd waiting{socket, events, 0};
        const int ready = ::poll(&waiting, 1, millisecondsUntil(until));
        if (ready > 0)
            return true;
        if (ready == 0 && steadyNow() < until)
            continue;
        if (ready < 0 && errno == EINTR)
            continue;
        return false;
    }
}

bool mayComeLater(ssize_t done)
{
    return done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

/// What getaddrinfo says of a host and a port.
struct LookedUp {
    int code = 0;
    std::vector<TcpAddress> found;
};

LookedUp lookUp(const std::string& host, int port, int flags)
{
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    addrinfo* all = nullptr;
    LookedUp looked;
    looked.code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &all);
    if (looked.code != 0)
        return looked;
    for (const addrinfo* each = all; each != nullptr; each = each->ai_next) {
        TcpAddress& place = looked.found.emplace_back();
        std::memcpy(&place.address, each->ai_addr, each->ai_addrlen);
        place.length = each->ai_addrlen;
    }
    freeaddrinfo(all);
    return looked;
}

[[noreturn]] void giveUpName(const std::string& host, const std::string& why)
{
    throw Error("ranks", "MASTER_ADDR " + host + ": " + why, "give a host name or an address of rank 0's host");
}

} // namespace

bool TcpAddress::isLoopback() const
{
    if (address.ss_family == AF_INET)
        return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
    const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

int TcpAddress::port() const
{
    return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                               : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

void TcpAddress::setPort(int port)
{
    (address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                   : reinterpret_cast<sockaddr_in&>(address).sin_port) =
        htons(static_cast<std::uint16_t>(port));
}

std::vector<TcpAddress> addressesOf(const std::string& host, int port, Nanoseconds until)
{
    LookedUp looked = lookUp(host, port, AI_NUMERICHOST);
    if (looked.code == EAI_NONAME) {
        // A name. Whoever has to be asked may not answer, and getaddrinfo has no deadline: a thread of its own asks,
        // and is left behind when it is late.
        std::promise<LookedUp> promise;
        std::future<LookedUp> answer = promise.get_future();
        std::thread([host, port, promise = std::move(promise)]() mutable {
            promise.set_value(lookUp(host, port, 0));
        }).detach();
        if (answer.wait_for(std::chrono::milliseconds(millisecondsUntil(until))) != std::future_status::ready)
            giveUpName(host, "nothing says in time where it is");
        looked = answer.get();
    }
    if (looked.code != 0)
        giveUpName(host, gai_strerror(looked.code));
    return looked.found;
}

std::vector<TcpAddress> everyAddress()
{
    std::vector<TcpAddress> places(2);
    places[0].address.ss_family = AF_INET6;
    places[0].length = sizeof(sockaddr_in6);
    places[1].address.ss_family = AF_INET;
    places[1].length = sizeof(sockaddr_in);
    return places;
}

TcpAddress ownAddressOf(int socket)
{
    TcpAddress place;
    place.length = sizeof place.address;
    getsockname(socket, reinterpret_cast<sockaddr*>(&place.address), &place.length);
    return place;
}

int connectTcp(const TcpAddress& to, Nanoseconds until)
{
    const int made = socket(to.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0)
        return -1;
    int why = 0;
    if (connect(made, reinterpret_cast<const sockaddr*>(&to.address), to.length) != 0) {
        why = errno;
        socklen_t length = sizeof why;
        if (why == EINPROGRESS || why == EINTR) {
            if (!awaits(made, POLLOUT, until))
                why = ETIMEDOUT;
            else if (getsockopt(made, SOL_SOCKET, SO_ERROR, &why, &length) != 0)
                why = errno;
        }
    }
    if (why == 0)
        return made;
    close(made);
    errno = why;
    return -1;
}

int listenTcp(const TcpAddress& at)
{
    const int made = socket(at.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0)
        return -1;
    const int on = 1, off = 0;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at.address.ss_family == AF_INET6)
        setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(made, reinterpret_cast<const sockaddr*>(&at.address), at.length) == 0 && listen(made, SOMAXCONN) == 0)
        return made;
    const int why = errno;
    close(made);
    errno = why;
    return -1;
}

bool sendAll(int socket, const void* from, std::size_t bytes, Nanoseconds until)
{
    const auto* place = static_cast<const char*>(from);
    while (bytes > 0) {
        const ssize_t done = ::send(socket, place, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (mayComeLater(done) ? !awaits(socket, POLLOUT, until) : done <= 0)
            return false;
        place += std::max<ssize_t>(done, 0);
        bytes -= static_cast<std::size_t>(std::max<ssize_t>(done, 0));
    }
    return true;
}

bool receiveAll(int socket, void* to, std::size_t bytes, Nanoseconds until)
{
    auto* place = static_cast<char*>(to);
    while (bytes > 0) {
        const ssize_t done = ::recv(socket, place, bytes, MSG_DONTWAIT);
        if (mayComeLater(done) ? !awaits(socket, POLLIN, until) : done <= 0)
            return false;
        place += std::max<ssize_t>(done, 0);
        bytes -= static_cast<std::size_t>(std::max<ssize_t>(done, 0));
    }
    return true;
}

} // namespace pipewright
