// SPDX-License-Identifier: GPL-3.0-or-later
// Names of kernels for people: "void axpy<float>(int, float const*)" of "_Z4axpyIfEvi…". Of a kernel in an unnamed
// namespace nvcc kept the file, which tells apart what is called forward() everywhere: "a::layernorm_cu::forward(int)".
#pragma once

#include <string>

namespace pipewright {

/// The name as it was written, of one that a C++ compiler mangled; any other as it is.
std::string demangled(const std::string& name);

} // namespace pipewright
