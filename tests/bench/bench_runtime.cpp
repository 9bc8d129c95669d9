// SPDX-License-Identifier: GPL-3.0-or-later
// The overhead of the runtime: its blocks do nothing, so all the time is hand-off. Reported per block, as
// elapsed time and as processor time of all threads (which other work on the machine disturbs less).
#include "core/families/family.h"
#include "core/program/compile.h"
#include "executor/host/hostbackend.h"
#include "executor/runtime/runtime.h"
#include "executor/runtime/timedwork.h"
#include "makers/schedules.h"

#include <benchmark/benchmark.h>

#include <ctime>

namespace {

using namespace pipewright;

struct DiscardingSink final : RecordSink {
    void append(const std::vector<TaskRecord>&) override {}
    void append(const std::vector<MemoryRecord>&) override {}
    void append(const StepRecord&) override {}
    void commit() override {}
};

void handOff(benchmark::State& state, const char* family)
{
    FamilyParameters parameters = test::sized(static_cast<int>(state.range(0)), 128);
    const Schedule schedule = makeSchedule(family, parameters);
    Costs costs = uniformCosts({.saved = 4096, .savedForWeightGrad = 1024}, schedule.stages(), schedule.chunks());
    for (StageCosts& stage : costs.stages)
        stage.output = 4096;
    const Program program = compile(schedule, costs);
    const auto backend = createHostBackend(parameters.devices);
    TimedWork work(taskDurations(program, costs), TimedWork::Pace::Virtual);
    DiscardingSink sink;
    Recorder recorder(sink, parameters.devices, 1 << 16);
    RuntimeOptions options;
    options.eagerSlots = static_cast<int>(state.range(1));
    Runtime runtime(program, *backend, work, &recorder, options);
    int step = 0;
    const std::clock_t begin = std::clock();
    for (auto _ : state) {
        recorder.makeRoom(1 << 13);
        runtime.runStep(step++);
    }
    const double processor = double(std::clock() - begin) / CLOCKS_PER_SEC;
    const auto blocks = static_cast<double>(program.computeCount());
    state.counters["per_block"] =
        benchmark::Counter(blocks, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
    state.counters["processor_per_block"] = processor / (blocks * double(state.iterations()));
    state.counters["dropped"] = static_cast<double>(recorder.dropped());
}

BENCHMARK_CAPTURE(handOff, gpipe, "gpipe")->ArgsProduct({{2, 4, 8}, {0, 4}})->UseRealTime();
BENCHMARK_CAPTURE(handOff, onef1b, "1f1b")->ArgsProduct({{2, 4, 8}, {0, 4}})->UseRealTime();
BENCHMARK_CAPTURE(handOff, zb_h1, "zb-h1")->ArgsProduct({{4}, {0, 4}})->UseRealTime();

} // namespace

BENCHMARK_MAIN();
