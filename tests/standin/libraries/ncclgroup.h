// SPDX-License-Identifier: GPL-3.0-or-later
// State shared by the ranks of a communicator, in threads or processes: memory named by the unique id, with a mailbox
// for every ordered pair of ranks and a board for collectives. Ranks wait by polling, so that an abort, or a rank that
// has ended, leaves no lock held. There are no timeouts: NCCL waits for ever.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace standin {

inline constexpr int mostRanks = 16;
inline constexpr std::size_t windowBytes = std::size_t{32} << 10;

/// Carries pieces from one rank to another: full until the receiver takes the piece.
struct Mailbox {
    std::atomic<std::uint32_t> full;
    std::uint64_t bytes, whole; ///< of this piece, and of the operation
    bool captured;
    std::byte window[windowBytes];
};

/// A rank's place on the board: its part of the current collective.
struct Part {
    std::atomic<std::uint64_t> come; ///< number of barriers that it has reached
    std::uint32_t kind, type, root;
    std::uint64_t count;
    bool captured;
    std::byte window[windowBytes];
};

struct Shared {
    std::atomic<std::uint32_t> joined;
    Part parts[mostRanks];
    Mailbox mail[mostRanks][mostRanks];
};

/// One rank's view.
class Group {
public:
    /// A name that no other group has had. A killed process leaves the memory of ranks that waited for others behind,
    /// and a later process may have the same process number: so a part of the name is random.
    static std::string newName();

    /// Opens the memory of this name; the first rank creates it.
    Group(const std::string& name, int rank, int ranks);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    Shared& shared() { return *m_shared; }
    bool aborted() const { return m_aborted; }
    /// Aborts this rank only; the others of the communicator continue to wait.
    void abort() { m_aborted = true; }
    /// Returns when all have joined; then the memory is unlinked, so nothing remains after the processes end.
    void join();
    /// Waits until every rank has reached the same number of barriers. False: aborted.
    bool barrier();

    const int rank, ranks;

private:
    std::string m_name;
    Shared* m_shared = nullptr;
    std::uint64_t m_barriers = 0;
    std::atomic<bool> m_aborted{false};
};

/// A short sleep between polls.
void rest();

} // namespace standin
