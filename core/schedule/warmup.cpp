// SPDX-License-Identifier: GPL-3.0-or-later
// Changes a warm-up by shifting all later forwards by whole groups; a group begins at a backward. O(blocks of the
// device).
#include "core/schedule/warmup.h"

#include <algorithm>

namespace pipewright {
namespace {

bool isBackward(const Block& block)
{
    return makesInputGrad(block.op);
}

} // namespace

int warmUp(const std::vector<Block>& order)
{
    int forwards = 0;
    for (const Block& block : order) {
        if (isBackward(block))
            break;
        forwards += block.op == Op::F;
    }
    return forwards;
}

int longestWarmUp(const std::vector<Block>& order)
{
    return static_cast<int>(std::count_if(order.begin(), order.end(), [](const Block& b) { return b.op == Op::F; }));
}

std::vector<std::uint32_t> withWarmUp(const std::vector<Block>& order, int forwards)
{
    // A group is a backward with what follows it, up to the next; group 0 is what comes before the first.
    struct Place {
        int group = 0;
        std::size_t behind = 0; ///< so many blocks of the group that are no forwards
        std::uint32_t position = 0;
    };
    const int wanted = std::clamp(forwards, 0, longestWarmUp(order));
    const int later = warmUp(order) - wanted; // groups by which every forward after the warm-up moves later
    std::vector<std::vector<std::uint32_t>> groups(1);
    std::vector<Place> moved;
    for (std::uint32_t i = 0; i < order.size(); ++i) {
        if (isBackward(order[i]))
            groups.emplace_back();
        if (order[i].op == Op::F)
            moved.push_back({static_cast<int>(groups.size()) - 1, groups.back().size(), i});
        else
            groups.back().push_back(i);
    }
    const int last = static_cast<int>(groups.size()) - 1;
    for (std::size_t i = 0; i < moved.size(); ++i) {
        Place& place = moved[i];
        if (later == 0)
            break;
        place.group = static_cast<int>(i) < wanted ? 0 : std::clamp(std::max(place.group, 0) + later, 0, last);
        const std::size_t size = groups[place.group].size();
        place.behind = place.group == 0 ? size : std::clamp<std::size_t>(place.behind, 1, size);
    }
    std::vector<std::uint32_t> positions;
    positions.reserve(order.size());
    auto next = moved.begin();
    for (int g = 0; g <= last; ++g) {
        const std::vector<std::uint32_t>& group = groups[g];
        for (std::size_t i = 0; i <= group.size(); ++i) {
            for (; next != moved.end() && next->group == g && next->behind <= i; ++next)
                positions.push_back(next->position);
            if (i < group.size())
                positions.push_back(group[i]);
        }
    }
    return positions;
}

} // namespace pipewright
