// SPDX-License-Identifier: GPL-3.0-or-later
// One thread per element, by integer arithmetic on the patterns, as the host does it. Bound by memory bandwidth.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"

namespace pipewright::kernels::cuda {

namespace {

__device__ std::uint16_t narrowed(float value)
{
    const std::uint32_t bits = __float_as_uint(value);
    if ((bits & 0x7fffffff) > 0x7f800000) // no number
        return std::uint16_t(bits >> 16 | 0x40);
    return std::uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

__device__ float widened(std::uint16_t bits)
{
    return __uint_as_float(std::uint32_t(bits) << 16);
}

} // namespace

void run(const Context& context, const Widen& call)
{
    launchEach(context, call.to.size(),
               [from = call.from.data(), to = call.to.data(), add = call.store == Store::Add] __device__(
                   std::size_t i) { to[i] = (add ? to[i] : 0.0f) + widened(from[i]); });
}

void run(const Context& context, const Narrow& call)
{
    launchEach(context, call.to.size(),
               [from = call.from.data(), to = call.to.data()] __device__(std::size_t i) { to[i] = narrowed(from[i]); });
}

void run(const Context& context, const RoundToBf16& call)
{
    if (call.to.empty())
        launchEach(context, call.values.size(),
                   [v = call.values.data()] __device__(std::size_t i) { v[i] = widened(narrowed(v[i])); });
    else
        launchEach(context, call.values.size(),
                   [v = call.values.data(), to = call.to.data()] __device__(std::size_t i) {
                       const std::uint16_t narrow = narrowed(v[i]);
                       to[i] = narrow;
                       v[i] = widened(narrow);
                   });
}

} // namespace pipewright::kernels::cuda
