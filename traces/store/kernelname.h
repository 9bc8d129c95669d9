// SPDX-License-Identifier: GPL-3.0-or-later
// Names of kernels for people: "void axpy<float>(int, float const*)" of "_Z4axpyIfEvi…".
#pragma once

#include <string>

namespace pipewright {

/// The name as it was written, of one that a C++ compiler mangled; any other as it is.
std::string demangled(const std::string& name);

} // namespace pipewright
