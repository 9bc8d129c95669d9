// SPDX-License-Identifier: GPL-3.0-or-later
// How good and how quick the search is, as a table: for every row and limit of the published tables the bubble rate
// of the best published family under the same limit, what the search finds, what no schedule can be below, and the
// gap between the two; for the known optima the time until they are proved. Families at these limits reproduce the
// printed digits (tests/core/tst_zbauto.cpp). For models, the fastest family with the
// even split against layers, devices and order searched together within the memory that this family takes. PIPEWRIGHT_SEARCH_SECONDS sets the time of each search (10).
#include "core/formats/presets.h"
#include "core/predict/designbuilder.h"
#include "core/predict/newdesign.h"
#include "core/predict/predict.h"
#include "core/predict/tradeoffs.h"
#include "core/search/partition.h"

#include <benchmark/benchmark.h>

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <thread>

using namespace pipewright;

namespace {

struct Row {
    const char* name;
    int devices, microbatches, forward, inputGrad, weightGrad, transfer; ///< microseconds of one device's worth
};

/// The zero-bubble papers' memory: W gives back 16/37 of what F keeps.
Design designOf(const char* family, const Row& row, double limit, Bytes saved = 37'000, Bytes kept = 16'000)
{
    DesignRequest request;
    request.family = family;
    request.devices = row.devices;
    request.microbatches = row.microbatches;
    request.memoryLimit = limit;
    request.forward = row.forward * 1000;
    request.inputGrad = row.inputGrad * 1000;
    request.weightGrad = row.weightGrad * 1000;
    request.transfer = row.transfer * 1000;
    request.saved = saved;
    request.savedForWeightGrad = kept;
    return makeDesign(request);
}

SearchOptions optionsOf(double limit)
{
    const char* seconds = std::getenv("PIPEWRIGHT_SEARCH_SECONDS");
    SearchOptions options;
    options.objective = SearchObjective::Span;
    options.limit.factor = limit;
    options.timeLimit =
        std::chrono::milliseconds(static_cast<int>(1000 * (seconds != nullptr ? std::atof(seconds) : 10)));
    options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    return options;
}

double mebibytesAtMost()
{
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (double kibibytes = 0; word == "VmHWM:" && status >> kibibytes)
            return kibibytes / 1024;
    return 0;
}

/// Bubble rates in per cent of the span, as the papers define them.
void report(benchmark::State& state, const Design& base, const SearchResult& result, Nanoseconds published)
{
    const Metrics metrics = predict(base).metrics;
    const auto rate = [&](Nanoseconds span) {
        return 100 * static_cast<double>(span - metrics.ideal) / static_cast<double>(span);
    };
    if (published > 0)
        state.counters["published_%"] = rate(published);
    state.counters["found_%"] = rate(result.value);
    state.counters["bound_%"] = rate(result.bound.value);
    state.counters["gap_%"] = 100 * result.gap;
    state.counters["proved"] = result.proved;
    state.counters["best_after_s"] = result.history.back().seconds;
    state.counters["most_MiB"] = mebibytesAtMost();
    state.SetLabel(fmt::format("{}, by {}", result.bound.name, result.history.back().source));
}

void againstFamily(benchmark::State& state, const char* family, const Row& row, double limit)
{
    const Design base = designOf(family, row, limit);
    const Nanoseconds published = predict(base).metrics.span;
    for (auto _ : state)
        report(state, base, search(base, optionsOf(limit)), published);
}

void knownOptimum(benchmark::State& state, const Row& row, int inMemory)
{
    const Design base = designOf("zb-h1", row, 1, 1000, 1000);
    for (auto _ : state)
        report(state, base, search(base, optionsOf(static_cast<double>(inMemory) / row.devices)), 0);
}

/// The fastest synchronous family of the even split.
TradeOff fastestFamily(const Design& base)
{
    TradeOff fastest;
    for (const TradeOffCandidate& candidate : tradeOffCandidates(base)) {
        const TradeOff tried = evaluateTradeOff(base, candidate);
        if (tried.possible && (!fastest.possible || tried.makespan < fastest.makespan))
            fastest = tried;
    }
    return fastest;
}

void partition(benchmark::State& state, const char* model, int devices, int microbatches,
               const std::vector<PlacementShape>& shapes)
{
    const PresetLibrary presets;
    NewDesign choice;
    choice.workload = presets.workload(model);
    choice.cluster = presets.cluster("h200-node", devices);
    choice.microbatches = microbatches;
    const Design base = makeDesign(choice);
    const TradeOff fastest = fastestFamily(base);
    PartitionOptions options;
    options.search = optionsOf(1);
    options.search.objective = SearchObjective::Makespan;
    options.search.limit = {fastest.peakBytes, std::nullopt};
    options.shapes = shapes;
    for (auto _ : state) {
        const PartitionResult found = searchPartition(base, options);
        const auto milliseconds = [](Nanoseconds time) { return static_cast<double>(time) * 1e-6; };
        state.counters["family_ms"] = milliseconds(fastest.makespan);
        state.counters["found_ms"] = milliseconds(found.result.value);
        state.counters["bound_ms"] = milliseconds(found.result.bound.value);
        state.counters["gain_%"] = 100 * (1 - milliseconds(found.result.value) / milliseconds(fastest.makespan));
        state.counters["family_GiB"] = static_cast<double>(fastest.peakBytes) / (1 << 30);
        state.counters["most_MiB"] = mebibytesAtMost();
        state.SetLabel(fmt::format("{} against {}; layers {}; devices {}", nameOf(found.trials.front().shape),
                                   fastest.candidate.label(), fmt::join(found.design.layersPerStage, " "),
                                   fmt::join(found.design.schedule.deviceOfStage, " ")));
    }
}

template<typename Work>
void add(const std::string& name, Work work)
{
    benchmark::RegisterBenchmark(name.c_str(), work)->Iterations(1)->Unit(benchmark::kMillisecond)->UseRealTime();
}

} // namespace

int main(int count, char** words)
{
    // Table 5 of arXiv 2401.10241: ZB-1p and ZB-2p. Its ZB-H1 and ZB-H2 are no better.
    static const Row tableFive[] = {
        {"1.5B", 8, 24, 18522, 18086, 9337, 601},  {"1.5B", 8, 32, 18513, 18086, 9331, 626},
        {"1.5B", 8, 64, 18546, 18097, 9321, 762},  {"6.2B", 8, 24, 29718, 29444, 19927, 527},
        {"6.2B", 8, 32, 29802, 29428, 19530, 577}, {"6.2B", 8, 64, 29935, 29621, 19388, 535},
    };
    // Table 8 and Fig. 9, per chunk of half a device; the last row is the largest that the search promises.
    static const Row perChunk[] = {
        {"6.2B", 16, 48, 14407, 14380, 9676, 1610},  {"6.2B", 16, 64, 14412, 14393, 9688, 1621},
        {"6.2B", 16, 128, 14316, 14306, 9639, 1619}, {"14.6B", 24, 72, 6763, 6969, 5251, 755},
        {"28.3B", 32, 96, 9458, 9748, 7288, 879},    {"28.3B", 32, 256, 9458, 9748, 7288, 879},
    };
    for (const Row& row : tableFive)
        for (const double limit : {1.0, 2.0})
            add(fmt::format("linear/{}/p{}/m{}/{:.3f}x", row.name, row.devices, row.microbatches, limit),
                [&row, limit](benchmark::State& state) { againstFamily(state, "zb-auto", row, limit); });
    for (const char* family : {"zb-auto", "zb-v"})
        for (const Row& chunk : perChunk)
            for (int eighths = 8; eighths <= 24; ++eighths) {
                const Row row{chunk.name,          chunk.devices,        chunk.microbatches, 2 * chunk.forward,
                              2 * chunk.inputGrad, 2 * chunk.weightGrad, chunk.transfer};
                const double limit = eighths / 8.0;
                add(fmt::format("{}/{}/p{}/m{}/{:.3f}x", family == std::string_view("zb-v") ? "v" : "linear", row.name,
                                row.devices, row.microbatches, limit),
                    [=](benchmark::State& state) { againstFamily(state, family, row, limit); });
            }
    const struct {
        Row row;
        int inMemory;
    } optima[] = {
        {{"4x4 1/1/1", 4, 4, 1000, 1000, 1000, 0}, 4},      {{"4x8 1/1/1", 4, 8, 1000, 1000, 1000, 0}, 4},
        {{"4x8 1/1/1", 4, 8, 1000, 1000, 1000, 0}, 7},      {{"4x8 5/6/4", 4, 8, 5000, 6000, 4000, 0}, 4},
        {{"4x8 5/6/4", 4, 8, 5000, 6000, 4000, 0}, 7},      {{"4x12 5/6/4", 4, 12, 5000, 6000, 4000, 0}, 4},
        {{"8x16 1/1/1", 8, 16, 1000, 1000, 1000, 0}, 15},   {{"8x16 10/10/9", 8, 16, 10000, 10000, 9000, 0}, 15},
        {{"8x24 5/6/4", 8, 24, 5000, 6000, 4000, 0}, 8},    {{"8x24 5/6/4", 8, 24, 5000, 6000, 4000, 0}, 4},
        {{"8x24 5/6/4", 8, 24, 5000, 6000, 4000, 0}, 12},   {{"4x8 5/6/4", 4, 8, 5000, 6000, 4000, 0}, 3},
        {{"4x8 1/1/1", 4, 8, 1000, 1000, 1000, 0}, 3},      {{"4x12 5/6/4", 4, 12, 5000, 6000, 4000, 0}, 3},
        {{"4x12 5/6/4", 4, 12, 5000, 6000, 4000, 0}, 2},    {{"6x12 5/6/4", 6, 12, 5000, 6000, 4000, 0}, 4},
        {{"6x12 1/1/1", 6, 12, 1000, 1000, 1000, 0}, 4},    {{"8x16 5/6/4", 8, 16, 5000, 6000, 4000, 0}, 6},
        {{"24x72 1/1/1", 24, 72, 1000, 1000, 1000, 0}, 47}, {{"24x72 10/10/9", 24, 72, 10000, 10000, 9000, 0}, 47},
    };
    for (const auto& known : optima)
        add(fmt::format("optimum/{}/{} live", known.row.name, known.inMemory),
            [=](benchmark::State& state) { knownOptimum(state, known.row, known.inMemory); });
    for (const char* model : {"llama-3-8b", "llama-3-70b", "deepseek-v3"})
        for (const int devices : {4, 8}) {
            const int microbatches = 4 * devices;
            add(fmt::format("partition/{}/p{}/m{}/linear", model, devices, microbatches), [=](benchmark::State& state) {
                partition(state, model, devices, microbatches, {PlacementShape::Linear});
            });
            add(fmt::format("partition/{}/p{}/m{}/any", model, devices, microbatches), [=](benchmark::State& state) {
                partition(state, model, devices, microbatches, {PlacementShape::Free});
            });
        }
    benchmark::Initialize(&count, words);
    benchmark::RunSpecifiedBenchmarks();
}
