// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/host/gemm.h"

namespace pipewright::kernels {

void gemm(const Product& product) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return gemmAvx512(product);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return gemmAvx2(product);
#endif
    gemmBaseline(product);
}

} // namespace pipewright::kernels
