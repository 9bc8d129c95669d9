// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/stageranges.h"

#include "core/base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace pipewright {

namespace {

/// Reads a number at the front and removes it.
std::optional<int> takeNumber(std::string_view& text)
{
    int value = 0;
    if (text.empty() || text.front() < '0' || text.front() > '9')
        return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc())
        return std::nullopt;
    text.remove_prefix(end - text.data());
    return value;
}

} // namespace

std::optional<StageRanges> parseStageRanges(std::string_view text)
{
    StageRanges ranges;
    for (;;) {
        const auto first = takeNumber(text);
        auto last = first;
        if (first && text.starts_with('-')) {
            text.remove_prefix(1);
            last = takeNumber(text);
        }
        if (!first || !last || *last < *first || (!text.empty() && text.front() != ','))
            return std::nullopt;
        ranges.emplace_back(*first, *last);
        if (text.empty())
            return ranges;
        text.remove_prefix(1);
    }
}

std::vector<bool> stagesIn(const StageRanges& ranges, int stages, const std::string& where)
{
    std::vector<bool> ofStage(std::max(0, stages), false);
    for (const auto& [first, last] : ranges) {
        if (last >= stages)
            throw Error(where, fmt::format("unknown stage {}", last),
                        fmt::format("stages are numbered 0 to {}", stages - 1));
        std::fill(ofStage.begin() + first, ofStage.begin() + last + 1, true);
    }
    return ofStage;
}

std::string textOf(const std::vector<bool>& ofStage)
{
    std::string text;
    for (std::size_t s = 0; s < ofStage.size(); ++s) {
        if (!ofStage[s])
            continue;
        const std::size_t first = s;
        while (s + 1 < ofStage.size() && ofStage[s + 1])
            ++s;
        text += fmt::format("{}{}", text.empty() ? "" : ", ", first);
        if (s > first)
            text += fmt::format("-{}", s);
    }
    return text;
}

} // namespace pipewright
