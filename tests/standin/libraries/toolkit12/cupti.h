// SPDX-License-Identifier: GPL-3.0-or-later
// As cupti.h of CUDA 12.9, which has no newer record of a kernel than the ninth.
#pragma once

#define CUpti_ActivityKernel10 OnlyInCuda13Kernel
#include_next <cupti.h>
#undef CUpti_ActivityKernel10

#undef CUPTI_API_VERSION
#define CUPTI_API_VERSION 28
