// SPDX-License-Identifier: GPL-3.0-or-later
// TCP whose every wait ends: looking up a name, connecting, and sending or receiving a known number of bytes. Times are
// those of steadyNow(). Sockets do not block.
#pragma once

#include "core/base/units.h"

#include <string>
#include <sys/socket.h>
#include <vector>

namespace pipewright {

struct TcpAddress {
    sockaddr_storage address{};
    socklen_t length = 0;

    bool isLoopback() const;
    int port() const;
    void setPort(int port);
};

/// Of a host's name or of its address. Throws Error when there is none, or it is not known by `until`.
std::vector<TcpAddress> addressesOf(const std::string& host, int port, Nanoseconds until);

/// All addresses of this machine, with port 0; IPv6's comes first and takes connections over IPv4 too.
std::vector<TcpAddress> everyAddress();
/// Where a connected socket is on this machine.
TcpAddress ownAddressOf(int socket);

/// A connected socket; -1 with errno when nobody answers, ETIMEDOUT after `until`.
int connectTcp(const TcpAddress& to, Nanoseconds until);
/// A socket that listens; -1 with errno. Connections over IPv4 reach one of IPv6 too.
int listenTcp(const TcpAddress& at);

/// False when the other end is gone, or not done by `until`.
bool sendAll(int socket, const void* from, std::size_t bytes, Nanoseconds until);
bool receiveAll(int socket, void* to, std::size_t bytes, Nanoseconds until);

} // namespace pipewright
