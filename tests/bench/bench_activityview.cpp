// SPDX-License-Identifier: GPL-3.0-or-later
// The bounds on the view of other tools' traces, software rendering at 1920 x 1080: ten million slices are opened from
// the store and painted within 0.5 s, and 99 of 100 frames of a pan or zoom take less than 16 ms. One iteration is one
// frame (bench/frames.h). With all that TraceWindow keeps of ten million records, tables and device times included, the
// process stays below 1 GB.
#include "bench/frames.h"
#include "core/base/freedmemory.h"
#include "gui/trace/activityview.h"
#include "gui/widgets/theme.h"
#include "traces/analysis/activitysummary.h"
#include "traces/analysis/devicetime.h"
#include "traces/store/activities.h"

#include <QApplication>
#include <QTemporaryDir>

#include <benchmark/benchmark.h>

#include <fstream>
#include <map>

using namespace pipewright;

namespace {

constexpr int frames = 300;

const std::string& traceOf(std::size_t slices, TraceData (*make)(std::size_t, int) = test::manyKernels, int lanes = 64)
{
    static QTemporaryDir folder;
    static std::map<std::pair<std::size_t, int>, std::string> paths;
    std::string& path = paths[{slices, lanes}];
    if (path.empty()) {
        path = folder.filePath(QStringLiteral("%1-%2").arg(slices).arg(lanes)).toStdString();
        TraceData data = make(slices, lanes);
        writeActivities(path, data, {}, true);
    }
    return path;
}

/// Resident memory of this process in MB ("VmRSS").
double residentMegabytes()
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmRSS:"))
            return std::stod(line.substr(6)) / 1024;
    return 0;
}

void firstPaint(benchmark::State& state)
{
    const std::string& path = traceOf(static_cast<std::size_t>(state.range(0)));
    for (auto _ : state) {
        ActivityView view;
        view.resize(1920, 1080);
        view.setTrace(std::make_shared<const StoredActivities>(readActivities(path)));
        benchmark::DoNotOptimize(view.grab());
    }
}

void move(benchmark::State& state, void (*step)(ActivityView&, int frame))
{
    ActivityView view;
    view.resize(1920, 1080);
    view.setTrace(
        std::make_shared<const StoredActivities>(readActivities(traceOf(static_cast<std::size_t>(state.range(0))))));
    view.show();
    QApplication::processEvents();
    Frames times(state);
    int frame = 0;
    for (auto _ : state)
        times.take([&] {
            step(view, frame++);
            view.viewport()->repaint();
        });
}

void pan(benchmark::State& state)
{
    move(state, [](ActivityView& view, int frame) {
        if (frame == 0)
            view.showRange(0, view.total() / 50);
        view.panBy(frame % 100 < 50 ? 37 : -37);
    });
}

void zoom(benchmark::State& state)
{
    move(state, [](ActivityView& view, int frame) {
        if (frame % 100 == 0)
            view.showAll();
        view.zoomBy(frame % 100 < 50 ? 1.2 : 1 / 1.2, 900);
    });
}

void addUp(benchmark::State& state)
{
    const StoredActivities trace = readActivities(traceOf(static_cast<std::size_t>(state.range(0))));
    for (auto _ : state)
        benchmark::DoNotOptimize(summarise(trace, 0, std::numeric_limits<Nanoseconds>::max()));
}

/// What TraceWindow does when a trace of ten million launches, kernels and operators is opened, and holds from then on.
void openedWithItsTables(benchmark::State& state)
{
    const std::string& path = traceOf(static_cast<std::size_t>(state.range(0)), test::manyLaunches, 8);
    releaseFreedMemory();
    double most = 0;
    for (auto _ : state) {
        const auto trace = std::make_shared<const StoredActivities>(readActivities(path));
        const LaunchCalls launches(*trace);
        ActivityView view;
        view.resize(1920, 1080);
        view.setTrace(trace);
        benchmark::DoNotOptimize(view.grab());
        const ActivitySummary summary = summarise(*trace, 0, view.total());
        const DeviceTimes times = deviceTimes(*trace, launches, 0, view.total());
        const std::vector<TraceStep> steps = stepsOf(*trace);
        most = std::max(most, residentMegabytes());
        state.counters["devices"] = static_cast<double>(times.devices.size());
        state.counters["steps"] = static_cast<double>(steps.size());
        state.counters["names"] = static_cast<double>(summary.names.size());
    }
    state.counters["process_MB"] = most;
}

BENCHMARK(openedWithItsTables)->Arg(10'000'000)->Iterations(2)->Unit(benchmark::kMillisecond);
BENCHMARK(firstPaint)->Arg(10'000'000)->Iterations(3)->Unit(benchmark::kMillisecond);
BENCHMARK(pan)->Arg(10'000'000)->Iterations(frames)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(zoom)->Arg(10'000'000)->Iterations(frames)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(addUp)->Arg(10'000'000)->Iterations(5)->Unit(benchmark::kMillisecond);

} // namespace

int main(int argc, char** argv)
{
    keepFreedMemory();
    qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(argc, argv);
    Theme::dark().apply(application);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
