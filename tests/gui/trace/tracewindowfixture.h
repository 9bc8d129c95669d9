// SPDX-License-Identifier: GPL-3.0-or-later
// A trace window on a made-up recording, for tests.
#pragma once

#include "gui/trace/activityview.h"
#include "gui/trace/tracewindow.h"
#include "traces/store/activities.h"

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

namespace pipewright::test {

/// A thread that launches kernels on two devices, inside ranges of a pipeline.
inline TraceData launches()
{
    TraceData data;
    data.tool = "made up";
    data.source = "made-up.json";
    const auto thread = addLane(data, TraceLane::Kind::Thread, 0, 77, 1, -1, "thread 1");
    std::uint32_t correlation = 0;
    for (int device = 0; device < 2; ++device) {
        const auto stream = addLane(data, TraceLane::Kind::Stream, 0, 77, 7, device, "stream 7");
        for (int i = 0; i < 4; ++i) {
            const Nanoseconds start = 10'000 + i * 10'000 + device * 2'000;
            addActivity(data, thread, ActivityKind::Range, "PP:" + std::to_string(device) + "F" + std::to_string(i),
                        start - 2'000, start);
            addActivity(data, thread, ActivityKind::Runtime, "cudaLaunchKernel", start - 1'500, start - 1'000,
                        ++correlation);
            addActivity(data, stream, ActivityKind::Kernel, device == 0 ? "gemm" : "slow gemm", start,
                        start + 5'000 + device * 3'000, correlation);
        }
    }
    data.flows.push_back({1, 2, 15'000, 32'000}); // from the end of the first gemm to the third slow one
    TraceCounter counter;
    counter.device = 0;
    counter.name = "GPU memory";
    counter.time = {0, 20'000};
    counter.value = {1, 5};
    data.counters.push_back(counter);
    data.report.lose("events without a duration", "event 3", 2);
    return data;
}

struct TraceWindowFixture {
    QTemporaryDir folder;
    QString path;
    TraceWindow window;
    QSignalSpy opened{&window, &TraceWindow::opened};
    QSignalSpy failed{&window, &TraceWindow::failed};

    explicit TraceWindowFixture(TraceData data = launches()) : path(folder.filePath(QStringLiteral("trace.db")))
    {
        writeActivities(path.toStdString(), data, {}, true);
        window.resize(1200, 700);
        window.show();
        (void)QTest::qWaitForWindowExposed(&window);
        window.open(path);
    }
    bool isOpen()
    {
        return QTest::qWaitFor([this] { return !opened.isEmpty(); }, 60'000);
    }
    bool isSummed()
    {
        return QTest::qWaitFor([this] { return window.isSummed(); }, 60'000);
    }
    ActivityView& view() { return window.view(); }
    /// The first slice with this name, lane by lane.
    SliceId slice(const std::string& name, std::size_t nth = 0)
    {
        const StoredActivities& trace = *view().trace();
        for (std::size_t t = 0; t < trace.tracks.size(); ++t)
            for (std::size_t i = 0; i < trace.tracks[t].size(); ++i)
                if (trace.strings[trace.tracks[t].name[i]] == name && nth-- == 0)
                    return {t, i};
        return {};
    }
    void click(SliceId slice)
    {
        QTest::mouseClick(view().viewport(), Qt::LeftButton, {}, view().rectOf(slice).center().toPoint());
    }
};

} // namespace pipewright::test
