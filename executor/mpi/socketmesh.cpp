// SPDX-License-Identifier: GPL-3.0-or-later
// A loop over ppoll() with one socket per process: headers and contents are read and written as far as each socket
// allows.
#include "executor/mpi/socketmesh.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <numeric>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace pipewright {

Bytes totalBytes(const std::vector<Region>& regions)
{
    return std::accumulate(regions.begin(), regions.end(), Bytes{0},
                           [](Bytes sum, const Region& region) { return sum + region.bytes; });
}

namespace {

struct Outgoing {
    Message message;
    std::vector<Region> payload;
    std::uint64_t ticket = 0;
    Bytes done = 0; ///< bytes written, the header's first
};

struct Peer {
    int socket = -1;
    std::deque<Outgoing> queue;
    Message incoming;
    Bytes headerRead = 0;
    std::vector<Region> places;
    Bytes payloadRead = 0;
    bool unwritable = false; ///< its end is closed; what it sent before can still be read
    bool lostToldOf = false;
};

/// The part of `regions` that is left after `done` bytes.
std::vector<iovec> rest(const Message& header, const std::vector<Region>& regions, Bytes done)
{
    std::vector<iovec> parts;
    const auto add = [&](const void* data, Bytes bytes) {
        if (done >= bytes) {
            done -= bytes;
            return;
        }
        parts.push_back(
            {const_cast<char*>(static_cast<const char*>(data)) + done, static_cast<std::size_t>(bytes - done)});
        done = 0;
    };
    add(&header, sizeof(Message));
    for (const Region& region : regions)
        add(region.data, region.bytes);
    if (parts.size() > 64) // of IOV_MAX; the rest goes next time
        parts.resize(64);
    return parts;
}

class SocketMesh final : public Mesh {
public:
    SocketMesh(int rank, std::vector<int> sockets)
        : m_rank(rank), m_peers(sockets.size()), m_wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))
    {
        for (std::size_t r = 0; r < sockets.size(); ++r) {
            m_peers[r].socket = sockets[r];
            if (sockets[r] < 0)
                continue;
            fcntl(sockets[r], F_SETFL, fcntl(sockets[r], F_GETFL) | O_NONBLOCK);
            const int on = 1;
            setsockopt(sockets[r], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // fails on local sockets, which need none
        }
    }
    ~SocketMesh() override
    {
        for (Peer& peer : m_peers)
            drop(peer);
        ::close(m_wake);
    }
    SocketMesh(const SocketMesh&) = delete;
    SocketMesh& operator=(const SocketMesh&) = delete;

    int rank() const override { return m_rank; }
    int size() const override { return static_cast<int>(m_peers.size()); }

    void send(int to, Message message, std::vector<Region> payload, std::uint64_t ticket) override
    {
        message.bytes = totalBytes(payload);
        Peer& peer = m_peers[to];
        if (peer.socket >= 0 && !peer.unwritable)
            peer.queue.push_back({message, std::move(payload), ticket, 0});
    }

    bool poll(MeshHandler& handler) override
    {
        bool busy = false;
        for (std::size_t r = 0; r < m_peers.size(); ++r) {
            Peer& peer = m_peers[r];
            if (peer.socket >= 0)
                busy = write(peer, handler) || busy;
            if (peer.socket >= 0)
                busy = read(peer, static_cast<int>(r), handler) || busy;
            if (peer.socket < 0 && static_cast<int>(r) != m_rank && !peer.lostToldOf) {
                peer.lostToldOf = true;
                handler.lost(static_cast<int>(r));
            }
        }
        return busy;
    }

    void idle(Nanoseconds atMost) override
    {
        std::vector<pollfd> wanted{{m_wake, POLLIN, 0}};
        for (const Peer& peer : m_peers)
            if (peer.socket >= 0)
                wanted.push_back({peer.socket, static_cast<short>(peer.queue.empty() ? POLLIN : POLLIN | POLLOUT), 0});
        const timespec limit{static_cast<time_t>(atMost / 1'000'000'000), static_cast<long>(atMost % 1'000'000'000)};
        ppoll(wanted.data(), wanted.size(), &limit, nullptr);
        std::uint64_t count = 0;
        [[maybe_unused]] const auto ignored = ::read(m_wake, &count, sizeof count);
    }

    void wake() override
    {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto ignored = ::write(m_wake, &one, sizeof one);
    }

    void close() override
    {
        for (Peer& peer : m_peers)
            drop(peer);
    }

private:
    static void drop(Peer& peer)
    {
        if (peer.socket >= 0)
            ::close(peer.socket);
        peer.socket = -1;
    }

    static bool write(Peer& peer, MeshHandler& handler)
    {
        bool busy = false;
        while (!peer.queue.empty()) {
            Outgoing& out = peer.queue.front();
            std::vector<iovec> parts = rest(out.message, out.payload, out.done);
            msghdr what{};
            what.msg_iov = parts.data();
            what.msg_iovlen = parts.size();
            const ssize_t written = sendmsg(peer.socket, &what, MSG_NOSIGNAL);
            if (written < 0) {
                if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
                    peer.unwritable = true; // not dropped: its last messages may say why it ended
                    peer.queue.clear();
                }
                return busy;
            }
            busy = true;
            out.done += written;
            if (out.done < static_cast<Bytes>(sizeof(Message)) + out.message.bytes)
                continue;
            const std::uint64_t ticket = out.ticket;
            peer.queue.pop_front();
            handler.sent(ticket);
        }
        return busy;
    }

    static bool read(Peer& peer, int from, MeshHandler& handler)
    {
        bool busy = false;
        for (;;) {
            const Bytes header = sizeof(Message);
            if (peer.headerRead < header || peer.payloadRead < peer.incoming.bytes) {
                const Bytes done = peer.headerRead < header ? peer.headerRead : header + peer.payloadRead;
                // Only the header at first: where the payload goes is not known yet.
                std::vector<iovec> parts =
                    peer.headerRead < header ? rest(peer.incoming, {}, done) : rest(peer.incoming, peer.places, done);
                msghdr what{};
                what.msg_iov = parts.data();
                what.msg_iovlen = parts.size();
                const ssize_t got = recvmsg(peer.socket, &what, 0);
                if (got <= 0) {
                    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
                        drop(peer);
                    return busy;
                }
                busy = true;
                if (peer.headerRead < header) {
                    peer.headerRead += got;
                    if (peer.headerRead == header && peer.incoming.bytes != 0)
                        peer.places = handler.place(from, peer.incoming);
                    if (peer.headerRead == header && totalBytes(peer.places) != peer.incoming.bytes) {
                        drop(peer);
                        return busy;
                    }
                } else {
                    peer.payloadRead += got;
                }
            }
            if (peer.headerRead == header && peer.payloadRead == peer.incoming.bytes) {
                peer.headerRead = peer.payloadRead = 0;
                peer.places.clear();
                handler.received(from, peer.incoming);
            }
        }
    }

    int m_rank;
    std::vector<Peer> m_peers;
    int m_wake;
};

} // namespace

std::unique_ptr<Mesh> createSocketMesh(int rank, std::vector<int> sockets)
{
    return std::make_unique<SocketMesh>(rank, std::move(sockets));
}

} // namespace pipewright
