// SPDX-License-Identifier: GPL-3.0-or-later
// Where each tensor of a stage lies. The workload lists what every layer keeps, by name and lifetime; the
// layout packs one stage's tensors without gaps into the buffers that the Program allocates, so the bytes
// that were predicted are the bytes that are used. Built once per stage; a lookup is by name and meant for
// construction, not for the inner loop.
#pragma once

#include "core/model/workload.h"
#include "core/program/program.h"
#include "kernels/operations.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// A tensor's place: `elements` four-byte values at byte `offset` of the stage's buffer of this kind.
struct Slice {
    BufferKind buffer = BufferKind::Workspace;
    Bytes offset = 0;
    std::int64_t elements = 0;
    bool operator==(const Slice&) const = default;
};

struct StoredInput;

/// Where one pass works: memory, by lifetime, and the operations of the device it belongs to. A span that the pass
/// does not touch may be empty.
struct StageMemory {
    std::span<std::byte> savedUntilInputGrad, savedUntilWeightGrad, savedFromInputGrad, workspace;
    // Of a piece of a sequence: its number, and for F, I and B where savedUntilInputGrad of each earlier piece begins,
    // oldest first. I and B pass the gradients for earlier pieces on in sequenceGradient.
    int piece = 0;
    std::span<const float* const> earlier{};
    std::span<std::byte> sequenceGradient{};
    const kernels::Operations* operations = &kernels::hostOperations();
    // Where the stage recomputes: the tensors that R writes and that F does not keep. Such a forward has memory for one
    // layer's; the spans then begin at that byte of the stage's buffer.
    std::span<std::byte> recomputedUntilInputGrad{}, recomputedUntilWeightGrad{};
    Bytes firstRecomputedUntilInputGrad = 0, firstRecomputedUntilWeightGrad = 0;
    const StoredInput* input = nullptr; ///< of a backward that recomputes: what F took

    std::span<float> floats(const Slice& slice) const;
    std::span<std::int32_t> integers(const Slice& slice) const;
    kernels::EarlierPieces earlierPieces(const Slice& keys, const Slice& values) const
    {
        return {earlier, std::size_t(keys.offset) / sizeof(float), std::size_t(values.offset) / sizeof(float)};
    }
};

class StageLayout {
public:
    /// The stage of layers [first, last) of the workload. Throws Error for a model that the built-in layers cannot run
    /// (naming every reason) and for a range outside the workload. `recompute`: the tensors that R writes get buffers
    /// of their own.
    StageLayout(const Workload& workload, int first, int last, Recompute recompute = Recompute::None);

    /// The place of a tensor of the workload's layer number `layer`. Throws Error when there is none.
    const Slice& slice(int layer, std::string_view tensor) const;

    /// Size of the stage's buffer for one microbatch: the three Saved and the two Recomputed kinds, Workspace (of the
    /// input gradient), or SequenceGradient (one for all pieces of a sequence).
    Bytes bytes(BufferKind kind) const;

    Recompute recompute() const { return m_recompute; }
    /// In F of a stage that recomputes: the memory of one layer, with the tensors that are not kept in the workspace.
    StageMemory scratchOf(int layer, const StageMemory& memory) const;

    int firstLayer() const { return m_first; }
    int lastLayer() const { return m_last; }

private:
    struct Entry {
        int layer;
        std::string tensor;
        Slice slice;
    };

    /// A layer's parts of the two Recomputed buffers, and where in F's workspace they lie.
    struct Scratch {
        Bytes untilInputGrad = 0, untilInputGradEnd = 0, untilWeightGrad = 0, untilWeightGradEnd = 0, at = 0;
    };
    void append(int layer, std::string_view tensor, BufferKind buffer, std::int64_t elements, Bytes& end);

    int m_first, m_last;
    Recompute m_recompute;
    std::vector<Entry> m_entries;
    std::vector<Scratch> m_scratch; ///< per layer
    Bytes m_untilInputGrad = 0, m_untilWeightGrad = 0, m_fromInputGrad = 0, m_workspace = 0, m_sequenceGradient = 0;
    Bytes m_againUntilInputGrad = 0, m_againUntilWeightGrad = 0;
};

} // namespace pipewright
