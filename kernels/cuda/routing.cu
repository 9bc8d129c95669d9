// SPDX-License-Identifier: GPL-3.0-or-later
// Chooses the experts of each token, and the rows of the tokens' copies. One block per token chooses; then one block
// per expert assigns rows to its copies in the order of the tokens, so that results are reproducible. The choices are
// read O(experts · copies) times, from the GPU's cache.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/stored.cuh"

#include <algorithm>
#include <cassert>

namespace pipewright::kernels::cuda {

namespace {

constexpr int lanes = 32;

__device__ float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/// Computes a token's probabilities from its logits, in shared memory.
__device__ void probabilities(const Router& router, float* logits, float* p)
{
    float most = -INFINITY, sum = 0;
    for (int e = int(threadIdx.x); e < router.experts; e += int(blockDim.x))
        most = fmaxf(most, logits[e]);
    most = blockMax(most);
    for (int e = int(threadIdx.x); e < router.experts; e += int(blockDim.x)) {
        p[e] = router.kind == RouterKind::Softmax ? expf(logits[e] - most) : sigmoid(logits[e]);
        sum += p[e];
    }
    sum = blockSum(sum);
    for (int e = int(threadIdx.x); e < router.experts; e += int(blockDim.x))
        logits[e] = p[e] = router.kind == RouterKind::Softmax ? p[e] / sum : p[e];
}

/// The sum of a group's two best scores.
__device__ float scoreOfGroup(const Router& router, const float* scores, int group)
{
    const int size = router.experts / router.groups;
    float best = -INFINITY, second = -INFINITY;
    for (int e = group * size; e < (group + 1) * size; ++e)
        if (scores[e] > best) {
            second = best;
            best = scores[e];
        } else {
            second = fmaxf(second, scores[e]);
        }
    return size > 1 ? best + second : best;
}

/// Chooses a token's experts, best first, the lower index on ties; called by the first warp. Scores of chosen experts
/// become -infinity.
__device__ void choose(const Router& router, float* scores, std::int32_t* choice)
{
    for (int k = 0; k < router.perToken; ++k) {
        float best = -INFINITY;
        int expert = router.experts;
        for (int e = int(threadIdx.x); e < router.experts; e += lanes)
            if (scores[e] > best) {
                best = scores[e];
                expert = e;
            }
        for (int apart = lanes / 2; apart > 0; apart /= 2) {
            const float other = __shfl_xor_sync(0xffffffffu, best, apart);
            const int itsExpert = __shfl_xor_sync(0xffffffffu, expert, apart);
            if (other > best || (other == best && itsExpert < expert)) {
                best = other;
                expert = itsExpert;
            }
        }
        expert = min(expert, router.experts - 1); // with NaN scores no expert is best
        if (expert % lanes == int(threadIdx.x))   // the lane that reads this score
            scores[expert] = -INFINITY;
        if (threadIdx.x == 0)
            choice[k] = expert;
    }
}

template<typename Element>
__global__ void route(Router router, In<Element> correction, const std::int32_t* given, float* logits,
                      std::int32_t* choices, float* weights)
{
    __shared__ float p[mostExperts], scores[mostExperts], groupScores[mostExperts];
    __shared__ std::int32_t chosen[mostExperts];
    const std::int64_t token = blockIdx.x;
    probabilities(router, logits + token * router.experts, p);
    for (int e = int(threadIdx.x); e < router.experts; e += int(blockDim.x))
        scores[e] = p[e] + (correction ? correction[e] : 0.0f);
    __syncthreads();
    if (router.groups > 1) {
        for (int group = int(threadIdx.x); group < router.groups; group += int(blockDim.x))
            groupScores[group] = scoreOfGroup(router, scores, group);
        __syncthreads();
        // A group is excluded if as many groups as a token may use are better; on ties the lower index is better.
        for (int e = int(threadIdx.x); e < router.experts; e += int(blockDim.x)) {
            const int group = e / (router.experts / router.groups);
            int better = 0;
            for (int other = 0; other < router.groups; ++other)
                better += groupScores[other] > groupScores[group]
                          || (groupScores[other] == groupScores[group] && other < group);
            if (better >= router.groupsPerToken)
                scores[e] = -INFINITY;
        }
        __syncthreads();
    }
    if (given) {
        for (int k = int(threadIdx.x); k < router.perToken; k += int(blockDim.x))
            chosen[k] = given[token * router.perToken + k];
    } else if (threadIdx.x < lanes) {
        choose(router, scores, chosen);
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < router.perToken; ++k)
        sum += p[chosen[k]];
    const float share = router.normalised ? router.scale / sum : router.scale;
    for (int k = int(threadIdx.x); k < router.perToken; k += int(blockDim.x)) {
        choices[token * router.perToken + k] = chosen[k];
        weights[token * router.perToken + k] = share * p[chosen[k]];
    }
}

/// counts[expert] = number of its copies. One block per expert.
__global__ void countCopies(std::int64_t copies, const std::int32_t* choices, std::int32_t* counts)
{
    int own = 0;
    for (std::int64_t copy = threadIdx.x; copy < copies; copy += blockDim.x)
        own += choices[copy] == int(blockIdx.x);
    own = blockSum(own);
    if (threadIdx.x == 0)
        counts[blockIdx.x] = own;
}

/// Inclusive prefix sum: replaces the counts in begin[expert + 1]. One block, an expert per thread at a time.
__global__ void sumCounts(int experts, std::int32_t* begin)
{
    __shared__ std::int32_t counts[blockSize];
    int before = 0;
    for (int first = 0; first < experts; first += int(blockDim.x)) {
        const int expert = first + int(threadIdx.x);
        counts[threadIdx.x] = expert < experts ? begin[expert + 1] : 0;
        __syncthreads();
        int sum = before;
        for (unsigned i = 0; i <= threadIdx.x; ++i)
            sum += counts[i];
        before += blockSum(counts[threadIdx.x]); // its barriers ensure that all threads have read the counts
        if (expert < experts)
            begin[expert + 1] = sum;
    }
    if (threadIdx.x == 0)
        begin[0] = 0;
}

/// Assigns rows to an expert's copies, in the order of the copies. One block per expert.
__global__ void giveRows(std::int64_t copies, const std::int32_t* choices, const std::int32_t* begin,
                         std::int32_t* rows)
{
    constexpr unsigned warps = blockSize / lanes;
    __shared__ unsigned found[2][warps]; // double-buffered, so that one barrier per iteration is enough
    const int expert = int(blockIdx.x), lane = int(threadIdx.x) % lanes, warp = int(threadIdx.x) / lanes;
    int next = begin[expert];
    for (std::int64_t first = 0; first < copies; first += blockSize) {
        const std::int64_t copy = first + threadIdx.x;
        const bool own = copy < copies && choices[copy] == expert;
        unsigned* const of = found[first / blockSize % 2];
        const unsigned ofWarp = __ballot_sync(0xffffffffu, own);
        if (lane == 0)
            of[warp] = ofWarp;
        __syncthreads();
        int row = next;
        for (int other = 0; other < int(warps); ++other) {
            if (other < warp)
                row += __popc(of[other]);
            next += __popc(of[other]);
        }
        if (own)
            rows[copy] = row + __popc(ofWarp & ((1u << lane) - 1));
    }
}

/// A block per token.
template<typename Element>
__global__ void routeGradient(Router router, int width, float balance, const float* allProbabilities,
                              const std::int32_t* choices, const std::int32_t* rows, In<Element> outputGrad,
                              In<Element> expertOutput, const std::int32_t* begin, Out<Element> logitsGrad)
{
    __shared__ float grad[mostExperts];
    const std::int64_t token = blockIdx.x;
    const float* const p = allProbabilities + token * router.experts;
    const std::int32_t* const choice = choices + token * router.perToken;
    for (int e = int(threadIdx.x); e < router.experts; e += int(blockDim.x))
        grad[e] = 0;
    // First the gradients of the chosen probabilities …
    float sum = router.normalised ? 0.0f : 1.0f, shared = 0;
    for (int k = 0; router.normalised && k < router.perToken; ++k)
        sum += p[choice[k]];
    for (int k = 0; k < router.perToken; ++k) {
        const std::int64_t row = rows[token * router.perToken + k];
        float product = 0;
        for (int i = int(threadIdx.x); i < width; i += int(blockDim.x))
            product += outputGrad[token * width + i] * expertOutput[row * width + i];
        product = blockSum(product);
        if (threadIdx.x == 0)
            grad[choice[k]] = router.scale / sum * product;
        shared += product * p[choice[k]];
    }
    __syncthreads();
    if (router.normalised)
        for (int k = int(threadIdx.x); k < router.perToken; k += int(blockDim.x))
            grad[choice[k]] -= router.scale / (sum * sum) * shared;
    __syncthreads();
    // … then those of the logits.
    float weighted = 0;
    for (int e = int(threadIdx.x); e < router.experts; e += int(blockDim.x)) {
        if (balance != 0)
            grad[e] += balance * float(begin[e + 1] - begin[e]);
        weighted += p[e] * grad[e];
    }
    weighted = blockSum(weighted);
    for (int e = int(threadIdx.x); e < router.experts; e += int(blockDim.x))
        logitsGrad[token * router.experts + e] =
            router.kind == RouterKind::Softmax ? p[e] * (grad[e] - weighted) : grad[e] * p[e] * (1.0f - p[e]);
}

/// One block.
__global__ void balanceStep(int experts, float rate, const float* counts, float* values)
{
    double sum = 0; // exact: the counts are integers
    for (int e = int(threadIdx.x); e < experts; e += int(blockDim.x))
        sum += double(counts[e]);
    const double mean = blockSum(sum) / experts;
    for (int e = int(threadIdx.x); e < experts; e += int(blockDim.x))
        values[e] += double(counts[e]) < mean ? rate : double(counts[e]) > mean ? -rate : 0.0f;
}

} // namespace

void run(const Context& context, const RouteTokens& call)
{
    const Router& router = call.router;
    assert(router.experts <= mostExperts);
    const auto tokens = unsigned(call.logitsToProbabilities.size() / std::size_t(router.experts));
    const auto copies = std::int64_t(call.choice.size());
    if (tokens > 0)
        withElement(context, 0, [&](auto element) {
            using Element = decltype(element);
            route<<<tokens, threadsForRow(std::size_t(router.experts)), 0, context.stream>>>(
                router, call.correction.empty() ? In<Element>() : in<Element>(call.correction),
                call.given.empty() ? nullptr : call.given.data(), call.logitsToProbabilities.data(), call.choice.data(),
                call.weight.data());
        });
    const auto experts = unsigned(router.experts);
    countCopies<<<experts, threadsForRow(std::size_t(copies)), 0, context.stream>>>(copies, call.choice.data(),
                                                                                    call.begin.data() + 1);
    sumCounts<<<1, threadsForRow(experts), 0, context.stream>>>(router.experts, call.begin.data());
    giveRows<<<experts, blockSize, 0, context.stream>>>(copies, call.choice.data(), call.begin.data(), call.row.data());
}

void run(const Context& context, const RouteTokensGrad& call)
{
    const Router& router = call.router;
    assert(router.experts <= mostExperts);
    const auto tokens = unsigned(call.probabilities.size() / std::size_t(router.experts));
    if (tokens > 0)
        withElement(context, 0, [&](auto element) {
            using Element = decltype(element);
            routeGradient<<<tokens, threadsForRow(std::size_t(std::max(router.experts, call.width))), 0,
                            context.stream>>>(router, call.width, call.balance, call.probabilities.data(),
                                              call.choice.data(), call.row.data(), in<Element>(call.outputGrad),
                                              in<Element>(call.expertOutput), call.begin.data(),
                                              out<Element>(call.logitsGrad));
        });
}

void run(const Context& context, const CountCopies& call)
{
    launchEach(context, call.counts.size(),
               [begin = call.begin.data(), counts = call.counts.data()] __device__(std::size_t e) {
                   counts[e] += float(begin[e + 1] - begin[e]);
               });
}

void run(const Context& context, const BalanceStep& call)
{
    if (!call.values.empty())
        balanceStep<<<1, threadsForRow(call.values.size()), 0, context.stream>>>(
            int(call.values.size()), call.rate, call.counts.data(), call.values.data());
}

} // namespace pipewright::kernels::cuda
