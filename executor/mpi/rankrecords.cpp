// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/mpi/rankrecords.h"

#include "core/base/diagnostic.h"
#include "executor/mpi/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace pipewright {

namespace {

enum PeerMessageKind : std::uint32_t { Tasks, Memory, BufferBytes, Summary, GpuNames, Gpu, StepDone, Choices };

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

/// A GpuRecord in transit: its name is an index into the preceding message of names.
struct SentGpuRecord {
    Nanoseconds start, end;
    Bytes bytes;
    std::int64_t thread;
    std::uint64_t graphNode;
    TaskId task;
    std::uint32_t name, correlation;
    std::int32_t step, device, stream, copyKind, toDevice;
    GpuRecord::Kind kind;
};

} // namespace

void PostingSink::append(const std::vector<GpuRecord>& records)
{
    // There are few kernels with many records each, so every name is sent once.
    std::unordered_map<std::string_view, std::uint32_t> numbers;
    std::string names; // each ends with a zero
    std::vector<SentGpuRecord> sent;
    for (const GpuRecord& r : records) {
        const auto [name, isNew] = numbers.try_emplace(r.name, static_cast<std::uint32_t>(numbers.size()));
        if (isNew)
            names.append(r.name, 0, r.name.find('\0')).push_back('\0');
        sent.push_back({r.start, r.end, r.bytes, r.thread, r.graphNode, r.task, name->second, r.correlation, r.step,
                        r.device, r.stream, r.copyKind, r.toDevice, r.kind});
    }
    m_peers.post(GpuNames, 0, std::as_bytes(std::span(names.data(), names.size())));
    m_peers.post(Gpu, 0, bytesOf(sent));
}

void PostingSink::append(const std::vector<TaskRecord>& records)
{
    m_peers.post(Tasks, 0, bytesOf(records));
}

void PostingSink::append(const std::vector<MemoryRecord>& records)
{
    m_peers.post(Memory, 0, bytesOf(records));
}

void PostingSink::append(const StepRecord& record)
{
    m_peers.post(StepDone, static_cast<std::uint32_t>(record.step), {});
}

void GatheringSink::append(const StepRecord& record)
{
    const std::lock_guard lock(m_mutex);
    m_stepDone[static_cast<std::size_t>(m_peers.self())] = record.step; // its recorder wrote the step's records before
    m_steps.push_back(record);
}

void GatheringSink::takeMessages()
{
    for (PeerMessage& message : m_peers.takeMessages()) {
        const Nanoseconds offset = m_peers.clockOffset(message.from);
        if (message.kind == Tasks) {
            for (TaskRecord record : recordsOf<TaskRecord>(message)) {
                record.start = plausible(record.start) + offset;
                record.end = plausible(record.end) + offset;
                m_tasks.push_back(record);
            }
        } else if (message.kind == Memory) {
            for (MemoryRecord record : recordsOf<MemoryRecord>(message)) {
                record.time = plausible(record.time) + offset;
                m_memory.push_back(record);
            }
        } else if (message.kind == GpuNames) {
            std::vector<std::string>& names = m_gpuNames[message.from];
            names.clear();
            std::string_view text(reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size());
            for (std::size_t end = 0; (end = text.find('\0')) != text.npos; text.remove_prefix(end + 1))
                names.emplace_back(text.substr(0, end));
        } else if (message.kind == Gpu) {
            const std::vector<std::string>& names = m_gpuNames[message.from];
            for (const SentGpuRecord& r : recordsOf<SentGpuRecord>(message)) {
                if (r.name >= names.size())
                    throw Error(fmt::format("rank {}", message.from), "sent a record of a GPU's work without its name",
                                "start all ranks with the same version of the program");
                m_gpu.push_back({r.step, r.task, r.kind, names[r.name], r.device, r.stream, plausible(r.start) + offset,
                                 plausible(r.end) + offset, r.bytes, r.copyKind, r.toDevice, r.correlation, r.graphNode,
                                 r.thread, message.from});
            }
        } else if (message.kind == StepDone) {
            int& done = m_stepDone[static_cast<std::size_t>(message.from)];
            done = std::max(done, static_cast<int>(message.number));
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
    if (!m_gpu.empty())
        m_to.append(m_gpu);
    m_tasks.clear();
    m_memory.clear();
    m_gpu.clear();
    const int done = *std::min_element(m_stepDone.begin(), m_stepDone.end());
    const auto open =
        std::find_if(m_steps.begin(), m_steps.end(), [done](const StepRecord& step) { return step.step > done; });
    std::for_each(m_steps.begin(), open, [this](const StepRecord& step) { m_to.append(step); });
    m_steps.erase(m_steps.begin(), open);
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

void postChoices(Peers& peers, TaskId task, std::span<const std::int32_t> choices)
{
    peers.post(Choices, task, std::as_bytes(choices));
}

std::vector<std::pair<int, RankSummary>> unpack(const std::vector<PeerMessage>& messages,
                                                const std::function<Region(BufferId)>& placeOf,
                                                const std::function<std::span<std::int32_t>(TaskId task)>& choicesOf)
{
    std::vector<std::pair<int, RankSummary>> summaries;
    for (const PeerMessage& message : messages) {
        if (message.kind == BufferBytes && !message.bytes.empty()) {
            const Region to = placeOf(message.number);
            if (to.data != nullptr) // null: the program has no such buffer
                std::memcpy(to.data, message.bytes.data(),
                            std::min(message.bytes.size(), static_cast<std::size_t>(to.bytes)));
        }
        if (message.kind == Choices && choicesOf && !message.bytes.empty()) {
            const std::span<std::int32_t> to = choicesOf(message.number);
            std::memcpy(to.data(), message.bytes.data(), std::min(message.bytes.size(), to.size_bytes()));
        }
        if (message.kind == Summary && message.bytes.size() == sizeof(RankSummary)) {
            auto& [from, summary] = summaries.emplace_back(message.from, RankSummary{});
            std::memcpy(&summary, message.bytes.data(), sizeof summary);
        }
    }
    return summaries;
}

} // namespace pipewright
