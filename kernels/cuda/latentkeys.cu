// SPDX-License-Identifier: GPL-3.0-or-later
// One thread per element of the result. Bound by memory bandwidth.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"

namespace pipewright::kernels::cuda {

void run(const Context& context, const JoinKeys& call)
{
    launchEach(context, call.keys.size(),
               [shape = call.shape, own = call.own.data(), shared = call.shared.data(),
                keys = call.keys.data()] __device__(std::size_t i) {
                   const std::size_t width = std::size_t(shape.ownSize + shape.sharedSize), row = i / width,
                                     column = i % width, ownSize = std::size_t(shape.ownSize);
                   keys[i] =
                       column < ownSize
                           ? own[row * ownSize + column]
                           : shared[row / std::size_t(shape.heads) * std::size_t(shape.sharedSize) + column - ownSize];
               });
}

void run(const Context& context, const SplitKeysGrad& call)
{
    const std::size_t own = call.ownGrad.size();
    launchEach(context, own + call.sharedGrad.size(),
               [shape = call.shape, own, from = call.keysGrad.data(), ownGrad = call.ownGrad.data(),
                sharedGrad = call.sharedGrad.data()] __device__(std::size_t i) {
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

} // namespace pipewright::kernels::cuda
