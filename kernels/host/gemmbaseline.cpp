// SPDX-License-Identifier: GPL-3.0-or-later
// The matrix product for any machine, sixteen registers of four.
#include "kernels/host/gemmtile.h"

void pipewright::kernels::gemmBaseline(const Product& product) { Gemm<4, 6>::run(product); }
