// SPDX-License-Identifier: GPL-3.0-or-later
// Readable kernel names: "void axpy<float>(int, float const*)" of "_Z4axpyIfEvi…". For a kernel in an unnamed namespace
// nvcc keeps the file name, which distinguishes functions with common names: "a::layernorm_cu::forward(int)".
#pragma once

#include <string>

namespace pipewright {

/// Demangles a C++ name; other names are returned unchanged.
std::string demangled(const std::string& name);

} // namespace pipewright
