// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/perfettopackets.h"

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

// Field numbers, by message.
namespace trace {
constexpr std::uint32_t packet = 1;
}
namespace packet {
constexpr std::uint32_t timestamp = 8, sequence = 10, event = 11, sequenceFlags = 13, descriptor = 60;
}
namespace track {
constexpr std::uint32_t uuid = 1, name = 2, process = 3, parent = 5, counter = 8, childOrdering = 11, rank = 12;
}
namespace process {
constexpr std::uint32_t pid = 1, name = 6;
}
namespace counter {
constexpr std::uint32_t unit = 3;
}
namespace event {
constexpr std::uint32_t type = 9, track = 11, categories = 22, name = 23, counterValue = 30, realValue = 44, flow = 47,
                        lastFlow = 48;
}

enum EventType : std::uint64_t { Begin = 1, End = 2, Counter = 4 };
constexpr std::uint64_t explicitOrder = 3, bytesUnit = 3, stateCleared = 1, sequenceId = 1;

} // namespace

void PerfettoPackets::process(std::uint64_t id, std::uint64_t pid, std::string_view name)
{
    ProtoMessage process, descriptor, packet;
    process.number(process::pid, pid);
    process.text(process::name, name);
    descriptor.number(track::uuid, id);
    descriptor.message(track::process, process);
    descriptor.number(track::childOrdering, explicitOrder);
    packet.message(packet::descriptor, descriptor);
    write(packet);
}

void PerfettoPackets::track(std::uint64_t id, std::uint64_t process, std::string_view name, std::uint64_t rank,
                            Counts counts)
{
    ProtoMessage descriptor, packet;
    descriptor.number(track::uuid, id);
    descriptor.text(track::name, name);
    descriptor.number(track::parent, process);
    descriptor.number(track::rank, rank);
    if (counts != Counts::Nothing) {
        ProtoMessage counter;
        if (counts == Counts::Bytes)
            counter.number(counter::unit, bytesUnit);
        descriptor.message(track::counter, counter);
    }
    packet.message(packet::descriptor, descriptor);
    write(packet);
}

void PerfettoPackets::slice(std::uint64_t track, Nanoseconds start, Nanoseconds end, std::string_view category,
                            std::string_view name, std::span<const std::uint64_t> flows,
                            std::span<const std::uint64_t> lastFlows)
{
    ProtoMessage begin;
    begin.number(event::type, Begin);
    begin.number(event::track, track);
    begin.text(event::categories, category);
    begin.text(event::name, name);
    for (const std::uint64_t flow : flows)
        begin.fixed(event::flow, flow);
    for (const std::uint64_t flow : lastFlows)
        begin.fixed(event::lastFlow, flow);
    writeAt(start, begin);
    ProtoMessage over;
    over.number(event::type, End);
    over.number(event::track, track);
    writeAt(end, over);
}

void PerfettoPackets::value(std::uint64_t track, Nanoseconds time, std::int64_t value)
{
    ProtoMessage event;
    event.number(event::type, Counter);
    event.number(event::track, track);
    event.number(event::counterValue, static_cast<std::uint64_t>(value));
    writeAt(time, event);
}

void PerfettoPackets::value(std::uint64_t track, Nanoseconds time, double value)
{
    ProtoMessage event;
    event.number(event::type, Counter);
    event.number(event::track, track);
    event.real(event::realValue, value);
    writeAt(time, event);
}

void PerfettoPackets::finish()
{
    m_to(std::exchange(m_trace, {}).bytes());
}

void PerfettoPackets::write(ProtoMessage& packet)
{
    packet.number(packet::sequence, sequenceId);
    if (m_first)
        packet.number(packet::sequenceFlags, stateCleared);
    m_first = false;
    m_trace.message(trace::packet, packet);
    if (m_trace.bytes().size() >= PieceBuffer::most) {
        m_to(m_trace.bytes());
        m_trace.clear();
    }
}

void PerfettoPackets::writeAt(Nanoseconds time, const ProtoMessage& event)
{
    ProtoMessage packet;
    packet.number(packet::timestamp, static_cast<std::uint64_t>(std::max<Nanoseconds>(0, time)));
    packet.message(packet::event, event);
    write(packet);
}

} // namespace pipewright
