// SPDX-License-Identifier: GPL-3.0-or-later
// Products by cuBLASLt, which is asked for an algorithm once per shape, strides, alignment and epilogue; without it by
// an own kernel in shared-memory tiles of 16 x 16. 2 · rows · columns · inner operations.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/stored.cuh"

#include <compare>
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
template<typename Factor, typename Element>
__global__ void plainProduct(int rows, int columns, int inner, In<Factor> a, int aStride, bool aTransposed,
                             In<Factor> b, int bStride, bool bTransposed, float beta, Out<Element> result)
{
    __shared__ float left[tile][tile + 1], right[tile][tile + 1];
    const int row = int(blockIdx.y * tile + threadIdx.y), column = int(blockIdx.x * tile + threadIdx.x);
    float sum = 0;
    for (int first = 0; first < inner; first += tile) {
        const int i = first + int(threadIdx.x), j = first + int(threadIdx.y);
        left[threadIdx.y][threadIdx.x] = row < rows && i < inner ? aTransposed ? a[std::int64_t(i) * aStride + row]
                                                                               : a[std::int64_t(row) * aStride + i]
                                                                 : 0.0f;
        right[threadIdx.y][threadIdx.x] =
            column < columns && j < inner
                ? bTransposed ? b[std::int64_t(column) * bStride + j] : b[std::int64_t(j) * bStride + column]
                : 0.0f;
        __syncthreads();
        for (int k = 0; k < tile; ++k)
            sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    if (row < rows && column < columns) {
        const auto place = result[std::int64_t(row) * columns + column];
        place = sum + (beta == 0 ? 0.0f : beta * place);
    }
}

template<typename Bias, typename Element>
__global__ void addBias(std::size_t count, int columns, In<Bias> bias, Out<Element> output)
{
    const std::size_t i = std::size_t(blockIdx.x) * blockSize + threadIdx.x;
    if (i < count)
        output[i] += bias[i % columns];
}

template<typename Element>
__global__ void biasGradient(int rows, int columns, In<Element> values, float* sums)
{
    sumColumns<float>(
        rows, columns, [=](std::int64_t row, std::int64_t column) { return values[row * columns + column]; },
        [=](std::int64_t column, float sum) { sums[column] += sum; });
}

/// The alignment of a matrix that an algorithm may assume: at most 16 bytes, which vector loads need. Buffers begin at
/// multiples of 64 bytes, but the place of a tensor in its buffer depends on the schedule; a larger alignment would
/// make the choice of algorithms, and so the bits, depend on it.
std::uint32_t alignmentOf(const void* data, bool stored)
{
    constexpr std::uint32_t most = 16;
    return reinterpret_cast<std::uintptr_t>(data) % most == 0 ? most : stored ? sizeof(Bf16) : sizeof(float);
}

} // namespace

/// Everything on which the choice of an algorithm depends. Includes alignments, since tensors are packed without gaps
/// and the library would otherwise assume 256 bytes.
struct ProductKey {
    int rows, columns, inner, aStride, bStride;
    bool aTransposed, bTransposed, adds, stored, storedResult; ///< stored: in bf16, the factors or the result
    Precision precision;
    Epilogue::Kind epilogue;
    std::uint32_t aAligned, bAligned, resultAligned, biasAligned, auxAligned;
    auto operator<=>(const ProductKey&) const = default;
};

namespace {

ProductKey keyOf(Precision precision, const Product& of)
{
    const bool stored = of.a.stored && of.b.stored;
    return {of.rows,
            of.columns,
            of.inner,
            of.a.stride,
            of.b.stride,
            of.a.transposed,
            of.b.transposed,
            of.beta != 0,
            stored,
            of.storedResult,
            stored ? Precision::BFloat16 : precision,
            of.epilogue.kind,
            stored ? alignmentOf(of.a.stored, true) : alignmentOf(of.a.data, false),
            stored ? alignmentOf(of.b.stored, true) : alignmentOf(of.b.data, false),
            alignmentOf(of.result, of.storedResult),
            alignmentOf(of.epilogue.bias, of.storedResult),
            alignmentOf(of.epilogue.aux, of.storedResult)};
}

cublasLtEpilogue_t epilogueOf(Epilogue::Kind kind)
{
    switch (kind) {
    case Epilogue::Kind::None: return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::Kind::Bias: return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::Kind::Gelu: return CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::Kind::GeluBias: return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::Kind::GeluGradient: return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::Kind::BiasGradient: return CUBLASLT_EPILOGUE_BGRADB; // our first factor is the library's second
    }
    return CUBLASLT_EPILOGUE_DEFAULT;
}

const char* nameOf(Epilogue::Kind kind)
{
    switch (kind) {
    case Epilogue::Kind::None: return "nothing";
    case Epilogue::Kind::Bias: return "a bias";
    case Epilogue::Kind::Gelu: return "GELU";
    case Epilogue::Kind::GeluBias: return "a bias and GELU";
    case Epilogue::Kind::GeluGradient: return "the slope of GELU";
    case Epilogue::Kind::BiasGradient: return "the bias's gradient";
    }
    return "";
}

bool hasBias(Epilogue::Kind kind)
{
    return kind == Epilogue::Kind::Bias || kind == Epilogue::Kind::GeluBias || kind == Epilogue::Kind::BiasGradient;
}

bool hasAux(Epilogue::Kind kind)
{
    return kind == Epilogue::Kind::Gelu || kind == Epilogue::Kind::GeluBias || kind == Epilogue::Kind::GeluGradient;
}

std::string shapeOf(const ProductKey& key)
{
    return std::to_string(key.rows) + " x " + std::to_string(key.inner) + " by " + std::to_string(key.inner) + " x "
           + std::to_string(key.columns);
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

    struct Plan {
        cublasLtMatmulDesc_t operation = nullptr;
        cublasLtMatrixLayout_t a = nullptr, b = nullptr, result = nullptr;
        cublasLtMatmulAlgo_t algorithm{};
        cublasStatus_t status = CUBLAS_STATUS_SUCCESS; ///< of making the plan
        bool found = false;                            ///< whether there is an algorithm
    };

    std::string open(const std::string& path)
    {
        if (path.empty() || path.front() != '/')
            return path + " is not an absolute path";
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); // never closed: CUDA does not support unloading
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

    /// Sets the addresses of a plan's epilogue operands.
    void place(Plan& plan, Epilogue::Kind kind, const void* bias, const void* aux)
    {
        const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const void* at) {
            const cublasStatus_t status = cublasLtMatmulDescSetAttribute(plan.operation, attribute, &at, sizeof at);
            plan.status = plan.status == CUBLAS_STATUS_SUCCESS ? status : plan.status;
        };
        if (hasBias(kind))
            set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
        if (hasAux(kind))
            set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
    }

    /// The plan's `a` is our second factor, see the swap below.
    Plan& planFor(const ProductKey& key)
    {
        const auto [found, isNew] = plans.try_emplace(key);
        Plan& plan = found->second;
        if (!isNew)
            return plan;
        const auto [rows, columns, inner] = std::tuple(key.rows, key.columns, key.inner);
        const auto step = [&plan](cublasStatus_t status) {
            plan.status = plan.status == CUBLAS_STATUS_SUCCESS ? status : plan.status;
        };
        const auto describe = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
            step(cublasLtMatmulDescSetAttribute(plan.operation, attribute, &value, sizeof value));
        };
        const cublasComputeType_t compute =
            key.precision == Precision::BFloat16 && !key.stored ? CUBLAS_COMPUTE_32F_FAST_16BF : CUBLAS_COMPUTE_32F;
        const cudaDataType_t factors = key.stored ? CUDA_R_16BF : CUDA_R_32F;
        step(cublasLtMatmulDescCreate(&plan.operation, compute, CUDA_R_32F));
        const cublasOperation_t transposeA = key.aTransposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                                transposeB = key.bTransposed ? CUBLAS_OP_T : CUBLAS_OP_N;
        // A row-major matrix is the transpose of a column-major one, so the library multiplies the transposes with the
        // factors swapped.
        step(cublasLtMatrixLayoutCreate(&plan.a, factors, key.aTransposed ? rows : inner,
                                        key.aTransposed ? inner : rows, key.aStride));
        step(cublasLtMatrixLayoutCreate(&plan.b, factors, key.bTransposed ? inner : columns,
                                        key.bTransposed ? columns : inner, key.bStride));
        // Biases and `aux` have the result's type, the library's default.
        step(cublasLtMatrixLayoutCreate(&plan.result, key.storedResult ? CUDA_R_16BF : CUDA_R_32F, columns, rows,
                                        columns));
        std::swap(plan.a, plan.b);
        describe(CUBLASLT_MATMUL_DESC_TRANSA, transposeB);
        describe(CUBLASLT_MATMUL_DESC_TRANSB, transposeA);
        if (multiprocessors > 0) // else it assumes the whole GPU
            describe(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, std::int32_t(multiprocessors));
        if (key.epilogue != Epilogue::Kind::None) {
            describe(CUBLASLT_MATMUL_DESC_EPILOGUE, std::uint32_t(epilogueOf(key.epilogue)));
            // The choice may depend on the addresses' alignment, so placeholders with exactly the key's alignment are
            // used.
            place(plan, key.epilogue, reinterpret_cast<const void*>(std::uintptr_t(key.biasAligned)),
                  reinterpret_cast<const void*>(std::uintptr_t(key.auxAligned)));
            if (hasAux(key.epilogue))
                describe(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t(columns));
        }

        cublasLtMatmulPreference_t preference = nullptr;
        step(cublasLtMatmulPreferenceCreate(&preference));
        const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
            step(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
        };
        prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspaceBytes);
        // Sums that are split over blocks must be added in a fixed order, not as the blocks end.
        prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
               std::uint32_t(CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.bAligned);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.aAligned);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.resultAligned);
        prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.resultAligned);
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

    /// Issues the product. Returns the error; empty: none.
    std::string multiply(cudaStream_t stream, const ProductKey& key, Plan& plan, const Product& of)
    {
        const float one = 1;
        const void* const a = key.stored ? static_cast<const void*>(of.a.stored) : of.a.data;
        const void* const b = key.stored ? static_cast<const void*>(of.b.stored) : of.b.data;
        place(plan, key.epilogue, of.epilogue.bias, of.epilogue.aux);
        cublasStatus_t status = plan.status;
        if (status == CUBLAS_STATUS_SUCCESS && plan.found)
            status =
                cublasLtMatmul(handle, plan.operation, &one, b, plan.a, a, plan.b, &of.beta, of.result, plan.result,
                               of.result, plan.result, &plan.algorithm, workspace, workspaceBytes, stream);
        if (status == CUBLAS_STATUS_SUCCESS && plan.found)
            return {};
        return "cuBLASLt cannot multiply " + shapeOf(key) + ": " + whyNot(plan, status);
    }

    std::string whyNot(const Plan& plan, cublasStatus_t status) const
    {
        const cublasStatus_t of = plan.status == CUBLAS_STATUS_SUCCESS ? status : plan.status;
        return of == CUBLAS_STATUS_SUCCESS ? "it knows no algorithm" : cublasLtGetStatusString(of);
    }

    cublasLtHandle_t handle = nullptr;
    void* workspace = nullptr;
    std::size_t workspaceBytes = 0;
    int multiprocessors = 0;
    std::map<ProductKey, Plan> plans;
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

std::string Products::takeNote()
{
    return std::exchange(m_note, {});
}

bool Products::product(cudaStream_t stream, Precision precision, const Product& of)
{
    const bool fuses = of.epilogue.kind != Epilogue::Kind::None;
    const ProductKey key = keyOf(precision, of);
    if (m_library) {
        const bool isNew = m_library->plans.count(key) == 0;
        Library::Plan& plan = m_library->planFor(key);
        if (fuses && !plan.found) {
            if (isNew)
                m_note = "cuBLASLt does " + std::string(nameOf(key.epilogue)) + " not with the product of "
                         + shapeOf(key) + " (" + m_library->whyNot(plan, CUBLAS_STATUS_SUCCESS)
                         + "): it has a kernel of its own";
            return false;
        }
        if (std::string why = m_library->multiply(stream, key, plan, of); !why.empty() && m_failure.empty())
            m_failure = std::move(why);
        return true;
    }
    if (fuses)
        return false;
    const dim3 blocks(unsigned(of.columns + tile - 1) / tile, unsigned(of.rows + tile - 1) / tile);
    const auto launch = [&](auto a, auto b, auto result) {
        plainProduct<<<blocks, dim3(tile, tile), 0, stream>>>(of.rows, of.columns, of.inner, a, of.a.stride,
                                                              of.a.transposed, b, of.b.stride, of.b.transposed, of.beta,
                                                              result);
    };
    const Out<Bf16> narrow{static_cast<Bf16*>(of.result)};
    const Out<float> wide{static_cast<float*>(of.result)};
    const In<Bf16> a{of.a.stored}, b{of.b.stored};
    if (key.stored && of.storedResult)
        launch(a, b, narrow);
    else if (key.stored)
        launch(a, b, wide);
    else
        launch(In<float>{of.a.data}, In<float>{of.b.data}, wide); // fp32 factors have fp32 results
    return true;
}

namespace {

/// The product with this epilogue. False: the epilogue is not supported.
bool multiply(const Context& context, const Bf16Factors& factors, Product of, const Epilogue& epilogue)
{
    of.epilogue = epilogue;
    return context.products->product(context.stream, factors.exact ? Precision::BFloat16 : context.precision, of);
}

} // namespace

void run(const Context& context, const LinearForward& call)
{
    const LinearShape& shape = call.shape;
    const bool stored = context.stored & 1, storedBias = context.stored >> 1 & 1;
    const bool biased = !call.bias.empty() && !call.output.empty(),
               fuses = biased && stored == storedBias; // the library needs biases of the result's type
    Product of{shape.rows,
               shape.outputs,
               shape.inputs,
               {call.input.data(), call.bf16.left, shape.inputs, false},
               {call.weight.data(), call.bf16.right, shape.inputs, true},
               call.store == Store::Add ? 1.0f : 0.0f,
               call.activated.empty() ? call.output.data() : call.activated.data(),
               stored};
    const auto kind = call.activated.empty() ? fuses ? Epilogue::Kind::Bias : Epilogue::Kind::None
                      : biased               ? Epilogue::Kind::GeluBias
                                             : Epilogue::Kind::Gelu;
    const bool whole = fuses || !biased;
    if (whole && multiply(context, call.bf16, of, {kind, call.bias.data(), call.output.data()}))
        return;
    of.result = call.output.data();
    multiply(context, call.bf16, of, {});
    if (biased)
        withElement(context, 0, [&](auto element) {
            withElement(context, 1, [&](auto bias) {
                addBias<<<blocksFor(call.output.size()), blockSize, 0, context.stream>>>(
                    call.output.size(), shape.outputs, in<decltype(bias)>(call.bias),
                    out<decltype(element)>(call.output));
            });
        });
    if (!call.activated.empty())
        run(context, ActivationForward{ActivationKind::GeluTanh, call.output,
                                       call.activated}); // its first operand is the result
}

void run(const Context& context, const LinearInputGrad& call)
{
    const LinearShape& shape = call.shape;
    const Product of{shape.rows,
                     shape.inputs,
                     shape.outputs,
                     {call.outputGrad.data(), call.bf16.left, shape.outputs, false},
                     {call.weight.data(), call.bf16.right, shape.inputs, false},
                     call.store == Store::Add ? 1.0f : 0.0f,
                     call.inputGrad.data(),
                     (context.stored & 1) != 0};
    const bool activated = !call.activationInput.empty();
    if (activated
        && multiply(context, call.bf16, of, {Epilogue::Kind::GeluGradient, nullptr, call.activationInput.data()}))
        return;
    multiply(context, call.bf16, of, {});
    if (activated)
        run(context,
            ActivationInputGrad{ActivationKind::GeluTanh, call.activationInput, call.inputGrad, call.inputGrad});
}

void run(const Context& context, const LinearWeightGrad& call)
{
    const LinearShape& shape = call.shape;
    const auto outputs = std::size_t(shape.outputs);
    const Product of{shape.outputs,
                     shape.inputs,
                     shape.rows,
                     {call.outputGrad.data(), call.bf16.right, shape.outputs, true},
                     {call.input.data(), call.bf16.left, shape.inputs, false},
                     1.0f,
                     call.weightGrad.data()};
    const bool biased = !call.biasGrad.empty();
    // The library overwrites a bias's gradient, but it must be accumulated.
    if (biased && context.rowScratch.size() >= outputs
        && multiply(context, call.bf16, of, {Epilogue::Kind::BiasGradient, context.rowScratch.data(), nullptr})) {
        Context ofSums = context;
        ofSums.stored = 0;
        run(ofSums, Add{call.biasGrad, context.rowScratch.first(outputs)});
        return;
    }
    multiply(context, call.bf16, of, {});
    if (!biased)
        return;
    const unsigned blocks = columnBlocks(outputs);
    if (call.bf16.areStored())
        biasGradient<<<blocks, blockSize, 0, context.stream>>>(shape.rows, shape.outputs, In<Bf16>{call.bf16.right},
                                                               call.biasGrad.data());
    else
        biasGradient<<<blocks, blockSize, 0, context.stream>>>(shape.rows, shape.outputs,
                                                               In<float>{call.outputGrad.data()}, call.biasGrad.data());
}

} // namespace pipewright::kernels::cuda
