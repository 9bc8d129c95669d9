// SPDX-License-Identifier: GPL-3.0-or-later
// Assembles a tensor from the pieces that arrived, cuts a tensor into the pieces that leave, and finds where pieces of
// a member's parameters are.
#include "executor/sharding/groupmember.h"

#include <algorithm>
#include <utility>

namespace pipewright::sharding {

/// The sum of the pieces that arrived over every edge, each in its place; zeros where none did.
Tensor GroupMember::assembled(const Property& property, const std::vector<const StageEdge*>& edges, Pieces pieces)
{
    Tensor tensor = m_device.zeros(shapeOf(property));
    const std::vector<std::int64_t> first = firstOf(property);
    std::size_t arrived = 0;
    const auto add = [&](const BoundaryPiece& piece) {
        const Region region = m_block.arrived[arrived++];
        const std::size_t count = product(piece.length.begin(), piece.length.end());
        Tensor block = m_narrow ? widened(piece.length, {reinterpret_cast<const std::uint16_t*>(region.data), count})
                                : Tensor{piece.length, {reinterpret_cast<float*>(region.data), count}, nullptr};
        // The piece is put in place along one dimension after the other, from the last: a dimension shorter than the
        // tensor's is padded with zeros.
        for (std::size_t d = piece.length.size(); d-- > 0;) {
            if (block.shape[d] == tensor.shape[d])
                continue;
            Shape wide = block.shape;
            wide[d] = tensor.shape[d];
            Tensor widened = m_device.zeros(std::move(wide));
            paste(m_device, widened, block, static_cast<int>(d), piece.first[d] - first[d]);
            block = std::move(widened);
        }
        accumulate(m_device, tensor, block);
    };
    for (const StageEdge* edge : edges)
        for (const BoundaryPiece& piece : edge->*pieces)
            if (piece.to == m_member)
                add(piece);
    return tensor;
}

void GroupMember::handOut(const Tensor& tensor, const Property& property, const std::vector<const StageEdge*>& edges,
                          Pieces pieces)
{
    const std::vector<std::int64_t> first = firstOf(property);
    std::size_t handed = 0;
    const auto hand = [&](const BoundaryPiece& piece) {
        Tensor block = tensor;
        for (std::size_t d = 0; d < piece.length.size(); ++d)
            block = cut(m_device, block, static_cast<int>(d), piece.first[d] - first[d], piece.length[d]);
        const Region region = m_block.handed[handed++];
        if (m_narrow)
            narrow(block, {reinterpret_cast<std::uint16_t*>(region.data), block.elements()});
        else
            m_device.operations().copy(std::span<const float>(block.data),
                                       {reinterpret_cast<float*>(region.data), block.elements()});
    };
    for (const StageEdge* edge : edges)
        for (const BoundaryPiece& piece : edge->*pieces)
            if (piece.from == m_member)
                hand(piece);
}

void GroupMember::eachRun(int tensor, const BoundaryPiece& piece,
                          const std::function<void(std::size_t first, std::size_t count)>& visit) const
{
    const auto place = std::find_if(m_parameters.begin(), m_parameters.end(),
                                    [&](const MemberParameter& one) { return one.stored.tensor == tensor; });
    const Shape own = shapeOf(place->stored);
    const std::vector<std::int64_t> first = firstOf(place->stored);
    // A run covers the last dimensions that the piece has completely, and its part of the dimension before these.
    std::size_t outer = own.size(), count = 1;
    while (outer > 0) {
        --outer;
        count *= static_cast<std::size_t>(piece.length[outer]);
        if (piece.length[outer] != own[outer])
            break;
    }
    const std::size_t runs = product(piece.length.begin(), piece.length.begin() + static_cast<std::ptrdiff_t>(outer));
    for (std::size_t run = 0; run < runs; ++run) {
        std::size_t rest = run, at = 0, stride = 1;
        for (std::size_t d = own.size(); d-- > 0;) {
            std::size_t index = static_cast<std::size_t>(piece.first[d] - first[d]);
            if (d < outer) {
                index += rest % static_cast<std::size_t>(piece.length[d]);
                rest /= static_cast<std::size_t>(piece.length[d]);
            }
            at += index * stride;
            stride *= static_cast<std::size_t>(own[d]);
        }
        visit(place->offset + at, count);
    }
}

} // namespace pipewright::sharding
