// SPDX-License-Identifier: GPL-3.0-or-later
// Linear biases in place of positions (ALiBi: Press et al., arXiv 2108.12409, section 3): a score is reduced by the
// distance from key to query, times a slope of its head. With 2^n heads the slopes are 2^(-8 / heads), its square, and
// so on; further heads have every second slope of twice as many heads. Compiled for the host and, by nvcc, for GPUs.
#pragma once

#include <cmath>

#ifdef __CUDACC__
#define PIPEWRIGHT_BOTH __host__ __device__
#else
#define PIPEWRIGHT_BOTH
#endif

namespace pipewright::kernels {

/// The slope of one of a model's heads.
PIPEWRIGHT_BOTH inline float linearBiasSlope(int heads, int head)
{
    int whole = 1; // a power of two
    while (2 * whole <= heads)
        whole *= 2;
    const int step = head < whole ? 2 * (head + 1) : 2 * (head - whole) + 1;
    return exp2f(-4.0f * static_cast<float>(step) / static_cast<float>(whole));
}

} // namespace pipewright::kernels
