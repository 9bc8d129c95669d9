// SPDX-License-Identifier: GPL-3.0-or-later
// One thread per element, by integer arithmetic on the patterns, as the host does it. Bound by memory bandwidth.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/stored.cuh"

namespace pipewright::kernels::cuda {

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
