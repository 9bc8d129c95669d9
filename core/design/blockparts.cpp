// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/blockparts.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

Nanoseconds sumOf(std::span<const BlockPart> parts)
{
    Nanoseconds sum = 0;
    for (const BlockPart& part : parts)
        sum += part.time;
    return sum;
}

void fitParts(std::vector<BlockPart>& parts, Nanoseconds time)
{
    const Nanoseconds before = sumOf(parts);
    if (before == time)
        return;
    // Borders are rounded, not parts, so that the sum is exact.
    const Nanoseconds whole = before > 0 ? before : static_cast<Nanoseconds>(parts.size());
    Nanoseconds at = 0, border = 0;
    for (BlockPart& part : parts) {
        at += before > 0 ? part.time : 1;
        const Nanoseconds next =
            std::llround(static_cast<double>(time) * static_cast<double>(at) / static_cast<double>(whole));
        part.time = next - border;
        border = next;
    }
}

std::vector<BlockPart> cutOf(std::span<const BlockPart> parts, double from, double to)
{
    const auto all = static_cast<double>(sumOf(parts));
    const auto begin = static_cast<Nanoseconds>(std::llround(all * from));
    const auto end = static_cast<Nanoseconds>(std::llround(all * to));
    std::vector<BlockPart> cut;
    Nanoseconds at = 0;
    for (const BlockPart& part : parts) {
        const Nanoseconds first = std::max(begin, at), behind = std::min(end, at + part.time);
        at += part.time;
        if (first >= behind)
            continue;
        cut.push_back(part);
        cut.back().time = behind - first;
    }
    return cut;
}

void appendParts(std::vector<BlockPart>& list, std::span<const BlockPart> more)
{
    for (const BlockPart& part : more)
        if (!list.empty() && list.back().name == part.name && list.back().stream == part.stream
            && list.back().awaited == part.awaited)
            list.back().time += part.time;
        else
            list.push_back(part);
}

} // namespace pipewright
