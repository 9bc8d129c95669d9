// SPDX-License-Identifier: GPL-3.0-or-later
// Products by cuBLASLt, whose algorithm is asked for once per shape, strides and alignment; without it by an own kernel
// in shared-memory tiles of 16 x 16. 2 · rows · columns · inner operations.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/products.h"

#include <cstdint>
#include <cublasLt.h>
#include <dlfcn.h>
#include <map>
#include <tuple>
#include <utility>

namespace pipewright::kernels::cuda {

namespace {

constexpr int tile = 16;

/// The plain product, one element per thread, the sum over `inner` in order.
__global__ void plainProduct(int rows, int columns, int inner, const float* a, int aStride, bool aTransposed,
                             const float* b, int bStride, bool bTransposed, float beta, float* result)
{
    __shared__ float left[tile][tile + 1], right[tile][tile + 1];
    const int row = int(blockIdx.y * tile + threadIdx.y), column = int(blockIdx.x * tile + threadIdx.x);
    float sum = 0;
    for (int first = 0; first < inner; first += tile) {
        const int i = first + int(threadIdx.x), j = first + int(threadIdx.y);
        left[threadIdx.y][threadIdx.x] = row < rows && i < inner ? (aTransposed ? a[std::size_t(i) * aStride + row]
                                                                                : a[std::size_t(row) * aStride + i])
                                                                 : 0.0f;
        right[threadIdx.y][threadIdx.x] =
            column < columns && j < inner
                ? (bTransposed ? b[std::size_t(column) * bStride + j] : b[std::size_t(j) * bStride + column])
                : 0.0f;
        __syncthreads();
        for (int k = 0; k < tile; ++k)
            sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    if (row < rows && column < columns) {
        float& place = result[std::size_t(row) * columns + column];
        place = sum + (beta == 0 ? 0.0f : beta * place);
    }
}

__global__ void addBias(std::size_t count, int columns, const float* bias, float* output)
{
    const std::size_t i = std::size_t(blockIdx.x) * blockSize + threadIdx.x;
    if (i < count)
        output[i] += bias[i % columns];
}

__global__ void biasGradient(int rows, int columns, const float* values, float* sums)
{
    sumColumns<float>(
        rows, columns, [=](std::int64_t row, std::int64_t column) { return values[row * columns + column]; },
        [=](std::int64_t column, float sum) { sums[column] += sum; });
}

/// What an algorithm may take for granted of a matrix. The most is what loads of four numbers need, and no more than
/// every tensor of a buffer has whose tensors are all of a multiple of four numbers: buffers begin at multiples of 64
/// bytes, and where a tensor lies in one depends on the schedule, on which no algorithm may depend.
std::uint32_t alignmentOf(const float* data)
{
    constexpr std::uint32_t most = 4 * sizeof(float);
    return reinterpret_cast<std::uintptr_t>(data) % most == 0 ? most : sizeof(float);
}

} // namespace

#define PIPEWRIGHT_CUBLASLT(use)                                                                                       \
    use(cublasLtCreate) use(cublasLtDestroy) use(cublasLtMatmul) use(cublasLtMatmulDescCreate)                         \
        use(cublasLtMatmulDescDestroy) use(cublasLtMatmulDescSetAttribute) use(cublasLtMatrixLayoutCreate)             \
            use(cublasLtMatrixLayoutDestroy) use(cublasLtMatmulPreferenceCreate) use(cublasLtMatmulPreferenceDestroy)  \
                use(cublasLtMatmulPreferenceSetAttribute) use(cublasLtMatmulAlgoGetHeuristic)                          \
                    use(cublasLtGetStatusString)

struct Products::Library {
#define PIPEWRIGHT_DECLARE(name) decltype(&::name) name = nullptr;
    PIPEWRIGHT_CUBLASLT(PIPEWRIGHT_DECLARE)
#undef PIPEWRIGHT_DECLARE

    /// All that decides about an algorithm; last how the factors and the result are aligned, since tensors are packed
    /// without gaps and the library would take it for granted that they begin at multiples of 256 bytes.
    using Key =
        std::tuple<int, int, int, int, int, bool, bool, bool, Precision, std::uint32_t, std::uint32_t, std::uint32_t>;
    struct Plan {
        cublasLtMatmulDesc_t operation = nullptr;
        cublasLtMatrixLayout_t a = nullptr, b = nullptr, result = nullptr;
        cublasLtMatmulAlgo_t algorithm{};
        cublasStatus_t status = CUBLAS_STATUS_SUCCESS; ///< of making it
        bool found = false;                            ///< an algorithm
    };

    std::string open(const std::string& path)
    {
        if (path.empty() || path.front() != '/')
            return path + " is not an absolute path";
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); // never closed: CUDA does not like that
        if (!library)
            return dlerror();
#define PIPEWRIGHT_LOAD(name)                                                                                          \
    if (name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); !name)                                         \
        return path + " has no " #name;
        PIPEWRIGHT_CUBLASLT(PIPEWRIGHT_LOAD)
#undef PIPEWRIGHT_LOAD
        const cublasStatus_t status = cublasLtCreate(&handle);
        return status == CUBLAS_STATUS_SUCCESS ? std::string() : "cublasLtCreate: error " + std::to_string(status);
    }

    ~Library()
    {
        for (auto& [key, plan] : plans) {
            cublasLtMatmulDescDestroy(plan.operation);
            for (cublasLtMatrixLayout_t layout : {plan.a, plan.b, plan.result})
                cublasLtMatrixLayoutDestroy(layout);
        }
        if (handle)
            cublasLtDestroy(handle);
    }

    /// The plan's `a` is our second factor: see below.
    const Plan& planFor(const Key& key)
    {
        const auto [found, isNew] = plans.try_emplace(key);
        Plan& plan = found->second;
        if (!isNew)
            return plan;
        const auto [rows, columns, inner, aStride, bStride, aTransposed, bTransposed, adds, precision, aAligned,
                    bAligned, resultAligned] = key;
        const auto step = [&plan](cublasStatus_t status) {
            plan.status = plan.status == CUBLAS_STATUS_SUCCESS ? status : plan.status;
        };
        const auto describe = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
            step(cublasLtMatmulDescSetAttribute(plan.operation, attribute, &value, sizeof value));
        };
        const cublasComputeType_t compute =
            precision == Precision::BFloat16 ? CUBLAS_COMPUTE_32F_FAST_16BF : CUBLAS_COMPUTE_32F;
        step(cublasLtMatmulDescCreate(&plan.operation, compute, CUDA_R_32F));
        const cublasOperation_t transposeA = aTransposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                                transposeB = bTransposed ? CUBLAS_OP_T : CUBLAS_OP_N;
        // A row-major matrix is the transpose of a column-major one: the product of the transposes, swapped.
        step(cublasLtMatrixLayoutCreate(&plan.a, CUDA_R_32F, aTransposed ? rows : inner, aTransposed ? inner : rows,
                                        aStride));
        step(cublasLtMatrixLayoutCreate(&plan.b, CUDA_R_32F, bTransposed ? inner : columns,
                                        bTransposed ? columns : inner, bStride));
        step(cublasLtMatrixLayoutCreate(&plan.result, CUDA_R_32F, columns, rows, columns));
        std::swap(plan.a, plan.b);
        describe(CUBLASLT_MATMUL_DESC_TRANSA, transposeB);
        describe(CUBLASLT_MATMUL_DESC_TRANSB, transposeA);
        if (multiprocessors > 0) // else it takes those of the whole GPU for granted
            describe(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, std::int32_t(multiprocessors));

        cublasLtMatmulPreference_t preference = nullptr;
        step(cublasLtMatmulPreferenceCreate(&preference));
        const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
            step(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
        };
        prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceBytes);
        // Sums split over blocks must not be added in the order in which these happen to end.
        prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
               std::uint32_t(CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, bAligned);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aAligned);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, resultAligned);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, resultAligned);
        cublasLtMatmulHeuristicResult_t choice{};
        int count = 0;
        if (plan.status == CUBLAS_STATUS_SUCCESS)
            step(cublasLtMatmulAlgoGetHeuristic(handle, plan.operation, plan.a, plan.b, plan.result, plan.result,
                                                preference, 1, &choice, &count));
        cublasLtMatmulPreferenceDestroy(preference);
        plan.found = count == 1;
        plan.algorithm = choice.algo;
        return plan;
    }

    /// Empty: it was issued.
    std::string multiply(cudaStream_t stream, const Key& key, const float* a, const float* b, float beta, float* result)
    {
        const Plan& plan = planFor(key);
        const float one = 1;
        cublasStatus_t status = plan.status;
        if (status == CUBLAS_STATUS_SUCCESS && plan.found)
            status = cublasLtMatmul(handle, plan.operation, &one, b, plan.a, a, plan.b, &beta, result, plan.result,
                                    result, plan.result, &plan.algorithm, workspace, workspaceBytes, stream);
        if (status == CUBLAS_STATUS_SUCCESS && plan.found)
            return {};
        const int rows = std::get<0>(key), columns = std::get<1>(key), inner = std::get<2>(key);
        return "cuBLASLt cannot multiply " + std::to_string(rows) + " x " + std::to_string(inner) + " by "
               + std::to_string(inner) + " x " + std::to_string(columns) + ": "
               + (status == CUBLAS_STATUS_SUCCESS ? "it knows no algorithm" : cublasLtGetStatusString(status));
    }

    cublasLtHandle_t handle = nullptr;
    void* workspace = nullptr;
    std::size_t workspaceBytes = 0;
    int multiprocessors = 0;
    std::map<Key, Plan> plans;
};

Products::Products(const std::string& library, void* workspace, std::size_t workspaceBytes, int multiprocessors)
{
    if (library.empty()) {
        m_whyNot = "no cuBLASLt was named";
        return;
    }
    auto opened = std::make_unique<Library>();
    opened->workspace = workspace;
    opened->workspaceBytes = workspaceBytes;
    opened->multiprocessors = multiprocessors;
    m_whyNot = opened->open(library);
    if (m_whyNot.empty())
        m_library = std::move(opened);
}

Products::~Products() = default;

const std::string& Products::whyNot() const
{
    return m_whyNot;
}

std::string Products::takeFailure()
{
    return std::exchange(m_failure, {});
}

void Products::product(cudaStream_t stream, Precision precision, int rows, int columns, int inner, Factor a, Factor b,
                       float beta, float* result)
{
    if (m_library) {
        if (std::string why =
                m_library->multiply(stream,
                                    {rows, columns, inner, a.stride, b.stride, a.transposed, b.transposed, beta != 0,
                                     precision, alignmentOf(a.data), alignmentOf(b.data), alignmentOf(result)},
                                    a.data, b.data, beta, result);
            !why.empty() && m_failure.empty())
            m_failure = std::move(why);
        return;
    }
    const dim3 blocks(unsigned(columns + tile - 1) / tile, unsigned(rows + tile - 1) / tile);
    plainProduct<<<blocks, dim3(tile, tile), 0, stream>>>(rows, columns, inner, a.data, a.stride, a.transposed, b.data,
                                                          b.stride, b.transposed, beta, result);
}

void run(const Context& context, const LinearForward& call)
{
    const auto [shape, input, weight, bias, output, store] = call;
    context.products->product(context.stream, context.precision, shape.rows, shape.outputs, shape.inputs,
                              {input.data(), shape.inputs, false}, {weight.data(), shape.inputs, true},
                              store == Store::Add ? 1.0f : 0.0f, output.data());
    if (!bias.empty() && !output.empty())
        addBias<<<blocksFor(output.size()), blockSize, 0, context.stream>>>(output.size(), shape.outputs, bias.data(),
                                                                            output.data());
}

void run(const Context& context, const LinearInputGrad& call)
{
    const auto [shape, outputGrad, weight, inputGrad, store] = call;
    context.products->product(context.stream, context.precision, shape.rows, shape.inputs, shape.outputs,
                              {outputGrad.data(), shape.outputs, false}, {weight.data(), shape.inputs, false},
                              store == Store::Add ? 1.0f : 0.0f, inputGrad.data());
}

void run(const Context& context, const LinearWeightGrad& call)
{
    const auto [shape, input, outputGrad, weightGrad, biasGrad] = call;
    context.products->product(context.stream, context.precision, shape.outputs, shape.inputs, shape.rows,
                              {outputGrad.data(), shape.outputs, true}, {input.data(), shape.inputs, false}, 1.0f,
                              weightGrad.data());
    if (!biasGrad.empty())
        biasGradient<<<columnBlocks(std::size_t(shape.outputs)), blockSize, 0, context.stream>>>(
            shape.rows, shape.outputs, outputGrad.data(), biasGrad.data());
}

} // namespace pipewright::kernels::cuda
