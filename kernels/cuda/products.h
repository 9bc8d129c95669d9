// SPDX-License-Identifier: GPL-3.0-or-later
// Matrix products through cuBLASLt, which is opened at run time. Values stay fp32
// in memory; the factors may be rounded to bf16 on the way into the tensor cores, sums are fp32 always. The
// algorithm for a shape is chosen once and kept, so a warm step allocates nothing and repeats its bits. Without
// the library, and only then, an own kernel does the same, slowly. One object per device thread.
#pragma once

#include <cuda_runtime_api.h>
#include <memory>
#include <string>

namespace pipewright::kernels::cuda {

enum class Precision { Float32, BFloat16 };

class Products {
public:
    /// `library` is libcublasLt's path, empty for the own kernel; `workspace` is device memory for it. When the
    /// library cannot be used, whyNot() says why and the own kernel takes over.
    /// `multiprocessors`: how many its streams have, which decides about algorithms; 0: all of the GPU.
    Products(const std::string& library, void* workspace, std::size_t workspaceBytes, int multiprocessors = 0);
    ~Products();
    Products(const Products&) = delete;
    Products& operator=(const Products&) = delete;
    const std::string& whyNot() const;
    /// What the library refused since the last time this was asked; empty: nothing. Nothing else did it instead.
    std::string takeFailure();

    struct Factor {
        const float* data;
        int stride;
        bool transposed;
    };
    /// result[rows][columns] = a[rows][inner] · b[inner][columns] + beta · result; all row-major.
    void product(cudaStream_t stream, Precision precision, int rows, int columns, int inner, Factor a, Factor b,
                 float beta, float* result);

private:
    struct Library;
    std::unique_ptr<Library> m_library;
    std::string m_whyNot, m_failure;
};

} // namespace pipewright::kernels::cuda
