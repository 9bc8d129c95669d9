// SPDX-License-Identifier: GPL-3.0-or-later
// Shifted by the largest value, so that nothing overflows: three passes over the row, O(count).
#include "kernels/host/softmax.h"

#include "kernels/host/simd.h"

namespace pipewright::kernels {

PIPEWRIGHT_VECTOR_CLONES
SoftmaxNormaliser softmaxRow(std::size_t count, float scale, float* row)
{
    const float largest = scale * maxInLanes(count, row);
    for (std::size_t i = 0; i < count; ++i)
        row[i] = exponential(scale * row[i] - largest);
    const float sum = sumInLanes(count, [=](std::size_t i) { return row[i]; });
    const float share = 1.0f / sum;
    for (std::size_t i = 0; i < count; ++i)
        row[i] *= share;
    return {largest, sum};
}

} // namespace pipewright::kernels
