// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/blockmemory.h"

namespace pipewright {

BlockMemory::BlockMemory(const TaskContext& context, int piece)
    : m_microbatch(context.task->microbatch()), m_earlier(static_cast<std::size_t>(piece))
{
    saved.piece = piece;
    saved.earlier = m_earlier;
    for (const BufferView& view : context.reads)
        place(view, false);
    for (const BufferView& view : context.writes)
        place(view, true);
}

void BlockMemory::placeKept(const BufferView& view)
{
    const auto before = static_cast<std::size_t>(m_microbatch - view.description.microbatch);
    if (before == 0)
        saved.savedUntilInputGrad = bytes(view.region);
    else if (before <= m_earlier.size())
        m_earlier[m_earlier.size() - before] = floats(view.region).data();
}

void BlockMemory::place(const BufferView& view, bool written)
{
    switch (view.description.kind) {
    case BufferKind::SavedUntilInputGrad:
    case BufferKind::ReloadedUntilInputGrad: placeKept(view); break;
    case BufferKind::SavedUntilWeightGrad:
    case BufferKind::ReloadedUntilWeightGrad: saved.savedUntilWeightGrad = bytes(view.region); break;
    case BufferKind::SavedFromInputGrad: saved.savedFromInputGrad = bytes(view.region); break;
    case BufferKind::RecomputedUntilInputGrad: saved.recomputedUntilInputGrad = bytes(view.region); break;
    case BufferKind::RecomputedUntilWeightGrad: saved.recomputedUntilWeightGrad = bytes(view.region); break;
    case BufferKind::SequenceGradient: saved.sequenceGradient = bytes(view.region); break;
    case BufferKind::Workspace: saved.workspace = bytes(view.region); break;
    case BufferKind::Output:
    case BufferKind::ReceivedOutput:
        if (!view.description.skip)
            (written ? output : input) = bytes(view.region);
        else if (written)
            skipOutputs.push_back(bytes(view.region));
        else
            skipInputs.push_back(bytes(view.region));
        break;
    case BufferKind::Gradient:
    case BufferKind::ReceivedGradient:
        if (!view.description.skip)
            (written ? inputGrad : outputGrad) = bytes(view.region);
        else if (written)
            skipInputGrads.push_back(bytes(view.region));
        else
            skipGrads.push_back(bytes(view.region));
        break;
    case BufferKind::Parameters:
    case BufferKind::Gradients:
    case BufferKind::OptimizerState:
    case BufferKind::Framework:
    case BufferKind::ReduceInbox:
    case BufferKind::GatheredParameters:
    case BufferKind::WholeGradients:
    case BufferKind::KeptGradients:
    case BufferKind::WeightVersion:
    case BufferKind::PredictedWeights:
    case BufferKind::SentWeights:
    case BufferKind::ReceivedWeights:
    case BufferKind::PartialGradient:
    case BufferKind::ReceivedPartialGradient:
    case BufferKind::OffloadedUntilInputGrad:
    case BufferKind::OffloadedUntilWeightGrad: break; // not used by a pass
    }
}

} // namespace pipewright
