// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps one plan per FusedPass, made at the first call, which can take some seconds. Later calls are one or a few
// launches.
#include "kernels/cuda/fusedattention.h"

#include "kernels/attention.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#ifdef PIPEWRIGHT_HAS_CUDNN
#include "kernels/cuda/attentiongraph.h"
#include "kernels/cuda/cudnnlibrary.h"
#endif

namespace pipewright::kernels::cuda {

namespace {

std::string describe(const FusedPass& pass)
{
    const auto text = [](int number) { return std::to_string(number); };
    std::string sizes = text(pass.querySize);
    if (pass.valueSize != pass.querySize)
        sizes += " and " + text(pass.valueSize);
    return std::string("attention's ") + (pass.isBackward ? "gradients" : "forward") + " (" + text(pass.sequences)
           + " x " + text(pass.length) + " tokens, " + text(pass.heads) + " heads of " + sizes + " over "
           + text(pass.keyValueHeads) + (pass.window > 0 ? ", window of " + text(pass.window) : "")
           + (pass.causal ? ")" : ", both ways)");
}

} // namespace

FusedPass fusedPass(const GroupedAttentionShape& shape)
{
    return {.sequences = shape.sequences,
            .length = shape.length,
            .heads = shape.heads,
            .keyValueHeads = shape.keyValueHeads,
            .querySize = shape.querySize,
            .valueSize = shape.valueSize,
            // A window as long as the sequence excludes nothing.
            .window = shape.window < shape.length ? shape.window : 0,
            .causal = shape.causal,
            .scale = shape.scale};
}

FusedPass fusedPass(const GroupedAttentionShape& shape, int queryGradRow, int keyGradRow, int valueGradRow)
{
    FusedPass pass = fusedPass(shape);
    pass.isBackward = true;
    pass.queryGradRow = queryGradRow;
    pass.keyGradRow = keyGradRow;
    pass.valueGradRow = valueGradRow;
    return pass;
}

#ifdef PIPEWRIGHT_HAS_CUDNN

struct FusedAttention::Library {
    Library(void* workspace, std::size_t workspaceBytes, cudaStream_t stream)
        : workspace(workspace), workspaceBytes(workspaceBytes), stream(stream)
    {
    }
    ~Library()
    {
        plans.clear(); // they refer to the handle
        if (handle)
            cudnnDestroy(handle);
    }
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    /// Starts the library on first use, which takes GPU memory and some time. Returns why it cannot start; empty: it
    /// has.
    const std::string& start(const std::string& path)
    {
        if (!whyNotStarted)
            whyNotStarted = tryToStart(path);
        return *whyNotStarted;
    }
    std::string tryToStart(const std::string& path)
    {
        if (std::string why = openCudnn(path); !why.empty())
            return why;
        cudnnStatus_t status = cudnnCreate(&handle);
        if (status == CUDNN_STATUS_SUCCESS)
            status = cudnnSetStream(handle, stream);
        return status == CUDNN_STATUS_SUCCESS ? std::string() : std::string(cudnnGetErrorString(status));
    }
    const FusedPlan& planFor(const FusedPass& pass)
    {
        const auto [found, isNew] = plans.try_emplace(pass);
        if (isNew)
            found->second = planOf(pass, {handle});
        return found->second;
    }

    void* workspace;
    std::size_t workspaceBytes;
    cudaStream_t stream;
    cudnnHandle_t handle = nullptr;
    std::optional<std::string> whyNotStarted;
    std::map<FusedPass, FusedPlan> plans;
    std::set<std::pair<FusedPass, std::string>> said;
};

#else

struct FusedAttention::Library {
    Library(void*, std::size_t, cudaStream_t) {}
    std::set<std::pair<FusedPass, std::string>> said;
};

#endif

FusedAttention::FusedAttention(Use use, const std::string& library, void* workspace, std::size_t workspaceBytes,
                               cudaStream_t stream, bool isSlice)
    : m_use(use), m_isSlice(isSlice), m_library(std::make_unique<Library>(workspace, workspaceBytes, stream)),
      m_path(library)
{
}

FusedAttention::~FusedAttention() = default;

void FusedAttention::addNote(const std::string& note)
{
    m_note += (m_note.empty() ? "" : "; ") + note;
}

bool FusedAttention::refuse(const FusedPass& pass, const std::string& why)
{
    if (m_use == Use::Always)
        m_failure = "cuDNN does not compute " + describe(pass) + ": " + why;
    else if (m_library->said.emplace(pass, why).second)
        addNote(describe(pass) + " has a kernel of its own: " + why);
    return false;
}

std::string FusedAttention::whyNot(const GroupedAttentionShape& shape, bool sinks) const
{
    if (m_use == Use::Never)
        return "as it was asked for";
    if (std::string why = whyNotBuilt(); !why.empty())
        return why;
    if (m_path.empty())
        return "cuDNN was not found";
    if (m_isSlice)
        return "cuDNN plans for whole GPUs, and this is a slice of one";
    if (shape.pieces > 1)
        return "cuDNN knows no pieces of sequences";
    if (shape.softCap > 0)
        return "its scores are capped";
    if (shape.biasedHeads > 0)
        return "it has linear biases";
    if (sinks)
        return "it has sinks";
    return {};
}

#ifdef PIPEWRIGHT_HAS_CUDNN

std::string FusedAttention::whyNotBuilt()
{
    return {};
}

namespace {

std::string mebibytes(std::int64_t bytes)
{
    return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

} // namespace

bool FusedAttention::run(const FusedPass& pass, const GroupedAttentionShape& shape, bool sinks, const FusedOperands& at)
{
    if (const std::string why = whyNot(shape, sinks); !why.empty())
        return refuse(pass, why);
    // Kernels read 16 bytes at once and do not check the alignment. All tensors of realistic models are aligned.
    const std::pair<FusedOperand, const void*> operands[] = {
        {FusedOperand::Query, at.query},         {FusedOperand::Key, at.key},
        {FusedOperand::Value, at.value},         {FusedOperand::Output, at.output},
        {FusedOperand::LogSums, at.logSums},     {FusedOperand::OutputGrad, at.outputGrad},
        {FusedOperand::QueryGrad, at.queryGrad}, {FusedOperand::KeyGrad, at.keyGrad},
        {FusedOperand::ValueGrad, at.valueGrad},
    };
    std::unordered_map<std::int64_t, void*> places;
    for (const auto& [number, place] : operands) {
        if (reinterpret_cast<std::uintptr_t>(place) % 16 != 0)
            return refuse(pass, "a tensor does not begin at a multiple of 16 bytes");
        if (place)
            places[std::int64_t(number)] = const_cast<void*>(place);
    }
    if (const std::string& why = m_library->start(m_path); !why.empty())
        return refuse(pass, why);
    const FusedPlan& plan = m_library->planFor(pass);
    if (!plan.graph)
        return refuse(pass, plan.whyNot);
    if (plan.workspace > std::int64_t(m_library->workspaceBytes))
        return refuse(pass, "cuDNN " + cudnnVersion() + " wants " + mebibytes(plan.workspace)
                                + " of workspace for it, and it has "
                                + mebibytes(std::int64_t(m_library->workspaceBytes))
                                + " (--attention cudnn gives it all it wants)");
    auto error = plan.graph->execute(m_library->handle, places, m_library->workspace);
    if (error.is_bad())
        m_failure = "cuDNN refused " + describe(pass) + ": " + error.get_message();
    else if (m_library->said.emplace(pass, std::string()).second)
        addNote(describe(pass) + " is cuDNN's (" + cudnnVersion() + ")");
    return true;
}

std::int64_t FusedAttention::workspaceOf(const GroupedAttentionShape& shape)
{
    if (!whyNot(shape, false).empty() || !m_library->start(m_path).empty())
        return 0;
    std::int64_t bytes = 0;
    for (const bool isBackward : {false, true}) {
        FusedPass pass = fusedPass(shape);
        pass.isBackward = isBackward;
        if (isBackward) { // distances between gradients do not change the workspace
            pass.queryGradRow = shape.heads * shape.querySize;
            pass.keyGradRow = shape.keyValueHeads * shape.querySize;
            pass.valueGradRow = shape.keyValueHeads * shape.valueSize;
        }
        const FusedPlan& plan = m_library->planFor(pass);
        bytes = std::max(bytes, plan.graph ? plan.workspace : 0);
    }
    return bytes;
}

#else

std::string FusedAttention::whyNotBuilt()
{
    return "this was built without cuDNN's frontend (nvidia-cudnn-frontend)";
}

bool FusedAttention::run(const FusedPass& pass, const GroupedAttentionShape& shape, bool sinks, const FusedOperands&)
{
    return refuse(pass, whyNot(shape, sinks));
}

std::int64_t FusedAttention::workspaceOf(const GroupedAttentionShape&)
{
    return 0;
}

#endif

std::string FusedAttention::takeFailure()
{
    return std::exchange(m_failure, {});
}

std::string FusedAttention::takeNote()
{
    return std::exchange(m_note, {});
}

} // namespace pipewright::kernels::cuda
