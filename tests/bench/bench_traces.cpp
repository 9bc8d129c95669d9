// SPDX-License-Identifier: GPL-3.0-or-later
// How fast records become rows, commits included, and how fast a step is read back.
#include "core/predict/designbuilder.h"
#include "core/predict/predict.h"
#include "traces/tracereader.h"

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>

using namespace pipewright;

namespace {

constexpr int steps = 40;

Design benchmarkDesign()
{
    DesignRequest request;
    request.family = "zb-h1";
    request.devices = 16;
    request.microbatches = 256;
    return makeDesign(request);
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

void write(const std::string& path, const Design& design, const Prediction& prediction)
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
        removeTrace(scratch.trace());
        state.ResumeTiming();
    }
    state.SetItemsProcessed(state.iterations() * steps * static_cast<std::int64_t>(prediction.program.tasks.size()));
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
        benchmark::DoNotOptimize(reader.timeline(prediction.program, step++ % steps));
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(prediction.program.tasks.size()));
}

BENCHMARK(recordsIntoTheStore)->Unit(benchmark::kMillisecond);
BENCHMARK(aStepReadBack)->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
