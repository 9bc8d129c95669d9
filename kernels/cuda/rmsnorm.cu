// SPDX-License-Identifier: GPL-3.0-or-later
// Row statistics, forward pass and sums of the parameters' gradients; the rest is in norm.cuh.
#include "kernels/cuda/norm.cuh"

namespace pipewright::kernels::cuda {

namespace {

struct Row {
    static constexpr bool centres = false;
    float scale; // 1 / rms

    __device__ float normalised(float value) const { return value * scale; }

    template<typename Element>
    __device__ static Row of(In<Element> x, int columns, float epsilon)
    {
        float squares = 0;
        for (int i = threadIdx.x; i < columns; i += blockDim.x)
            squares += x[i] * x[i];
        return {rsqrtf(blockSum(squares) / float(columns) + epsilon)};
    }
};

template<typename Element>
__global__ void forward(int columns, float epsilon, In<Element> x, In<Element> gamma, Out<Element> y, bool add)
{
    const std::int64_t at = std::int64_t(blockIdx.x) * columns;
    const Row row = Row::of(x + at, columns, epsilon);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        y[at + i] = (add ? float(y[at + i]) : 0.0f) + gamma[i] * row.normalised(x[at + i]);
}

template<typename Element>
__global__ void weightGradient(int rows, int columns, In<Element> x, In<Element> dy, const Row* statistics,
                               float* gammaGrad)
{
    sumColumns<float>(
        rows, columns,
        [=](std::int64_t row, std::int64_t column) {
            const std::int64_t at = row * columns + column;
            return dy[at] * statistics[row].normalised(x[at]);
        },
        [=](std::int64_t column, float sum) { gammaGrad[column] += sum; });
}

} // namespace

void run(const Context& context, const RmsNormForward& call)
{
    if (call.rows == 0)
        return;
    withElement(context, 0, [&](auto element) {
        using Element = decltype(element);
        forward<Element><<<unsigned(call.rows), threadsForRow(std::size_t(call.columns)), 0, context.stream>>>(
            call.columns, call.epsilon, in<Element>(call.input), in<Element>(call.gamma), out<Element>(call.output),
            call.store == Store::Add);
    });
}

void run(const Context& context, const RmsNormInputGrad& call)
{
    runNormInputGradient<Row>(context, call);
}

void run(const Context& context, const RmsNormWeightGrad& call)
{
    runNormWeightGradient<Row>(context, call, [&](int rows, auto x, auto dy, const Row* statistics) {
        weightGradient<<<columnBlocks(std::size_t(call.columns)), blockSize, 0, context.stream>>>(
            rows, call.columns, x, dy, statistics, call.gammaGrad.data());
    });
}

} // namespace pipewright::kernels::cuda
