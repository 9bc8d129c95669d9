// SPDX-License-Identifier: GPL-3.0-or-later
// What the steps of a layer work on. Values pass through a residual stream of tokens x hidden that a layer changes in
// place: F turns it from the layer's input into its output, I from the gradient of the output into the gradient of the
// input. Hence the stream is the only memory handed from layer to layer, and F needs no scratch at all.
#pragma once

#include "executor/stage/stagelayout.h"

#include <functional>
#include <span>

namespace pipewright {

/// Where a value lies during a pass: in the stream, or in a part of a buffer. Of a node alone: the number of a tensor.
struct Place {
    bool isStream = false;
    Slice slice{};
    int tensor = -1;
    bool operator==(const Place&) const = default;
};

/// Where a parameter lies among the stage's. Of a weight of experts, `count` reaches from the first expert's to the end
/// of the last one's, which are `stride` apart. Of a node alone: the number of an operand.
struct ParameterPlace {
    std::size_t offset = 0, count = 0; ///< in floats; a count of 0: there is none
    std::int64_t stride = 0;
    int tensor = -1;
};

struct StepContext {
    const StageMemory& memory;
    std::span<const float> parameters{}; ///< of the stage; not of W
    std::span<float> stream{};           ///< not of W
    std::span<float> gradients{};        ///< of the stage's parameters; of I and W
    std::span<const std::int32_t> inputs{}, targets{};
    std::span<float> loss{};
    std::span<const std::span<float>> tensors{}, operandGrads{}; ///< of a node alone, by their numbers

    const kernels::Operations& on() const { return *memory.operations; }
    std::span<float> at(const Place& place) const
    {
        if (place.isStream)
            return stream;
        return place.tensor < 0 ? memory.floats(place.slice) : tensors[std::size_t(place.tensor)];
    }
    std::span<std::int32_t> integers(const Place& place) const
    {
        if (place.tensor < 0)
            return memory.integers(place.slice);
        const std::span<float> values = tensors[std::size_t(place.tensor)];
        return {reinterpret_cast<std::int32_t*>(values.data()), values.size()};
    }
    std::span<const float> parameter(const ParameterPlace& place) const
    {
        return place.tensor < 0 ? in(parameters, place) : std::span<const float>(tensors[std::size_t(place.tensor)]);
    }
    std::span<float> gradient(const ParameterPlace& place) const
    {
        return place.tensor < 0 ? in(gradients, place) : operandGrads[std::size_t(place.tensor)];
    }

private:
    template<class T>
    static std::span<T> in(std::span<T> flat, const ParameterPlace& place)
    {
        return place.count > 0 ? flat.subspan(place.offset, place.count) : std::span<T>();
    }
};

/// One call of a kernel, its operands resolved.
using Step = std::function<void(const StepContext&)>;

/// All of a layer's, in the order in which they run.
struct LayerSteps {
    std::vector<Step> forward, inputGrad, weightGrad;
    std::vector<Step> cores; ///< of F: the attention cores alone, for selective recomputation
};

} // namespace pipewright
