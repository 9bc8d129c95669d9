// SPDX-License-Identifier: GPL-3.0-or-later
// Memory for the products of OpenBLAS. A product works in a buffer of 128 MiB of address space from a pool that grows
// to one buffer per product at a time. Without memory for another buffer OpenBLAS tries again for ever
// (blas_memory_alloc, 0.3.21), so the pool is filled beforehand, where a failure can be reported.
#pragma once

namespace pipewright::kernels {

/// One object per thread that computes products, for the life of the thread. The pool then has a buffer for each of
/// them. O(threads).
class ProductBuffer {
public:
    /// Throws std::bad_alloc when there is no address space for the buffer.
    ProductBuffer();
    ~ProductBuffer();
    ProductBuffer(const ProductBuffer&) = delete;
    ProductBuffer& operator=(const ProductBuffer&) = delete;
};

} // namespace pipewright::kernels
