// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/calls.h"

#include <cassert>
#include <cmath>

namespace pipewright::kernels {

void run(const SoftCap& call)
{
    for (float& value : call.values)
        value = call.cap * std::tanh(value / call.cap);
}

void run(const SoftCapGrad& call)
{
    assert(call.capped.size() == call.grad.size());
    for (std::size_t i = 0; i < call.grad.size(); ++i) {
        const float share = call.capped[i] / call.cap;
        call.grad[i] *= 1 - share * share;
    }
}

} // namespace pipewright::kernels
