// SPDX-License-Identifier: GPL-3.0-or-later
// The bounds on generation: v-auto within 0.1 s at 12 devices and 24 microbatches and within 1 s at 32 and 64,
// zb-auto within 50 ms at 32 and 256, and the largest family generated and compiled within 100 ms at 64 and 1,024. The
// last is wall-clock time, since compiling uses a second processor. "Kept" benchmarks have bytes of activations as well
// as times; "BlockByBlock" measures compiling where the order does not repeat.
#include "core/base/freedmemory.h"
#include "core/families/family.h"
#include "core/program/compile.h"
#include "makers/schedules.h"

#include <benchmark/benchmark.h>

using namespace pipewright;

namespace {

FamilyParameters equalTimes(int devices, int microbatches, double limit)
{
    FamilyParameters p = test::sized(devices, microbatches);
    p.memoryLimit = limit;
    return p;
}

/// Times of arXiv 2401.10241, 32 devices, of one device's worth of layers.
FamilyParameters measuredTimes(int devices, int microbatches, double limit)
{
    FamilyParameters p = equalTimes(devices, microbatches, limit);
    p.forward = 18'916'000;
    p.inputGrad = 19'496'000;
    p.weightGrad = 14'576'000;
    p.transfer = 879'000;
    return p;
}

void generate(benchmark::State& state, const char* family, const FamilyParameters& parameters)
{
    std::int64_t blocks = 0;
    for (auto _ : state)
        blocks = makeSchedule(family, parameters).blocks();
    state.counters["blocks"] = static_cast<double>(blocks);
}

template<typename T>
std::size_t bytesOf(const std::vector<T>& list)
{
    return list.capacity() * sizeof(T);
}

std::size_t bytesOf(const Schedule& schedule)
{
    std::size_t bytes = bytesOf(schedule.overlaps);
    for (const auto& lane : schedule.order)
        bytes += bytesOf(lane);
    return bytes;
}

std::size_t bytesOf(const Program& program)
{
    std::size_t bytes = bytesOf(program.tasks) + bytesOf(program.operandBegin) + bytesOf(program.operandSplit)
                        + bytesOf(program.operands) + bytesOf(program.afterOnDevice) + bytesOf(program.afterData)
                        + bytesOf(program.extraDependencies) + bytesOf(program.overlaps)
                        + program.buffers.size() * (sizeof(std::uint32_t) + sizeof(std::int32_t));
    for (const Program::Device& device : program.devices)
        bytes += bytesOf(device.instructions) + bytesOf(device.liveBytes);
    return bytes;
}

enum class Work { Bare, Kept, BlockByBlock };

Costs costsOf(const Schedule& schedule, Work work)
{
    DeviceWorth worth;
    if (work != Work::Bare) {
        worth.saved = 1'000'000;
        worth.savedForWeightGrad = 300'000;
    }
    return uniformCosts(worth, schedule.stages(), schedule.chunks());
}

void generateAndCompile(benchmark::State& state, const char* family, Work work)
{
    std::size_t tasks = 0;
    double atRest = 0, compiled = 0; // bytes per block
    for (auto _ : state) {
        Schedule schedule = makeSchedule(family, equalTimes(64, 1024, 1));
        if (work == Work::BlockByBlock)
            schedule.pins.push_back(
                {schedule.order.front().front(), 0}); // changes nothing, but a pinned schedule is irregular
        const Program program = compile(schedule, costsOf(schedule, work));
        tasks = program.tasks.size();
        atRest = static_cast<double>(bytesOf(schedule)) / static_cast<double>(schedule.blocks());
        compiled = static_cast<double>(bytesOf(program)) / static_cast<double>(schedule.blocks());
    }
    state.counters["tasks"] = static_cast<double>(tasks);
    state.counters["scheduleBytesPerBlock"] = atRest;
    state.counters["programBytesPerBlock"] = compiled;
}

BENCHMARK_CAPTURE(generate, vAutoEqual12x24, "v-auto", equalTimes(12, 24, 23.0 / 24))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate, vAutoMeasured12x24, "v-auto", measuredTimes(12, 24, 1))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate, vAutoEqual32x64, "v-auto", equalTimes(32, 64, 63.0 / 64))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate, vAutoMeasured32x64, "v-auto", measuredTimes(32, 64, 1))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate, vAutoMeasured32x256, "v-auto", measuredTimes(32, 256, 1))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate, zbAutoOnce32x256, "zb-auto", measuredTimes(32, 256, 1))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate, zbAutoTwice32x256, "zb-auto", measuredTimes(32, 256, 2))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate, zbV32x256, "zb-v", measuredTimes(32, 256, 1))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate, vHalf64x1024, "v-half", equalTimes(64, 1024, 1))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate, hanayo64x1024, "hanayo", equalTimes(64, 1024, 1))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generateAndCompile, zbH1At64x1024, "zb-h1", Work::Bare)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, interleavedAt64x1024, "interleaved-1f1b", Work::Bare)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, zbVAt64x1024, "zb-v", Work::Bare)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, chimeraAt64x1024, "chimera", Work::Bare)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, dualPipeAt64x1024, "dualpipe", Work::Bare)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, dualPipeVAt64x1024, "dualpipe-v", Work::Bare)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, seq1F1BAt64x1024, "seq1f1b", Work::Bare)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, loopedBfsAt64x1024, "looped-bfs", Work::Bare)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, hanayoAt64x1024, "hanayo", Work::Bare)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, vMinAt64x1024, "v-min", Work::Bare)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, vZbAt64x1024, "v-zb", Work::Bare)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, oneF1BVAt64x1024, "1f1b-v", Work::Bare)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, vAutoAt64x1024, "v-auto", Work::Bare)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, vHalfAt64x1024, "v-half", Work::Bare)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, vHalfKeptAt64x1024, "v-half", Work::Kept)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, vZbKeptAt64x1024, "v-zb", Work::Kept)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, seq1F1BKeptAt64x1024, "seq1f1b", Work::Kept)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(generateAndCompile, vHalfBlockByBlockAt64x1024, "v-half", Work::BlockByBlock)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

} // namespace

int main(int argc, char** argv)
{
    pipewright::keepFreedMemory(); // as the program does
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
