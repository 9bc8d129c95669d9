// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"

#include <cmath>

namespace pipewright::kernels::cuda {

namespace {

/// value(i) for every element; 64-bit indices, since tensors pass 2^31 elements.
template<typename Each>
__global__ void forEach(std::size_t count, Each each)
{
    const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count)
        each(i);
}

template<typename Each>
void launch(cudaStream_t stream, std::size_t count, Each each)
{
    if (count > 0)
        forEach<<<blocksFor(count), blockSize, 0, stream>>>(count, each);
}

constexpr float cubic = 0.044715f;
constexpr float slope = 2 * 0.7978845608f; // 2 · sqrt(2 / pi): tanh(u) = 2 · sigmoid(2 u) - 1

__device__ float gate(float x)
{
    return 1.0f / (1.0f + expf(-slope * (x + cubic * x * x * x)));
}

} // namespace

void copy(cudaStream_t stream, std::span<const float> from, std::span<float> to)
{
    cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), cudaMemcpyDeviceToDevice, stream);
}

void fill(cudaStream_t stream, std::span<float> values, float value)
{
    launch(stream, values.size(), [v = values.data(), value] __device__(std::size_t i) { v[i] = value; });
}

void add(cudaStream_t stream, std::span<float> values, std::span<const float> addend)
{
    launch(stream, values.size(), [v = values.data(), a = addend.data()] __device__(std::size_t i) { v[i] += a[i]; });
}

void geluForward(cudaStream_t stream, std::span<const float> input, std::span<float> output)
{
    launch(stream, input.size(),
           [x = input.data(), y = output.data()] __device__(std::size_t i) { y[i] = x[i] * gate(x[i]); });
}

/// d/dx x · s(a(x)) = s + x · s · (1 - s) · a'(x).
void geluInputGrad(cudaStream_t stream, std::span<const float> input, std::span<const float> outputGrad,
                   std::span<float> inputGrad)
{
    launch(stream, input.size(),
           [x = input.data(), dy = outputGrad.data(), dx = inputGrad.data()] __device__(std::size_t i) {
               const float s = gate(x[i]);
               dx[i] = dy[i] * (s + x[i] * s * (1.0f - s) * slope * (1.0f + 3 * cubic * x[i] * x[i]));
           });
}

void sgdMomentumStep(cudaStream_t stream, const SgdSettings& settings, std::span<float> parameters,
                     std::span<const float> gradients, std::span<float> momentum)
{
    const float keep = 1.0f - settings.learningRate * settings.weightDecay;
    launch(stream, parameters.size(),
           [=, p = parameters.data(), g = gradients.data(), v = momentum.data()] __device__(std::size_t i) {
               v[i] = settings.momentum * v[i] + g[i];
               p[i] = keep * p[i] - settings.learningRate * v[i];
           });
}

void adamWStep(cudaStream_t stream, const AdamWSettings& settings, int step, std::span<float> parameters,
               std::span<const float> gradients, std::span<float> firstMoment, std::span<float> secondMoment)
{
    const float correction1 = float(1.0 / (1.0 - std::pow(double(settings.beta1), step)));
    const float correction2 = float(1.0 / (1.0 - std::pow(double(settings.beta2), step)));
    const float keep = 1.0f - settings.learningRate * settings.weightDecay;
    launch(stream, parameters.size(),
           [=, p = parameters.data(), g = gradients.data(), m = firstMoment.data(),
            v = secondMoment.data()] __device__(std::size_t i) {
               m[i] = settings.beta1 * m[i] + (1.0f - settings.beta1) * g[i];
               v[i] = settings.beta2 * v[i] + (1.0f - settings.beta2) * g[i] * g[i];
               p[i] = keep * p[i]
                      - settings.learningRate * (m[i] * correction1) / (sqrtf(v[i] * correction2) + settings.epsilon);
           });
}

void rmsPropStep(cudaStream_t stream, const RmsPropSettings& settings, std::span<float> parameters,
                 std::span<const float> gradients, std::span<float> squares, std::span<float> last)
{
    launch(stream, parameters.size(),
           [=, p = parameters.data(), g = gradients.data(), v = squares.data(),
            l = last.data()] __device__(std::size_t i) {
               const float slope = l[i] = g[i];
               v[i] = settings.smoothing * v[i] + (1.0f - settings.smoothing) * slope * slope;
               p[i] -= settings.learningRate * (slope / (sqrtf(v[i]) + settings.epsilon));
           });
}

void predictMomentum(cudaStream_t stream, float distance, std::span<const float> momentum, std::span<float> parameters)
{
    launch(stream, parameters.size(),
           [=, p = parameters.data(), v = momentum.data()] __device__(std::size_t i) { p[i] -= distance * v[i]; });
}

void predictRmsProp(cudaStream_t stream, float distance, float epsilon, std::span<const float> squares,
                    std::span<const float> last, std::span<float> parameters)
{
    launch(stream, parameters.size(),
           [=, p = parameters.data(), v = squares.data(), g = last.data()] __device__(std::size_t i) {
               p[i] -= distance * (g[i] / (sqrtf(v[i]) + epsilon));
           });
}

void predictAdam(cudaStream_t stream, const AdamWSettings& settings, int step, float distance,
                 std::span<const float> firstMoment, std::span<const float> secondMoment, std::span<float> parameters)
{
    const float correction1 = float(1.0 / (1.0 - std::pow(double(settings.beta1), step)));
    const float correction2 = float(1.0 / (1.0 - std::pow(double(settings.beta2), step)));
    launch(stream, parameters.size(),
           [=, p = parameters.data(), m = firstMoment.data(), v = secondMoment.data()] __device__(std::size_t i) {
               p[i] -= distance * (m[i] * correction1) / (sqrtf(v[i] * correction2) + settings.epsilon);
           });
}

} // namespace pipewright::kernels::cuda
