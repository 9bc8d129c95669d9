// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/training/blockmemory.h"

namespace pipewright {

BlockMemory::BlockMemory(const TaskContext& context) : m_microbatch(context.task->microbatch)
{
    for (const BufferView& view : context.reads)
        place(view, false);
    for (const BufferView& view : context.writes)
        place(view, true);
}

void BlockMemory::place(const BufferView& view, bool written)
{
    switch (view.description->kind) {
    case BufferKind::SavedUntilInputGrad:
        if (view.description->microbatch == m_microbatch) // not that of an earlier piece
            saved.savedUntilInputGrad = bytes(view.region);
        break;
    case BufferKind::SavedUntilWeightGrad:
    case BufferKind::ReloadedUntilWeightGrad: saved.savedUntilWeightGrad = bytes(view.region); break;
    case BufferKind::ReloadedUntilInputGrad: saved.savedUntilInputGrad = bytes(view.region); break;
    case BufferKind::SavedFromInputGrad: saved.savedFromInputGrad = bytes(view.region); break;
    case BufferKind::RecomputedUntilInputGrad: saved.recomputedUntilInputGrad = bytes(view.region); break;
    case BufferKind::RecomputedUntilWeightGrad: saved.recomputedUntilWeightGrad = bytes(view.region); break;
    case BufferKind::SequenceGradient: saved.sequenceGradient = bytes(view.region); break;
    case BufferKind::Workspace: saved.workspace = bytes(view.region); break;
    case BufferKind::Output:
    case BufferKind::ReceivedOutput:
        if (!view.description->skip)
            (written ? output : input) = bytes(view.region);
        else if (written)
            skipOutputs.push_back(bytes(view.region));
        else
            skipInputs.push_back(bytes(view.region));
        break;
    case BufferKind::Gradient:
    case BufferKind::ReceivedGradient:
        if (!view.description->skip)
            (written ? inputGrad : outputGrad) = bytes(view.region);
        else if (written)
            skipInputGrads.push_back(bytes(view.region));
        else
            skipGrads.push_back(bytes(view.region));
        break;
    case BufferKind::Parameters:
    case BufferKind::Gradients:
    case BufferKind::OptimizerState:
    case BufferKind::ReduceInbox:
    case BufferKind::WeightVersion:
    case BufferKind::PredictedWeights:
    case BufferKind::SentWeights:
    case BufferKind::ReceivedWeights:
    case BufferKind::PartialGradient:
    case BufferKind::ReceivedPartialGradient:
    case BufferKind::OffloadedUntilInputGrad:
    case BufferKind::OffloadedUntilWeightGrad: break; // not of a pass
    }
}

} // namespace pipewright
