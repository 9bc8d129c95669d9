// SPDX-License-Identifier: GPL-3.0-or-later
// Attention by the fused kernels of cuDNN, which is opened at run time: bf16 operands, whole sequences, deterministic
// gradients. Own kernels (attention.cu) compute the cases that it does not support, and all of them without the
// library. A plan is made once per FusedPass, so a warm step allocates nothing, gives the same bits and can be
// captured. It saves the log-sum of each query and head, as own kernels do, so either can run the backward pass of the
// other's forward pass. One object per device thread and stream.
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

/// Everything on which a plan for a GPU depends.
struct FusedPass {
    int sequences = 0, length = 0, heads = 0, keyValueHeads = 0, querySize = 0, valueSize = 0;
    int window = 0;
    bool causal = true, isBackward = false;
    float scale = 1;
    int queryGradRow = 0, keyGradRow = 0, valueGradRow = 0; ///< distance to the next token's; backward only

    auto operator<=>(const FusedPass&) const = default;
};
/// A forward pass; or a backward pass with these distances between rows of gradients.
FusedPass fusedPass(const GroupedAttentionShape& shape);
FusedPass fusedPass(const GroupedAttentionShape& shape, int queryGradRow, int keyGradRow, int valueGradRow);

/// Operands in memory, bf16 except for the log-sums.
struct FusedOperands {
    const void *query, *key, *value;
    const void* output;   ///< written by the forward pass
    const float* logSums; ///< likewise
    const void *outputGrad = nullptr, *queryGrad = nullptr, *keyGrad = nullptr, *valueGrad = nullptr; ///< backward's
};

class FusedAttention {
public:
    enum class Use {
        Never,
        WhereCan, ///< if supported; else, or without the library, own kernels do it and a note says so
        Always,   ///< an unsupported case is a failure
    };
    /// `library` is libcudnn's path; `workspace` is device memory for it. `isSlice`: the stream has only some of the
    /// GPU's multiprocessors, for which the library cannot plan.
    FusedAttention(Use use, const std::string& library, void* workspace, std::size_t workspaceBytes,
                   cudaStream_t stream, bool isSlice);
    ~FusedAttention();
    FusedAttention(const FusedAttention&) = delete;
    FusedAttention& operator=(const FusedAttention&) = delete;

    /// False: nothing was issued, and own kernels must do it. `sinks`: the softmax has attention sinks.
    bool run(const FusedPass& pass, const GroupedAttentionShape& shape, bool sinks, const FusedOperands& at);
    /// Bytes of workspace for both passes, without passes that it does not support.
    std::int64_t workspaceOf(const GroupedAttentionShape& shape);

    /// Why this build has no cuDNN; empty: it has.
    static std::string whyNotBuilt();

    /// Failures of the library since the last call; empty: none.
    std::string takeFailure();
    /// Which kernels compute which attention, since the last call; each note is returned once.
    std::string takeNote();

private:
    struct Library;
    bool refuse(const FusedPass& pass, const std::string& why);
    void addNote(const std::string& note);
    /// Why cuDNN is not tried for this shape; empty: it is.
    std::string whyNot(const GroupedAttentionShape& shape, bool sinks) const;

    Use m_use;
    bool m_isSlice;
    std::unique_ptr<Library> m_library;
    std::string m_path, m_failure, m_note;
};

} // namespace pipewright::kernels::cuda

#pragma GCC visibility pop
