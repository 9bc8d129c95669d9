// SPDX-License-Identifier: GPL-3.0-or-later
// The host's matrix product. Row-major, with a leading dimension per matrix so that a head's columns inside
// a wider matrix can be used where they are. Written here because devices are threads: the serial build of
// OpenBLAS shares its work buffers between concurrent callers and silently returned wrong products (up to
// 5 % of small ones from six threads, version 0.3.21), and the threaded build brings a pool of its own.
//
// Every element of c is the sum of its products in ascending depth, `depthBlock` at a time, wherever it
// lies in the matrix: equal inputs give equal bits on one machine. All memory is on the stack.
#pragma once

#include <cstddef>

namespace pipewright::kernels {

struct Operand {
    const float* values = nullptr;
    int leading = 0;         ///< distance between rows as stored
    bool transposed = false; ///< use the stored matrix's transpose
};

struct Product {
    int rows = 0, columns = 0, depth = 0;
    float alpha = 1;
    Operand a, b;
    float beta = 0; ///< 0: what c holds is not read
    float* c = nullptr;
    int leadingC = 0;
};

/// c[rows][columns] = alpha · a[rows][depth] · b[depth][columns] + beta · c.
void gemm(const Product& product);

inline void gemm(int rows, int columns, int depth, float alpha, Operand a, Operand b, float beta, float* c,
                 int leadingC) {
    gemm({rows, columns, depth, alpha, a, b, beta, c, leadingC});
}

/// The same product in code for one register width; the machine must have it.
void gemmBaseline(const Product& product);
void gemmAvx2(const Product& product);
void gemmAvx512(const Product& product);

} // namespace pipewright::kernels
