// SPDX-License-Identifier: GPL-3.0-or-later
// Whole searches for the best way to train, on as many threads as the argument says: how long until one plan is known
// (first_s), until one within 1 % of the best is (good_s; good_cpu_s is the processor time until then, which a busy
// machine does not lengthen), until the best ones are proved, and until the frontier is; and how many plans were
// predicted in a second. Asked: the whole of either space within 60 s on two processors, a good plan within 2 s, below
// 2 GiB.
#include "core/plan/plan.h"
#include "core/presets/presets.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <mutex>

using namespace pipewright;

namespace {

/// Presets are read from files, and settings share clusters.
PlanRequest requestOf(const char* model, const char* cluster, int devices, int batch)
{
    static const PresetLibrary library;
    struct Known {
        std::mutex mutex;
        std::map<std::pair<int, std::int64_t>, std::shared_ptr<const Cluster>> clusters;
    };
    PlanRequest request;
    request.shape = library.model(model);
    request.source = "a benchmark";
    request.cluster = [known = std::make_shared<Known>(), name = std::string(cluster)](int pipeline, std::int64_t of) {
        const std::lock_guard lock(known->mutex);
        std::shared_ptr<const Cluster>& found = known->clusters[{pipeline, of}];
        if (!found)
            found = std::make_shared<const Cluster>(library.cluster(name, pipeline, of));
        return found;
    };
    request.devices = devices;
    request.batch = batch;
    request.top = 5;
    request.timeLimit = std::chrono::minutes(5);
    return request;
}

void search(benchmark::State& state, PlanRequest request)
{
    request.threads = static_cast<int>(state.range(0));
    PlanResult result;
    struct Best {
        double seconds = 0, processor = 0; ///< when it was known
        Nanoseconds step = 0;
    };
    std::vector<Best> bests;
    const auto processor = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
    double began = 0;
    request.progress = [&](const PlanProgress& now) {
        if (now.best > 0 && (bests.empty() || now.best < bests.back().step))
            bests.push_back({now.seconds, processor() - began, now.best});
    };
    for (auto _ : state) {
        bests.clear();
        began = processor();
        result = findPlans(request);
    }
    if (result.plans.empty()) {
        state.SkipWithError("no plan was found");
        return;
    }
    constexpr double good = 1.01;
    const auto isGood = [&](const Best& known) {
        return static_cast<double>(known.step) <= good * static_cast<double>(result.plans.front().step);
    };
    state.counters["plans"] = static_cast<double>(result.considered);
    state.counters["predicted"] = static_cast<double>(result.predicted);
    state.counters["predicted/s"] = static_cast<double>(result.predicted) / result.seconds;
    const Best& known = *std::find_if(bests.begin(), bests.end(), isGood);
    state.counters["first_s"] = bests.front().seconds;
    state.counters["good_s"] = known.seconds;
    state.counters["good_cpu_s"] = known.processor;
    state.counters["complete"] = result.complete + result.frontierComplete; // 1: the best, 2: the frontier too
    state.counters["step_s"] = static_cast<double>(result.plans.front().step) * 1e-9;
}

void dense(benchmark::State& state)
{
    search(state, requestOf("llama-3.1-405b", "h100-nodes", 1024, 2048));
}

void experts128(benchmark::State& state)
{
    search(state, requestOf("qwen3-235b-a22b", "h100-nodes", 512, 4096));
}

void experts256(benchmark::State& state)
{
    search(state, requestOf("deepseek-v3", "h100-nodes", 512, 4096));
}

void small(benchmark::State& state)
{
    search(state, requestOf("llama-3-8b", "h100-nodes", 8, 64));
}

} // namespace

BENCHMARK(small)->Name("llama-3-8b_on_8")->Arg(1)->Arg(2)->Unit(benchmark::kSecond)->MeasureProcessCPUTime();
BENCHMARK(dense)
    ->Name("llama-3.1-405b_on_1024")
    ->Arg(2)
    ->Iterations(1)
    ->Unit(benchmark::kSecond)
    ->MeasureProcessCPUTime();
BENCHMARK(experts128)
    ->Name("qwen3-235b_on_512")
    ->Arg(2)
    ->Iterations(1)
    ->Unit(benchmark::kSecond)
    ->MeasureProcessCPUTime();
BENCHMARK(experts256)
    ->Name("deepseek-v3_on_512")
    ->Arg(2)
    ->Iterations(1)
    ->Unit(benchmark::kSecond)
    ->MeasureProcessCPUTime();

BENCHMARK_MAIN();
