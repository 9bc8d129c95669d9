// SPDX-License-Identifier: GPL-3.0-or-later
// Headers of CUDA 13 presented to the plugin as CUDA 12.4: the version, and without newer functions.
#pragma once

#define cudaGetDriverEntryPointByVersion onlyFromCuda125EntryPoint
#include_next <cuda_runtime.h>
#undef cudaGetDriverEntryPointByVersion

#undef CUDART_VERSION
#define CUDART_VERSION 12040
