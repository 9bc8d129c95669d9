// SPDX-License-Identifier: GPL-3.0-or-later
// A stage as a row of segments, each a stage of its own (core/model/passmemory.h says which layers they have, what F
// keeps for them, and how much there is to work in): all passes of one whose backward recomputes, and the full backward
// of any other. Gradients are bit-equal to those of a stage in one piece, since the same passes run on the same values.
#pragma once

#include "core/model/passmemory.h"
#include "executor/stage/storedstage.h"

#include <vector>

namespace pipewright {

class StageSegments {
public:
    /// As StoredStage.
    StageSegments(const Workload& workload, int first, int last, int microbatches, Recompute recompute);

    const StoredStage& front() const { return m_segments.front().stage; }
    const StoredStage& back() const { return m_segments.back().stage; }
    Bytes bytes(BufferKind kind) const;

    // The passes, as StoredStage has them. I and B of segments that are recomputed as a whole read memory.input.
    void forward(std::span<const std::byte> parameters, const StoredInput& input, const StageMemory& memory,
                 std::span<std::byte> output) const;
    void inputGrad(std::span<const std::byte> parameters, const StageMemory& memory,
                   std::span<const std::byte> outputGrad, std::span<std::byte> inputGrad, std::span<float> gradients,
                   std::span<const std::span<const std::byte>> skipGrads) const
    {
        backwards(false, parameters, memory, outputGrad, inputGrad, gradients, skipGrads);
    }
    void weightGrad(const StageMemory& memory, std::span<float> gradients) const;
    void backward(std::span<const std::byte> parameters, const StageMemory& memory,
                  std::span<const std::byte> outputGrad, std::span<std::byte> inputGrad, std::span<float> gradients,
                  std::span<const std::span<const std::byte>> skipGrads) const
    {
        backwards(true, parameters, memory, outputGrad, inputGrad, gradients, skipGrads);
    }
    /// After F: how many targets got the largest probability, and the probabilities, as StoredStage has them.
    int correct(const StageMemory& memory) const;
    std::vector<float> probabilities(const StageMemory& memory) const;

private:
    struct Segment {
        StoredStage stage;
        Recompute recompute; ///< at once: None, BlockSelective or Block
        KeptBytes kept;
        Bytes keptInput = 0;
        /// Where its parts of the buffers begin. All kept inputs come first in SavedUntilInputGrad; in
        /// SavedFromInputGrad what I recomputes for W comes before what I makes.
        Bytes inputAt = 0, untilInputGrad = 0, untilWeightGrad = 0, fromInputGrad = 0, sequenceGradient = 0;
        Bytes againUntilInputGrad = 0, againUntilWeightGrad = 0; ///< of what R blocks made
        std::size_t firstParameter = 0;                          ///< in floats
    };
    /// The memory of one segment in a pass.
    struct SegmentMemory;

    SegmentMemory memoryOf(const Segment& segment, const StageMemory& memory) const;
    std::span<const std::byte> parametersOf(const Segment& segment, std::span<const std::byte> parameters) const;
    /// The input that F kept for a segment that is recomputed as a whole.
    StoredInput inputOf(const Segment& segment, const StageMemory& memory) const;
    /// I, or B, which goes on with W in every segment.
    void backwards(bool full, std::span<const std::byte> parameters, const StageMemory& memory,
                   std::span<const std::byte> outputGrad, std::span<std::byte> inputGrad, std::span<float> gradients,
                   std::span<const std::span<const std::byte>> skipGrads) const;

    bool m_isInside; ///< the backward recomputes
    std::vector<Segment> m_segments;
    KeptBytes m_kept;
    BetweenSegments m_between;
    Bytes m_sequenceGradient = 0;
};

} // namespace pipewright
