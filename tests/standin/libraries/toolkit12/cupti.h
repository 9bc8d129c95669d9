// SPDX-License-Identifier: GPL-3.0-or-later
// As cupti.h of CUDA 12.4, whose newest kernel record is CUpti_ActivityKernel9, and which enables calls only by kind.
#pragma once

#define CUpti_ActivityKernel10 OnlyInCuda13Kernel
#define cuptiActivityEnableDriverApi onlyInLaterDriver
#define cuptiActivityEnableRuntimeApi onlyInLaterRuntime
#define cuptiActivityEnableAllSyncRecords onlyInLaterRecords
#include_next <cupti.h>
#undef CUpti_ActivityKernel10
#undef cuptiActivityEnableDriverApi
#undef cuptiActivityEnableRuntimeApi
#undef cuptiActivityEnableAllSyncRecords

#undef CUPTI_API_VERSION
#define CUPTI_API_VERSION 22
