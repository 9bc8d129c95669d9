// SPDX-License-Identifier: GPL-3.0-or-later
// What the parts of the CUDA plugin share: the last error of a thread, and the functions that the table points to
// and that are not made in plugin.cpp. Linked with the static CUDA runtime alone; cuBLASLt, NCCL and CUPTI are opened
// by name, so the plugin opens on a machine without driver and toolkit and says there what is missing.
#pragma once

#include "executor/cuda/table.h"

#include <cuda_runtime.h>
#include <string>

namespace pipewright::plugin {

/// The number, with the words kept for lastError().
int check(cudaError_t code);
/// A fault that is none of the CUDA runtime's: a number of our own, and its words.
int fault(std::string text);
inline constexpr int faultCode = 10000;
int answer(cudaError_t state, int32_t* done); ///< of a question whether something is done
const char* lastError();                      ///< of the calling thread; never null

/// For what the calling thread does next. All of the plugin goes through here, so it knows what is current.
int makeCurrent(int32_t device);
/// Of the slice that the stream belongs to; 0: of none.
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
