// SPDX-License-Identifier: GPL-3.0-or-later
// Where a rank waits for others of its run. All connections that have not proved themselves yet are polled together, so
// a silent one delays no other, and is closed after a while.
#pragma once

#include "executor/mpi/rankproof.h"
#include "executor/mpi/tcp.h"

#include <functional>
#include <optional>
#include <vector>

namespace pipewright {

class RankDoor {
public:
    RankDoor(int rank, int size, const RankKey& key);
    ~RankDoor();
    RankDoor(const RankDoor&) = delete;
    RankDoor& operator=(const RankDoor&) = delete;

    /// Listens at the first of these places where that works; port 0: any. False with errno where none does.
    bool open(std::vector<TcpAddress> places, int port);
    bool isOpen() const { return m_listener >= 0; }
    int port() const { return m_port; }

    struct Guest {
        int rank = 0, socket = -1;
        TcpAddress where{}; ///< that it listens at itself
    };
    /// The next rank that has proved itself, of those that `awaited` says yes to; nothing when none has by `until`.
    std::optional<Guest> admit(const std::function<bool(int rank)>& awaited, Nanoseconds until);
    /// How many came as a rank of this run and could not prove it.
    int refused() const { return m_refused; }

private:
    struct Newcomer;
    enum class Hearing : std::uint8_t { Unfinished, Rank, Stranger };

    void letIn(Nanoseconds now);
    Hearing hear(Newcomer& newcomer, const std::function<bool(int rank)>& awaited);
    Hearing challenge(Newcomer& newcomer, const std::function<bool(int rank)>& awaited);

    const int m_rank, m_size;
    const RankKey m_key;
    int m_listener = -1, m_port = 0, m_refused = 0;
    std::vector<Newcomer> m_newcomers;
};

/// The comer's side: proves to the rank `listener` at the other end of `socket` that this is `rank`, which listens at
/// `port`. False when the other end goes away or says nothing by `until`. Throws Error when it does not know the key.
bool proveAtDoor(int socket, int rank, int listener, int size, int port, const RankKey& key, Nanoseconds until);

} // namespace pipewright
