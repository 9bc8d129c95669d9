// SPDX-License-Identifier: GPL-3.0-or-later
// How a member keeps a value between passes. In a bf16 stage it is stored in two bytes per value, and every read makes
// an fp32 copy. Computing and summing up are in fp32 in any case.
#include "executor/sharding/groupmember.h"

#include <utility>

namespace pipewright::sharding {

/// Copies a tensor into kept memory, unless it is already there or among the parameters.
KeptTensor GroupMember::keep(Tensor tensor, const Property& property, KeptMemory& memory)
{
    const bool rounded = isRounded(property.tensor);
    if (m_block.keepsNothing && !m_readLater.contains(property)) {
        if (rounded && tensor.elements() > 0)
            m_device.operations().run(kernels::RoundToBf16{tensor.data});
        return {std::move(tensor)};
    }
    const auto* const data = reinterpret_cast<const std::byte*>(tensor.data.data());
    const auto isIn = [data](Region region) { return data >= region.data && data < region.data + region.bytes; };
    if (tensor.elements() == 0 || memory.owns(data) || isIn(kept().region) || isIn(m_block.parameters)) {
        tensor.memory.reset();
        return {std::move(tensor)};
    }
    if (rounded) {
        std::byte* const place = memory.take(tensor.elements() * sizeof(std::uint16_t));
        const std::span<std::uint16_t> here(reinterpret_cast<std::uint16_t*>(place), tensor.elements());
        narrow(tensor, here);
        return {{std::move(tensor.shape), {}, nullptr}, here};
    }
    return keepExact(std::move(tensor), memory);
}

KeptTensor GroupMember::keepExact(Tensor tensor, KeptMemory& memory)
{
    std::byte* const place = memory.take(tensor.data.size_bytes());
    const std::span<float> here(reinterpret_cast<float*>(place), tensor.elements());
    m_device.operations().copy(std::span<const float>(tensor.data), here);
    return {{std::move(tensor.shape), here, nullptr}};
}

/// Kept values that were offloaded to the host have come back to another place.
void GroupMember::moveKept(int microbatch, Region to)
{
    Kept& of = m_microbatches[static_cast<std::size_t>(microbatch)];
    Region& from = of.region;
    if (!to.data || to.data == from.data)
        return;
    const auto move = [&]<class T>(std::span<T>& values) {
        auto* const data = reinterpret_cast<std::byte*>(values.data());
        if (data >= from.data && data < from.data + from.bytes)
            values = {reinterpret_cast<T*>(to.data + (data - from.data)), values.size()};
    };
    for (auto& [property, tensor] : of.values) {
        move(tensor.wide.data);
        move(tensor.narrow);
    }
    from = to;
}

Tensor GroupMember::widened(const KeptTensor& tensor)
{
    return tensor.narrow.empty() ? tensor.wide : widened(tensor.wide.shape, tensor.narrow);
}

void GroupMember::read(const KeptTensor& tensor, std::span<float> to)
{
    if (tensor.narrow.empty())
        m_device.operations().copy(std::span<const float>(tensor.wide.data), to);
    else
        m_device.operations().run(kernels::Widen{tensor.narrow, to});
}

Tensor GroupMember::widened(Shape shape, std::span<const std::uint16_t> values)
{
    Tensor wide = m_device.make(std::move(shape));
    m_device.operations().run(kernels::Widen{values, wide.data});
    return wide;
}

void GroupMember::narrow(const Tensor& tensor, std::span<std::uint16_t> values)
{
    m_device.operations().run(kernels::Narrow{tensor.data, values});
}

} // namespace pipewright::sharding
