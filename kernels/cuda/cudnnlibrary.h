// SPDX-License-Identifier: GPL-3.0-or-later
// Opens cuDNN at run time. Its frontend calls the library's functions by name: here are functions with these names that
// forward each call. Opened once per process and never closed, since CUDA does not support unloading.
#pragma once

#include <string>

namespace pipewright::kernels::cuda {

/// Returns why it cannot be used; empty: it can. The file may change only before the first plan is made.
std::string openCudnn(const std::string& path);
/// Version of the open library, "9.19.0".
std::string cudnnVersion();

} // namespace pipewright::kernels::cuda
