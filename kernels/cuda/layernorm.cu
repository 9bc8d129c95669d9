// SPDX-License-Identifier: GPL-3.0-or-later
// Row statistics, forward pass and sums of the parameters' gradients; the rest is in norm.cuh.
#include "kernels/cuda/norm.cuh"

namespace pipewright::kernels::cuda {

namespace {

struct Row {
    static constexpr bool centres = true;
    float mean, scale; // 1 / sqrt(variance + epsilon)

    __device__ float normalised(float value) const { return (value - mean) * scale; }

    template<typename Element>
    __device__ static Row of(In<Element> x, int columns, float epsilon)
    {
        float sum = 0;
        for (int i = threadIdx.x; i < columns; i += blockDim.x)
            sum += x[i];
        const float mean = blockSum(sum) / float(columns);
        float squares = 0;
        for (int i = threadIdx.x; i < columns; i += blockDim.x)
            squares += (x[i] - mean) * (x[i] - mean);
        return {mean, rsqrtf(blockSum(squares) / float(columns) + epsilon)};
    }
};

template<typename Element>
__global__ void forward(int columns, float epsilon, In<Element> x, In<Element> gamma, In<Element> beta, Out<Element> y)
{
    const std::int64_t at = std::int64_t(blockIdx.x) * columns;
    const Row row = Row::of(x + at, columns, epsilon);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        y[at + i] = gamma[i] * row.normalised(x[at + i]) + beta[i];
}

struct WeightSums {
    float gamma, beta;

    __device__ WeightSums& operator+=(const WeightSums& other)
    {
        gamma += other.gamma;
        beta += other.beta;
        return *this;
    }
};

__device__ WeightSums warpSum(const WeightSums& sums)
{
    return {cuda::warpSum(sums.gamma), cuda::warpSum(sums.beta)};
}

template<typename Element>
__global__ void weightGradient(int rows, int columns, In<Element> x, In<Element> dy, const Row* statistics,
                               float* gammaGrad, float* betaGrad)
{
    sumColumns<WeightSums>(
        rows, columns,
        [=](std::int64_t row, std::int64_t column) {
            const std::int64_t at = row * columns + column;
            return WeightSums{dy[at] * statistics[row].normalised(x[at]), dy[at]};
        },
        [=](std::int64_t column, const WeightSums& sums) {
            gammaGrad[column] += sums.gamma;
            betaGrad[column] += sums.beta;
        });
}

} // namespace

void run(const Context& context, const LayerNormForward& call)
{
    if (call.rows == 0)
        return;
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        forward<Element><<<unsigned(call.rows), threadsForRow(std::size_t(call.columns)), 0, context.stream>>>(
            call.columns, call.epsilon, in<Element>(call.input), in<Element>(call.gamma), in<Element>(call.beta),
            out<Element>(call.output));
    });
}

void run(const Context& context, const LayerNormInputGrad& call)
{
    runNormInputGradient<Row>(context, call);
}

void run(const Context& context, const LayerNormWeightGrad& call)
{
    runNormWeightGradient<Row>(context, call, [&](int rows, auto x, auto dy, const Row* statistics) {
        weightGradient<<<columnBlocks(std::size_t(call.columns)), blockSize, 0, context.stream>>>(
            rows, call.columns, x, dy, statistics, call.gammaGrad.data(), call.betaGrad.data());
    });
}

} // namespace pipewright::kernels::cuda
