// SPDX-License-Identifier: GPL-3.0-or-later
// One block per position: its threads compute the angles of up to 256 pairs in double precision, then rotate the values
// of all sequences and heads at that position. The pairs' frequencies are kernel arguments.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/stored.cuh"

#include <algorithm>
#include <cassert>

namespace pipewright::kernels::cuda {

namespace {

constexpr int pairsAtOnce = blockSize;

struct Pairs {
    int first, count; ///< range of these pairs among all
    double frequencies[pairsAtOnce];
};

struct Rows {
    std::int64_t sequences;
    int length, first, heads, headSize, offset, size;
    bool neighbours;
};

template<typename Element>
__global__ void turn(Rows rows, Pairs pairs, Out<Element> values)
{
    __shared__ float cosines[pairsAtOnce], sines[pairsAtOnce];
    const int position = int(blockIdx.x);
    if (int(threadIdx.x) < pairs.count) {
        double sine, cosine;
        sincos((rows.first + position) * pairs.frequencies[threadIdx.x], &sine, &cosine);
        cosines[threadIdx.x] = float(cosine);
        sines[threadIdx.x] = float(sine);
    }
    __syncthreads();
    const int step = rows.neighbours ? 2 : 1, apart = rows.neighbours ? 1 : rows.size / 2;
    const std::int64_t count = rows.sequences * rows.heads * pairs.count;
    for (std::int64_t i = threadIdx.x; i < count; i += blockSize) {
        const int pair = int(i % pairs.count), head = int(i / pairs.count % rows.heads);
        const std::int64_t token = i / pairs.count / rows.heads * rows.length + position;
        const Out<Element> from =
            values + (token * rows.heads + head) * rows.headSize + rows.offset + (pairs.first + pair) * step;
        const float before = from[0], second = from[apart];
        from[0] = before * cosines[pair] - second * sines[pair];
        from[apart] = second * cosines[pair] + before * sines[pair];
    }
}

} // namespace

void run(const Context& context, const Rotate& call)
{
    const std::int64_t row = std::int64_t(call.heads) * call.headSize, all = call.size / 2;
    assert(call.size % 2 == 0 && call.offset + call.size <= call.headSize);
    if (call.values.empty())
        return;
    const Rows rows{std::int64_t(call.values.size()) / (row * call.length),
                    call.length,
                    call.first,
                    call.heads,
                    call.headSize,
                    call.offset,
                    call.size,
                    call.neighbours};
    for (Pairs pairs{}; pairs.first < all; pairs.first += pairs.count) {
        pairs.count = int(std::min<std::int64_t>(pairsAtOnce, all - pairs.first));
        for (int i = 0; i < pairs.count; ++i)
            pairs.frequencies[i] =
                rotaryFrequency(call.frequencies, pairs.first + i, call.size) * (call.backwards ? -1 : 1);
        withElement(context, 0, [&](auto element) {
            turn<<<unsigned(call.length), blockSize, 0, context.stream>>>(rows, pairs,
                                                                          out<decltype(element)>(call.values));
        });
    }
}

} // namespace pipewright::kernels::cuda
