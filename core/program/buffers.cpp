// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/program/buffers.h"

#include "core/base/diagnostic.h"

#include <algorithm>
#include <bit>

namespace pipewright {

BufferKind receivedKind(BufferKind sent)
{
    if (const std::optional<BufferKind> received = traitsOf(sent).receivedAs)
        return *received;
    throw Error("program", "a buffer is sent that never leaves its device",
                "report this with the design: it is a fault of the compiler");
}

void Buffers::growFor(std::size_t set)
{
    Set nothing;
    nothing.fill(none);
    m_recent.assign(std::min(mostSets, std::bit_ceil(set + 1)), nothing); // shapes found anew are kept twice
}

std::uint32_t Buffers::find(const Shape& shape, Set& recent)
{
    auto at =
        std::find_if(recent.begin(), recent.end(), [&](std::uint32_t s) { return s == none || m_shapes[s] == shape; });
    if (at == recent.end())
        --at; // the least recently used one
    if (*at == none || !(m_shapes[*at] == shape)) {
        *at = static_cast<std::uint32_t>(m_shapes.size());
        m_shapes.push_back(shape);
    }
    std::rotate(recent.begin(), at, at + 1);
    return recent.front();
}

void Buffers::repeat(std::size_t end, std::size_t length, std::uint32_t times, std::int32_t microbatches)
{
    const std::vector<Entry> before = std::move(m_entries);
    m_entries.clear();
    m_entries.reserve(before.size() + times * length);
    m_entries.assign(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(end));
    const auto append = [&](std::size_t from, std::size_t to, std::uint32_t by) {
        for (std::size_t i = from; i < to; ++i) {
            const std::int32_t microbatch = before[i].microbatch;
            m_entries.push_back({before[i].shape, microbatch < 0
                                                      ? microbatch
                                                      : microbatch + static_cast<std::int32_t>(by) * microbatches});
        }
    };
    for (std::uint32_t i = 1; i <= times; ++i)
        append(end - length, end, i);
    append(end, before.size(), times);
}

bool Buffers::operator==(const Buffers& other) const
{
    if (size() != other.size())
        return false;
    for (std::size_t b = 0; b < size(); ++b)
        if (!((*this)[b] == other[b]))
            return false;
    return true;
}

} // namespace pipewright
