// SPDX-License-Identifier: GPL-3.0-or-later
// The few packets of a Perfetto trace that are written here: descriptors of processes and tracks, slices, values of
// counters. Written by hand; field numbers are those of protos/perfetto/trace. What is long goes on piece by piece.
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

    /// `id` is unique among tracks too; `pid` is only shown. Its tracks come in the order of their ranks.
    void process(std::uint64_t id, std::uint64_t pid, std::string_view name);
    /// `counts`: Nothing for a track of slices.
    void track(std::uint64_t id, std::uint64_t process, std::string_view name, std::uint64_t rank, Counts counts);
    /// Slices of a track nest. Arrows go from a slice with a flow's number to the next one that has it, and end where
    /// it is among `lastFlows`. Times below 0 are written as 0.
    void slice(std::uint64_t track, Nanoseconds start, Nanoseconds end, std::string_view category,
               std::string_view name, std::span<const std::uint64_t> flows, std::span<const std::uint64_t> lastFlows);
    void value(std::uint64_t track, Nanoseconds time, std::int64_t value);
    void value(std::uint64_t track, Nanoseconds time, double value);
    /// Hands on what is left.
    void finish();

private:
    void write(ProtoMessage& packet);
    void writeAt(Nanoseconds time, const ProtoMessage& event);

    const Pieces& m_to;
    ProtoMessage m_trace; ///< what is still to be handed on
    bool m_first = true;
};

} // namespace pipewright
