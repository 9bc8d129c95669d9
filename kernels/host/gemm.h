// SPDX-License-Identifier: GPL-3.0-or-later
// The only call of the host's matrix product. Row-major, with a leading dimension per matrix so that a head's columns
// inside a wider matrix can be used where they are. OpenBLAS computes a product of given dimensions in a fixed order,
// so equal calls give equal bits on one machine.
//
// The pthread build is used for its locks and kept to one thread per caller: in the serial build (0.3.21 as
// packaged) about one in ten thousand concurrent products came out wrong, since callers share work space.
#pragma once

#include "kernels/host/productbuffers.h"

#include <cblas.h>

namespace pipewright::kernels {

struct Operand {
    const float* values = nullptr;
    int leading = 0;         ///< distance between rows as stored
    bool transposed = false; ///< use the stored matrix's transpose
};

/// OpenBLAS computes each product on the calling thread: the devices are threads already.
inline void keepToOneThread()
{
    [[maybe_unused]] static const bool once = (openblas_set_num_threads(1), true);
}

/// c[rows][columns] = alpha · a[rows][depth] · b[depth][columns] + beta · c. Throws std::bad_alloc when OpenBLAS has no
/// memory to work in: on a thread's first call only.
inline void gemm(int rows, int columns, int depth, float alpha, Operand a, Operand b, float beta, float* c,
                 int leadingC)
{
    keepToOneThread();
    static thread_local const ProductBuffer buffer;
    cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans, rows,
                columns, depth, alpha, a.values, a.leading, b.values, b.leading, beta, c, leadingC);
}

} // namespace pipewright::kernels
