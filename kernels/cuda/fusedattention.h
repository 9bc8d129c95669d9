// SPDX-License-Identifier: GPL-3.0-or-later
// Attention by cuDNN's fused kernels, which is opened at run time: of operands that lie in memory as bf16, in whole
// sequences, and deterministic in its gradients. What it does not do, and all without the library, own kernels do
// (attention.cu). A plan is made once for what decides about it, so a warm step allocates nothing and repeats its bits,
// and can be captured. Of each query and head it keeps the logarithm of the sum that own kernels keep too, so either
// may do the gradients of the other's. One object per device thread and stream.
#pragma once

#include "kernels/groupedattention.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <memory>
#include <string>

#pragma GCC visibility push(default)

namespace pipewright::kernels::cuda {

/// All that decides about a plan for a GPU.
struct FusedPass {
    int sequences = 0, length = 0, heads = 0, keyValueHeads = 0, querySize = 0, valueSize = 0;
    int window = 0;
    bool causal = true, isBackward = false;
    float scale = 1;
    int queryGradRow = 0, keyGradRow = 0, valueGradRow = 0; ///< to the next token's; of the backward

    auto operator<=>(const FusedPass&) const = default;
};
/// A forward; or a backward, where rows of gradients are as far apart.
FusedPass fusedPass(const GroupedAttentionShape& shape);
FusedPass fusedPass(const GroupedAttentionShape& shape, int queryGradRow, int keyGradRow, int valueGradRow);

/// Operands in memory, bf16 but for the logarithms.
struct FusedOperands {
    const void *query, *key, *value;
    const void* output;   ///< of the forward written
    const float* logSums; ///< likewise
    const void *outputGrad = nullptr, *queryGrad = nullptr, *keyGrad = nullptr, *valueGrad = nullptr; ///< backward's
};

class FusedAttention {
public:
    enum class Use {
        Never,
        WhereCan, ///< what it does not do, and all without a library, own kernels do, and a note says so
        Always,   ///< that is a failure
    };
    /// `library` is libcudnn's path; `workspace` is device memory for it. `isSlice`: the stream has some of the GPU's
    /// multiprocessors only, and the library plans for all of them.
    FusedAttention(Use use, const std::string& library, void* workspace, std::size_t workspaceBytes,
                   cudaStream_t stream, bool isSlice);
    ~FusedAttention();
    FusedAttention(const FusedAttention&) = delete;
    FusedAttention& operator=(const FusedAttention&) = delete;

    /// False: nothing was issued, and own kernels are to do it. `sinks`: some of the softmax is no key's.
    bool run(const FusedPass& pass, const GroupedAttentionShape& shape, bool sinks, const FusedOperands& at);
    /// Bytes of workspace that it needs for both passes, of those that it does.
    std::int64_t workspaceOf(const GroupedAttentionShape& shape);

    /// Why this build has none of it; empty: it has.
    static std::string whyNotBuilt();

    /// What the library refused since the last time this was asked; empty: nothing.
    std::string takeFailure();
    /// What does which attention, since the last time this was asked; each is said once.
    std::string takeNote();

private:
    struct Library;
    bool refuse(const FusedPass& pass, const std::string& why);
    void addNote(const std::string& note);
    /// Why no plan is asked for; empty: it is.
    std::string whyNot(const GroupedAttentionShape& shape, bool sinks) const;

    Use m_use;
    bool m_isSlice;
    std::unique_ptr<Library> m_library;
    std::string m_path, m_failure, m_note;
};

} // namespace pipewright::kernels::cuda

#pragma GCC visibility pop
