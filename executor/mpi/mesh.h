// SPDX-License-Identifier: GPL-3.0-or-later
// Messages between the processes of a run: a small fixed header and optional bytes, which are written straight to where
// the receiver wants them. Messages from one process to another arrive in order. One thread uses a mesh.
#pragma once

#include "executor/runtime/backend.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace pipewright {

struct Message {
    std::uint32_t kind = 0;
    std::uint32_t link = 0, sequence = 0, task = none;
    std::int64_t bytes = 0; ///< that follow; set by Mesh::send
    std::int64_t time = 0;
    std::int64_t a = 0, b = 0;
};

class MeshHandler {
public:
    virtual ~MeshHandler() = default;
    /// Where the bytes after the header are written: regions of `message.bytes` in all. An empty list refuses them, and
    /// the sender then counts as lost.
    virtual std::vector<Region> place(int from, const Message& message) = 0;
    virtual void received(int from, const Message& message) = 0; ///< all bytes have arrived too
    virtual void sent(std::uint64_t ticket) = 0;                 ///< the payload may be overwritten
    virtual void lost(int rank) = 0;                             ///< the process is gone
};

class Mesh {
public:
    virtual ~Mesh() = default;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    /// The payload must stay valid until the handler gets sent(ticket). Does not block.
    virtual void send(int to, Message message, std::vector<Region> payload, std::uint64_t ticket) = 0;
    /// Sends and receives as much as possible now. False when there was nothing to do.
    virtual bool poll(MeshHandler& handler) = 0;
    /// Waits until something may have arrived, wake() was called, or `atMost` has passed.
    virtual void idle(Nanoseconds atMost) = 0;
    virtual void wake() = 0;  ///< from any thread
    virtual void close() = 0; ///< the other processes count this one as lost from now on
};

Bytes totalBytes(const std::vector<Region>& regions);

/// Clamps a time from another process to a range of decades, so that sums of a few such times cannot overflow.
constexpr Nanoseconds plausible(Nanoseconds time)
{
    constexpr Nanoseconds most = Nanoseconds{1} << 60;
    return time < -most ? -most : time > most ? most : time;
}

} // namespace pipewright
