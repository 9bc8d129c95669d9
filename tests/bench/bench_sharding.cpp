// SPDX-License-Identifier: GPL-3.0-or-later
// The bounds on synthesis: a transformer of 12 layers on 2 + 6 devices of two speeds within 5 s, one of 48 layers
// within 30 s; the alternation with the search of the ratios included. And predicted against measured times on two
// emulated devices of rates 2 : 1: the plan, even shares, and data parallelism in proportion to rates.
#include "core/model/mlpgraph.h"
#include "core/model/modelgraph.h"
#include "core/sharding/shardingplan.h"
#include "executor/sharding/measuredstrategy.h"

#include <benchmark/benchmark.h>

using namespace pipewright;
using namespace pipewright::sharding;

namespace {

/// Two devices of 3.86 TFLOP/s and 16 GiB, six of 2.15 TFLOP/s and 12 GiB, 10.4 Gbit/s between them.
Cluster twoSpeeds()
{
    Cluster cluster;
    for (int d = 0; d < 8; ++d)
        cluster.devices.push_back(d < 2 ? DeviceSpec{"fast", Bytes(16) << 30, 3.858755e12, 900e9, 1}
                                        : DeviceSpec{"slow", Bytes(12) << 30, 2.149251e12, 730e9, 1});
    cluster.link = {"Ethernet", 30'000, 1.3e9};
    return cluster;
}

ModelShape bertBase(int layers, int experts)
{
    ModelShape shape;
    shape.layers = layers;
    shape.hidden = 768;
    shape.heads = shape.keyValueHeads = 12;
    shape.headSize = 64;
    shape.ffn = 3072;
    shape.vocabulary = 30'522;
    shape.sequence = 128;
    shape.microbatchSize = 256;
    shape.experts = experts;
    shape.expertsPerToken = experts > 0 ? 2 : 0;
    shape.expertFfn = experts > 0 ? 3072 : 0;
    return shape;
}

void synthesis(benchmark::State& state, int layers, int experts, bool limited)
{
    const TensorGraph graph = transformerGraph(bertBase(layers, experts), {4, 4, 8});
    Cluster cluster = twoSpeeds();
    if (!limited)
        for (DeviceSpec& device : cluster.devices)
            device.memory = 0;
    const Machine machine = machineOf(cluster);
    PlanOptions options;
    ShardingPlan plan;
    for (auto _ : state) {
        options.deadline.time = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        plan = planSharding(graph, machine, options);
    }
    state.counters["nodes"] = graph.size();
    state.counters["expansions"] = static_cast<double>(plan.expansions);
    state.counters["gap"] = plan.gap;
    state.counters["step_s"] = plan.cost;
}

ModelShape small(int experts)
{
    ModelShape shape;
    shape.layers = 2;
    shape.hidden = 64;
    shape.heads = shape.keyValueHeads = 4;
    shape.headSize = 16;
    shape.ffn = 256;
    shape.vocabulary = 128;
    shape.sequence = 16;
    shape.microbatchSize = 12;
    shape.dataType = DataType::Fp32;
    shape.experts = experts;
    shape.expertsPerToken = experts > 0 ? 2 : 0;
    shape.expertFfn = experts > 0 ? 128 : 0;
    return shape;
}

/// The emulated rate is low enough for the computations of a busy machine to keep up.
void measured(benchmark::State& state, const TensorGraph& graph)
{
    Cluster cluster;
    cluster.devices = {{"fast", 0, 4e7, 0, 1}, {"slow", 0, 2e7, 0, 1}};
    cluster.link = {"wire", 200'000, 5e5};
    const Machine machine = machineOf(cluster);
    const ShardingPlan plan = planSharding(graph, machine);
    const auto others = commonStrategies(graph, machine, {});
    const LeafValues leaves = randomLeaves(graph, 1);
    std::vector<MeasuredStrategy> ways;
    for (auto _ : state)
        ways = measureWays(graph, machine, plan, others, leaves, 3);
    const auto report = [&](const std::string& name, const MeasuredStrategy& way) {
        state.counters[name + "_s"] = way.median();
        state.counters[name + "_error"] = way.error();
    };
    for (const MeasuredStrategy& way : ways)
        if (way.name == "plan" || way.name == "even ratios")
            report(way.name.substr(0, 4), way);
        else if (way.name == "data parallel, proportional")
            report("data", way);
}

} // namespace

BENCHMARK_CAPTURE(measured, chain, mlpGraph({96, {128, 512, 128}, "gelu", true}))
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);
BENCHMARK_CAPTURE(measured, transformer, transformerGraph(small(0), {4, 4, 8}))
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);
BENCHMARK_CAPTURE(measured, experts, transformerGraph(small(4), {4, 4, 8}))
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);
BENCHMARK_CAPTURE(synthesis, 12_layers, 12, 0, false)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK_CAPTURE(synthesis, 12_layers_limited_memory, 12, 0, true)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK_CAPTURE(synthesis, 12_layers_16_experts, 12, 16, false)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK_CAPTURE(synthesis, 48_layers, 48, 0, false)->Unit(benchmark::kMillisecond)->Iterations(1);

BENCHMARK_MAIN();
