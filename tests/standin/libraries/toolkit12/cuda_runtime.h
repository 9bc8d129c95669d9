// SPDX-License-Identifier: GPL-3.0-or-later
// What the plugin can tell CUDA 12.4 from 13 by, where only the headers of 13 are: the version.
#pragma once

#define cudaGetDriverEntryPointByVersion onlyFromCuda125EntryPoint
#include_next <cuda_runtime.h>
#undef cudaGetDriverEntryPointByVersion

#undef CUDART_VERSION
#define CUDART_VERSION 12040
