// SPDX-License-Identifier: GPL-3.0-or-later
// The matrix product for AVX2 and FMA, sixteen registers of eight.
#include "kernels/host/gemmtile.h"

void pipewright::kernels::gemmAvx2(const Product& product) { Gemm<8, 6>::run(product); }
