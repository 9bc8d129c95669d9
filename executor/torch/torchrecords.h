// SPDX-License-Identifier: GPL-3.0-or-later
// Turns the lines that ranks report into records of a trace: blocks and memory of every step, where a rank is, what
// failed. The other end is executor/torch/pipewright/record.py. A step is written once all ranks have ended it.
//
// A transfer is recorded only if its receiver waited for it, since its arrival is not seen otherwise. It lasts from the
// end of the block that made the value to the end of the wait. What joins the copies of a stage that a design counts is
// matched by its order: the first gather of a stage in a step is its first in the Program.
#pragma once

#include "core/program/program.h"
#include "executor/run/run.h"
#include "traces/store/tracewriter.h"

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace pipewright {

struct RankFailure {
    int rank = 0;
    std::string where, what, hint;
    bool consequence = false; ///< only reports that another rank is gone
};

class TorchRecords {
public:
    /// `sink` gets the records; null: they are only checked. With several replicas of the pipeline, whose ranks follow
    /// replica by replica, only the first replica is recorded, and of the others it is checked that they ran the same.
    TorchRecords(const Program& program, RecordSink* sink, int replicas = 1);

    /// Throws Error (where = the rank) for a line that is not a report, or for a block that is not this rank's.
    void take(int rank, const std::string& line);

    bool begun() const; ///< all ranks are connected
    bool isDone(int rank) const { return m_ranks[rank].done; }
    int stepsDone() const { return static_cast<int>(m_result.stepTimes.size()); }
    std::string placeOf(int rank) const; ///< "F0.3", "the end"
    std::string whereRanksAre() const;   ///< "rank 0 at F0.3, rank 1 at B1.2"
    const std::vector<RankFailure>& failures() const { return m_failures; }
    std::vector<std::string> deviceNames() const;
    Diagnostics takeFound(); ///< what a rank found in the module, once
    /// Steps, losses, peaks, the gradient check, clocks and notes.
    RunResult& result() { return m_result; }

private:
    struct Rank {
        bool here = false, done = false;
        std::string at = "the start", name;
    };
    /// A rank's wait for a value, until it arrived.
    struct Wait {
        TaskId transfer = none;
        Nanoseconds start = 0, end = 0;
    };
    using Collectives = std::pair<TaskKind, int>; ///< gathers, or sums of gradients, of a stage
    struct Step {
        int ended = 0, losses = 0;
        std::map<TaskId, Nanoseconds> blockEnds; ///< to find the end of the block that made a value
        std::vector<Wait> waits;
        std::map<std::pair<int, Collectives>, std::size_t> collectives; ///< seen so far, by rank
        Nanoseconds start = 0, end = 0;
        Nanoseconds coreWait = 0; ///< on average, of the ranks that have ended; -1: one of them does not know
        double loss = std::numeric_limits<double>::quiet_NaN();
    };
    TaskId taskOf(int rank, const std::string& op, int stage, int microbatch) const;
    void takeBlocks(int rank, int step, const void* json);
    std::vector<TaskRecord> collectivesOf(int rank, int step, const void* json);
    void noteMissing(const Step& step);
    std::vector<GpuRecord> exchangesOf(int rank, int step, const void* json) const;
    std::vector<GpuRecord> activitiesOf(int rank, int step, const void* json) const;
    bool isRecorded(int rank) const { return rank < m_result.devices; }
    int deviceOf(int rank) const { return rank % m_result.devices; }
    void writeTransfers(int step);
    void noteLoss(double loss);

    RecordSink* m_sink;
    std::map<std::tuple<char, int, int>, TaskId> m_tasks;     ///< by letter, stage and microbatch
    std::map<std::tuple<char, int, int>, TaskId> m_transfers; ///< by F or I, and the block that needs the value
    std::map<Collectives, std::vector<TaskId>> m_collectives; ///< in the order of their device
    std::vector<int> m_deviceOf, m_receiverOf;                ///< by task
    std::vector<TaskId> m_producer;                           ///< of a transfer: the block that makes its value
    std::vector<Rank> m_ranks;
    std::map<int, Step> m_steps; ///< those that not all ranks have ended
    std::vector<RankFailure> m_failures;
    Diagnostics m_found; ///< of the look at the module, not taken yet
    bool m_lossNoted = false, m_missingNoted = false;
    RunResult m_result;
};

} // namespace pipewright
