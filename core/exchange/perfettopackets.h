// SPDX-License-Identifier: GPL-3.0-or-later
// The few packets of a Perfetto trace that are written here: descriptors of processes and tracks, slices, values of
// counters. Written by hand; field numbers are those of protos/perfetto/trace. Long traces are written piece by piece.
#pragma once

#include "core/base/pieces.h"
#include "core/base/units.h"
#include "core/exchange/protobuf.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace pipewright {

class PerfettoPackets {
public:
    enum class Counts { Nothing, Bytes, Unknown };

    /// Keeps a reference.
    explicit PerfettoPackets(const Pieces& to) : m_to(to) {}

    /// `id` is unique among processes and tracks; `pid` is only shown. A process's tracks are shown in the order of
    /// their ranks.
    void process(std::uint64_t id, std::uint64_t pid, std::string_view name);
    /// `counts`: Nothing for a track of slices.
    void track(std::uint64_t id, std::uint64_t process, std::string_view name, std::uint64_t rank, Counts counts);
    /// Slices of a track nest. An arrow goes from a slice with a flow's number to the next slice with that number; the
    /// flow ends at the slice that has it in `lastFlows`. Times below 0 are written as 0.
    void slice(std::uint64_t track, Nanoseconds start, Nanoseconds end, std::string_view category,
               std::string_view name, std::span<const std::uint64_t> flows, std::span<const std::uint64_t> lastFlows);
    void value(std::uint64_t track, Nanoseconds time, std::int64_t value);
    void value(std::uint64_t track, Nanoseconds time, double value);
    /// Writes the rest of the trace.
    void finish();

private:
    void write(ProtoMessage& packet);
    void writeAt(Nanoseconds time, const ProtoMessage& event);

    const Pieces& m_to;
    ProtoMessage m_trace; ///< not yet written
    bool m_first = true;
};

} // namespace pipewright
