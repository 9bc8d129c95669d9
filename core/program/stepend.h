// SPDX-License-Identifier: GPL-3.0-or-later
// What follows a stage's blocks where no schedule says otherwise: gradients of shared parameters and of replicas are
// summed, and each stage is updated. Sums over replicas stand among the blocks of other stages, as replicasums.h has
// it.
#pragma once

#include "core/design/dataflow.h"
#include "core/program/replicasums.h"
#include "core/program/taskwriter.h"

#include <vector>

namespace pipewright {

class StepEnd : TaskWriter {
public:
    /// Keeps references to all. `commuted`: shared parameters' gradients are summed once, at the end of the step, and
    /// not for each microbatch. `sums` as planReplicaSums() makes them.
    StepEnd(Program& program, const Schedule& schedule, const Costs& costs, const Dataflow& dataflow, bool commuted,
            std::vector<PlannedReplicaSum> sums)
        : TaskWriter(program, schedule, costs), m_dataflow(dataflow), m_commuted(commuted), m_sums(std::move(sums))
    {
    }

    /// Those that begin before this time. `lastOnDevice`: each device's last task, taken further.
    void addSumsBefore(Nanoseconds time, std::vector<TaskId>& lastOnDevice)
    {
        while (m_next < m_sums.size() && m_sums[m_next].at < time)
            addSum(m_sums[m_next++], lastOnDevice);
    }
    /// All that is left, and the updates.
    void write(std::vector<TaskId>& lastOnDevice);

private:
    /// One owner of a sum: a stage of a replica.
    struct Owner {
        int stage = 0, replica = 0;
    };
    void addSum(const PlannedReplicaSum& sum, std::vector<TaskId>& lastOnDevice);
    void addReduction(TaskKind kind, Owner root, Owner other, Bytes bytes, std::vector<TaskId>& lastOnDevice);

    const Dataflow& m_dataflow;
    bool m_commuted;
    std::vector<PlannedReplicaSum> m_sums;
    std::size_t m_next = 0;
};

} // namespace pipewright
