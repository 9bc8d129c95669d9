// SPDX-License-Identifier: GPL-3.0-or-later
// One trace, one gradient check, one result of many processes: what each records goes to process 0 while the
// run goes on, stamped with process 0's clock there; buffers and peaks follow when they are asked for.
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
    /// Process 0's are everyone's; this says that all records of the step are on their way.
    void append(const StepRecord& record) override;
    void append(const std::vector<GpuRecord>& records) override;
    void commit() override {}

private:
    Peers& m_peers;
};

/// For the recorder of process 0: everyone's records, in the order in which they come. A step is handed on as finished
/// when all of everyone's records of it have been, so that no trace has finished steps of which some are missing.
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
    std::vector<StepRecord> m_steps;                    ///< not yet handed on, in order
    std::vector<int> m_stepDone;                        ///< by process: the last step of which all records have come
    std::vector<PeerMessage> m_others;
};

/// What a process tells at the end.
struct RankSummary {
    Bytes peak = 0, held = 0, hostPeak = 0;
    HeldMemory memory{};
    std::int64_t dropped = 0;
    RecorderCost recorder{};
};
void postSummary(Peers& peers, const RankSummary& summary);
/// All buffers of that kind on the own device; `placeOf` says where the host can read them.
void postBuffers(Peers& peers, const Program& program, const std::function<Region(BufferId)>& placeOf, BufferKind kind);
/// Which experts the forward of that number visited (executor/training/keptchoices.h).
void postChoices(Peers& peers, TaskId task, std::span<const std::int32_t> choices);
/// Process 0: puts buffers where `placeOf` says and choices where `choicesOf` does, and returns the summaries, by
/// process.
std::vector<std::pair<int, RankSummary>>
unpack(const std::vector<PeerMessage>& messages, const std::function<Region(BufferId)>& placeOf,
       const std::function<std::span<std::int32_t>(TaskId task)>& choicesOf = {});

} // namespace pipewright
