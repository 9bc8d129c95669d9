// SPDX-License-Identifier: GPL-3.0-or-later
// libcublasLt: products of column-major fp32 or bf16 matrices with fp32 results or, for bf16, bf16 results, launched
// through the driver as in the real library. An algorithm stores the conditions for which it was chosen (alignment,
// multiprocessors, workspace, epilogue), and a product that violates them is reported. It supports only the epilogues
// that are used here and has no algorithm for others.
#include "green.h"
#include "launches.h"
#include "machine.h"
#include "toolkit.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <cublasLt.h>
#include <vector>

using namespace standin;

namespace {

/// The objects behind the handles, which are opaque (cublasLt.h:98 to 160).
struct Layout {
    cudaDataType type;
    std::uint64_t rows, columns;
    std::int64_t stride;
};
struct Description {
    cublasComputeType_t compute;
    std::int32_t transposeA = CUBLAS_OP_N, transposeB = CUBLAS_OP_N, multiprocessors = 0;
    std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT; ///< cublasLt.h:1317
    void* bias = nullptr;                               ///< cublasLt.h:1323, of the result's type
    void* aux = nullptr;                                ///< cublasLt.h:1350, likewise
    std::int64_t auxStride = 0;                         ///< cublasLt.h:1374

    bool hasBias() const // of BIAS, GELU_AUX_BIAS, BGRADB
    {
        return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS
               || epilogue == CUBLASLT_EPILOGUE_BGRADB;
    }
    bool hasAux() const
    {
        return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS
               || epilogue == CUBLASLT_EPILOGUE_DGELU;
    }
};
struct Preference {
    std::uint64_t workspace;
    std::uint32_t reductions, alignments[4];
};
struct Algorithm {
    std::uint64_t workspace, magic;
    std::uint32_t alignments[4];
    std::int32_t multiprocessors;
    std::uint32_t epilogue;
    std::uint8_t biasAligned, auxAligned; ///< bytes
};
constexpr std::uint64_t magic = 0x4c74;
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

template<typename Inner, typename Outer>
Inner& in(Outer* opaque)
{
    return *reinterpret_cast<Inner*>(opaque);
}

template<typename Value>
cublasStatus_t set(Value& value, const void* from, std::size_t bytes)
{
    if (bytes != sizeof value) // cublasLt.h, at …SetAttribute: "if sizeInBytes doesn't match"
        return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&value, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/// Rounds to bf16, to nearest, ties to even.
float rounded(float value)
{
    auto bits = std::bit_cast<std::uint32_t>(value);
    bits += 0x7fff + (bits >> 16 & 1);
    return std::bit_cast<float>(bits & 0xffff0000);
}

float widened(std::uint16_t bits)
{
    return std::bit_cast<float>(std::uint32_t(bits) << 16);
}

struct Matrix {
    const void* data;
    Layout layout;
    bool transposed, rounds;
    float at(std::uint64_t row, std::uint64_t column) const
    {
        const std::uint64_t stride = static_cast<std::uint64_t>(layout.stride),
                            i = transposed ? column + row * stride : row + column * stride;
        if (layout.type == CUDA_R_16BF)
            return widened(static_cast<const std::uint16_t*>(data)[i]);
        const float value = static_cast<const float*>(data)[i];
        return rounds ? rounded(value) : value;
    }
};

// "GELU point-wise transform" (cublasLt.h:1982): in the tanh form, for which PyTorch uses this epilogue.
float gelu(float x)
{
    return x / (1 + std::exp(-2 * 0.7978845608f * (x + 0.044715f * x * x * x)));
}
float slopeOfGelu(float x)
{
    const float sigmoid = 1 / (1 + std::exp(-2 * 0.7978845608f * (x + 0.044715f * x * x * x)));
    return sigmoid + x * sigmoid * (1 - sigmoid) * 2 * 0.7978845608f * (1 + 3 * 0.044715f * x * x);
}

std::uint16_t narrowed(float value)
{
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded(value)) >> 16);
}

/// Numbers of a result's type.
struct Numbers {
    void* data;
    cudaDataType type;
    float get(std::uint64_t i) const
    {
        return type == CUDA_R_16BF ? widened(static_cast<const std::uint16_t*>(data)[i])
                                   : static_cast<const float*>(data)[i];
    }
    void set(std::uint64_t i, float value) const
    {
        if (type == CUDA_R_16BF)
            static_cast<std::uint16_t*>(data)[i] = narrowed(value);
        else
            static_cast<float*>(data)[i] = value;
    }
};

struct Multiplication {
    Matrix a, b;
    float alpha, beta;
    const void* c;
    void* d;
    Layout result;
    std::uint64_t inner;
    Description with;
};

void multiply(const Multiplication& of)
{
    const auto stride = static_cast<std::uint64_t>(of.result.stride),
               auxStride = static_cast<std::uint64_t>(of.with.auxStride);
    const cudaDataType type = of.result.type;
    const Numbers c{const_cast<void*>(of.c), type}, d{of.d, type}, bias{of.with.bias, type}, aux{of.with.aux, type};
    for (std::uint64_t column = 0; column < of.result.columns; ++column)
        for (std::uint64_t row = 0; row < of.result.rows; ++row) {
            float sum = 0;
            for (std::uint64_t k = 0; k < of.inner; ++k)
                sum += of.a.at(row, k) * of.b.at(k, column);
            sum = of.alpha * sum + (of.beta == 0 ? 0 : of.beta * c.get(row + column * stride));
            const std::uint64_t inAux = row + column * auxStride;
            switch (of.with.epilogue) {
            case CUBLASLT_EPILOGUE_BIAS: sum += bias.get(row); break; // "broadcasted to all columns", cublasLt.h:1949
            case CUBLASLT_EPILOGUE_GELU_AUX_BIAS: sum += bias.get(row); [[fallthrough]]; // cublasLt.h:1997
            case CUBLASLT_EPILOGUE_GELU_AUX: // "outputs GELU input as a separate matrix", cublasLt.h:1986
                aux.set(inAux, sum);
                sum = gelu(sum);
                break;
            case CUBLASLT_EPILOGUE_DGELU: sum *= slopeOfGelu(aux.get(inAux)); break; // cublasLt.h:2004
            default: break;
            }
            d.set(row + column * stride, sum);
        }
    // "The bias size corresponds to the number of columns of the matrix D. The reduction happens over the GEMM's "k"
    // dimension. Stores Bias gradient" (cublasLt.h:2030): it is replaced, whatever beta is.
    if (of.with.epilogue == CUBLASLT_EPILOGUE_BGRADB)
        for (std::uint64_t column = 0; column < of.result.columns; ++column) {
            float sum = 0;
            for (std::uint64_t k = 0; k < of.inner; ++k)
                sum += of.b.at(k, column);
            bias.set(column, sum);
        }
}

std::uint64_t bytesOf(const Layout& layout)
{
    return layout.rows == 0 || layout.columns == 0
               ? 0
               : (layout.type == CUDA_R_16BF ? 2 : 4)
                     * ((layout.columns - 1) * static_cast<std::uint64_t>(layout.stride) + layout.rows);
}

/// Whether there is an algorithm for a description's epilogue with these matrices.
bool canDo(const Description& product, const Layout& result)
{
    if (product.epilogue == CUBLASLT_EPILOGUE_DEFAULT)
        return true;
    if (!product.hasBias() && !product.hasAux())
        return false; // a kind that is not used here
    if (failsFromNow("epilogue"))
        return false;
    // A leading dimension "must be divisible by 8 and be no less than the number of rows in the output matrix"
    // (cublasLt.h:1380).
    return !product.hasAux()
           || (product.auxStride % 8 == 0 && product.auxStride >= static_cast<std::int64_t>(result.rows));
}

/// "Routines that don't dereference this pointer, like cublasLtMatmulAlgoGetHeuristic() depend on its value to
/// determine expected pointer alignment" (cublasLt.h:1333).
std::uint8_t alignmentOf(const void* place)
{
    const auto at = reinterpret_cast<std::uintptr_t>(place);
    return at % 16 == 0 ? 16 : at % 4 == 0 ? 4 : 2;
}

} // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle)
{
    if (settings().driver / 1000
        < toolkit / 1000) // cuBLAS documentation, cublasStatus_t: "an error in the hardware setup"
        return CUBLAS_STATUS_NOT_INITIALIZED;
    hold("cuBLASLt handles", 1);
    *handle = reinterpret_cast<cublasLtHandle_t>(new int(0));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    hold("cuBLASLt handles", -1);
    delete reinterpret_cast<int*>(handle);
    return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "success";
    case CUBLAS_STATUS_INVALID_VALUE: return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "the functionality requested is not supported";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "the GPU program failed to execute";
    default: return "unknown status";
    }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    if (scale != CUDA_R_32F || (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_16BF))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *description = reinterpret_cast<cublasLtMatmulDesc_t>(new Description{compute});
    hold("cuBLASLt descriptors", 1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description)
{
    hold("cuBLASLt descriptors", description ? -1 : 0);
    delete reinterpret_cast<Description*>(description);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t what,
                                              const void* value, std::size_t bytes)
{
    auto& made = in<Description>(description);
    switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(made.transposeA, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(made.transposeB, value, bytes);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET: return set(made.multiprocessors, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(made.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(made.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return set(made.aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return set(made.auxStride, value, bytes);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride)
{
    if ((type != CUDA_R_32F && type != CUDA_R_16BF) || stride < static_cast<std::int64_t>(rows))
        return CUBLAS_STATUS_INVALID_VALUE;
    *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, stride});
    hold("cuBLASLt descriptors", 1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    hold("cuBLASLt descriptors", layout ? -1 : 0);
    delete reinterpret_cast<Layout*>(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference)
{
    *preference = reinterpret_cast<cublasLtMatmulPreference_t>(
        new Preference{0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}}); // cublasLt.h:2104
    hold("cuBLASLt descriptors", 1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    hold("cuBLASLt descriptors", preference ? -1 : 0);
    delete reinterpret_cast<Preference*>(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t what, const void* value,
                                                    std::size_t bytes)
{
    auto& made = in<Preference>(preference);
    switch (what) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return set(made.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return set(made.reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return set(made.alignments[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return set(made.alignments[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return set(made.alignments[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return set(made.alignments[3], value, bytes);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t* results, int* found)
{
    count("algorithms asked for");
    *found = 0;
    if (asked < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    const auto& wanted = in<Preference>(preference);
    const auto& product = in<Description>(description);
    // cuBLAS documentation, table of cublasLtMatmul() for CUBLAS_COMPUTE_32F: factors of one type, results of fp32 or
    // of the factors' type.
    const cudaDataType result = in<Layout>(d).type;
    if (in<Layout>(a).type != in<Layout>(b).type || in<Layout>(c).type != result
        || (result != CUDA_R_32F && result != in<Layout>(a).type)
        || (in<Layout>(a).type == CUDA_R_16BF && product.compute != CUBLAS_COMPUTE_32F)
        || !canDo(product, in<Layout>(d)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    Algorithm chosen{
        wanted.workspace,        magic, {}, product.multiprocessors, product.epilogue, alignmentOf(product.bias),
        alignmentOf(product.aux)};
    std::memcpy(chosen.alignments, wanted.alignments, sizeof chosen.alignments);
    results[0] = {};
    std::memcpy(results[0].algo.data, &chosen, sizeof chosen);
    results[0].workspaceSize = wanted.workspace;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t aLayout, const void* b, cublasLtMatrixLayout_t bLayout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspaceBytes, cudaStream_t handle)
{
    count("products");
    const auto& product = in<Description>(description);
    const Layout &left = in<Layout>(aLayout), &right = in<Layout>(bLayout), &result = in<Layout>(dLayout);
    Algorithm chosen{};
    std::memcpy(&chosen, algorithm->data, sizeof chosen);
    const bool transposeA = product.transposeA == CUBLAS_OP_T, transposeB = product.transposeB == CUBLAS_OP_T;
    const std::uint64_t inner = transposeA ? left.rows : left.columns;
    if (chosen.magic != magic || chosen.workspace > workspaceBytes || chosen.epilogue != product.epilogue
        || (product.hasBias() && !product.bias) || (product.hasAux() && !product.aux)
        || (transposeA ? left.columns : left.rows) != result.rows || (transposeB ? right.columns : right.rows) != inner
        || (transposeB ? right.rows : right.columns) != result.columns)
        return CUBLAS_STATUS_INVALID_VALUE;
    Stream* stream = streamOf(handle, currentDevice());
    if (!stream)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (failsNow("product") || isLost(stream->device))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    const void* places[] = {a, b, c, d};
    for (int i = 0; i < 4; ++i)
        if (reinterpret_cast<std::uintptr_t>(places[i]) % chosen.alignments[i] != 0)
            broken("a matrix is less aligned than its algorithm was chosen for", "cublasLt.h:2101");
    if ((product.hasBias() && alignmentOf(product.bias) < chosen.biasAligned)
        || (product.hasAux() && alignmentOf(product.aux) < chosen.auxAligned))
        broken("what an epilogue reads is less aligned than its algorithm was chosen for", "cublasLt.h:1333");
    const std::uint64_t width = result.type == CUDA_R_16BF ? 2 : 4,
                        ofBias =
                            width
                            * (product.epilogue == CUBLASLT_EPILOGUE_BGRADB ? result.columns
                                                                            : result.rows); // cublasLt.h:1328, 2032
    if ((product.hasBias() && deviceOf(product.bias, ofBias) != stream->device)
        || (product.hasAux()
            && deviceOf(product.aux, bytesOf({result.type, result.rows, result.columns, product.auxStride}))
                   != stream->device))
        broken("what an epilogue reads or writes is not in the memory of the stream's GPU", "cublasLt.h:1323");
    for (const auto& [place, layout] : {std::pair{a, left}, {b, right}, {static_cast<const void*>(d), result}})
        if (bytesOf(layout) > 0 && deviceOf(place, bytesOf(layout)) != stream->device)
            broken("a matrix is not in the memory of the stream's GPU", "cuBLAS documentation, cublasLtMatmul()");
    if (deviceOf(workspace, chosen.workspace) != stream->device)
        broken("a workspace is not in the memory of the stream's GPU",
               "cublasLt.h, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES");
    // 0: the device's number is assumed (cublasLt.h:1415).
    const int there = stream->slice ? static_cast<int>(stream->slice->multiprocessors) : settings().multiprocessors;
    if ((chosen.multiprocessors == 0 ? settings().multiprocessors : chosen.multiprocessors) != there)
        count("products chosen for other multiprocessors");
    count("products for an alignment of " + std::to_string(chosen.alignments[0]));
    count("bytes of products", static_cast<long>(bytesOf(left) + bytesOf(right) + bytesOf(result)));
    const bool stored = left.type == CUDA_R_16BF, narrow = product.compute == CUBLAS_COMPUTE_32F_FAST_16BF;
    if (stored)
        count("products of bf16 factors");
    if (product.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
        count("products with an epilogue");
    float by = *static_cast<const float*>(alpha);
    if (failsFromNow("wrong")) // silently
        by *= 1.5f;
    const Multiplication work{{a, left, transposeA, narrow},
                              {b, right, transposeB, narrow},
                              by,
                              *static_cast<const float*>(beta),
                              c,
                              d,
                              result,
                              inner,
                              product};
    const bool isLaunched = launchByDriver(
        *stream, stored || narrow ? "sm90_gemm_bf16_stand_in" : "sm90_gemm_f32_stand_in", [work] { multiply(work); });
    return isLaunched ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

} // extern "C"
