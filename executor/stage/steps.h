// SPDX-License-Identifier: GPL-3.0-or-later
// What the steps of a layer work on. Values pass through a residual stream of tokens x hidden that a layer changes in
// place: F turns it from the layer's input into its output, I from the gradient of the output into the gradient of the
// input. Hence the stream is the only memory handed from layer to layer, and F needs no scratch at all.
#pragma once

#include "executor/stage/stagelayout.h"

#include <functional>
#include <span>

namespace pipewright {

/// Where a value of a layer lies during a pass: in the stream, or in a part of a buffer.
struct Place {
    bool isStream = false;
    Slice slice{};
};

/// Where a parameter lies among the stage's. Of a weight of experts, `count` reaches from the first expert's to the end
/// of the last one's, which are `stride` apart.
struct ParameterPlace {
    std::size_t offset = 0, count = 0; ///< in floats; a count of 0: there is none
    std::int64_t stride = 0;

    template<class T>
    std::span<T> in(std::span<T> flat) const
    {
        return count > 0 ? flat.subspan(offset, count) : std::span<T>();
    }
};

struct StepContext {
    const StageMemory& memory;
    std::span<const float> parameters{}; ///< of the stage; not of W
    std::span<float> stream{};           ///< not of W
    std::span<float> gradients{};        ///< of the stage's parameters; of I and W
    std::span<const std::int32_t> inputs{}, targets{};
    std::span<float> loss{};

    const kernels::Operations& on() const { return *memory.operations; }
    std::span<float> at(const Place& place) const { return place.isStream ? stream : memory.floats(place.slice); }
};

/// One call of a kernel, its operands resolved.
using Step = std::function<void(const StepContext&)>;

/// All of a layer's, in the order in which they run.
struct LayerSteps {
    std::vector<Step> forward, inputGrad, weightGrad;
    std::vector<Step> cores; ///< of F: the attention cores alone, for selective recomputation
};

} // namespace pipewright
