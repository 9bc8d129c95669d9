// SPDX-License-Identifier: GPL-3.0-or-later
// As cuda.h of CUDA 12.4, whose CUdevSmResource has only the number of multiprocessors, and which has no streams of
// green contexts.
#pragma once

#define minSmPartitionSize onlyInCuda13Least
#define smCoscheduledAlignment onlyInCuda13Step
#define cuGreenCtxStreamCreate onlyFromCuda125Stream
#include_next <cuda.h>
#undef minSmPartitionSize
#undef smCoscheduledAlignment
#undef cuGreenCtxStreamCreate

#undef CUDA_VERSION
#define CUDA_VERSION 12040
