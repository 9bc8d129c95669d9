// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/tensoritems.h"

namespace pipewright::kernels::cuda {

namespace {

/// One thread per item, neighbours in the inner dimension.
template <TensorOperation operation>
__global__ void eachItem(TensorCall call, std::int64_t count, std::int64_t inner)
{
    const std::int64_t item = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (item < count)
        TensorItem<operation>::run(call, item / inner, item % inner, item % inner + 1);
}

template <TensorOperation operation>
void launchAll(cudaStream_t stream, const TensorCall& call)
{
    const TensorItems items = TensorItem<operation>::count(call);
    const std::int64_t count = items.outer * items.inner;
    if (count > 0)
        eachItem<operation><<<blocksFor(std::size_t(count)), blockSize, 0, stream>>>(call, count, items.inner);
}

} // namespace

bool tensor(cudaStream_t stream, const TensorCall& call)
{
    switch (static_cast<TensorOperation>(call.operation)) {
#define PIPEWRIGHT_CASE(name)                                                                                          \
    case TensorOperation::name: launchAll<TensorOperation::name>(stream, call); return true;
        PIPEWRIGHT_TENSOR_OPERATIONS(PIPEWRIGHT_CASE)
#undef PIPEWRIGHT_CASE
    }
    return false;
}

} // namespace pipewright::kernels::cuda
