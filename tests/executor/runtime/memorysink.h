// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps what a run records, for tests to look at.
#pragma once

#include "executor/runtime/recorder.h"

#include <vector>

namespace pipewright::test {

struct MemorySink final : RecordSink {
    void append(const std::vector<TaskRecord>& records) override
    {
        tasks.insert(tasks.end(), records.begin(), records.end());
    }
    void append(const std::vector<MemoryRecord>& records) override
    {
        memory.insert(memory.end(), records.begin(), records.end());
    }
    void append(const StepRecord& record) override { steps.push_back(record); }
    void commit() override {}
    std::vector<TaskRecord> tasks;
    std::vector<MemoryRecord> memory;
    std::vector<StepRecord> steps;
};

} // namespace pipewright::test
