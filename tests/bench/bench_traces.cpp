// SPDX-License-Identifier: GPL-3.0-or-later
// How fast records become rows, commits included, and how fast a step is read back; how fast another tool's slices are
// stored, and the time and memory until ten million of them can be painted.
#include "core/design/designbuilder.h"
#include "core/predict/predict.h"
#include "makers/designs.h"
#include "traces/analysis/calibration.h"
#include "traces/import/chromejson.h"
#include "traces/store/activities.h"
#include "traces/store/activitystore.h"
#include "traces/store/tracereader.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

using namespace pipewright;

namespace {

constexpr int fewSteps = 40;
constexpr std::size_t manyRecords = 10'000'000;

Design benchmarkDesign()
{
    return makeDesign(test::requestFor("zb-h1", 16, 256));
}

class Scratch {
public:
    Scratch()
    {
        char name[] = "/tmp/pipewright-bench-XXXXXX";
        m_folder = mkdtemp(name);
    }
    ~Scratch() { std::filesystem::remove_all(m_folder); }
    std::string trace() const { return m_folder + "/trace.db"; }

private:
    std::string m_folder;
};

void write(const std::string& path, const Design& design, const Prediction& prediction, int steps = fewSteps)
{
    TraceWriter writer(path, design, prediction.program, {"host", "timed", {}, 0});
    std::vector<TaskRecord> records(prediction.program.tasks.size());
    for (int step = 0; step < steps; ++step) {
        const Nanoseconds origin = step * prediction.metrics.makespan;
        for (TaskId id = 0; id < records.size(); ++id)
            records[id] = {id, step, prediction.program.tasks[id].device, origin + prediction.timeline.start[id],
                           origin + prediction.timeline.end[id]};
        writer.append(records);
        writer.append(StepRecord{step, origin, origin + prediction.metrics.makespan, 0});
        writer.commit();
    }
    writer.finish({}, 0, "{}");
}

void recordsIntoTheStore(benchmark::State& state)
{
    const Design design = benchmarkDesign();
    const Prediction prediction = predict(design);
    const Scratch scratch;
    for (auto _ : state) {
        write(scratch.trace(), design, prediction);
        state.PauseTiming();
        std::filesystem::remove(scratch.trace()); // finished: nothing is kept beside it
        state.ResumeTiming();
    }
    state.SetItemsProcessed(state.iterations() * fewSteps * static_cast<std::int64_t>(prediction.program.tasks.size()));
}

void aStepReadBack(benchmark::State& state)
{
    const Design design = benchmarkDesign();
    const Prediction prediction = predict(design);
    const Scratch scratch;
    write(scratch.trace(), design, prediction);
    const TraceReader reader(scratch.trace());
    int step = 0;
    for (auto _ : state)
        benchmark::DoNotOptimize(reader.timeline(prediction.program, step++ % fewSteps));
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(prediction.program.tasks.size()));
}

/// Also reports the time of all threads together: a step is read while the step before it is used.
void costsOfTenMillionRecords(benchmark::State& state)
{
    const Design design = benchmarkDesign();
    const Prediction prediction = predict(design);
    const Scratch scratch;
    const std::size_t tasks = prediction.program.tasks.size();
    const std::size_t steps = (manyRecords + tasks - 1) / tasks;
    write(scratch.trace(), design, prediction, static_cast<int>(steps));
    for (auto _ : state) {
        const TraceReader reader(scratch.trace());
        benchmark::DoNotOptimize(calibrate(design, reader, "bench").costs.stages.data());
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(steps * tasks));
}

/// Resident memory of this process in MB, "VmRSS" now or "VmHWM" at most.
double megabytes(const std::string& what)
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(what + ":"))
            return std::stod(line.substr(what.size() + 1)) / 1024;
    return 0;
}

constexpr std::size_t manySlices = 10'000'000;

void slicesIntoTheStore(benchmark::State& state)
{
    TraceData data = test::manyKernels(manySlices, 16);
    const Scratch scratch;
    for (auto _ : state)
        writeActivities(scratch.trace(), data, {}, true);
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(manySlices));
    state.counters["file_MB"] = static_cast<double>(std::filesystem::file_size(scratch.trace())) / 1e6;
}

/// Opens the store and finds what a window of 1920 pixels shows of every lane.
void tenMillionSlicesToTheFirstPaint(benchmark::State& state)
{
    const Scratch scratch;
    {
        TraceData data = test::manyKernels(manySlices, 16);
        writeActivities(scratch.trace(), data, {}, true);
    }
    const double before = megabytes("VmRSS");
    double opened = 0;
    for (auto _ : state) {
        const StoredActivities stored = readActivities(scratch.trace());
        std::vector<VisibleSlice> visible;
        for (const Track& track : stored.tracks)
            findVisible(track, track.start.front(), track.end.back(), 1920, visible);
        benchmark::DoNotOptimize(visible.data());
        opened = megabytes("VmRSS");
    }
    state.counters["memory_MB"] = opened - before;
    state.counters["process_MB"] = opened;
}

void aFrameOfTenMillionSlices(benchmark::State& state)
{
    const Scratch scratch;
    TraceData data = test::manyKernels(manySlices, 16);
    writeActivities(scratch.trace(), data, {}, true);
    const StoredActivities stored = readActivities(scratch.trace());
    std::vector<VisibleSlice> visible;
    Nanoseconds shift = 0;
    for (auto _ : state) {
        visible.clear();
        shift += 1'000'000;
        for (const Track& track : stored.tracks)
            findVisible(track, shift % track.end.back(), shift % track.end.back() + track.end.back() / 3, 1920,
                        visible);
        benchmark::DoNotOptimize(visible.data());
    }
}

/// As PyTorch's profiler writes it: an operator, its launch, its kernel, and the arrow between them.
std::string kinetoText(std::size_t bytes)
{
    std::string text = "{\"schemaVersion\": 1, \"traceEvents\": [\n";
    for (std::int64_t i = 0; text.size() < bytes; ++i) {
        const std::string number = std::to_string(i), time = std::to_string(i * 10) + ".125";
        text += "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::addmm\", \"pid\": 4242, \"tid\": "
                "4242,\n    \"ts\": "
                + time + ", \"dur\": 8.250,\n    \"args\": {\n      \"External id\": " + number
                + ",\"Record function id\": 0, \"Ev Idx\": " + number + "\n    }\n  },\n";
        text += "  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 4242, "
                "\"tid\": 4242,\n    \"ts\": "
                + time + ", \"dur\": 3.125,\n    \"args\": {\n      \"External id\": " + number
                + ", \"cbid\": 211, \"correlation\": " + number + "\n    }\n  },\n";
        text +=
            "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
            "\"ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nn\", \"pid\": 0, "
            "\"tid\": 7,\n    \"ts\": "
            + std::to_string(i * 10 + 4) + ".000, \"dur\": 5.000,\n    \"args\": {\n      \"External id\": " + number
            + ",\n      \"queued\": 0, \"device\": 0, \"context\": 1,\n      \"stream\": 7, \"correlation\": " + number
            + ",\n      \"registers per thread\": 128,\n      \"shared memory\": 49152,\n      \"blocks per SM\": "
              "1.5,\n      "
              "\"warps per SM\": 12,\n      \"grid\": [32, 8, 1],\n      \"block\": [256, 1, 1],\n      \"est. "
              "achieved occupancy %\": 25\n    }\n  },\n";
        text += "  {\n    \"ph\": \"s\", \"id\": " + number + ", \"pid\": 4242, \"tid\": 4242, \"ts\": " + time
                + ",\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  },\n  {\n    \"ph\": \"f\", \"id\": " + number
                + ", \"pid\": 0, \"tid\": 7, \"ts\": " + std::to_string(i * 10 + 4)
                + ".000,\n    \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  },\n";
    }
    return text + "{}]}";
}

/// Processor time so far in seconds, of the calling thread or of the process.
double processorTime(clockid_t of)
{
    timespec now{};
    clock_gettime(of, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// As `import` does it: from a file, with the second thread. On idle cores it takes as long as the busier thread
/// (`busier_MBps`); `cpu_MBps` is for both together.
void chromeJsonIntoMemory(benchmark::State& state)
{
    const std::string text = kinetoText(200'000'000);
    const Scratch scratch;
    std::ofstream(scratch.trace(), std::ios::binary) << text;
    double process = 0, busier = 0;
    for (auto _ : state) {
        const double processBefore = processorTime(CLOCK_PROCESS_CPUTIME_ID);
        const double ownBefore = processorTime(CLOCK_THREAD_CPUTIME_ID);
        const TraceData data = importChromeJson(*openBytes(scratch.trace()), "bench");
        const double all = processorTime(CLOCK_PROCESS_CPUTIME_ID) - processBefore;
        const double own = processorTime(CLOCK_THREAD_CPUTIME_ID) - ownBefore;
        process += all;
        busier += std::max(own, all - own);
        benchmark::DoNotOptimize(data.activities.data());
        state.counters["slices"] = static_cast<double>(data.activities.size());
    }
    const double megabytesRead = 1e-6 * static_cast<double>(text.size()) * static_cast<double>(state.iterations());
    state.counters["cpu_MBps"] = megabytesRead / process;
    state.counters["busier_MBps"] = megabytesRead / busier;
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

BENCHMARK(chromeJsonIntoMemory)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(3);
BENCHMARK(slicesIntoTheStore)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(tenMillionSlicesToTheFirstPaint)->Unit(benchmark::kMillisecond)->Iterations(3);
BENCHMARK(aFrameOfTenMillionSlices)->Unit(benchmark::kMicrosecond);
BENCHMARK(costsOfTenMillionRecords)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->Iterations(1);
BENCHMARK(recordsIntoTheStore)->Unit(benchmark::kMillisecond);
BENCHMARK(aStepReadBack)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
