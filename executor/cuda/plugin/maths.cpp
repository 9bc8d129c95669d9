// SPDX-License-Identifier: GPL-3.0-or-later
// The maths of a stage: kernels/cuda behind the C table. A handle is a stream with the matrix products and the
// attention of that stream; their workspace is the caller's.
#include "executor/cuda/plugin/plugin.h"

#include "kernels/cuda/kernels.h"

#include <algorithm>
#include <memory>

namespace pipewright::plugin {

namespace {

namespace gpu = kernels::cuda;

gpu::FusedAttention::Use useOf(int32_t attention)
{
    return attention == PIPEWRIGHT_ATTENTION_OWN    ? gpu::FusedAttention::Use::Never
           : attention == PIPEWRIGHT_ATTENTION_AUTO ? gpu::FusedAttention::Use::WhereCan
                                                    : gpu::FusedAttention::Use::Always;
}

std::string orNone(const char* file)
{
    return file ? file : "";
}

struct Maths {
    Maths(int32_t device, cudaStream_t stream, const PipewrightMathsSetup& setup, int32_t multiprocessors)
        : device(device), rows(setup.workspaceBytes - int64_t{sizeof(float)} * PIPEWRIGHT_MATHS_ROWS),
          products(orNone(setup.cublasLt), setup.workspace, PIPEWRIGHT_PRODUCT_WORKSPACE, multiprocessors),
          fused(useOf(setup.attention), orNone(setup.cudnn), setup.workspace, std::size_t(rows), stream,
                multiprocessors > 0),
          context{stream,
                  setup.bfloat16 ? gpu::Precision::BFloat16 : gpu::Precision::Float32,
                  &products,
                  &fused,
                  {reinterpret_cast<float*>(static_cast<std::byte*>(setup.workspace) + rows),
                   std::size_t(PIPEWRIGHT_MATHS_ROWS)}}
    {
    }

    int32_t device;
    int64_t rows; ///< where their part of the workspace begins
    gpu::Products products;
    gpu::FusedAttention fused;
    gpu::Context context;
    std::string note, attentionNote;
};

/// Reports launch errors, which the runtime keeps.
int issued()
{
    return check(cudaPeekAtLastError());
}

int createMaths(int32_t device, void* on, const PipewrightMathsSetup* setup, void** maths)
{
    *maths = nullptr;
    if (setup->workspaceBytes < PIPEWRIGHT_MATHS_WORKSPACE)
        return fault("the workspace is too small");
    if (const int code = makeCurrent(device); code != 0)
        return code;
    int32_t multiprocessors = 0;
    if (const int code = multiprocessorsOf(stream(on), &multiprocessors); code != 0)
        return code;
    auto made = std::make_unique<Maths>(device, stream(on), *setup, multiprocessors);
    if (setup->cublasLt && !made->products.whyNot().empty())
        return fault(made->products.whyNot());
    *maths = made.release();
    return 0;
}

int destroyMaths(void* maths)
{
    delete static_cast<Maths*>(maths);
    return 0;
}

/// Why the kernels do not support these sizes; empty: they do.
template<typename Call>
std::string whyNot(const Call&)
{
    return {};
}

std::string whyNot(const kernels::CrossEntropyForward& call)
{
    if (call.rows <= PIPEWRIGHT_MATHS_ROWS)
        return {};
    return "a microbatch has " + std::to_string(call.rows) + " tokens, and "
           + std::to_string(int{PIPEWRIGHT_MATHS_ROWS}) + " is the most: use smaller microbatches";
}

std::string whyNotAttention(int headSize, int pieces)
{
    if (headSize > gpu::widestHead)
        return "heads of " + std::to_string(headSize) + " are wider than " + std::to_string(gpu::widestHead);
    if (pieces > gpu::mostPieces)
        return "sequences of " + std::to_string(pieces) + " pieces, and " + std::to_string(gpu::mostPieces)
               + " is the most: cut them into fewer";
    return {};
}

std::string whyNot(const kernels::AttentionForward& call)
{
    return whyNotAttention(call.shape.headSize, call.shape.pieces);
}

std::string whyNot(const kernels::AttentionInputGrad& call)
{
    return whyNotAttention(call.shape.headSize, call.shape.pieces);
}

std::string whyNot(const kernels::GroupedAttentionForward& call)
{
    return whyNotAttention(std::max(call.shape.querySize, call.shape.valueSize), call.shape.pieces);
}

std::string whyNot(const kernels::GroupedAttentionInputGrad& call)
{
    return whyNotAttention(std::max(call.shape.querySize, call.shape.valueSize), call.shape.pieces);
}

std::string whyNotExperts(const kernels::Router& router)
{
    if (router.experts <= gpu::mostExperts)
        return {};
    return std::to_string(router.experts) + " experts, and " + std::to_string(gpu::mostExperts) + " is the most";
}

std::string whyNot(const kernels::RouteTokens& call)
{
    return whyNotExperts(call.router);
}

std::string whyNot(const kernels::RouteTokensGrad& call)
{
    return whyNotExperts(call.router);
}

std::string whyNot(const Maths& maths, const kernels::TensorCall& call)
{
    const auto number = static_cast<std::int32_t>(call.operation);
    if (number < 0 || number >= kernels::tensorOperationCount)
        return "operation " + std::to_string(number) + " on tensors is not known";
    if (maths.context.stored != 0 && !gpu::hasStored(call.operation))
        return "operation " + std::to_string(number) + " on tensors does not take values of bf16";
    return {};
}

template<typename Call>
std::string whyNot(const Maths&, const Call& call)
{
    return whyNot(call);
}

/// The message of cuBLASLt or cuDNN for a failure, with the GPU's own error: after a GPU is lost every call fails, and
/// these libraries do not say why. Empty: they did not fail.
std::string libraryFailure(Maths& maths)
{
    std::string failure = maths.products.takeFailure();
    if (failure.empty())
        failure = maths.fused.takeFailure();
    if (failure.empty())
        return failure;
    const cudaError_t code = cudaStreamQuery(maths.context.stream); // refused in a capture, which has failed anyway
    if (code != cudaSuccess && code != cudaErrorNotReady && code != cudaErrorStreamCaptureUnsupported) {
        check(code);
        failure += std::string(" (") + lastError() + ")";
    }
    cudaGetLastError();
    return failure;
}

int compute(void* handle, int32_t operation, const void* call, int64_t bytes, uint32_t stored)
{
    Maths& maths = *static_cast<Maths*>(handle);
    // The computing thread is not the one that made the maths, and kernels are launched on the calling thread's current
    // GPU.
    if (const int code = makeCurrent(maths.device); code != 0)
        return code;
    maths.context.stored = stored;
    bool isKnown = false;
    std::string refusal;
    kernels::visit(static_cast<kernels::Operation>(operation), call, [&](const auto& known, const char*) {
        isKnown = static_cast<int64_t>(sizeof known) == bytes;
        if (isKnown && (refusal = whyNot(maths, known)).empty())
            gpu::run(maths.context, known);
    });
    if (!isKnown)
        return fault("operation " + std::to_string(operation) + " of " + std::to_string(bytes)
                     + " bytes is not known: the plugin is of another build");
    if (refusal.empty())
        refusal = libraryFailure(maths);
    maths.note = maths.products.takeNote();
    maths.attentionNote = maths.fused.takeNote();
    return refusal.empty() ? issued() : fault(std::move(refusal));
}

const char* mathsNote(void* maths)
{
    const std::string& note = static_cast<Maths*>(maths)->note;
    return note.empty() ? nullptr : note.c_str();
}

const char* attentionNote(void* maths)
{
    const std::string& note = static_cast<Maths*>(maths)->attentionNote;
    return note.empty() ? nullptr : note.c_str();
}

int attentionWorkspace(int32_t device, void* on, const char* cudnn, const void* shape, int64_t bytes,
                       int64_t* workspace)
{
    *workspace = 0;
    if (bytes != sizeof(kernels::GroupedAttentionShape))
        return fault("a shape of attention is of another build");
    if (const int code = makeCurrent(device); code != 0)
        return code;
    int32_t multiprocessors = 0;
    if (const int code = multiprocessorsOf(stream(on), &multiprocessors); code != 0)
        return code;
    gpu::FusedAttention fused(gpu::FusedAttention::Use::WhereCan, cudnn, nullptr, 0, stream(on), multiprocessors > 0);
    *workspace = fused.workspaceOf(*static_cast<const kernels::GroupedAttentionShape*>(shape));
    return 0;
}

/// Makes the stream's GPU current first, since any thread may launch these kernels.
int spin(int32_t device, void* on, int64_t nanoseconds)
{
    if (const int code = makeCurrent(device); code != 0)
        return code;
    gpu::spin(stream(on), nanoseconds);
    return issued();
}

int stamp(int32_t device, void* on, void* place)
{
    if (const int code = makeCurrent(device); code != 0)
        return code;
    gpu::stamp(stream(on), static_cast<std::int64_t*>(place));
    return issued();
}

int spinFrom(int32_t device, void* on, const void* place, int64_t nanoseconds)
{
    if (const int code = makeCurrent(device); code != 0)
        return code;
    gpu::spinFrom(stream(on), static_cast<const std::int64_t*>(place), nanoseconds);
    return issued();
}

} // namespace

void addMaths(PipewrightCudaTable& table)
{
    table.createMaths = createMaths;
    table.destroyMaths = destroyMaths;
    table.compute = compute;
    table.mathsNote = mathsNote;
    table.attentionNote = attentionNote;
    table.attentionWorkspace = attentionWorkspace;
    table.spin = spin;
    table.stamp = stamp;
    table.spinFrom = spinFrom;
}

} // namespace pipewright::plugin
