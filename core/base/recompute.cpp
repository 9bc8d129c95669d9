// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/recompute.h"

#include "core/base/diagnostic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

} // namespace

RecomputeChoice parseRecompute(std::string_view text, const std::string& where)
{
    for (const Recompute kind : {Recompute::None, Recompute::Selective, Recompute::Full})
        if (text == nameOf(kind))
            return {kind, {}};
    RecomputeChoice choice{Recompute::Full, {}};
    std::string_view rest = text;
    for (;;) {
        const auto first = takeNumber(rest);
        auto last = first;
        if (first && rest.starts_with('-')) {
            rest.remove_prefix(1);
            last = takeNumber(rest);
        }
        if (!first || !last || *last < *first || (!rest.empty() && rest.front() != ','))
            throw Error(where, fmt::format("\"{}\" is no way to recompute", text),
                        "use none, selective, full, or stages such as 0-2,5");
        choice.stages.emplace_back(*first, *last);
        if (rest.empty())
            return choice;
        rest.remove_prefix(1);
    }
}

std::vector<Recompute> ofStages(const RecomputeChoice& choice, int stages, const std::string& where)
{
    if (choice.kind == Recompute::None || stages < 1)
        return {};
    std::vector<Recompute> ofStage(static_cast<std::size_t>(stages),
                                   choice.stages.empty() ? choice.kind : Recompute::None);
    for (const auto& [first, last] : choice.stages) {
        if (last >= stages)
            throw Error(where, fmt::format("unknown stage {}", last),
                        fmt::format("stages are numbered 0 to {}", stages - 1));
        std::fill(ofStage.begin() + first, ofStage.begin() + last + 1, choice.kind);
    }
    return ofStage;
}

std::string textOf(const std::vector<Recompute>& ofStage)
{
    std::vector<std::string> parts;
    for (const Recompute kind : {Recompute::Selective, Recompute::Full}) {
        std::vector<std::size_t> stages;
        for (std::size_t s = 0; s < ofStage.size(); ++s)
            if (ofStage[s] == kind)
                stages.push_back(s);
        if (stages.size() == ofStage.size() && !stages.empty())
            return std::string(nameOf(kind));
        if (!stages.empty())
            parts.push_back(
                fmt::format("stage{} {} {}", stages.size() > 1 ? "s" : "", fmt::join(stages, ", "), nameOf(kind)));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

} // namespace pipewright
