// SPDX-License-Identifier: GPL-3.0-or-later
// Ten layers like Llama's, none of them of shapes that were measured, predicted from a grid of single operations beside
// their own time, in one run on one thread. `error` is predicted over measured, in percent; `far` the share of the
// prediction, in percent, that is of shapes far from all measured ones or of none. The grid is measured first and takes
// up to a minute.
#include "core/base/median.h"
#include "core/cluster/cluster.h"
#include "core/design/operationtimes.h"
#include "core/design/ratedwork.h"
#include "core/model/transformer.h"
#include "executor/host/hostbackend.h"
#include "executor/machine/operationmeasure.h"
#include "executor/stage/stagemaths.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <vector>

using namespace pipewright;

namespace {

constexpr double flopsPeak = 1e11, bytesPeak = 1e10; // shares are of these; the prediction does not depend on them

const std::shared_ptr<const OperationRates>& measured()
{
    static const std::shared_ptr<const OperationRates> rates = [] {
        const auto backend = createHostBackend(1);
        OperationMeasureOptions options;
        options.seconds = 60;
        const OperationMeasurement found = measureOperations(*backend, ratedGrid(DataType::Fp32, 4), options);
        return std::make_shared<const OperationRates>(
            ratesOf(found.times, {"this machine", "bench", "bench", "now", flopsPeak, bytesPeak}));
    }();
    return rates;
}

ModelShape layerOf(std::int64_t width, std::int64_t sequence)
{
    ModelShape shape;
    shape.layers = 1;
    shape.hidden = width;
    shape.headSize = 48;
    shape.heads = static_cast<int>(width / shape.headSize);
    shape.keyValueHeads = shape.heads / 2;
    shape.ffn = width * 5 / 2;
    shape.gatedMlp = true;
    shape.activation = Activation::Silu;
    shape.bias = shape.queryKeyValueBias = shape.learnedPositions = shape.tiedHead = false;
    shape.sequence = sequence;
    shape.microbatchSize = 1;
    shape.attention = AttentionMemory::Streamed;
    return shape;
}

double secondsSince(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The middle one of three layers: embedding and head are left out of both.
void layer(benchmark::State& state)
{
    const Workload workload = makeWorkload(layerOf(state.range(0), state.range(1)), Optimizer::AdamW, "bench");
    DeviceSpec device{"host", 0, flopsPeak, bytesPeak, 1};
    device.rates = measured();
    OperationTimes times(device, NumberTypes{DataType::Fp32});
    const ComputedLayer& computed = times.of(workload.layers[1]);
    const double predicted = computed.seconds.forward + computed.seconds.inputGrad + computed.seconds.weightGrad;
    double unmeasured = 0;
    for (const OriginSeconds& pass :
         {computed.origins.forward, computed.origins.inputGrad, computed.origins.weightGrad})
        unmeasured += pass[std::size_t(RateOrigin::Nearest)] + pass[std::size_t(RateOrigin::Formula)];

    const StageMaths maths(workload, 1, 2, 1);
    const auto room = [&](BufferKind kind) { return std::vector<std::byte>(std::size_t(maths.layout().bytes(kind))); };
    std::vector<std::byte> a = room(BufferKind::SavedUntilInputGrad), b = room(BufferKind::SavedUntilWeightGrad),
                           c = room(BufferKind::SavedFromInputGrad), d = room(BufferKind::Workspace);
    StageMemory memory{a, b, c, d};
    std::vector<float> parameters(maths.parameters().count()), gradients = parameters;
    std::vector<float> input(maths.activationElements(), 0.25f), output = input, inputGrad = input;
    maths.parameters().initialise(parameters, 1);
    std::vector<double> seconds;
    for (auto _ : state) {
        const auto begin = std::chrono::steady_clock::now();
        maths.forward(parameters, {{}, input, {}}, memory, output);
        maths.inputGrad(parameters, memory, input, inputGrad, gradients);
        maths.weightGrad(memory, gradients);
        seconds.push_back(secondsSince(begin));
    }
    const double median = medianOf(seconds);
    state.counters["measured_ms"] = 1e3 * median;
    state.counters["predicted_ms"] = 1e3 * predicted;
    state.counters["error"] = 100 * (predicted / median - 1);
    state.counters["far"] = 100 * unmeasured / predicted;
}
BENCHMARK(layer)
    ->Args({192, 160})
    ->Args({192, 640})
    ->Args({288, 320})
    ->Args({384, 200})
    ->Args({384, 768})
    ->Args({576, 384})
    ->Args({768, 192})
    ->Args({768, 576})
    ->Args({960, 320})
    ->Args({1152, 448})
    ->Unit(benchmark::kMillisecond)
    ->MinTime(1);

} // namespace

BENCHMARK_MAIN();
