// SPDX-License-Identifier: GPL-3.0-or-later
// One pass over the layers' kept tensors: each is appended to the buffer of its lifetime; the scratch of a pass has the
// size that the largest layer needs. O(tensors).
#include "executor/stage/stagelayout.h"

#include "core/base/diagnostic.h"
#include "core/model/recomputedtensors.h"
#include "core/model/transformer.h"

#include <algorithm>
#include <cassert>

namespace pipewright {
namespace {

constexpr int elementBytes = 4; ///< the runnable models keep fp32 values and 32-bit tokens only

template<class Element>
std::span<Element> view(const StageMemory& memory, const Slice& slice)
{
    const std::span<std::byte> buffer =
        slice.buffer == BufferKind::SavedUntilInputGrad         ? memory.savedUntilInputGrad
        : slice.buffer == BufferKind::SavedUntilWeightGrad      ? memory.savedUntilWeightGrad
        : slice.buffer == BufferKind::SavedFromInputGrad        ? memory.savedFromInputGrad
        : slice.buffer == BufferKind::RecomputedUntilInputGrad  ? memory.recomputedUntilInputGrad
        : slice.buffer == BufferKind::RecomputedUntilWeightGrad ? memory.recomputedUntilWeightGrad
        : slice.buffer == BufferKind::SequenceGradient          ? memory.sequenceGradient
                                                                : memory.workspace;
    const Bytes first = slice.buffer == BufferKind::RecomputedUntilInputGrad    ? memory.firstRecomputedUntilInputGrad
                        : slice.buffer == BufferKind::RecomputedUntilWeightGrad ? memory.firstRecomputedUntilWeightGrad
                                                                                : 0;
    const Bytes offset = slice.offset - first;
    assert(offset >= 0 && std::size_t(offset + slice.elements * elementBytes) <= buffer.size());
    return {reinterpret_cast<Element*>(buffer.data() + offset), std::size_t(slice.elements)};
}

} // namespace

std::span<float> StageMemory::floats(const Slice& slice) const
{
    return view<float>(*this, slice);
}
std::span<std::int32_t> StageMemory::integers(const Slice& slice) const
{
    return view<std::int32_t>(*this, slice);
}

StageLayout::StageLayout(const Workload& workload, int first, int last, Recompute recompute)
    : m_first(first), m_last(last), m_recompute(recompute)
{
    assert(!recompute.insideBackward()); // a stage of segments: stagesegments.h
    if (Diagnostics reasons = whyNotRunnable(workload.shape); hasErrors(reasons))
        throw Error(std::move(reasons));
    if (first < 0 || first >= last || last > int(workload.layers.size()))
        throw Error("stage",
                    "layers " + std::to_string(first) + " to " + std::to_string(last - 1)
                        + " are not a range of the model's " + std::to_string(workload.layers.size()),
                    "give every stage at least one layer");
    for (int index = first; index < last; ++index) {
        const Layer& layer = workload.layers[std::size_t(index)];
        Scratch scratch{m_againUntilInputGrad, 0, m_againUntilWeightGrad, 0, 0};
        for (const SavedTensor& tensor : layer.saved) {
            assert(tensor.bytesPerElement == elementBytes);
            if (isRecomputed(tensor, recompute, workload.shape.sequencePieces)) {
                const bool untilInput = tensor.lifetime == Lifetime::UntilInputGrad;
                append(index, tensor.name,
                       untilInput ? BufferKind::RecomputedUntilInputGrad : BufferKind::RecomputedUntilWeightGrad,
                       tensor.elements, untilInput ? m_againUntilInputGrad : m_againUntilWeightGrad);
                continue;
            }
            switch (tensor.lifetime) {
            case Lifetime::UntilInputGrad:
                append(index, tensor.name, BufferKind::SavedUntilInputGrad, tensor.elements, m_untilInputGrad);
                break;
            case Lifetime::UntilWeightGrad:
                append(index, tensor.name, BufferKind::SavedUntilWeightGrad, tensor.elements, m_untilWeightGrad);
                break;
            case Lifetime::FromInputGrad:
                append(index, tensor.name, BufferKind::SavedFromInputGrad, tensor.elements, m_fromInputGrad);
                break;
            }
        }
        if (hasAttention(layer.kind))
            append(index, "attention.sequenceGradient", BufferKind::SequenceGradient,
                   sequenceGradientElements(workload.shape), m_sequenceGradient);
        Bytes end = 0; // layers run one after another and share the workspace
        for (const WorkspaceTensor& tensor : layer.workspace)
            append(index, tensor.name, BufferKind::Workspace, tensor.elements, end);
        m_workspace = std::max(m_workspace, end);
        scratch.untilInputGradEnd = m_againUntilInputGrad;
        scratch.untilWeightGradEnd = m_againUntilWeightGrad;
        m_scratch.push_back(scratch);
    }
    const auto layers = std::span(workload.layers).subspan(std::size_t(first), std::size_t(last - first));
    const Bytes workspaceForward = forwardScratch(layers, recompute, workload.shape.sequencePieces);
    // The head's part comes last, since it holds the values between the layers before it.
    for (std::size_t i = 0; i < layers.size(); ++i)
        if (layers[i].kind == LayerKind::Head)
            m_scratch[i].at = workspaceForward - recomputedBytes(layers[i], recompute, workload.shape.sequencePieces);
}

void StageLayout::append(int layer, std::string_view tensor, BufferKind buffer, std::int64_t elements, Bytes& end)
{
    m_entries.push_back({layer, std::string(tensor), {buffer, end, elements}});
    end += elements * elementBytes;
}

const Slice& StageLayout::slice(int layer, std::string_view tensor) const
{
    for (const Entry& entry : m_entries)
        if (entry.layer == layer && entry.tensor == tensor)
            return entry.slice;
    throw Error("layer " + std::to_string(layer), "the workload keeps no tensor \"" + std::string(tensor) + "\"",
                "layers must come from the model's dimensions");
}

Bytes StageLayout::bytes(BufferKind kind) const
{
    const std::pair<BufferKind, Bytes> made[] = {{BufferKind::SavedUntilInputGrad, m_untilInputGrad},
                                                 {BufferKind::SavedUntilWeightGrad, m_untilWeightGrad},
                                                 {BufferKind::SavedFromInputGrad, m_fromInputGrad},
                                                 {BufferKind::Workspace, m_workspace},
                                                 {BufferKind::SequenceGradient, m_sequenceGradient},
                                                 {BufferKind::RecomputedUntilInputGrad, m_againUntilInputGrad},
                                                 {BufferKind::RecomputedUntilWeightGrad, m_againUntilWeightGrad}};
    for (const auto& [each, bytes] : made)
        if (each == kind)
            return bytes;
    throw Error("stage", "only what a pass keeps or works in is made of tensors", "");
}

StageMemory StageLayout::scratchOf(int layer, const StageMemory& memory) const
{
    if (m_recompute == Recompute::None)
        return memory;
    const Scratch& scratch = m_scratch[std::size_t(layer - m_first)];
    const auto untilInput = std::size_t(scratch.untilInputGradEnd - scratch.untilInputGrad),
               untilWeight = std::size_t(scratch.untilWeightGradEnd - scratch.untilWeightGrad);
    StageMemory of = memory;
    of.recomputedUntilInputGrad = memory.workspace.subspan(std::size_t(scratch.at), untilInput);
    of.recomputedUntilWeightGrad = memory.workspace.subspan(std::size_t(scratch.at) + untilInput, untilWeight);
    of.firstRecomputedUntilInputGrad = scratch.untilInputGrad;
    of.firstRecomputedUntilWeightGrad = scratch.untilWeightGrad;
    return of;
}

} // namespace pipewright
