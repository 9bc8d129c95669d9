// SPDX-License-Identifier: GPL-3.0-or-later
// As cuda.h of CUDA 12.9, whose CUdevSmResource has a number of multiprocessors and nothing else.
#pragma once

#define minSmPartitionSize onlyInCuda13Least
#define smCoscheduledAlignment onlyInCuda13Step
#include_next <cuda.h>
#undef minSmPartitionSize
#undef smCoscheduledAlignment
