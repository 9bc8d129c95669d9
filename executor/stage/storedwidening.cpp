// SPDX-License-Identifier: GPL-3.0-or-later
// The fp32 copies of one layer in the workspace of a widened bf16 stage's pass. O(bytes of a layer) of copying per
// layer and pass.
#include "executor/stage/storedstage.h"
#include "executor/stage/viewed.h"

#include <cassert>

namespace pipewright {

StoredStage::Copies StoredStage::copiesOf(const Layer& layer, std::span<std::byte> workspace,
                                          const kernels::Operations& on, bool withParameters,
                                          std::initializer_list<Kept> kept) const
{
    Copies copies;
    const auto take = [&workspace](Bytes bytes) {
        assert(std::size_t(bytes) <= workspace.size());
        const std::span<std::byte> part = workspace.first(std::size_t(bytes));
        workspace = workspace.subspan(std::size_t(bytes));
        return part;
    };
    if (withParameters)
        copies.parameters = viewed<float>(take(Bytes(layer.parameters * sizeof(float))));
    for (const Kept one : kept) {
        std::span<std::byte>& part = one == UntilInputGrad    ? copies.memory.savedUntilInputGrad
                                     : one == UntilWeightGrad ? copies.memory.savedUntilWeightGrad
                                                              : copies.memory.savedFromInputGrad;
        part = take(layer.copies[one]);
    }
    copies.memory.workspace = workspace;
    copies.memory.operations = &on;
    return copies;
}

std::span<std::byte> StoredStage::placeIn(const StageMemory& stored, const Place& place) const
{
    const std::span<std::byte> buffer = place.buffer == BufferKind::SavedUntilInputGrad    ? stored.savedUntilInputGrad
                                        : place.buffer == BufferKind::SavedUntilWeightGrad ? stored.savedUntilWeightGrad
                                        : place.buffer == BufferKind::SavedFromInputGrad   ? stored.savedFromInputGrad
                                        : place.buffer == BufferKind::RecomputedUntilInputGrad
                                            ? stored.recomputedUntilInputGrad
                                            : stored.recomputedUntilWeightGrad;
    const auto bytes = std::size_t(place.elements * place.width);
    assert(std::size_t(place.at) + bytes <= buffer.size());
    return buffer.subspan(std::size_t(place.at), bytes);
}

namespace {

std::span<std::byte> copyOfKept(const StageMemory& copies, int kept)
{
    return kept == 0 ? copies.savedUntilInputGrad : kept == 1 ? copies.savedUntilWeightGrad : copies.savedFromInputGrad;
}

} // namespace

void StoredStage::widen(const Place& place, const StageMemory& stored, std::span<float> wide) const
{
    const kernels::Operations& on = *stored.operations;
    const std::span<std::byte> from = placeIn(stored, place);
    if (place.width == bytesOf(DataType::Bf16))
        on.run(kernels::Widen{viewed<const std::uint16_t>(from), wide});
    else
        on.run(kernels::Copy{from.data(), wide.data(), from.size()});
}

void StoredStage::widen(const Layer& layer, Kept kept, const StageMemory& stored, const Copies& copies) const
{
    std::span<float> wide = viewed<float>(copyOfKept(copies.memory, kept));
    for (const Place& place : layer.kept[kept]) {
        widen(place, stored, wide.first(std::size_t(place.elements)));
        wide = wide.subspan(std::size_t(place.elements));
    }
}

void StoredStage::addEarlier(const Layer& layer, const StageMemory& stored, Copies& copies) const
{
    copies.memory.piece = stored.piece;
    const Bytes sequenceGradient = layer.maths.layout().bytes(BufferKind::SequenceGradient);
    if (sequenceGradient == 0) // no attention, or no pieces
        return;
    if (!stored.sequenceGradient.empty())
        copies.memory.sequenceGradient =
            stored.sequenceGradient.subspan(std::size_t(layer.sequenceGradient), std::size_t(sequenceGradient));
    for (const float* const kept : stored.earlier) {
        StageMemory piece;
        piece.operations = stored.operations;
        piece.savedUntilInputGrad = {reinterpret_cast<std::byte*>(const_cast<float*>(kept)), // read only
                                     std::size_t(m_bytes[UntilInputGrad])};
        const auto bytes = std::size_t(layer.copies[UntilInputGrad]);
        assert(bytes <= copies.memory.workspace.size());
        std::span<float> wide = viewed<float>(copies.memory.workspace.first(bytes));
        copies.memory.workspace = copies.memory.workspace.subspan(bytes);
        copies.earlier.push_back(wide.data());
        for (const Place& place : layer.kept[UntilInputGrad]) {
            if (!isRecomputedKind(place.buffer)) // keys and values are kept
                widen(place, piece, wide.first(std::size_t(place.elements)));
            wide = wide.subspan(std::size_t(place.elements));
        }
    }
    copies.memory.earlier = copies.earlier;
}

void StoredStage::store(const Layer& layer, Kept kept, const StageMemory& stored, const Copies& copies, bool recomputed,
                        const RoundingOperations& on) const
{
    std::span<float> wide = viewed<float>(copyOfKept(copies.memory, kept));
    for (const Place& place : layer.kept[kept]) {
        const auto count = std::size_t(place.elements);
        if (isRecomputedKind(place.buffer) == recomputed) {
            const std::span<std::byte> to = placeIn(stored, place);
            if (place.width == bytesOf(DataType::Bf16))
                on.stored(wide.first(count));
            else
                on.run(kernels::Copy{wide.data(), to.data(), to.size()});
        }
        wide = wide.subspan(count);
    }
}

void StoredStage::addHeld(const Layer& layer, Kept kept, const StageMemory& stored, const Copies& copies, Held how,
                          Holdings& holdings) const
{
    std::span<float> wide = viewed<float>(copyOfKept(copies.memory, kept));
    for (const Place& place : layer.kept[kept]) {
        const std::span<float> own = wide.first(std::size_t(place.elements));
        if (place.width != bytesOf(DataType::Bf16))
            holdings.wide.push_back(own);
        else if (how.recomputed == isRecomputedKind(place.buffer) || how.isStored)
            holdings.twice.push_back(
                {own, viewed<std::uint16_t>(placeIn(stored, place)).data(), how.isStored, !how.isStored});
        wide = wide.subspan(own.size());
    }
}

void StoredStage::widenParameters(const Layer& layer, std::span<const std::byte> parameters, const Copies& copies)
{
    const auto from = viewed<const std::uint16_t>(parameters).subspan(layer.firstParameter, layer.parameters);
    copies.memory.operations->run(kernels::Widen{from, copies.parameters});
}

} // namespace pipewright
