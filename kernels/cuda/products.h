// SPDX-License-Identifier: GPL-3.0-or-later
// Matrix products through cuBLASLt, which is opened at run time. Factors are fp32 or stored bf16; fp32 factors may be
// rounded to bf16 for the tensor cores; sums are always fp32, and results of bf16 factors may be stored in bf16.
// Biases, GELU and their gradients go with a product where the library can do that (its epilogues). The algorithm for a
// shape is chosen once and kept, so a warm step allocates nothing and repeats its bits. Without the library, and only
// then, an own kernel does the same, slowly. One object per device thread.
#pragma once

#include <cstdint>
#include <cuda_runtime_api.h>
#include <memory>
#include <string>

#pragma GCC visibility push(default)

namespace pipewright::kernels::cuda {

/// The precision in which fp32 factors are multiplied.
enum class Precision { Float32, BFloat16 };

/// A row-major matrix. Both factors of a product are read as bf16 where both have `stored`.
struct ProductFactor {
    const float* data;
    const std::uint16_t* stored; ///< the same values in bf16; null: none
    int stride;
    bool transposed;
};

/// Applied to a product's result before it is written.
struct Epilogue {
    enum class Kind {
        None,
        Bias,         ///< a number per column is added
        Gelu,         ///< GELU of the result; the result itself is kept in `aux`
        GeluBias,     ///< GELU of result plus bias, which is kept in `aux`
        GeluGradient, ///< times the slope of GELU at `aux`
        BiasGradient, ///< replaces `bias` by sums over the transposed first factor, one for each row of the result
    };
    Kind kind = Kind::None;
    const void* bias = nullptr; ///< as the result is stored, in fp32 or bf16
    const void* aux = nullptr;  ///< stored likewise; dense, of the result's shape
};

/// result[rows][columns] = epilogue(a[rows][inner] · b[inner][columns] + beta · result), dense.
struct Product {
    int rows, columns, inner;
    ProductFactor a, b;
    float beta;
    void* result;
    bool storedResult = false; ///< it is bf16; else fp32
    Epilogue epilogue = {};
};

class Products {
public:
    /// `library` is libcublasLt's path, empty for the own kernel; `workspace` is device memory for it. When the library
    /// cannot be used, whyNot() says why and the own kernel takes over. `multiprocessors`: number that its streams
    /// have, for the choice of algorithms; 0: the whole GPU.
    Products(const std::string& library, void* workspace, std::size_t workspaceBytes, int multiprocessors = 0);
    ~Products();
    Products(const Products&) = delete;
    Products& operator=(const Products&) = delete;
    const std::string& whyNot() const;
    /// Failures of the library since the last call; empty: none. A failed product is not computed otherwise.
    std::string takeFailure();
    /// Epilogues without an algorithm, since the last call; each note is returned once.
    std::string takeNote();

    /// False: nothing was issued, since the library does not support this epilogue here. Never without an epilogue.
    bool product(cudaStream_t stream, Precision precision, const Product& product);

private:
    struct Library;
    std::unique_ptr<Library> m_library;
    std::string m_whyNot, m_failure, m_note;
};

} // namespace pipewright::kernels::cuda

#pragma GCC visibility pop
