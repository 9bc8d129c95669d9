// SPDX-License-Identifier: GPL-3.0-or-later
// The matrix product for AVX-512, thirty-two registers of sixteen.
#include "kernels/host/gemmtile.h"

void pipewright::kernels::gemmAvx512(const Product& product) { Gemm<16, 8>::run(product); }
