// SPDX-License-Identifier: GPL-3.0-or-later
// What the ranks of a communicator share, between threads and processes alike: memory named by the unique id, with a
// mailbox for every ordered pair of ranks and a board for collectives. Waiting is by looking again and again, so that
// an abort, or a rank that is gone, leaves nobody with a lock. Nothing times out here: NCCL waits for ever.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace standin {

inline constexpr int mostRanks = 16;
inline constexpr std::size_t windowBytes = std::size_t{32} << 10;

/// From one rank to another: full until it is taken.
struct Mailbox {
    std::atomic<std::uint32_t> full;
    std::uint64_t bytes, whole; ///< of this piece, and of the operation
    bool captured;
    std::byte window[windowBytes];
};

/// A rank's place on the board: its part of the present collective.
struct Part {
    std::atomic<std::uint64_t> come; ///< how many barriers it has come to
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
    /// The memory of that name, made by whoever comes first.
    Group(const std::string& name, int rank, int ranks);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    Shared& shared() { return *m_shared; }
    bool aborted() const { return m_aborted; }
    /// Of this rank; the others of the communicator do not know, and wait on.
    void abort() { m_aborted = true; }
    /// Returns when all have joined; from then on nobody else finds the memory, and nothing of it stays behind.
    void join();
    /// Until every rank has come as often. False: aborted.
    bool barrier();

    const int rank, ranks;

private:
    std::string m_name;
    Shared* m_shared = nullptr;
    std::uint64_t m_barriers = 0;
    std::atomic<bool> m_aborted{false};
};

/// Looks again after a short sleep.
void rest();

} // namespace standin
