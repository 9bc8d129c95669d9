// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/stagelayout.h"

#include "core/base/diagnostic.h"
#include "core/workload/gptworkspace.h"
#include "core/workload/transformer.h"

#include <algorithm>
#include <cassert>

namespace pipewright {
namespace {

constexpr int elementBytes = 4; ///< the runnable models keep fp32 values and 32-bit tokens only

template<class Element>
std::span<Element> view(const StageMemory& memory, const Slice& slice)
{
    const std::span<std::byte> buffer = slice.buffer == BufferKind::SavedUntilInputGrad    ? memory.savedUntilInputGrad
                                        : slice.buffer == BufferKind::SavedUntilWeightGrad ? memory.savedUntilWeightGrad
                                        : slice.buffer == BufferKind::SavedFromInputGrad   ? memory.savedFromInputGrad
                                        : slice.buffer == BufferKind::SequenceGradient     ? memory.sequenceGradient
                                                                                           : memory.workspace;
    assert(std::size_t(slice.offset + slice.elements * elementBytes) <= buffer.size());
    return {reinterpret_cast<Element*>(buffer.data() + slice.offset), std::size_t(slice.elements)};
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

StageLayout::StageLayout(const Workload& workload, int first, int last) : m_first(first), m_last(last)
{
    if (Diagnostics reasons = whyNotRunnable(workload.shape); hasErrors(reasons))
        throw Error(std::move(reasons));
    if (first < 0 || first >= last || last > int(workload.layers.size()))
        throw Error("stage",
                    "layers " + std::to_string(first) + " to " + std::to_string(last - 1)
                        + " are not a range of the model's " + std::to_string(workload.layers.size()),
                    "give every stage at least one layer");
    for (int index = first; index < last; ++index) {
        const Layer& layer = workload.layers[std::size_t(index)];
        for (const SavedTensor& tensor : layer.saved) {
            assert(tensor.bytesPerElement == elementBytes);
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
        for (const WorkspaceTensor& tensor : layerWorkspace(workload.shape, layer.kind, Pass::InputGrad))
            append(index, tensor.name, BufferKind::Workspace, tensor.elements, end);
        m_workspace = std::max(m_workspace, end);
    }
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
    switch (kind) {
    case BufferKind::SavedUntilInputGrad: return m_untilInputGrad;
    case BufferKind::SavedUntilWeightGrad: return m_untilWeightGrad;
    case BufferKind::SavedFromInputGrad: return m_fromInputGrad;
    case BufferKind::Workspace: return m_workspace;
    case BufferKind::SequenceGradient: return m_sequenceGradient;
    case BufferKind::Parameters:
    case BufferKind::Gradients:
    case BufferKind::OptimizerState:
    case BufferKind::Output:
    case BufferKind::ReceivedOutput:
    case BufferKind::Gradient:
    case BufferKind::ReceivedGradient:
    case BufferKind::ReduceInbox:
    case BufferKind::WeightVersion:
    case BufferKind::PredictedWeights:
    case BufferKind::SentWeights:
    case BufferKind::ReceivedWeights:
    case BufferKind::PartialGradient:
    case BufferKind::ReceivedPartialGradient: break;
    }
    throw Error("stage", "only what a pass keeps or works in is made of tensors", "");
}

} // namespace pipewright
