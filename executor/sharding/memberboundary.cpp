// SPDX-License-Identifier: GPL-3.0-or-later
// What a member puts together from the pieces that arrived, and cuts into those that leave.
#include "executor/sharding/groupmember.h"

#include <utility>

namespace pipewright::sharding {

/// Of the pieces that arrived; zeros where none did.
Tensor GroupMember::assembled(const Property& property, const std::vector<BoundaryPiece>& pieces)
{
    Tensor tensor = m_device.zeros(shapeOf(property));
    const std::vector<std::int64_t> first = firstOf(property);
    std::size_t arrived = 0;
    for (const BoundaryPiece& piece : pieces) {
        if (piece.to != m_member)
            continue;
        const Region region = m_block.arrived[arrived++];
        Tensor block{
            piece.length, {reinterpret_cast<float*>(region.data), static_cast<std::size_t>(region.bytes) / 4}, nullptr};
        // Put in place along one dimension after the other, from the last: a dimension that is shorter than the whole's
        // is widened.
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
    }
    return tensor;
}

void GroupMember::handOut(const Tensor& tensor, const Property& property, const std::vector<BoundaryPiece>& pieces)
{
    const std::vector<std::int64_t> first = firstOf(property);
    std::size_t handed = 0;
    for (const BoundaryPiece& piece : pieces) {
        if (piece.from != m_member)
            continue;
        Tensor block = tensor;
        for (std::size_t d = 0; d < piece.length.size(); ++d)
            block = cut(m_device, block, static_cast<int>(d), piece.first[d] - first[d], piece.length[d]);
        const Region region = m_block.handed[handed++];
        m_device.operations().copy(std::span<const float>(block.data),
                                   {reinterpret_cast<float*>(region.data), static_cast<std::size_t>(region.bytes) / 4});
    }
}

} // namespace pipewright::sharding
