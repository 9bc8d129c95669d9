// SPDX-License-Identifier: GPL-3.0-or-later
// The one seam to the host's matrix product. Row-major, with a leading dimension per matrix so that a
// head's columns inside a wider matrix can be used where they are. OpenBLAS computes a product of given
// dimensions in a fixed order, so equal calls give equal bits on one machine.
#pragma once

#include <cblas.h>

namespace pipewright::kernels {

struct Operand {
    const float* values = nullptr;
    int leading = 0;         ///< distance between rows as stored
    bool transposed = false; ///< use the stored matrix's transpose
};

/// c[rows][columns] = alpha · a[rows][depth] · b[depth][columns] + beta · c.
inline void gemm(int rows, int columns, int depth, float alpha, Operand a, Operand b, float beta, float* c,
                 int leadingC) {
    cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
                b.transposed ? CblasTrans : CblasNoTrans, rows, columns, depth, alpha, a.values, a.leading,
                b.values, b.leading, beta, c, leadingC);
}

} // namespace pipewright::kernels
