// SPDX-License-Identifier: GPL-3.0-or-later
// Time of the three passes of one byte-gpt transformer layer, and the share of it that is matrix products; and of a
// whole layer like Llama's by its width, which tests/bench/torchlayer.py compares with PyTorch's. The rate counts the
// workload's FLOPs, which are those of the matrix products only.
#include "core/model/transformer.h"
#include "executor/stage/stagemaths.h"
#include "kernels/calls.h"

#include <benchmark/benchmark.h>

#include <vector>

using namespace pipewright;

namespace {

std::vector<float> ramp(std::size_t count)
{
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = float(i % 17) / 17 - 0.5f;
    return values;
}

/// 512 tokens, heads of 64 values of which four share a key, a gated MLP of 11/4 of the width.
ModelShape llamaLayer(std::int64_t width)
{
    ModelShape shape;
    shape.hidden = width;
    shape.headSize = 64;
    shape.heads = int(width / 64);
    shape.keyValueHeads = shape.heads / 4;
    shape.ffn = width * 11 / 4;
    shape.gatedMlp = true;
    shape.activation = Activation::Silu;
    shape.bias = shape.queryKeyValueBias = shape.learnedPositions = shape.tiedHead = false;
    shape.sequence = 512;
    shape.microbatchSize = 1;
    shape.attention = AttentionMemory::Streamed;
    return shape;
}

struct LayerBench {
    Workload workload;
    StageMaths maths{workload, 1, 2, 1};
    std::vector<std::byte> a = room(BufferKind::SavedUntilInputGrad), b = room(BufferKind::SavedUntilWeightGrad),
                           c = room(BufferKind::SavedFromInputGrad), d = room(BufferKind::Workspace);
    StageMemory memory{a, b, c, d};
    std::vector<float> parameters = std::vector<float>(maths.parameters().count()), gradients = parameters;
    std::vector<float> input = ramp(maths.activationElements()), output = input, inputGrad = input;

    explicit LayerBench(const ModelShape& shape = {}) : workload(makeWorkload(shape, Optimizer::AdamW, "bench"))
    {
        maths.parameters().initialise(parameters, 1);
        maths.forward(parameters, {{}, input, {}}, memory, output);
        maths.backward(parameters, memory, input, inputGrad, gradients);
    }
    std::vector<std::byte> room(BufferKind kind) const
    {
        return std::vector<std::byte>(std::size_t(maths.layout().bytes(kind)));
    }
};

void rate(benchmark::State& state, double flops)
{
    state.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

void forward(benchmark::State& state)
{
    LayerBench bench;
    for (auto _ : state)
        bench.maths.forward(bench.parameters, {{}, bench.input, {}}, bench.memory, bench.output);
    rate(state, bench.workload.layers[1].forwardFlops);
}
void inputGrad(benchmark::State& state)
{
    LayerBench bench;
    for (auto _ : state)
        bench.maths.inputGrad(bench.parameters, bench.memory, bench.input, bench.inputGrad, bench.gradients);
    rate(state, bench.workload.layers[1].inputGradFlops);
}
void weightGrad(benchmark::State& state)
{
    LayerBench bench;
    for (auto _ : state)
        bench.maths.weightGrad(bench.memory, bench.gradients);
    rate(state, bench.workload.layers[1].weightGradFlops);
}
/// Forward and both gradients.
void llama(benchmark::State& state)
{
    LayerBench bench(llamaLayer(state.range(0)));
    for (auto _ : state) {
        bench.maths.forward(bench.parameters, {{}, bench.input, {}}, bench.memory, bench.output);
        bench.maths.backward(bench.parameters, bench.memory, bench.input, bench.inputGrad, bench.gradients);
    }
    const Layer& layer = bench.workload.layers[1];
    rate(state, layer.forwardFlops + layer.inputGradFlops + layer.weightGradFlops);
}
BENCHMARK(llama)->Arg(512)->Arg(1024)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(forward)->Unit(benchmark::kMicrosecond);
BENCHMARK(inputGrad)->Unit(benchmark::kMicrosecond);
BENCHMARK(weightGrad)->Unit(benchmark::kMicrosecond);

constexpr int rows = 256, hidden = 128, ffn = 512;

void linearForward(benchmark::State& state)
{
    const auto x = ramp(rows * hidden), w = ramp(ffn * hidden), bias = ramp(ffn);
    std::vector<float> y(rows * ffn);
    for (auto _ : state)
        kernels::run(kernels::LinearForward{{rows, hidden, ffn}, x, w, bias, y});
    rate(state, 2.0 * rows * hidden * ffn);
}
void attentionForward(benchmark::State& state)
{
    const kernels::AttentionShape shape{4, 64, 4, 32};
    const auto x = ramp(rows * hidden);
    std::vector<float> p(shape.scores()), y(x.size());
    for (auto _ : state)
        kernels::run(kernels::AttentionForward{shape, x, x, x, p, y});
    rate(state, 4.0 * 4 * 4 * 64 * 64 * 32);
}
void attentionInputGrad(benchmark::State& state)
{
    const kernels::AttentionShape shape{4, 64, 4, 32};
    const auto x = ramp(rows * hidden), p = ramp(shape.scores());
    std::vector<float> dx(3 * x.size()), scratch(shape.scores());
    for (auto _ : state)
        kernels::run(kernels::AttentionInputGrad{shape, x, x, x, p, {}, x, dx, scratch});
    rate(state, 8.0 * 4 * 4 * 64 * 64 * 32);
}
void geluForward(benchmark::State& state)
{
    const auto x = ramp(rows * ffn);
    std::vector<float> y(x.size());
    for (auto _ : state)
        kernels::run(kernels::ActivationForward{kernels::ActivationKind::GeluTanh, x, y});
}
void geluInputGrad(benchmark::State& state)
{
    const auto x = ramp(rows * ffn);
    std::vector<float> dx(x.size());
    for (auto _ : state)
        kernels::run(kernels::ActivationInputGrad{kernels::ActivationKind::GeluTanh, x, dx, dx});
}
void layerNormForward(benchmark::State& state)
{
    const auto x = ramp(rows * hidden), gamma = ramp(hidden);
    std::vector<float> y(x.size());
    for (auto _ : state)
        kernels::run(kernels::LayerNormForward{rows, hidden, x, gamma, gamma, y});
}
void layerNormInputGrad(benchmark::State& state)
{
    const auto x = ramp(rows * hidden), gamma = ramp(hidden);
    std::vector<float> dx(x.size());
    for (auto _ : state)
        kernels::run(kernels::LayerNormInputGrad{rows, hidden, x, gamma, x, dx});
}
BENCHMARK(linearForward)->Unit(benchmark::kMicrosecond);
BENCHMARK(attentionForward)->Unit(benchmark::kMicrosecond);
BENCHMARK(attentionInputGrad)->Unit(benchmark::kMicrosecond);
BENCHMARK(geluForward)->Unit(benchmark::kMicrosecond);
BENCHMARK(geluInputGrad)->Unit(benchmark::kMicrosecond);
BENCHMARK(layerNormForward)->Unit(benchmark::kMicrosecond);
BENCHMARK(layerNormInputGrad)->Unit(benchmark::kMicrosecond);

} // namespace

BENCHMARK_MAIN();
