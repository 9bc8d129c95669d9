// SPDX-License-Identifier: GPL-3.0-or-later
// What the files of the runtime share: how a call ends, and what is checked before anything else.
#pragma once

#include "engine.h"

#include <cuda_runtime_api.h>

namespace standin {

/// Keeps an error for cudaGetLastError; what is not ready is no error (driver_types.h, cudaErrorNotReady).
cudaError_t ended(cudaError_t code);
/// A capture of the calling thread that is not relaxed forbids what is not put on a stream: the capture is then
/// invalid (cuda_runtime_api.h:2524 to 2548). Success: there is none.
cudaError_t forbiddenInCapture();
/// Success, unless the GPU is lost (driver_types.h, cudaErrorECCUncorrectable and its like: until the process ends).
cudaError_t stateOf(int device);
/// The captures that the calling thread has begun.
void beganCapture(Stream& stream, int change);

} // namespace standin
