// SPDX-License-Identifier: GPL-3.0-or-later
// cuDNN, opened at run time for whoever calls its functions by their names, as its frontend does: these are functions
// of our own that pass each call on. Once per process, and never closed, since CUDA does not like that.
#pragma once

#include <string>

namespace pipewright::kernels::cuda {

/// Why it cannot be used; empty: it can. Only before the first plan is made may it be another file than before.
std::string openCudnn(const std::string& path);
/// "9.19.0", of the open one.
std::string cudnnVersion();

} // namespace pipewright::kernels::cuda
