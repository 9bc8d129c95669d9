// SPDX-License-Identifier: GPL-3.0-or-later
// Buffers for the products of OpenBLAS. Each running product uses a buffer of 128 MiB of address space from a pool,
// which grows when all buffers are in use. When the allocation of a buffer fails, OpenBLAS retries for ever
// (blas_memory_alloc, 0.3.21). So the pool is filled before a thread's first product, where a failure can be reported.
#pragma once

namespace pipewright::kernels {

/// Each thread that computes products has one object for its lifetime. The pool then has a buffer for each of these
/// threads, or 32 if there are more. O(threads).
class ProductBuffer {
public:
    /// Throws std::bad_alloc when there is no address space for the buffer.
    ProductBuffer();
    ~ProductBuffer();
    ProductBuffer(const ProductBuffer&) = delete;
    ProductBuffer& operator=(const ProductBuffer&) = delete;
};

} // namespace pipewright::kernels
