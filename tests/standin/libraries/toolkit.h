// SPDX-License-Identifier: GPL-3.0-or-later
// Which CUDA a library is of, each compiled once for both: libcudart.so.12 is the same as .13 but for this.
#pragma once

namespace standin {

extern const int toolkit; ///< 12040, 13000

} // namespace standin
