// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/mpi/rankrecords.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace pipewright {

namespace {

enum PeerMessageKind : std::uint32_t { Tasks, Memory, BufferBytes, Summary };

template<typename Record>
std::span<const std::byte> bytesOf(const std::vector<Record>& records)
{
    static_assert(std::is_trivially_copyable_v<Record>);
    return std::as_bytes(std::span(records));
}

template<typename Record>
std::vector<Record> recordsOf(const PeerMessage& message)
{
    std::vector<Record> records(message.bytes.size() / sizeof(Record));
    if (!records.empty())
        std::memcpy(records.data(), message.bytes.data(), records.size() * sizeof(Record));
    return records;
}

} // namespace

void PostingSink::append(const std::vector<TaskRecord>& records)
{
    m_peers.post(Tasks, 0, bytesOf(records));
}

void PostingSink::append(const std::vector<MemoryRecord>& records)
{
    m_peers.post(Memory, 0, bytesOf(records));
}

void GatheringSink::takeMessages()
{
    for (PeerMessage& message : m_peers.takeMessages()) {
        const Nanoseconds offset = m_peers.clockOffset(message.from);
        if (message.kind == Tasks) {
            for (TaskRecord record : recordsOf<TaskRecord>(message)) {
                record.start += offset;
                record.end += offset;
                m_tasks.push_back(record);
            }
        } else if (message.kind == Memory) {
            for (MemoryRecord record : recordsOf<MemoryRecord>(message)) {
                record.time += offset;
                m_memory.push_back(record);
            }
        } else {
            m_others.push_back(std::move(message));
        }
    }
}

void GatheringSink::commit()
{
    const std::lock_guard lock(m_mutex);
    takeMessages();
    if (!m_tasks.empty())
        m_to.append(m_tasks);
    if (!m_memory.empty())
        m_to.append(m_memory);
    m_tasks.clear();
    m_memory.clear();
    m_to.commit();
}

std::vector<PeerMessage> GatheringSink::takeOthers()
{
    const std::lock_guard lock(m_mutex);
    takeMessages();
    return std::exchange(m_others, {});
}

void postSummary(Peers& peers, const RankSummary& summary)
{
    peers.post(Summary, 0, std::as_bytes(std::span(&summary, 1)));
}

void postBuffers(Peers& peers, const Program& program, const std::function<Region(BufferId)>& placeOf, BufferKind kind)
{
    for (BufferId b = 0; b < program.buffers.size(); ++b)
        if (program.buffers[b].kind == kind && program.buffers[b].device == peers.self()) {
            const Region bytes = placeOf(b);
            peers.post(BufferBytes, b, {bytes.data, static_cast<std::size_t>(bytes.bytes)});
        }
}

std::vector<std::pair<int, RankSummary>> unpack(const std::vector<PeerMessage>& messages,
                                                const std::function<Region(BufferId)>& placeOf)
{
    std::vector<std::pair<int, RankSummary>> summaries;
    for (const PeerMessage& message : messages) {
        if (message.kind == BufferBytes && !message.bytes.empty()) {
            const Region to = placeOf(message.number);
            std::memcpy(to.data, message.bytes.data(),
                        std::min(message.bytes.size(), static_cast<std::size_t>(to.bytes)));
        }
        if (message.kind == Summary && message.bytes.size() == sizeof(RankSummary)) {
            auto& [from, summary] = summaries.emplace_back(message.from, RankSummary{});
            std::memcpy(&summary, message.bytes.data(), sizeof summary);
        }
    }
    return summaries;
}

} // namespace pipewright
