// SPDX-License-Identifier: GPL-3.0-or-later
// One trace, one gradient check, one result of many processes: what each records goes to process 0 while the
// run goes on, stamped with process 0's clock there; buffers and peaks follow when they are asked for.
#pragma once

#include "executor/runtime/heldmemory.h"
#include "executor/runtime/peers.h"
#include "executor/runtime/recorder.h"

#include <functional>
#include <map>
#include <mutex>
#include <span>

namespace pipewright {

/// For the recorder of every process but 0.
class PostingSink final : public RecordSink {
public:
    explicit PostingSink(Peers& peers) : m_peers(peers) {}
    void append(const std::vector<TaskRecord>& records) override;
    void append(const std::vector<MemoryRecord>& records) override;
    void append(const StepRecord&) override {} // process 0's are everyone's
    void append(const std::vector<GpuRecord>& records) override;
    void commit() override {}

private:
    Peers& m_peers;
};

/// For the recorder of process 0: everyone's records, in the order in which they come.
class GatheringSink final : public RecordSink {
public:
    GatheringSink(Peers& peers, RecordSink& to) : m_peers(peers), m_to(to) {}
    void append(const std::vector<TaskRecord>& records) override { m_to.append(records); }
    void append(const std::vector<MemoryRecord>& records) override { m_to.append(records); }
    void append(const StepRecord& record) override { m_to.append(record); }
    void append(const std::vector<GpuRecord>& records) override { m_to.append(records); }
    void commit() override;
    /// The messages that are no records, since the last call.
    std::vector<PeerMessage> takeOthers();

private:
    void takeMessages();

    Peers& m_peers;
    RecordSink& m_to;
    std::mutex m_mutex; ///< guards what follows
    std::vector<TaskRecord> m_tasks;
    std::vector<MemoryRecord> m_memory;
    std::vector<GpuRecord> m_gpu;
    std::map<int, std::vector<std::string>> m_gpuNames; ///< by process: of its next records
    std::vector<PeerMessage> m_others;
};

/// What a process tells at the end.
struct RankSummary {
    Bytes peak = 0, held = 0;
    HeldMemory memory{};
    std::int64_t dropped = 0;
};
void postSummary(Peers& peers, const RankSummary& summary);
/// All buffers of that kind on the own device; `placeOf` says where the host can read them.
void postBuffers(Peers& peers, const Program& program, const std::function<Region(BufferId)>& placeOf, BufferKind kind);
/// Process 0: puts buffers where `placeOf` says, and returns the summaries, by process.
std::vector<std::pair<int, RankSummary>> unpack(const std::vector<PeerMessage>& messages,
                                                const std::function<Region(BufferId)>& placeOf);

} // namespace pipewright
