// SPDX-License-Identifier: GPL-3.0-or-later
// Element by element, by integer arithmetic on the patterns, as the host does it. Bound by memory bandwidth.
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/lines.cuh"

namespace pipewright::kernels::cuda {

void run(const Context& context, const Widen& call)
{
    using Place = Out<float>::Place;
    const In<Bf16> from{call.from.data()};
    if (call.store == Store::Add)
        launchLines(
            context, call.to.size(), [] __device__(Place to, float value) { to += value; }, out<float>(call.to), from);
    else
        launchLines(
            context, call.to.size(), [] __device__(Place to, float value) { to = value; }, fresh<float>(call.to), from);
}

void run(const Context& context, const Narrow& call)
{
    using Place = Out<Bf16>::Place;
    launchLines(
        context, call.to.size(), [] __device__(Place to, float value) { to = value; }, Fresh<Bf16>{call.to.data()},
        in<float>(call.from));
}

void run(const Context& context, const RoundToBf16& call)
{
    using Place = Out<float>::Place;
    if (call.to.empty())
        launchLines(
            context, call.values.size(), [] __device__(Place value) { value = widened(narrowed(value)); },
            out<float>(call.values));
    else
        launchLines(
            context, call.values.size(),
            [] __device__(Place value, Out<Bf16>::Place to) {
                to = value;
                value = to;
            },
            out<float>(call.values), Fresh<Bf16>{call.to.data()});
}

} // namespace pipewright::kernels::cuda
