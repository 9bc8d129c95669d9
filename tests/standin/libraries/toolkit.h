// SPDX-License-Identifier: GPL-3.0-or-later
// The CUDA version of a stand-in library. Each library is compiled once per version: libcudart.so.12 differs from .13
// only in this number.
#pragma once

namespace standin {

extern const int toolkit; ///< 12040, 13000

} // namespace standin
