// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/partmemory.h"

#include "core/base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace pipewright::sharding {

namespace {

constexpr Bytes alignment = 64;

Bytes aligned(std::size_t bytes)
{
    return (static_cast<Bytes>(bytes) + alignment - 1) / alignment * alignment;
}

void checkRoom(Bytes end, const Region& region)
{
    if (end > region.bytes)
        throw Error(
            "group",
            fmt::format("a member's tensors need {}, and their buffer has {}", exactSize(end), exactSize(region.bytes)),
            "this is a fault of the program: please report it with the design");
}

} // namespace

void KeptMemory::rewind(Region region)
{
    m_region = region;
    m_used = 0;
}

std::byte* KeptMemory::take(std::size_t bytes)
{
    const Bytes first = m_used;
    checkRoom(first + aligned(bytes), m_region);
    m_used += aligned(bytes);
    return m_region.data + first;
}

void PassingMemory::rewind(Region region)
{
    m_region = region;
    m_holes.clear();
    m_top = m_highest = 0;
}

std::byte* PassingMemory::take(std::size_t bytes)
{
    const Bytes wanted = aligned(bytes);
    const auto hole =
        std::find_if(m_holes.begin(), m_holes.end(), [wanted](const auto& one) { return one.second >= wanted; });
    if (hole != m_holes.end()) {
        const auto [offset, length] = *hole;
        m_holes.erase(hole);
        if (length > wanted)
            m_holes.emplace(offset + wanted, length - wanted);
        return m_region.data + offset;
    }
    checkRoom(m_top + wanted, m_region);
    const Bytes offset = m_top;
    m_top += wanted;
    m_highest = std::max(m_highest, m_top);
    return m_region.data + offset;
}

void PassingMemory::giveBack(std::byte* data, std::size_t bytes)
{
    Bytes offset = data - m_region.data, length = aligned(bytes);
    auto next = m_holes.upper_bound(offset);
    if (next != m_holes.begin())
        if (const auto before = std::prev(next); before->first + before->second == offset) {
            offset = before->first;
            length += before->second;
            m_holes.erase(before);
        }
    if (next != m_holes.end() && offset + length == next->first) {
        length += next->second;
        m_holes.erase(next);
    }
    if (offset + length == m_top)
        m_top = offset;
    else
        m_holes.emplace(offset, length);
}

} // namespace pipewright::sharding
