// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/mpi/rankrecords.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace pipewright {

namespace {

enum ParcelKind : std::uint32_t { Tasks, Memory, BufferBytes, Summary };

template<typename Record>
std::span<const std::byte> bytesOf(const std::vector<Record>& records)
{
    static_assert(std::is_trivially_copyable_v<Record>);
    return std::as_bytes(std::span(records));
}

template<typename Record>
std::vector<Record> recordsOf(const Parcel& parcel)
{
    std::vector<Record> records(parcel.bytes.size() / sizeof(Record));
    if (!records.empty())
        std::memcpy(records.data(), parcel.bytes.data(), records.size() * sizeof(Record));
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

void GatheringSink::takeParcels()
{
    for (Parcel& parcel : m_peers.takeParcels()) {
        const Nanoseconds offset = m_peers.clockOffset(parcel.from);
        if (parcel.kind == Tasks) {
            for (TaskRecord record : recordsOf<TaskRecord>(parcel)) {
                record.start += offset;
                record.end += offset;
                m_tasks.push_back(record);
            }
        } else if (parcel.kind == Memory) {
            for (MemoryRecord record : recordsOf<MemoryRecord>(parcel)) {
                record.time += offset;
                m_memory.push_back(record);
            }
        } else {
            m_others.push_back(std::move(parcel));
        }
    }
}

void GatheringSink::commit()
{
    const std::lock_guard lock(m_mutex);
    takeParcels();
    if (!m_tasks.empty())
        m_to.append(m_tasks);
    if (!m_memory.empty())
        m_to.append(m_memory);
    m_tasks.clear();
    m_memory.clear();
    m_to.commit();
}

std::vector<Parcel> GatheringSink::takeOthers()
{
    const std::lock_guard lock(m_mutex);
    takeParcels();
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

std::vector<std::pair<int, RankSummary>> unpack(const std::vector<Parcel>& parcels,
                                                const std::function<Region(BufferId)>& placeOf)
{
    std::vector<std::pair<int, RankSummary>> summaries;
    for (const Parcel& parcel : parcels) {
        if (parcel.kind == BufferBytes && !parcel.bytes.empty()) {
            const Region to = placeOf(parcel.number);
            std::memcpy(to.data, parcel.bytes.data(),
                        std::min(parcel.bytes.size(), static_cast<std::size_t>(to.bytes)));
        }
        if (parcel.kind == Summary && parcel.bytes.size() == sizeof(RankSummary)) {
            auto& [from, summary] = summaries.emplace_back(parcel.from, RankSummary{});
            std::memcpy(&summary, parcel.bytes.data(), sizeof summary);
        }
    }
    return summaries;
}

} // namespace pipewright
