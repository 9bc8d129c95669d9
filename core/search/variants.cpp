// SPDX-License-Identifier: GPL-3.0-or-later
// Enumerates backward styles × the first 0, 1, 2, 4, … stages recomputed, or all of them selectively. 40 % of the time
// is divided evenly among the choices, the rest goes to the best one. Rewriting a design is O(blocks).
#include "core/search/variants.h"

#include "core/design/redesign.h"
#include "core/model/recomputedtensors.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

/// Share of the time for comparing the choices.
constexpr double shareOfChoice = 0.4;

/// The blocks that replace a block in the other style: one, two or none.
std::vector<Block> inStyle(const Block& block, BackwardStyle style)
{
    const auto as = [&](Op op) { return Block{op, block.stage, block.microbatch, block.replica}; };
    if (!isBackward(block.op) || isNeeded(block.op, style))
        return {block};
    if (isFullBackward(block.op))
        return {as(Op::I), as(Op::W)};
    return makesInputGrad(block.op) ? std::vector{as(Op::B)} : std::vector<Block>{};
}

std::vector<Block> inStyle(const std::vector<Block>& blocks, BackwardStyle style)
{
    std::vector<Block> result;
    for (const Block& block : blocks)
        for (const Block& other : inStyle(block, style))
            result.push_back(other);
    return result;
}

/// The first 0, 1, 2, 4, … and all stages layer by layer, or by R blocks; all of them selectively, where the model has
/// an attention core; and those of the design.
std::vector<std::vector<Recompute>> choicesFor(const Design& design)
{
    const std::size_t stages = design.schedule.stages();
    std::vector<std::vector<Recompute>> choices;
    choices.emplace_back();
    const bool knowsLayers = design.workload && !design.layersPerStage.empty();
    for (std::size_t count = 1; stages > 0; count = std::min(stages, 2 * count)) {
        for (const Recompute kind : {Recompute::Full, Recompute::Block}) {
            if (kind == Recompute::Full && !knowsLayers)
                continue;
            choices.emplace_back(stages, Recompute::None);
            std::fill_n(choices.back().begin(), count, kind);
        }
        if (count == stages)
            break;
    }
    const auto hasCore = [](const Layer& layer) { return recomputedBytes(layer, Recompute::Selective, 1) > 0; };
    if (knowsLayers && design.workload->shape.attention == AttentionMemory::Stored
        && std::any_of(design.workload->layers.begin(), design.workload->layers.end(), hasCore))
        for (const Recompute kind : {Recompute::Selective, Recompute::BlockSelective})
            choices.emplace_back(stages, kind);
    if (std::ranges::find(choices, design.schedule.recompute) == choices.end())
        choices.push_back(design.schedule.recompute);
    return choices;
}

class VariantSearch {
public:
    VariantSearch(const Design& design, const VariantOptions& options) : m_design(design), m_options(options) {}

    VariantResult run()
    {
        std::vector<std::optional<BackwardStyle>> styles;
        const std::optional<BackwardStyle> given = styleOf(m_design.schedule);
        switch (m_options.backward) {
        case BackwardChoice::Given: styles = {given}; break;
        case BackwardChoice::Split: styles = {BackwardStyle::Split}; break;
        case BackwardChoice::Full: styles = {BackwardStyle::Full}; break;
        case BackwardChoice::Either:
            styles = {BackwardStyle::Split, BackwardStyle::Full};
            if (!given)
                styles.push_back(given);
            break;
        }
        std::vector<std::vector<Recompute>> choices = {
            m_options.recompute ? ofStages(*m_options.recompute, m_design.schedule.stages(), "--recompute")
                                : m_design.schedule.recompute};
        if (m_options.chooseRecompute)
            choices = choicesFor(m_design);
        const std::size_t all = styles.size() * choices.size();
        const bool again = all > 1 && !m_options.partition; // a search for the cut uses all of its time itself
        const double share = (again ? shareOfChoice : 1) / static_cast<double>(all);
        for (const std::optional<BackwardStyle> style : styles)
            for (const std::vector<Recompute>& recompute : choices)
                tryOne(style, recompute, share);
        if (!m_best)
            throw *m_lastError;
        if (again && !m_best->result.proved && !m_options.search.stop.stop_requested()) {
            // The best choice gets the rest of the time and starts from its schedule.
            const VariantResult first = *m_best;
            m_from = &first.result.schedule;
            tryOne(first.backward, first.recompute, 1 - shareOfChoice);
            m_from = nullptr;
        }
        m_best->trials = std::move(m_trials);
        m_best->result.cancelled = m_options.search.stop.stop_requested();
        return std::move(*m_best);
    }

private:
    void tryOne(std::optional<BackwardStyle> style, const std::vector<Recompute>& recompute, double share)
    {
        if (m_best && m_options.search.stop.stop_requested())
            return;
        SearchOptions options = m_options.search;
        options.timeLimit = std::chrono::milliseconds(
            static_cast<std::int64_t>(static_cast<double>(options.timeLimit.count()) * share));
        if (m_options.search.timeLimit.count() > 0)
            options.timeLimit = std::max(options.timeLimit, std::chrono::milliseconds(1));
        if (m_from != nullptr)
            options.hints.push_back(*m_from);
        Design design = style ? withBackward(m_design, *style, options.locked) : m_design;
        if (design.schedule.recompute != recompute) {
            design = withRecompute(design, recompute);
            if (!recompute.empty())
                design.name += ", recomputes " + textOf(recompute);
        }
        VariantTrial& trial = m_trials.emplace_back(VariantTrial{style, recompute, std::nullopt, {}});
        try {
            SearchResult result;
            if (m_options.partition) {
                PartitionOptions cuts = *m_options.partition;
                cuts.search = std::move(options);
                PartitionResult cut = searchPartition(design, cuts);
                design = std::move(cut.design);
                result = std::move(cut.result);
                trial.cuts = std::move(cut.trials);
            } else {
                result = search(design, options);
            }
            trial.value = result.value;
            // Among equals the first wins: it recomputes less.
            if (m_best && (m_from ? result.value > m_best->result.value : result.value >= m_best->result.value))
                return;
            VariantResult found;
            found.design = design;
            found.design.buildingBlock.reset();
            found.design.schedule = result.schedule;
            found.result = std::move(result);
            found.backward = style;
            found.recompute = recompute;
            m_best = std::move(found);
        } catch (const Error& error) {
            m_lastError = error;
        }
    }

    const Design& m_design;
    const VariantOptions& m_options;
    const Schedule* m_from = nullptr;
    std::vector<VariantTrial> m_trials;
    std::optional<VariantResult> m_best;
    std::optional<Error> m_lastError;
};

} // namespace

std::optional<BackwardStyle> styleOf(const Schedule& schedule)
{
    std::optional<BackwardStyle> style;
    for (const std::vector<Block>& lane : schedule.order)
        for (const Block& block : lane) {
            if (!isBackward(block.op))
                continue;
            const BackwardStyle own = isFullBackward(block.op) ? BackwardStyle::Full : BackwardStyle::Split;
            if (style.value_or(own) != own)
                return std::nullopt;
            style = own;
        }
    return style ? style : schedule.backward;
}

Design withBackward(const Design& design, BackwardStyle style, std::vector<Block>& locked)
{
    Design result = design;
    Schedule& schedule = result.schedule;
    for (std::vector<Block>& lane : schedule.order)
        lane = inStyle(lane, style);
    if (schedule.order == design.schedule.order && schedule.backward == style)
        return result;
    result.buildingBlock.reset();
    schedule.family = "custom";
    schedule.backward = style;
    schedule.pins.clear();
    for (const Pin& pin : design.schedule.pins) {
        const std::vector<Block> blocks = inStyle({pin.block}, style);
        if (blocks.empty())
            throw Error(fmt::format("schedule.pins, {}", toString(pin.block)),
                        "the block goes when the halves of a backward are joined",
                        "remove the pin, or keep the backwards split");
        schedule.pins.push_back({blocks.front(), pin.earliestStart});
    }
    for (Overlap& pair : schedule.overlaps) {
        const std::vector<Block> first = inStyle({pair.first}, style), second = inStyle({pair.second}, style);
        if (!first.empty() && !second.empty())
            pair = {first.back(), second.front()};
    }
    std::sort(schedule.overlaps.begin(), schedule.overlaps.end());
    dropBrokenOverlaps(schedule);
    locked = inStyle(locked, style);
    return result;
}

VariantResult searchVariants(const Design& design, const VariantOptions& options)
{
    if (options.search.limit.factor && (options.chooseRecompute || options.recompute))
        throw Error("--memory-limit",
                    fmt::format("{}x counts in saved activations, which recomputation does not keep",
                                *options.search.limit.factor),
                    "state the limit in bytes, such as 40GiB");
    return VariantSearch(design, options).run();
}

} // namespace pipewright
