// SPDX-License-Identifier: GPL-3.0-or-later
// F runs the segments from the first to the last, the backward from the last to the first. The cost is the layers', and
// a forward of what is recomputed. Nothing is allocated but the places of earlier pieces of a sequence.
#include "executor/stage/stagesegments.h"

#include <cassert>

namespace pipewright {

namespace {

/// Empty of a buffer that the pass does not have.
std::span<std::byte> part(std::span<std::byte> of, Bytes begin, Bytes bytes)
{
    if (bytes == 0 || of.empty())
        return {};
    assert(static_cast<std::size_t>(begin + bytes) <= of.size());
    return of.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(bytes));
}

/// The first bytes of a workspace, which then begins behind them.
std::span<std::byte> taken(std::span<std::byte>& workspace, Bytes bytes)
{
    const std::span<std::byte> first = part(workspace, 0, bytes);
    workspace = workspace.subspan(static_cast<std::size_t>(alignedForPass(bytes)));
    return first;
}

} // namespace

struct StageSegments::SegmentMemory {
    StageMemory memory;
    std::vector<const float*> earlier; ///< which the memory refers to
};

StageSegments::StageSegments(const Workload& workload, int first, int last, int microbatches, Recompute recompute)
    : m_isInside(recompute.insideBackward())
{
    const auto layers = std::span(workload.layers).subspan(std::size_t(first), std::size_t(last - first));
    const std::vector<RecomputeSegment> segments = segmentsOf(layers, recompute);
    m_kept = passMemory(workload.shape, layers, recompute).kept;
    m_between = betweenSegments(layers, segments);
    Bytes inputs = 0, untilInputGrad = 0, untilWeightGrad = 0, fromInputGrad = 0, again = 0, againForWeights = 0;
    const auto inputOf = [&](const RecomputeSegment& segment) { return m_isInside ? keptInput(layers, segment) : 0; };
    for (const RecomputeSegment& segment : segments)
        untilInputGrad += inputOf(segment);
    std::size_t parameters = 0;
    for (const RecomputeSegment& segment : segments) {
        StoredStage stage(workload, first + int(segment.first), first + int(segment.last), microbatches,
                          segment.recompute);
        const KeptBytes kept = keptBytes(layers.subspan(segment.first, segment.last - segment.first), segment.recompute,
                                         workload.shape.sequencePieces);
        const std::size_t count = stage.parameters().count();
        const Bytes sequenceGradient = stage.bytes(BufferKind::SequenceGradient), input = inputOf(segment);
        m_segments.push_back({std::move(stage), segment.recompute, kept, input, inputs, untilInputGrad, untilWeightGrad,
                              fromInputGrad, m_sequenceGradient, again, againForWeights, parameters});
        inputs += input;
        untilInputGrad += kept.untilInputGrad;
        untilWeightGrad += kept.untilWeightGrad;
        fromInputGrad += kept.againUntilWeightGrad + kept.fromInputGrad;
        again += kept.againUntilInputGrad;
        againForWeights += kept.againUntilWeightGrad;
        m_sequenceGradient += sequenceGradient;
        parameters += count;
    }
}

Bytes StageSegments::bytes(BufferKind kind) const
{
    if (kind == BufferKind::SequenceGradient)
        return m_sequenceGradient;
    if (kind == BufferKind::SavedUntilInputGrad)
        return m_kept.untilInputGrad;
    if (kind == BufferKind::SavedUntilWeightGrad)
        return m_kept.untilWeightGrad;
    return kind == BufferKind::SavedFromInputGrad ? m_kept.fromInputGrad : 0;
}

StageSegments::SegmentMemory StageSegments::memoryOf(const Segment& segment, const StageMemory& memory) const
{
    SegmentMemory of{memory, {}};
    StageMemory& own = of.memory;
    own.savedUntilInputGrad = part(memory.savedUntilInputGrad, segment.untilInputGrad, segment.kept.untilInputGrad);
    own.savedUntilWeightGrad = part(memory.savedUntilWeightGrad, segment.untilWeightGrad, segment.kept.untilWeightGrad);
    own.sequenceGradient =
        part(memory.sequenceGradient, segment.sequenceGradient, segment.stage.bytes(BufferKind::SequenceGradient));
    if (m_isInside) {
        own.recomputedUntilWeightGrad =
            part(memory.savedFromInputGrad, segment.fromInputGrad, segment.kept.againUntilWeightGrad);
        own.savedFromInputGrad =
            part(memory.savedFromInputGrad, segment.fromInputGrad + segment.kept.againUntilWeightGrad,
                 segment.kept.fromInputGrad);
    }
    for (const float* const piece : memory.earlier)
        of.earlier.push_back(
            reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(piece) + segment.untilInputGrad));
    own.earlier = of.earlier;
    return of;
}

std::span<const std::byte> StageSegments::parametersOf(const Segment& segment,
                                                       std::span<const std::byte> parameters) const
{
    const std::size_t width = segment.stage.isBf16() ? 2 : 4;
    return parameters.subspan(segment.firstParameter * width, segment.stage.parameters().count() * width);
}

StoredInput StageSegments::inputOf(const Segment& segment, const StageMemory& memory) const
{
    StoredInput input;
    if (segment.keptInput > 0) {
        input.activation = part(memory.savedUntilInputGrad, segment.inputAt, segment.keptInput);
    } else if (segment.recompute == Recompute::Block) {
        assert(memory.input != nullptr);
        input.activation = memory.input->activation;
        input.skips = memory.input->skips;
    }
    return input;
}

void StageSegments::forward(std::span<const std::byte> parameters, const StoredInput& input, const StageMemory& memory,
                            std::span<std::byte> output) const
{
    StageMemory rest = memory;
    const std::span<std::byte> between = taken(rest.workspace, m_between.forward);
    const std::span<std::byte> stream = between.empty() ? output : part(between, 0, front().activationBytes());
    StoredInput next = input;
    for (std::size_t s = 0; s < m_segments.size(); ++s) {
        const Segment& segment = m_segments[s];
        const SegmentMemory of = memoryOf(segment, rest);
        std::span<std::byte> made = stream;
        if (s + 1 == m_segments.size())
            made = output;
        else if (const Segment& behind = m_segments[s + 1]; behind.keptInput > 0)
            made = part(memory.savedUntilInputGrad, behind.inputAt, behind.keptInput);
        segment.stage.forward(parametersOf(segment, parameters), next, of.memory, made);
        next.activation = made;
        next.skips = {};
    }
}

void StageSegments::backwards(bool full, std::span<const std::byte> parameters, const StageMemory& memory,
                              std::span<const std::byte> outputGrad, std::span<std::byte> inputGrad,
                              std::span<float> gradients, std::span<const std::span<const std::byte>> skipGrads) const
{
    StageMemory rest = memory;
    const std::span<std::byte> between = taken(rest.workspace, m_between.backward);
    const std::span<std::byte> stream = between.empty() ? inputGrad : part(between, 0, front().activationBytes());
    for (std::size_t s = m_segments.size(); s-- > 0;) {
        const Segment& segment = m_segments[s];
        SegmentMemory of = memoryOf(segment, rest);
        StageMemory& own = of.memory;
        if (m_isInside) {
            own.recomputedUntilInputGrad = taken(own.workspace, segment.kept.againUntilInputGrad);
            if (full)
                own.recomputedUntilWeightGrad = taken(own.workspace, segment.kept.againUntilWeightGrad);
        } else { // R blocks have made it
            own.recomputedUntilInputGrad =
                part(memory.recomputedUntilInputGrad, segment.againUntilInputGrad, segment.kept.againUntilInputGrad);
            own.recomputedUntilWeightGrad =
                part(memory.recomputedUntilWeightGrad, segment.againUntilWeightGrad, segment.kept.againUntilWeightGrad);
        }
        if (full)
            own.savedFromInputGrad = taken(own.workspace, segment.kept.fromInputGrad);
        const std::span<const std::byte> weights = parametersOf(segment, parameters);
        const std::span<float> sums = gradients.subspan(segment.firstParameter, segment.stage.parameters().count());
        if (m_isInside && segment.recompute != Recompute::None)
            segment.stage.recompute(weights, inputOf(segment, memory), own);
        segment.stage.inputGrad(weights, own, outputGrad, s == 0 ? inputGrad : stream, sums, skipGrads);
        if (full)
            segment.stage.weightGrad(own, sums);
        outputGrad = stream;
        skipGrads = {};
    }
}

void StageSegments::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    for (const Segment& segment : m_segments)
        segment.stage.weightGrad(memoryOf(segment, memory).memory,
                                 gradients.subspan(segment.firstParameter, segment.stage.parameters().count()));
}

int StageSegments::correct(const StageMemory& memory) const
{
    const Segment& last = m_segments.back();
    return last.stage.correct(memoryOf(last, memory).memory);
}

std::vector<float> StageSegments::probabilities(const StageMemory& memory) const
{
    const Segment& last = m_segments.back();
    return last.stage.probabilities(memoryOf(last, memory).memory);
}

} // namespace pipewright
