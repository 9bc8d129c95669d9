// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/calls.h"

#include "kernels/host/simd.h"

#include <cassert>

namespace pipewright::kernels {
namespace {

constexpr float cubic = 0.044715f;
constexpr float slope = 2 * 0.7978845608f; ///< 2 · sqrt(2 / pi): tanh(u) = 2 · sigmoid(2 u) - 1

[[gnu::always_inline]] inline float gate(float x)
{
    return 1.0f / (1.0f + exponential(-slope * (x + cubic * x * x * x)));
}

PIPEWRIGHT_VECTOR_CLONES
void forwardLoop(std::size_t count, const float* x, float* y)
{
    PIPEWRIGHT_INDEPENDENT // in place is allowed: each element depends on its own index only
        for (std::size_t i = 0; i < count; ++i) y[i] = x[i] * gate(x[i]);
}

/// d/dx x · s(a(x)) = s + x · s · (1 - s) · a'(x).
PIPEWRIGHT_VECTOR_CLONES
void inputGradLoop(std::size_t count, const float* x, const float* dy, float* dx)
{
    PIPEWRIGHT_INDEPENDENT // in place is allowed: each element depends on its own index only
        for (std::size_t i = 0; i < count; ++i)
    {
        const float s = gate(x[i]);
        dx[i] = dy[i] * (s + x[i] * s * (1.0f - s) * slope * (1.0f + 3 * cubic * x[i] * x[i]));
    }
}

} // namespace

void run(const GeluForward& call)
{
    const auto [input, output] = call;
    assert(input.size() == output.size());
    forwardLoop(input.size(), input.data(), output.data());
}

void run(const GeluInputGrad& call)
{
    const auto [input, outputGrad, inputGrad] = call;
    assert(input.size() == outputGrad.size() && input.size() == inputGrad.size());
    inputGradLoop(input.size(), input.data(), outputGrad.data(), inputGrad.data());
}

} // namespace pipewright::kernels
