// SPDX-License-Identifier: GPL-3.0-or-later
// Shared by the files of the CUDA plugin: the last error of a thread, and functions that add the table entries that are
// not in plugin.cpp. Linked with the static CUDA runtime alone; cuBLASLt, NCCL and CUPTI are opened by name, so the
// plugin opens on a machine without driver and toolkit and says there what is missing.
#pragma once

#include "executor/cuda/table.h"

#include <cuda_runtime.h>
#include <string>

namespace pipewright::plugin {

/// Returns the error number and keeps its message for lastError().
int check(cudaError_t code);
/// An error that does not come from the CUDA runtime: returns faultCode and keeps the message.
int fault(std::string text);
inline constexpr int faultCode = 10000;
int answer(cudaError_t state, int32_t* done); ///< for queries whether work is done
const char* lastError();                      ///< of the calling thread; never null

/// Makes the GPU current for the calling thread. All of the plugin uses it, so it knows which GPU is current.
int makeCurrent(int32_t device);
/// Multiprocessors of the stream's slice; 0: it has no slice.
int multiprocessorsOf(cudaStream_t stream, int32_t* count);

inline cudaStream_t stream(void* handle)
{
    return static_cast<cudaStream_t>(handle);
}

/// Fills its part of the table.
void addMaths(PipewrightCudaTable& table);
void addSlices(PipewrightCudaTable& table);
void addNccl(PipewrightCudaTable& table);
void addRecorder(PipewrightCudaTable& table);

} // namespace pipewright::plugin
