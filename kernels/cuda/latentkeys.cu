// SPDX-License-Identifier: GPL-3.0-or-later
// One thread per element of the result. Bound by memory bandwidth.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/stored.cuh"

namespace pipewright::kernels::cuda {

namespace {

template<typename Element>
void join(const Context& context, const JoinKeys& call)
{
    launchEach(context, call.keys.size(),
               [shape = call.shape, own = in<Element>(call.own), shared = in<Element>(call.shared),
                keys = out<Element>(call.keys)] __device__(std::size_t i) {
                   const std::size_t width = std::size_t(shape.ownSize + shape.sharedSize), row = i / width,
                                     column = i % width, ownSize = std::size_t(shape.ownSize);
                   keys[i] =
                       column < ownSize
                           ? own[row * ownSize + column]
                           : shared[row / std::size_t(shape.heads) * std::size_t(shape.sharedSize) + column - ownSize];
               });
}

template<typename Element>
void split(const Context& context, const SplitKeysGrad& call)
{
    const std::size_t own = call.ownGrad.size();
    launchEach(context, own + call.sharedGrad.size(),
               [shape = call.shape, own, from = in<Element>(call.keysGrad), ownGrad = out<Element>(call.ownGrad),
                sharedGrad = out<Element>(call.sharedGrad)] __device__(std::size_t i) {
                   const std::size_t ownSize = std::size_t(shape.ownSize), sharedSize = std::size_t(shape.sharedSize),
                                     width = ownSize + sharedSize, heads = std::size_t(shape.heads);
                   if (i < own) {
                       ownGrad[i] = from[i / ownSize * width + i % ownSize];
                       return;
                   }
                   const std::size_t token = (i - own) / sharedSize, column = (i - own) % sharedSize;
                   float sum = 0;
                   for (std::size_t head = 0; head < heads; ++head)
                       sum += from[(token * heads + head) * width + ownSize + column];
                   sharedGrad[i - own] = sum;
               });
}

} // namespace

void run(const Context& context, const JoinKeys& call)
{
    withElement(context, 0, [&](auto element) { join<decltype(element)>(context, call); });
}

void run(const Context& context, const SplitKeysGrad& call)
{
    withElement(context, 0, [&](auto element) { split<decltype(element)>(context, call); });
}

} // namespace pipewright::kernels::cuda
