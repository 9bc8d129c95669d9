// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/plandifference.h"

#include "core/base/diagnostic.h"
#include "core/plan/planbounds.h"
#include "core/plan/planwords.h"
#include "core/plan/trainingplan.h"
#include "core/predict/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace pipewright {

namespace {

/// Pins all that makes a plan the same under another request.
void pinAll(PlanSpace& space, const PlanSetting& setting, const Family& family, int chunks)
{
    space.tensor = setting.tensor;
    space.context = setting.context;
    space.expert = setting.expert;
    space.foldedExperts = setting.foldedExperts;
    space.pipeline = setting.pipeline;
    space.microbatchSize = setting.microbatchSize;
    space.zero = setting.zero.level;
    space.reshard = setting.zero.reshard.every;
    space.recompute = setting.recompute;
    space.chunks = chunks;
    space.families = {std::string(family.name)};
}

/// The dimension that a request fixes otherwise than the plan has it, in words; empty: none.
std::string fixedOtherwise(const PlanSpace& space, const PlanSetting& setting, const Family& family, int chunks)
{
    const std::tuple<const char*, std::optional<int>, int> numbers[] = {
        {"tensor", space.tensor, setting.tensor}, {"context", space.context, setting.context},
        {"expert", space.expert, setting.expert}, {"pipeline", space.pipeline, setting.pipeline},
        {"chunks", space.chunks, chunks},         {"microbatch_size", space.microbatchSize, setting.microbatchSize},
        {"zero", space.zero, setting.zero.level},
    };
    for (const auto& [name, fixed, has] : numbers)
        if (fixed.value_or(has) != has)
            return fmt::format("{}={} is pinned", name, *fixed);
    if (space.foldedExperts.value_or(setting.foldedExperts) != setting.foldedExperts)
        return fmt::format("folded_experts={} is pinned", *space.foldedExperts ? "yes" : "no");
    if (space.reshard.value_or(setting.zero.reshard.every) != setting.zero.reshard.every)
        return fmt::format("reshard={} is pinned", *space.reshard ? "always" : "never");
    if (space.recompute.value_or(setting.recompute) != setting.recompute)
        return fmt::format("recompute={} is pinned", nameOf(*space.recompute));
    if (!space.families.empty()
        && std::find(space.families.begin(), space.families.end(), family.name) == space.families.end())
        return fmt::format("{} is not among the families", family.name);
    return {};
}

bool isSame(const TrainingPlan& plan, const PlanSetting& setting, const Family& family, int chunks)
{
    const PlanSetting& s = plan.setting;
    return plan.family == &family && plan.chunks == chunks && s.tensor == setting.tensor && s.context == setting.context
           && s.expert == setting.expert && s.foldedExperts == setting.foldedExperts && s.pipeline == setting.pipeline
           && s.microbatchSize == setting.microbatchSize && s.zero == setting.zero && s.recompute == setting.recompute;
}

/// One list, ready to be asked for single plans.
class Side {
public:
    explicit Side(const PlanList& list) : m_request(list.request), m_plans(list.result.plans)
    {
        m_request.noise.reset();
        m_best = std::min(m_plans.size(), static_cast<std::size_t>(m_request.top));
        if (!m_plans.empty())
            m_first = sharesOf(m_plans.front().design, predict(m_plans.front().design));
    }

    std::size_t best() const { return m_best; }
    const std::vector<TrainingPlan>& plans() const { return m_plans; }
    double tokensPerSecond() const
    {
        return m_plans.empty() ? 0 : m_plans.front().tokensPerSecondPerDevice * m_request.devices;
    }

    /// Fills in what this list makes of the plan, and its setting here when it can be.
    void ask(const TrainingPlan& plan, PlanMove::Side& side, PlanSetting& setting) const
    {
        const auto known = std::find_if(m_plans.begin(), m_plans.end(), [&](const TrainingPlan& each) {
            return isSame(each, plan.setting, *plan.family, plan.chunks);
        });
        if (known != m_plans.end()) {
            const auto at = static_cast<std::size_t>(known - m_plans.begin());
            if (at < m_best)
                side.place = at;
            side.step = known->step;
            side.why = known->why;
            setting = known->setting;
            return;
        }
        side.why = fixedOtherwise(m_request, plan.setting, *plan.family, plan.chunks);
        if (!side.why.empty())
            return;
        PlanSpace pinned = m_request;
        pinAll(pinned, plan.setting, *plan.family, plan.chunks);
        const PlanSettings settings = settingsOf(pinned, m_request.shape);
        if (settings.possible.empty()) {
            for (const auto* reasons : {&settings.byShape, &settings.byBatch})
                if (!reasons->empty())
                    side.why = reasons->begin()->first;
            if (side.why.empty()) // states shared out among one copy
                side.why = "there is one copy, which shares out nothing";
            return;
        }
        const PlanSetting& here = settings.possible.front();
        try {
            std::optional<StepShares> first = m_first;
            const TrainingPlan predicted = trainingPlanOf(m_request, here, *plan.family, plan.chunks, first);
            const Bytes limit = memoryLimitOf(m_request, predicted.design.cluster);
            if (limit > 0 && predicted.peak > limit) {
                side.why = fmt::format("memory: the fullest device needs {} of {}", formatSize(predicted.peak),
                                       formatSize(limit));
                return;
            }
            side.step = predicted.step;
            side.why = predicted.why;
            setting = here;
        } catch (const Error& error) {
            side.why = fmt::format("{}: {}", plan.family->name, shortReason(error));
        }
    }

private:
    PlanRequest m_request;
    const std::vector<TrainingPlan>& m_plans;
    std::size_t m_best = 0;
    std::optional<StepShares> m_first;
};

std::string changed(double before, double after)
{
    return before > 0 && after > 0 ? fmt::format(", {:+.1f} %", 100 * (after / before - 1)) : std::string();
}

std::string place(const PlanMove::Side& side)
{
    return side.place ? fmt::format("{}", *side.place + 1) : side.step > 0 ? "not among the best" : "not possible";
}

std::string sideText(const char* when, const PlanMove::Side& side)
{
    const std::string step = side.step > 0 ? ", " + formatDuration(side.step) : std::string();
    return fmt::format("{} {}{}: {}", when, place(side), step, side.why);
}

} // namespace

const PlanMove* PlanDifference::leaderBefore() const
{
    const auto found =
        std::find_if(moves.begin(), moves.end(), [](const PlanMove& move) { return move.before.place == 0U; });
    return found == moves.end() ? nullptr : &*found;
}

const PlanMove* PlanDifference::leaderAfter() const
{
    return moves.empty() || moves.front().after.place != 0U ? nullptr : &moves.front();
}

PlanDifference differenceOf(const PlanList& before, const PlanList& after)
{
    const Side old(before), now(after);
    PlanDifference difference;
    difference.stepBefore = old.plans().empty() ? 0 : old.plans().front().step;
    difference.stepAfter = now.plans().empty() ? 0 : now.plans().front().step;
    difference.tokensPerSecondBefore = old.tokensPerSecond();
    difference.tokensPerSecondAfter = now.tokensPerSecond();
    const auto add = [&](const TrainingPlan& plan) {
        if (after.request.isStopped && after.request.isStopped())
            return;
        PlanMove move{.setting = plan.setting, .family = plan.family, .chunks = plan.chunks, .before = {}, .after = {}};
        old.ask(plan, move.before, move.setting);
        now.ask(plan, move.after, move.setting);
        difference.moves.push_back(std::move(move));
    };
    for (std::size_t i = 0; i < now.best(); ++i)
        add(now.plans()[i]);
    for (std::size_t i = 0; i < old.best(); ++i) {
        const TrainingPlan& plan = old.plans()[i];
        if (std::none_of(difference.moves.begin(), difference.moves.end(),
                         [&](const PlanMove& known) { return known.before.place == i; }))
            add(plan);
    }
    return difference;
}

std::vector<std::string> differenceText(const PlanDifference& difference)
{
    std::vector<std::string> lines;
    const auto duration = [](Nanoseconds step) { return step > 0 ? formatDuration(step) : std::string("none"); };
    lines.push_back(
        fmt::format("the best step: {} -> {}{}", duration(difference.stepBefore), duration(difference.stepAfter),
                    changed(static_cast<double>(difference.stepBefore), static_cast<double>(difference.stepAfter))));
    lines.push_back(fmt::format("tokens a second of all devices: {:.0f} -> {:.0f}{}", difference.tokensPerSecondBefore,
                                difference.tokensPerSecondAfter,
                                changed(difference.tokensPerSecondBefore, difference.tokensPerSecondAfter)));
    const PlanMove *const first = difference.leaderBefore(), *const now = difference.leaderAfter();
    const auto name = [](const PlanMove& move) { return planName(move.setting, *move.family, move.chunks); };
    if (first != nullptr && first == now)
        lines.push_back(fmt::format("the same plan leads: {}", name(*first)));
    else {
        if (first != nullptr)
            lines.push_back(fmt::format("led before: {}; {}", name(*first), sideText("now", first->after)));
        if (now != nullptr)
            lines.push_back(fmt::format("leads now: {}; {}", name(*now), sideText("before", now->before)));
    }
    for (const PlanMove& move : difference.moves) {
        if (&move == first || &move == now)
            continue;
        if (!move.before.place)
            lines.push_back(
                fmt::format("entered at {}: {}; {}", place(move.after), name(move), sideText("before", move.before)));
        else if (!move.after.place)
            lines.push_back(
                fmt::format("left from {}: {}; {}", place(move.before), name(move), sideText("now", move.after)));
        else if (move.before.place != move.after.place)
            lines.push_back(fmt::format("moved from {} to {}: {}", place(move.before), place(move.after), name(move)));
    }
    return lines;
}

} // namespace pipewright
