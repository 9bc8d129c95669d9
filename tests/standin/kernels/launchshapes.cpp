// SPDX-License-Identifier: GPL-3.0-or-later
// Checks how many threads share the work of gradients that sum over rows, at the sizes of a real model. Nothing runs:
// only the launch configurations are checked. On average no thread may read more than 256 numbers of the input, which
// is 1/32 of the rows here, and no block more than a quarter of a million.
#include "kernels/cuda/kernels.h"
#include "launch.h"

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <string>
#include <vector>

using namespace pipewright::kernels;

namespace {

struct Seen {
    std::string kernel;
    std::size_t blocks, threads;
};
std::vector<Seen> launches;
int failures = 0;

constexpr std::size_t mostOfThread = 256, mostOfBlock = 1 << 18;

/// Checks that each launch of `call`, which reads `elements` numbers, has enough threads and blocks.
template<typename Call>
void check(const char* name, const Call& call, std::size_t elements, cuda::Products* products = nullptr)
{
    static std::vector<float> scratch(1 << 18);
    launches.clear();
    cuda::run({.products = products, .rowScratch = scratch}, call);
    if (launches.empty()) {
        std::printf("%-28s launches nothing: WRONG\n", name);
        ++failures;
    }
    for (const Seen& each : launches) {
        const bool right = each.threads * mostOfThread >= elements && each.blocks * mostOfBlock >= elements;
        failures += !right;
        std::printf("%-28s %-34s %8zu blocks %9zu threads %7.1f numbers each %s\n", name, each.kernel.c_str(),
                    each.blocks, each.threads, double(elements) / double(each.threads), right ? "ok" : "WRONG");
    }
}

/// A span of dummy addresses that is never read.
template<typename Element = float>
std::span<Element> some(std::size_t count)
{
    return {reinterpret_cast<Element*>(256), count};
}

TensorCall tensorCall(TensorOperation operation, std::vector<std::int64_t> sizes)
{
    TensorCall call{};
    call.operation = operation;
    for (std::size_t i = 0; i < sizes.size(); ++i)
        call.size[i] = sizes[i];
    for (const float*& each : call.in)
        each = some(1).data();
    call.out = some(1).data();
    call.whole = some<std::int32_t>(1).data();
    return call;
}

} // namespace

extern "C" {

void pipewrightStandinLaunch(const standin::Launch& launch)
{
    if (const std::string why = standin::whyNot(launch); !why.empty()) {
        std::printf("%s cannot be launched: %s\n", launch.kernel, why.c_str());
        ++failures;
    }
    launches.push_back({launch.kernel, launch.grid.count(), launch.grid.count() * launch.block.count()});
}

cudaError_t cudaMemcpyAsync(void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t)
{
    std::abort(); // not called here
}

cudaError_t cudaGetLastError()
{
    std::abort(); // not called here
}

} // extern "C"

int main()
{
    const int rows = 8192, length = 1024, bag = 40;
    const auto tokens = std::size_t(rows);
    for (const int hidden : {768, 4096}) {
        const auto columns = std::size_t(hidden), elements = tokens * columns;
        std::printf("%d rows of %d\n", rows, hidden);
        check("layer norm weight gradient",
              LayerNormWeightGrad{rows, hidden, some(elements), some(elements), some(columns), some(columns)},
              elements);
        check("rms norm weight gradient",
              RmsNormWeightGrad{rows, hidden, 1e-5f, some(elements), some(elements), some(columns)}, elements);
        const ExpertsShape experts{64, hidden, 4 * hidden, 4 * std::int64_t(elements)};
        check("experts' gradients",
              ExpertsWeightGrad{experts, some<std::int32_t>(65), some(elements), some(4 * elements), some(4 * elements),
                                some(64 * columns), 4 * hidden},
              elements);
        check("embedding gradient",
              EmbeddingWeightGrad{length, hidden, some<std::int32_t>(tokens), some(elements), some(50257 * columns),
                                  some(std::size_t(length) * columns)},
              elements);
        check("feature bag gradient",
              FeatureBagWeightGrad{bag, hidden, some<std::int32_t>(tokens * bag), some(elements), some(elements)},
              elements * bag);
        check("look-up gradient", tensorCall(TensorOperation::LookUpGrad, {rows, hidden, 0, 50257}), elements);
        check("repeated sums", tensorCall(TensorOperation::SumRepeated, {std::int64_t(elements), hidden}), elements);
        cuda::Products own({}, nullptr, 0);
        check("bias gradient",
              LinearWeightGrad{
                  {rows, hidden, hidden}, some(elements), some(elements), some(columns * columns), some(columns)},
              elements, &own);
    }
    const GroupedAttentionShape attention{.sequences = rows / length,
                                          .length = length,
                                          .heads = 32,
                                          .keyValueHeads = 8,
                                          .querySize = 128,
                                          .valueSize = 128};
    for (const bool bf16 : {false, true}) {
        check(bf16 ? "attention on tensor cores" : "attention",
              GroupedAttentionForward{attention,
                                      some(attention.queries()),
                                      some(attention.keys()),
                                      some(attention.values()),
                                      some(attention.numbers()),
                                      some(attention.outputs()),
                                      {},
                                      {},
                                      bf16},
              attention.queries());
        check(bf16 ? "its gradient on tensor cores" : "its gradient",
              GroupedAttentionInputGrad{attention,
                                        some(attention.queries()),
                                        some(attention.keys()),
                                        some(attention.values()),
                                        some(attention.numbers()),
                                        some(attention.outputs()),
                                        some(attention.outputs()),
                                        some(attention.queries()),
                                        some(attention.keys()),
                                        some(attention.values()),
                                        some(attention.numbers()),
                                        {},
                                        {},
                                        {},
                                        {},
                                        bf16},
              attention.queries());
    }
    check("sums in parts", tensorCall(TensorOperation::SumParts, {1 << 23, 1024}), 1 << 23);
    check("sum of the parts", tensorCall(TensorOperation::SumParts, {1024, 1}), 1024);
    const int classes = 50257; // in the end one number of each row is added up
    check(
        "cross entropy",
        CrossEntropyForward{rows, classes, some(tokens * std::size_t(classes)), some<std::int32_t>(tokens), 1, some(1)},
        tokens);
    std::printf("%d wrong\n", failures);
    return failures > 0;
}
