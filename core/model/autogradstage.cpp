// SPDX-License-Identifier: GPL-3.0-or-later
// Walks the layers of the stage in the order of the backward and adds up what PyTorch still holds at each point; the
// rules are those of the header, found in torch.autograd and torch.distributed.pipelining. O(layers).
#include "core/model/autogradstage.h"

#include <algorithm>
#include <span>

namespace pipewright {

namespace {

/// The state of PyTorch's random numbers on CPUs, of which every checkpoint keeps a copy.
constexpr Bytes generatorState = 5056;

Bytes savedBytes(const Layer& layer)
{
    Bytes bytes = 0;
    for (const SavedTensor& tensor : layer.saved)
        bytes += tensor.bytes();
    return bytes;
}

/// The layers of a stage from the first to the last: the peak memory of each pass, above the memory before the pass.
class Passes {
public:
    Passes(std::span<const Layer> layers, Bytes input) : m_layers(layers)
    {
        for (const Layer& layer : layers) {
            m_input.push_back(input);
            m_saved.push_back(savedBytes(layer));
            input = layer.outputBytes;
        }
    }

    Bytes forward() const
    {
        Bytes most = 0, saved = 0;
        for (std::size_t i = 0; i < m_layers.size(); ++i) {
            const AutogradBytes& of = m_layers[i].autograd;
            saved += m_saved[i];
            most = std::max(most, saved + (i > 0 ? of.input : 0) + std::max(m_layers[i].outputBytes, of.output)
                                      + of.workspaceForward);
        }
        return most;
    }

    Bytes inputGrad() const
    {
        Bytes most = 0, made = 0;
        for (std::size_t i = m_layers.size(); i-- > 0;) {
            const AutogradBytes& of = m_layers[i].autograd;
            made += of.fromInputGrad;
            most = std::max(most, made + gradientBehind(i) + m_input[i] + of.workspaceInputGrad);
            made += i + 1 < m_layers.size() ? of.gradient : 0;
        }
        return most;
    }

    Bytes weightGrad() const
    {
        Bytes most = 0;
        for (const Layer& layer : m_layers)
            most = std::max(most, layer.autograd.workspaceWeightGrad);
        return most;
    }

    Bytes backward() const
    {
        Bytes most = 0, released = 0;
        for (std::size_t i = m_layers.size(); i-- > 0;) {
            most = std::max(most, gradientBehind(i) + m_input[i] + m_layers[i].autograd.workspaceBackward - released);
            released += m_saved[i];
        }
        return most;
    }

    Bytes saved() const
    {
        Bytes sum = 0;
        for (const Bytes bytes : m_saved)
            sum += bytes;
        return sum;
    }

    /// Of layers that are recomputed `together` at a time: what F keeps besides the stage's own input.
    Bytes keptToRecompute(int together) const
    {
        Bytes sum = m_layers.back().autograd.savedByLoss;
        for (std::size_t first = 0; first < m_layers.size(); first += together)
            sum += (first > 0 ? m_input[first] : 0) + generatorState;
        return sum;
    }

    /// An upper bound: a layer that is not kept may free some tensors before it makes its last.
    Bytes forwardToRecompute() const
    {
        Bytes most = 0;
        for (std::size_t i = 0; i < m_layers.size(); ++i)
            most = std::max(most, m_saved[i] + m_layers[i].outputBytes + m_layers[i].autograd.workspaceForward);
        return most;
    }

    Bytes backwardThatRecomputes(int together) const
    {
        Bytes most = 0, released = 0;
        for (std::size_t end = m_layers.size(); end > 0;) {
            const std::size_t first = (end - 1) / together * together;
            // What a layer saves of the range's input is there already.
            Bytes made = m_layers[first].autograd.input - m_input[first];
            for (std::size_t i = first; i < end; ++i)
                made += m_saved[i] - m_layers[i].autograd.savedByLoss;
            most =
                std::max(most, made + gradientBehind(end - 1) + m_layers[end - 1].autograd.workspaceForward - released);
            for (std::size_t i = end; i-- > first;) {
                most = std::max(most, made + gradientBehind(i) + m_input[i] + m_layers[i].autograd.workspaceBackward
                                          - released);
                made -= m_saved[i] - m_layers[i].autograd.savedByLoss;
            }
            released += (first > 0 ? m_input[first] : 0) + generatorState + m_layers[end - 1].autograd.savedByLoss;
            end = first;
        }
        return most;
    }

    /// Saved bytes that I frees: those kept until the input gradient, in the layers down to the topmost one with
    /// weights.
    Bytes aboveTheLastWeight() const
    {
        Bytes sum = 0;
        for (std::size_t i = m_layers.size(); i-- > 0;) {
            for (const SavedTensor& tensor : m_layers[i].saved)
                sum += tensor.lifetime == Lifetime::UntilInputGrad ? tensor.bytes() : 0;
            if (m_layers[i].parameters > m_layers[i].frozenParameters)
                break;
        }
        return sum;
    }

    /// What I makes and W frees, without the gradients at the stage's ends.
    Bytes madeWithin() const
    {
        Bytes sum = 0;
        for (std::size_t i = 0; i < m_layers.size(); ++i)
            sum += m_layers[i].autograd.fromInputGrad + (i + 1 < m_layers.size() ? m_layers[i].autograd.gradient : 0);
        return sum;
    }

private:
    /// The gradient of layer i's output; 0 for the last layer, whose gradient was there before the pass.
    Bytes gradientBehind(std::size_t i) const { return i + 1 < m_layers.size() ? m_layers[i].outputBytes : 0; }

    std::span<const Layer> m_layers;
    std::vector<Bytes> m_input, m_saved; ///< per layer
};

} // namespace

AutogradStage autogradStage(const std::vector<Layer>& model, std::size_t begin, std::size_t count, Recompute recompute)
{
    const std::span<const Layer> layers = std::span(model).subspan(begin, count);
    const bool first = begin == 0, last = begin + count == model.size();
    const Bytes input = first ? 0 : model[begin - 1].outputBytes, output = last ? 0 : layers.back().outputBytes;
    const Passes passes(layers, input);
    const Bytes keptInput = first ? 0 : layers.front().autograd.input, keptOutput = layers.back().autograd.output;
    AutogradStage stage;
    if (recompute != Recompute::None) {
        const Bytes kept = passes.keptToRecompute(recompute.layers) + keptOutput;
        (first ? stage.untilWeightGrad : stage.untilInputGrad) = kept;
        stage.fromInputGrad = first ? output : 0;
        stage.workspaceForward = std::max<Bytes>(0, passes.forwardToRecompute() - output);
        stage.workspaceBackward = std::max<Bytes>(0, passes.backwardThatRecomputes(recompute.layers) - input);
        (first ? stage.workspaceWeightGrad : stage.workspaceInputGrad) = stage.workspaceBackward;
        return stage;
    }
    stage.untilInputGrad = first ? 0 : passes.aboveTheLastWeight() + keptOutput;
    stage.untilWeightGrad = passes.saved() + keptInput + keptOutput - stage.untilInputGrad;
    // The input counts as kept and as received, but F holds it once.
    stage.workspaceForward = std::max<Bytes>(0, passes.forward() - passes.saved() - keptOutput - output - input);
    stage.workspaceBackward = std::max<Bytes>(0, passes.backward() - input);
    if (first) {
        stage.fromInputGrad = output;
        stage.workspaceWeightGrad = stage.workspaceBackward;
        return stage;
    }
    stage.fromInputGrad = passes.madeWithin() + output + input;
    stage.workspaceInputGrad = std::max<Bytes>(0, passes.inputGrad() - stage.fromInputGrad - input);
    stage.workspaceWeightGrad = passes.weightGrad();
    return stage;
}

} // namespace pipewright
