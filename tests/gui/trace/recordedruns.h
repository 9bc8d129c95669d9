// SPDX-License-Identifier: GPL-3.0-or-later
// Recordings made from a document's prediction, for tests that overlay them on it.
#pragma once

#include "gui/document/document.h"
#include "traces/analysis/replay.h"
#include "traces/store/tracewriter.h"

namespace pipewright {

/// A finished recording in which every task took `slower` times its prediction.
inline QString recordRun(const Document& document, const QString& path, double slower)
{
    const Prediction& prediction = *document.prediction();
    TraceWriter writer(path.toStdString(), document.design(), prediction.program,
                       {"host", "timed", {"a", "b", "c", "d"}, 0});
    std::vector<TaskRecord> records;
    for (TaskId t = 0; t < prediction.program.tasks.size(); ++t) {
        const Nanoseconds start = prediction.timeline.start[t];
        const auto length = static_cast<Nanoseconds>(double(prediction.timeline.end[t] - start) * slower);
        const Task& task = prediction.program.tasks[t];
        records.push_back({t, 0, task.recordedOn(), start, start + length});
    }
    writer.append(records);
    writer.append(StepRecord{0, 0, static_cast<Nanoseconds>(double(prediction.metrics.makespan) * slower), 1.0});
    writer.commit();
    writer.finish(std::vector<Bytes>(prediction.program.devices.size(), 1 << 20), 0, "{}");
    return path;
}

/// One step per factor: the blocks of `device` take longer by it, and later blocks are delayed accordingly.
inline void recordSlowDevice(const Document& document, const QString& path, int device,
                             const std::vector<double>& factors)
{
    const Prediction& prediction = *document.prediction();
    const Program& program = prediction.program;
    TraceWriter writer(path.toStdString(), document.design(), program, {"host", "timed", {"a", "b", "c", "d"}, 0});
    std::vector<Nanoseconds> durations;
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        durations.push_back(prediction.timeline.end[t] - prediction.timeline.start[t]);
    const Replay replay(program, prediction.timeline, durations);
    for (std::size_t step = 0; step < factors.size(); ++step) {
        std::vector<Nanoseconds> longer = replay.duration;
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            if (program.tasks[t].kind == TaskKind::Compute && program.tasks[t].device == device)
                longer[t] = static_cast<Nanoseconds>(double(longer[t]) * factors[step]);
        const Timeline ran = replay.run(longer, replay.lag);
        const Nanoseconds origin = static_cast<Nanoseconds>(step) * 1'000'000'000;
        std::vector<TaskRecord> records;
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            const Task& task = program.tasks[t];
            records.push_back({t, int(step), task.recordedOn(), origin + ran.start[t], origin + ran.end[t]});
        }
        writer.append(records);
        writer.append(StepRecord{int(step), origin, origin + lengthOf(ran), 1.0});
    }
    writer.commit();
    writer.finish(std::vector<Bytes>(program.devices.size(), 1 << 20), 0, "{}");
}

} // namespace pipewright
