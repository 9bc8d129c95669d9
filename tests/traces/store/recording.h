// SPDX-License-Identifier: GPL-3.0-or-later
// A small design, its program, and a recording of it that is made up from a timeline.
#pragma once

#include "core/predict/evaluator.h"
#include "core/predict/predict.h"
#include "errorof.h"
#include "makers/designs.h"
#include "traces/store/tracewriter.h"

#include <QString>
#include <QTemporaryDir>

namespace pipewright::test {

inline Design smallDesign(const char* family = "1f1b", int devices = 2, int microbatches = 4)
{
    DesignRequest request = requestFor(family, devices, microbatches);
    request.transfer = 100'000;
    return makeDesign(request);
}

inline TraceHeader smallHeader()
{
    return {"host", "timed", {"thread 0", "thread 1"}, 1'700'000'000'000'000'000};
}

/// The records of one step that ran exactly as the timeline says, from clock time `origin` on.
inline std::vector<TaskRecord> recordsOf(const Program& program, const Timeline& timeline, int step, Nanoseconds origin)
{
    std::vector<TaskRecord> records;
    for (TaskId id = 0; id < program.tasks.size(); ++id) {
        const Task& task = program.tasks[id];
        const int device = task.recordedOn();
        records.push_back({id, step, device, origin + timeline.start[id], origin + timeline.end[id]});
    }
    return records;
}

/// A folder that is gone after the test, and file names in it.
class Folder {
public:
    std::string operator/(const char* name) const { return m_folder.filePath(QString::fromUtf8(name)).toStdString(); }

private:
    QTemporaryDir m_folder;
};

} // namespace pipewright::test
