// SPDX-License-Identifier: GPL-3.0-or-later
// Shared by the files of the runtime: the end of a call, and checks at its begin.
#pragma once

#include "engine.h"

#include <cuda_runtime_api.h>

namespace standin {

/// Keeps an error for cudaGetLastError; cudaErrorNotReady is not an error (driver_types.h).
cudaError_t ended(cudaError_t code);
/// A non-relaxed capture of the calling thread forbids calls that do not go to a stream and becomes invalid by them
/// (cuda_runtime_api.h:2524 to 2548). Success: there is no such capture.
cudaError_t forbiddenInCapture();
/// Success, unless the GPU is lost (driver_types.h, cudaErrorECCUncorrectable and its like: until the process ends).
cudaError_t stateOf(int device);
/// Changes the number of captures that the calling thread has begun.
void beganCapture(Stream& stream, int change);

} // namespace standin
