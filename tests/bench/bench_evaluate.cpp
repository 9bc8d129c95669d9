// SPDX-License-Identifier: GPL-3.0-or-later
// The bounds on the predictor: 196,608 blocks (64 devices x 1,024 microbatches x F, I, W) and the
// transfers between them, re-evaluated in at most 1.5 ms and from design to Timeline in at most 60 ms.
#include "core/base/freedmemory.h"
#include "core/families/family.h"
#include "core/predict/evaluator.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "makers/designs.h"

#include <benchmark/benchmark.h>

using namespace pipewright;

namespace {

void reEvaluateFixedOrder(benchmark::State& state)
{
    const Design d = test::unroundDesign("zb-h1", static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
    const Program program = compile(d.schedule, d.costs);
    const Evaluator evaluator(program, d.costs);
    Timeline timeline;
    for (auto _ : state) {
        evaluator.evaluate(timeline);
        benchmark::DoNotOptimize(timeline.end.data());
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(program.tasks.size()));
}
BENCHMARK(reEvaluateFixedOrder)->Args({4, 8})->Args({16, 256})->Args({64, 1024})->Unit(benchmark::kMicrosecond);

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

} // namespace

int main(int argc, char** argv)
{
    pipewright::keepFreedMemory(); // as the program does
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
