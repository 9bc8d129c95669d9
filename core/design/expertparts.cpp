// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/expertparts.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr bool awaited = true;

class PartList {
public:
    void compute(const char* name, double seconds, bool isAwaited)
    {
        add(name, seconds, PartStream::Compute, isAwaited);
    }
    void communicate(const char* name, double seconds) { add(name, seconds, PartStream::Communication, awaited); }

    std::vector<BlockPart> of(Nanoseconds time)
    {
        fitParts(m_parts, time);
        return std::move(m_parts);
    }

private:
    /// Neighbouring layers that send no tokens are one part.
    void add(const char* name, double seconds, PartStream stream, bool isAwaited)
    {
        const BlockPart part{name, std::llround(seconds * 1e9), stream, isAwaited};
        if (part.time > 0)
            appendParts(m_parts, {&part, 1});
    }

    std::vector<BlockPart> m_parts;
};

void addForward(const LayerSeconds& layer, PartList& list)
{
    if (!layer.sendsTokens())
        return list.compute("layers", layer.attention.forward + layer.rest.forward, awaited);
    list.compute("attention", layer.attention.forward, awaited);
    list.communicate("dispatch", layer.tokens.forward / 2);
    list.compute("experts", layer.rest.forward, awaited);
    list.communicate("combine", layer.tokens.forward / 2);
}

/// `weights`: the weight gradients among the rest (B); else the input gradients alone (I).
void addBackward(const LayerSeconds& layer, bool weights, PartList& list)
{
    if (layer.again.kind == RecomputeKind::Full)
        addForward(layer, list);
    else if (layer.again.kind == RecomputeKind::Selective)
        list.compute("attention", layer.coreAgain, awaited);
    const auto weightGrad = [&](const char* name, double seconds) {
        if (weights)
            list.compute(name, seconds, !awaited);
    };
    if (!layer.sendsTokens()) {
        list.compute("layers", layer.attention.inputGrad + layer.rest.inputGrad, awaited);
        return weightGrad("layers' weights", layer.attention.weightGrad + layer.rest.weightGrad);
    }
    list.communicate("combine", layer.tokens.inputGrad / 2);
    list.compute("experts", layer.rest.inputGrad, awaited);
    weightGrad("experts' weights", layer.rest.weightGrad);
    list.communicate("dispatch", layer.tokens.inputGrad / 2);
    list.compute("attention", layer.attention.inputGrad, awaited);
    weightGrad("attention's weights", layer.attention.weightGrad);
}

void addWeightGrad(const LayerSeconds& layer, PartList& list)
{
    if (!layer.sendsTokens())
        return list.compute("layers' weights", layer.attention.weightGrad + layer.rest.weightGrad, !awaited);
    list.compute("experts' weights", layer.rest.weightGrad, !awaited);
    list.compute("attention's weights", layer.attention.weightGrad, !awaited);
}

} // namespace

void setExpertParts(std::span<const LayerSeconds> layers, StageCosts& stage)
{
    if (std::none_of(layers.begin(), layers.end(), [](const LayerSeconds& layer) { return layer.sendsTokens(); }))
        return;
    PartList forward, full, inputGrad, weightGrad;
    for (const LayerSeconds& layer : layers)
        addForward(layer, forward);
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
        addBackward(*layer, true, full);
        addBackward(*layer, false, inputGrad);
        addWeightGrad(*layer, weightGrad);
    }
    stage.parts[indexOf(Op::F)] = forward.of(stage.forward);
    stage.parts[indexOf(Op::B)] = full.of(stage.backward);
    stage.parts[indexOf(Op::I)] = inputGrad.of(stage.inputGrad);
    stage.parts[indexOf(Op::W)] = weightGrad.of(stage.weightGrad);
}

} // namespace pipewright
