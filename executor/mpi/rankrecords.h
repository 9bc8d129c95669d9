// SPDX-License-Identifier: GPL-3.0-or-later
// Joins the records of many processes into one trace, one gradient check and one result: each process sends its records
// to process 0 during the run, with times on process 0's clock; buffers and peaks follow on request.
#pragma once

#include "executor/runtime/heldmemory.h"
#include "executor/runtime/peers.h"
#include "executor/runtime/recorder.h"
#include "executor/runtime/recordercost.h"

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
    /// Process 0 writes the step records for all; this message only says that all records of the step were sent.
    void append(const StepRecord& record) override;
    void append(const std::vector<GpuRecord>& records) override;
    void commit() override {}

private:
    Peers& m_peers;
};

/// For the recorder of process 0: the records of all processes, in order of arrival. A step is passed on as finished
/// only after all records of it from all processes, so that no trace has a finished step with records missing.
class GatheringSink final : public RecordSink {
public:
    GatheringSink(Peers& peers, RecordSink& to)
        : m_peers(peers), m_to(to), m_stepDone(static_cast<std::size_t>(peers.count()), -1)
    {
    }
    void append(const std::vector<TaskRecord>& records) override { m_to.append(records); }
    void append(const std::vector<MemoryRecord>& records) override { m_to.append(records); }
    void append(const StepRecord& record) override;
    void append(const std::vector<GpuRecord>& records) override { m_to.append(records); }
    void commit() override;
    void check() override { m_to.check(); }
    /// The messages since the last call that are not records.
    std::vector<PeerMessage> takeOthers();

private:
    void takeMessages();

    Peers& m_peers;
    RecordSink& m_to;
    std::mutex m_mutex; ///< guards what follows
    std::vector<TaskRecord> m_tasks;
    std::vector<MemoryRecord> m_memory;
    std::vector<GpuRecord> m_gpu;
    std::map<int, std::vector<std::string>> m_gpuNames; ///< by process: the names that its next records use
    std::vector<StepRecord> m_steps;                    ///< not yet handed on, in order
    std::vector<int> m_stepDone;                        ///< by process: the last step of which all records have come
    std::vector<PeerMessage> m_others;
};

/// What a process reports at the end.
struct RankSummary {
    Bytes peak = 0, held = 0, hostPeak = 0;
    HeldMemory memory{};
    std::int64_t dropped = 0;
    RecorderCost recorder{};
};
void postSummary(Peers& peers, const RankSummary& summary);
/// Sends all buffers of that kind on this process's device; `placeOf` says where the host can read them.
void postBuffers(Peers& peers, const Program& program, const std::function<Region(BufferId)>& placeOf, BufferKind kind);
/// Sends which experts the forward of this task visited (executor/training/keptchoices.h).
void postChoices(Peers& peers, TaskId task, std::span<const std::int32_t> choices);
/// On process 0: writes buffers to where `placeOf` says and choices to where `choicesOf` says, and returns the
/// summaries, by process.
std::vector<std::pair<int, RankSummary>>
unpack(const std::vector<PeerMessage>& messages, const std::function<Region(BufferId)>& placeOf,
       const std::function<std::span<std::int32_t>(TaskId task)>& choicesOf = {});

} // namespace pipewright
