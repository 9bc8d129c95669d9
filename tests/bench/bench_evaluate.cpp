// SPDX-License-Identifier: GPL-3.0-or-later
// The bounds on the predictor: 196,608 blocks (64 devices x 1,024 microbatches x F, I, W) and the
// transfers between them, re-evaluated in at most 1.5 ms, and from design to Timeline with memory and metrics in at
// most 35 ms. The measured times are in README.md.
#include "core/base/freedmemory.h"
#include "core/families/family.h"
#include "core/predict/evaluator.h"
#include "core/predict/orderpreview.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "makers/designs.h"
#include "traces/analysis/replay.h"

#include <benchmark/benchmark.h>

#include <numeric>

using namespace pipewright;

namespace {

void evaluateAgain(benchmark::State& state, const Program& program, const Costs& costs)
{
    const Evaluator evaluator(program, costs);
    Timeline timeline;
    for (auto _ : state) {
        evaluator.evaluate(timeline);
        benchmark::DoNotOptimize(timeline.end.data());
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(program.tasks.size()));
}

void reEvaluateFixedOrder(benchmark::State& state)
{
    const Design d = test::unroundDesign("zb-h1", static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
    const Program program = compile(d.schedule, d.costs);
    evaluateAgain(state, program, d.costs);
}
BENCHMARK(reEvaluateFixedOrder)->Args({4, 8})->Args({16, 256})->Args({64, 1024})->Unit(benchmark::kMicrosecond);

void reEvaluateWithHostGaps(benchmark::State& state)
{
    Design d = test::unroundDesign("zb-h1", 64, 1024);
    const Program program = compile(d.schedule, d.costs);
    d.costs.hostGaps.assign(64, {});
    for (HostGaps& gaps : d.costs.hostGaps)
        gaps.before.fill(10'000);
    evaluateAgain(state, program, d.costs);
}
BENCHMARK(reEvaluateWithHostGaps)->Unit(benchmark::kMicrosecond);

/// The same with all transfers on one bus.
void reEvaluateOnABus(benchmark::State& state)
{
    Design d = test::unroundDesign("zb-h1", static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
    d.costs.link = {50'021, 1e15, "switch"};
    const Program program = compile(d.schedule, d.costs);
    const Evaluator evaluator(program, d.costs);
    Timeline timeline;
    for (auto _ : state) {
        evaluator.evaluate(timeline);
        benchmark::DoNotOptimize(timeline.end.data());
    }
}
BENCHMARK(reEvaluateOnABus)->Args({4, 8})->Args({64, 1024})->Unit(benchmark::kMicrosecond);

void designToTimeline(benchmark::State& state)
{
    const Design d = test::unroundDesign("zb-h1", static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
    Timeline timeline;
    for (auto _ : state) {
        const Program program = compile(d.schedule, d.costs);
        Evaluator(program, d.costs).evaluate(timeline);
        benchmark::DoNotOptimize(timeline.end.data());
    }
}
BENCHMARK(designToTimeline)->Args({4, 8})->Args({16, 256})->Args({64, 1024})->Unit(benchmark::kMillisecond);

void predictWithMemoryAndMetrics(benchmark::State& state)
{
    const Design d = test::unroundDesign("zb-h1", static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
    for (auto _ : state)
        benchmark::DoNotOptimize(predict(d).metrics.makespan);
}
BENCHMARK(predictWithMemoryAndMetrics)->Args({4, 8})->Args({64, 1024})->Unit(benchmark::kMillisecond);

/// As while dragging: two neighbours of a device at the middle of the step change places, and back. `exactly`: by
/// predict(), which the drag would wait for without an OrderPreview.
void previewOtherOrder(benchmark::State& state, const char* family, bool exactly)
{
    Design d = test::unroundDesign(family, 64, static_cast<int>(state.range(0)));
    const Prediction present = predict(d);
    OrderPreview preview(d, present);
    std::vector<std::uint32_t> positions(d.schedule.order[20].size());
    std::iota(positions.begin(), positions.end(), 0u);
    std::size_t at = positions.size() / 2;
    for (;; ++at) {
        std::swap(positions[at], positions[at + 1]);
        if (preview.evaluate(20, positions) != nullptr)
            break;
        std::swap(positions[at], positions[at + 1]);
    }
    if (exactly)
        std::swap(d.schedule.order[20][at], d.schedule.order[20][at + 1]);
    for (auto _ : state)
        benchmark::DoNotOptimize(exactly ? predict(d).metrics.makespan
                                         : preview.evaluate(20, positions)->metrics.makespan);
}
BENCHMARK_CAPTURE(previewOtherOrder, zbH1, "zb-h1", false)->Arg(1024)->Arg(5209)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(previewOtherOrder, dualPipe, "dualpipe", false)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(previewOtherOrder, exactly, "zb-h1", true)->Arg(1024)->Arg(5209)->Unit(benchmark::kMillisecond);

void replayStep(benchmark::State& state, const char* family)
{
    const Design d = test::unroundDesign(family, 64, 1024);
    const Prediction prediction = predict(d);
    const Replay replay(prediction.program, prediction.timeline,
                        std::vector<Nanoseconds>(prediction.program.tasks.size(), 0));
    for (auto _ : state)
        benchmark::DoNotOptimize(replay.makespan());
}
BENCHMARK_CAPTURE(replayStep, zbH1, "zb-h1")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replayStep, dualPipe, "dualpipe")->Unit(benchmark::kMillisecond);

/// What an editor waits for when a family is chosen.
void generateAndCompile(benchmark::State& state, const char* family)
{
    for (auto _ : state) {
        const Design d = test::unroundDesign(family, 64, 1024);
        benchmark::DoNotOptimize(compile(d.schedule, d.costs).tasks.data());
    }
}
BENCHMARK_CAPTURE(generateAndCompile, zbH1, "zb-h1")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generateAndCompile, vHalf, "v-half")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generateAndCompile, seq1F1B, "seq1f1b")->Unit(benchmark::kMillisecond);

} // namespace

int main(int argc, char** argv)
{
    pipewright::keepFreedMemory(); // as the program does
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
