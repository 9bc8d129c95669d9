// SPDX-License-Identifier: GPL-3.0-or-later
// The passes of a bf16 stage on a device that computes with bf16: layers run on their stored parameters and tensors,
// and the values between layers are in the pass's output buffer. The workspace holds what has no buffer. O(tensors) on
// the host per layer and pass, and no copy of a tensor on the device.
#include "executor/stage/storedstage.h"

#include <cassert>

namespace pipewright {

/// What is left of a pass's workspace.
class StoredStage::Room {
public:
    explicit Room(std::span<std::byte> workspace) : m_left(workspace) {}

    /// Aligned for kernels that read 16 bytes at once.
    std::byte* take(Bytes bytes)
    {
        const auto count = static_cast<std::size_t>(alignedForPass(bytes));
        assert(count <= m_left.size());
        std::byte* const first = m_left.data();
        m_left = m_left.subspan(count);
        return first;
    }

private:
    std::span<std::byte> m_left;
};

namespace {

constexpr int narrow = 2; ///< bytes

std::byte* writable(std::span<const std::byte> values)
{
    return const_cast<std::byte*>(values.data()); // read-only tensors are only read
}

/// Sums the stage's inputs, from its neighbour and from skip connections, into the stream.
void gather(StoredOperations& on, std::span<const std::byte> values, std::span<const std::span<const std::byte>> others,
            std::span<float> stream, const std::byte* streamAt)
{
    const auto elements = static_cast<std::int64_t>(stream.size());
    if (values.data() != streamAt)
        on.copy(std::span<const float>(on.place(elements, writable(values), narrow)), stream);
    for (const std::span<const std::byte> other : others)
        on.run(kernels::Add{stream, on.place(elements, writable(other), narrow)});
}

} // namespace

StageMemory StoredStage::addressed(StoredOperations& on, const Layer& layer, const StageMemory& stored, Room& room,
                                   std::initializer_list<Kept> kept, std::vector<const float*>& earlier,
                                   bool keepsAll) const
{
    StageMemory memory;
    memory.operations = &on;
    for (const Kept one : kept) {
        const std::byte* const first = on.next();
        for (const Place& place : layer.kept[one]) {
            const bool passesBy = !keepsAll && isRecomputedKind(place.buffer);
            on.place(place.elements, passesBy ? room.take(place.elements * place.width) : placeIn(stored, place).data(),
                     place.width);
        }
        (one == UntilInputGrad    ? memory.savedUntilInputGrad
         : one == UntilWeightGrad ? memory.savedUntilWeightGrad
                                  : memory.savedFromInputGrad) = on.since(first);
    }
    memory.piece = stored.piece;
    const Bytes sequenceGradient = layer.maths.layout().bytes(BufferKind::SequenceGradient);
    if (sequenceGradient == 0) // no attention, or no pieces
        return memory;
    if (!stored.sequenceGradient.empty())
        memory.sequenceGradient =
            stored.sequenceGradient.subspan(std::size_t(layer.sequenceGradient), std::size_t(sequenceGradient));
    for (const float* const piece : stored.earlier) {
        earlier.push_back(reinterpret_cast<const float*>(on.next()));
        for (const Place& place : layer.kept[UntilInputGrad]) // recomputed tensors of earlier pieces are not read
            on.place(place.elements,
                     isRecomputedKind(place.buffer)
                         ? nullptr
                         : reinterpret_cast<std::byte*>(const_cast<float*>(piece)) + place.at,
                     place.width);
    }
    memory.earlier = earlier;
    return memory;
}

void StoredStage::forwardAsStored(std::span<const std::byte> parameters, const StoredInput& input,
                                  const StageMemory& memory, std::span<std::byte> output, bool recomputes) const
{
    StoredOperations on(*memory.operations);
    Room room(memory.workspace);
    std::byte* const streamAt = m_hasHead || recomputes ? room.take(m_activation * narrow) : output.data();
    for (const Layer& layer : m_layers) {
        on.clear();
        const std::span<float> stream = on.place(m_activation, streamAt, narrow);
        if (&layer == &m_layers.front() && !m_hasEmbedding)
            gather(on, input.activation, input.skips, stream, streamAt);
        const auto values =
            on.place(std::int64_t(layer.parameters), writable(parameters) + layer.firstParameter * narrow, narrow);
        std::vector<const float*> earlier;
        Room own = room; // layers run one after another and share it
        const StageMemory of =
            addressed(on, layer, memory, own, {UntilInputGrad, UntilWeightGrad}, earlier, recomputes);
        layer.maths.forward(values, {input.tokens, stream, input.targets, input.loss}, of, stream);
    }
}

void StoredStage::recomputeCoresAsStored(std::span<const std::byte> parameters, const StageMemory& memory) const
{
    StoredOperations on(*memory.operations);
    for (const Layer& layer : m_layers) {
        on.clear();
        const auto values =
            on.place(std::int64_t(layer.parameters), writable(parameters) + layer.firstParameter * narrow, narrow);
        std::vector<const float*> earlier;
        Room room(memory.workspace);
        layer.maths.recomputeCores(
            values, addressed(on, layer, memory, room, {UntilInputGrad, UntilWeightGrad}, earlier, true));
    }
}

void StoredStage::inputGradAsStored(std::span<const std::byte> parameters, const StageMemory& memory,
                                    std::span<const std::byte> outputGrad, std::span<std::byte> inputGrad,
                                    std::span<float> gradients,
                                    std::span<const std::span<const std::byte>> skipGrads) const
{
    StoredOperations on(*memory.operations);
    Room room(memory.workspace);
    std::byte* const streamAt = m_hasEmbedding ? room.take(m_activation * narrow) : inputGrad.data();
    for (auto layer = m_layers.rbegin(); layer != m_layers.rend(); ++layer) {
        on.clear();
        const std::span<float> stream = on.place(m_activation, streamAt, narrow);
        if (layer == m_layers.rbegin() && !m_hasHead)
            gather(on, outputGrad, skipGrads, stream, streamAt);
        const auto values =
            on.place(std::int64_t(layer->parameters), writable(parameters) + layer->firstParameter * narrow, narrow);
        std::vector<const float*> earlier;
        Room own = room;
        StageMemory of =
            addressed(on, *layer, memory, own, {UntilInputGrad, UntilWeightGrad, FromInputGrad}, earlier, true);
        const std::byte* const first = on.next();
        for (const WorkspaceTensor& tensor : layer->workspace) {
            const int width = tensor.ofSums ? bytesOf(DataType::Fp32) : narrow;
            on.place(tensor.elements, own.take(tensor.elements * width), width);
        }
        of.workspace = on.since(first);
        layer->maths.inputGrad(values, of, stream, stream, gradients.subspan(layer->firstParameter, layer->parameters));
    }
}

void StoredStage::weightGradAsStored(const StageMemory& memory, std::span<float> gradients) const
{
    StoredOperations on(*memory.operations);
    for (const Layer& layer : m_layers) {
        on.clear();
        std::vector<const float*> earlier;
        Room room(memory.workspace);
        const StageMemory of = addressed(on, layer, memory, room, {UntilWeightGrad, FromInputGrad}, earlier, true);
        layer.maths.weightGrad(of, gradients.subspan(layer.firstParameter, layer.parameters));
    }
}

} // namespace pipewright
