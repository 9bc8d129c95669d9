// SPDX-License-Identifier: GPL-3.0-or-later
// What follows a step's blocks where no schedule says otherwise: gradients of shared parameters and of replicas are
// summed, and each stage is updated.
#pragma once

#include "core/design/dataflow.h"
#include "core/program/taskwriter.h"

#include <vector>

namespace pipewright {

class StepEnd : TaskWriter {
public:
    using TaskWriter::TaskWriter;

    /// `lastOnDevice`: each device's last task, taken further. `commuted`: shared parameters' gradients are summed
    /// once, here, and not for each microbatch.
    void write(const Dataflow& dataflow, bool commuted, std::vector<TaskId>& lastOnDevice);

private:
    /// One owner of a sum: a stage of a replica.
    struct Owner {
        int stage = 0, replica = 0;
    };
    void addReduction(TaskKind kind, Owner root, Owner other, Bytes bytes, std::vector<TaskId>& lastOnDevice);
};

} // namespace pipewright
