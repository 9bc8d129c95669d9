// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/cuda/launch.cuh"

namespace pipewright::kernels::cuda {

cudaError_t takeLaunchError()
{
    return cudaGetLastError();
}

} // namespace pipewright::kernels::cuda
