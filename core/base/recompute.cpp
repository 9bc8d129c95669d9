// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/recompute.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <set>

namespace pipewright {

namespace {

constexpr std::string_view everyPrefix = "every:";
constexpr int mostLayers = 1'000'000; ///< as a model may have

[[noreturn]] void refuse(std::string_view text, const std::string& where)
{
    throw Error(where, fmt::format("\"{}\" is no way to recompute", text),
                std::string(recomputeHint) + ", or one for some stages: full:0-2,5");
}

/// Nothing for a text that is no name.
std::optional<Recompute> kindNamed(std::string_view name)
{
    for (const Recompute kind : recomputeKinds)
        if (name == nameOf(kind))
            return kind;
    if (!name.starts_with(everyPrefix))
        return std::nullopt;
    int layers = 0;
    const std::string_view number = name.substr(everyPrefix.size());
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), layers);
    if (error != std::errc() || end != number.data() + number.size() || layers < 1 || layers > mostLayers)
        return std::nullopt;
    return Recompute::every(layers);
}

} // namespace

std::string nameOf(Recompute recompute)
{
    switch (recompute.kind) {
    case RecomputeKind::None: return "none";
    case RecomputeKind::Selective: return "selective";
    case RecomputeKind::Full: return recompute.layers > 1 ? fmt::format("every:{}", recompute.layers) : "full";
    case RecomputeKind::BlockSelective: return "block-selective";
    case RecomputeKind::Block: return "block";
    }
    return {};
}

Recompute recomputeOfName(std::string_view name, const std::string& where)
{
    if (const std::optional<Recompute> kind = kindNamed(name))
        return *kind;
    refuse(name, where);
}

RecomputeChoice parseRecompute(std::string_view text, const std::string& where)
{
    if (const std::optional<Recompute> kind = kindNamed(text))
        return {*kind, {}};
    if (const std::optional<StageRanges> stages = parseStageRanges(text))
        return {Recompute::Full, *stages};
    if (const std::size_t colon = text.rfind(':'); colon != std::string_view::npos) {
        const std::optional<Recompute> kind = kindNamed(text.substr(0, colon));
        const std::optional<StageRanges> stages = parseStageRanges(text.substr(colon + 1));
        if (kind && stages)
            return {*kind, *stages};
    }
    refuse(text, where);
}

std::vector<Recompute> ofStages(const RecomputeChoice& choice, int stages, const std::string& where)
{
    if (choice.kind == Recompute::None || stages < 1)
        return {};
    std::vector<Recompute> ofStage(stages, choice.stages.empty() ? choice.kind : Recompute::None);
    const std::vector<bool> named = stagesIn(choice.stages, stages, where);
    for (std::size_t s = 0; s < named.size(); ++s)
        if (named[s])
            ofStage[s] = choice.kind;
    return ofStage;
}

std::string textOf(const std::vector<Recompute>& ofStage)
{
    std::vector<std::string> parts;
    for (const Recompute kind : std::set<Recompute>(ofStage.begin(), ofStage.end())) {
        if (kind == Recompute::None)
            continue;
        std::vector<std::size_t> stages;
        for (std::size_t s = 0; s < ofStage.size(); ++s)
            if (ofStage[s] == kind)
                stages.push_back(s);
        if (stages.size() == ofStage.size())
            return nameOf(kind);
        parts.push_back(fmt::format("stage{} {} {}", stages.size() > 1 ? "s" : "", joined(stages, ", "), nameOf(kind)));
    }
    return joined(parts, ", ");
}

} // namespace pipewright
