// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/stage/storedoperations.h"

#include "core/base/diagnostic.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <type_traits>
#include <utility>

namespace pipewright {

using namespace kernels;

namespace {

template<class Element>
constexpr bool isFloat = std::is_same_v<std::remove_const_t<Element>, float>;

/// The two factors of a product, or none.
template<class Call>
std::pair<std::span<const float>, std::span<const float>> factorsOf(const Call& call)
{
    if constexpr (std::is_same_v<Call, LinearForward> || std::is_same_v<Call, ExpertsForward>)
        return {call.input, call.weight};
    else if constexpr (std::is_same_v<Call, LinearInputGrad> || std::is_same_v<Call, ExpertsInputGrad>)
        return {call.outputGrad, call.weight};
    else if constexpr (std::is_same_v<Call, LinearWeightGrad> || std::is_same_v<Call, ExpertsWeightGrad>)
        return {call.input, call.outputGrad};
    else
        return {};
}

const std::uint16_t* patterns(std::span<const float> values)
{
    return reinterpret_cast<const std::uint16_t*>(values.data());
}

} // namespace

std::byte* StoredOperations::firstAddress()
{
    return reinterpret_cast<std::byte*>(std::uintptr_t{1} << 62); // no memory is mapped here
}

void StoredOperations::clear()
{
    m_tensors.clear();
    m_next = firstAddress();
}

std::span<float> StoredOperations::place(std::int64_t elements, std::byte* stored, int width)
{
    const auto bytes = static_cast<std::size_t>(elements) * sizeof(float);
    m_tensors.push_back({m_next, bytes, stored, width});
    return {reinterpret_cast<float*>(std::exchange(m_next, m_next + bytes)), static_cast<std::size_t>(elements)};
}

std::span<std::byte> StoredOperations::since(const std::byte* first) const
{
    return {const_cast<std::byte*>(first), static_cast<std::size_t>(m_next - first)};
}

StoredOperations::Found StoredOperations::find(const void* address, std::size_t bytes) const
{
    const auto* const at = static_cast<const std::byte*>(address);
    if (at < firstAddress() || at >= m_next)
        return {const_cast<void*>(address), false};
    const auto behind = std::upper_bound(m_tensors.begin(), m_tensors.end(), at,
                                         [](const std::byte* value, const Tensor& of) { return value < of.address; });
    const Tensor& tensor = *(behind - 1);
    const auto offset = static_cast<std::size_t>(at - tensor.address);
    assert(offset + bytes <= tensor.bytes && tensor.stored);
    (void)bytes;
    return {tensor.stored + offset / sizeof(float) * static_cast<std::size_t>(tensor.width),
            tensor.width == sizeof(std::uint16_t)};
}

template<class Element>
bool StoredOperations::replace(std::span<Element>& operand) const
{
    if (operand.empty())
        return false;
    const Found found = find(operand.data(), operand.size_bytes());
    operand = {static_cast<Element*>(found.at), operand.size()};
    return found.isBf16;
}

template<class Call>
void StoredOperations::runKnown(Call call) const
{
    std::vector<const float*> earlier;
    if constexpr (requires { call.earlier; }) {
        // Keys and values of a piece are in one buffer, at the same distance in every piece.
        std::ptrdiff_t apart = 0;
        for (const float* const piece : call.earlier.saved) {
            const auto* const key = static_cast<std::uint16_t*>(find(piece + call.earlier.key, 0).at);
            apart = static_cast<std::uint16_t*>(find(piece + call.earlier.value, 0).at) - key;
            earlier.push_back(reinterpret_cast<const float*>(key));
        }
        if (!earlier.empty())
            call.earlier = {earlier, 0, static_cast<std::size_t>(apart)};
    }
    StoredOperands stored = 0;
    int number = 0;
    forOperands(call, [&]<class Element>(std::span<Element>& operand) {
        const bool isBf16 = replace(operand);
        if constexpr (isFloat<Element>)
            stored |= StoredOperands{isBf16} << number++;
    });
    if constexpr (requires { call.bf16.left; }) {
        const auto [left, right] = factorsOf(call);
        call.bf16 = {true, patterns(left), patterns(right)};
        assert(left.empty() || std::popcount(stored) >= 2);
    } else if constexpr (requires { call.bf16; }) {
        call.bf16 = true;
    }
    m_device.runStored(call, stored);
}

void StoredOperations::runKnown(const Copy& call) const
{
    const Found from = find(call.from, call.bytes), to = find(call.to, call.bytes);
    const std::size_t count = call.bytes / sizeof(float);
    if (from.isBf16 && to.isBf16)
        m_device.run(Copy{from.at, to.at, count * sizeof(std::uint16_t)});
    else if (from.isBf16)
        m_device.run(Widen{{static_cast<std::uint16_t*>(from.at), count}, {static_cast<float*>(to.at), count}});
    else if (to.isBf16)
        m_device.run(Narrow{{static_cast<const float*>(from.at), count}, {static_cast<std::uint16_t*>(to.at), count}});
    else
        m_device.run(Copy{from.at, to.at, call.bytes});
}

void StoredOperations::runKnown(TensorCall call) const
{
    StoredOperands stored = 0;
    int number = 0;
    for (const float*& operand : call.in) {
        const Found found = find(operand, 0);
        operand = static_cast<const float*>(found.at);
        stored |= StoredOperands{found.isBf16} << number++;
    }
    const Found out = find(call.out, 0);
    call.out = static_cast<float*>(out.at);
    m_device.runStored(call, stored | StoredOperands{out.isBf16} << number);
}

void StoredOperations::issue(kernels::Operation operation, const void* call, std::size_t, StoredOperands) const
{
    visit(operation, call, [this](const auto& known, const char*) { runKnown(known); });
}

} // namespace pipewright
