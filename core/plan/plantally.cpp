// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/plantally.h"

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

constexpr std::int64_t exactUpTo = 50'000; // plans of the space
constexpr double frontierTolerance = 0.1;
constexpr const char* needsMore = "memory: the fullest device needs more";

} // namespace

PlanTally::PlanTally(const PlanRequest& request, const PlanSettings& settings, std::int64_t plans,
                     Clock::time_point began)
    : m_request(request), m_settings(settings), m_plans(plans), m_began(began)
{
    for (const auto& [reason, count] : settings.byShape)
        add(m_result.refused.shape, reason, count);
    for (const auto& [reason, count] : settings.byBatch)
        add(m_result.refused.batch, reason, count);
    m_result.considered = plans;
    m_ranking.top = static_cast<std::size_t>(request.top);
    m_ranking.tolerance = m_result.frontierTolerance = plans > exactUpTo ? frontierTolerance : 0;
    if (request.save)
        m_state.question = questionOf(request);
    if (!request.resumed)
        return;
    // Before anything is left out because of them.
    for (const PlanState::Predicted& known : request.resumed->predicted) {
        m_known.emplace(known.setting, known.family, known.chunks);
        take(known);
    }
    for (const PlanState::Bounded& known : request.resumed->bounded)
        m_bounded[{known.family, known.chunks, known.pipeline, known.microbatches}] = &known;
}

void PlanTally::add(std::int64_t& kind, const std::string& reason, std::int64_t count)
{
    kind += count;
    m_result.reasons[reason] += count;
}

void PlanTally::refuse(Because because, const std::string& reason, std::int64_t count)
{
    const std::lock_guard lock(m_mutex);
    add(because == Because::Memory ? m_result.refused.memory : m_result.refused.shape, reason, count);
    m_decided += count;
}

bool PlanTally::isPredicted(const PlanCandidate& plan) const
{
    return m_claimed.contains(plan.key()) || m_known.contains(plan.key());
}

bool PlanTally::claim(const PlanCandidate& plan, bool& isKnown)
{
    const std::lock_guard lock(m_mutex);
    isKnown = m_known.contains(plan.key());
    return m_claimed.insert(plan.key()).second;
}

bool PlanTally::takeBounded(const PlanOrder& order, int pipeline, int microbatches)
{
    const std::lock_guard lock(m_mutex);
    const auto known = m_bounded.find({order.family, order.chunks, pipeline, microbatches});
    if (known == m_bounded.end())
        return false;
    take(*known->second);
    report();
    return true;
}

void PlanTally::count(const PlanState::Bounded& bounded)
{
    const std::lock_guard lock(m_mutex);
    take(bounded);
    report();
}

void PlanTally::count(const PlanState::Predicted& plan)
{
    const std::lock_guard lock(m_mutex);
    take(plan);
    report();
}

void PlanTally::take(const PlanState::Bounded& bounded)
{
    for (const PlanCandidate& each : bounded.open)
        if (!isPredicted(each))
            m_open.push_back(each);
    for (const auto& [reason, count] : bounded.refused)
        add(m_result.refused.shape, reason, count);
    if (bounded.exceeding > 0)
        add(m_result.refused.memory, needsMore, bounded.exceeding);
    m_decided += bounded.decided - static_cast<std::int64_t>(bounded.open.size());
    if (m_request.save)
        m_state.bounded.push_back(bounded);
}

void PlanTally::take(const PlanState::Predicted& plan)
{
    ++m_decided;
    if (m_request.save)
        m_state.predicted.push_back(plan);
    if (!plan.whyNot.empty()) {
        add(m_result.refused.shape, plan.whyNot, 1);
        return;
    }
    ++m_result.predicted;
    if (plan.exceeds) {
        add(m_result.refused.memory, needsMore, 1);
        return;
    }
    m_found.push_back({plan.step, plan.peak, plan.setting, plan.family, plan.chunks});
    if (m_ranking.add(plan.step, plan.peak) && m_request.found)
        m_request.found({m_settings.possible[plan.setting], plan.family, plan.chunks, plan.step, plan.peak,
                         plan.tokensPerSecondPerDevice});
}

bool PlanTally::isHopeless(const PlanBounds& bounds)
{
    const std::lock_guard lock(m_mutex);
    return m_ranking.isLonger(bounds) && (!m_request.frontier || m_ranking.isBehind(bounds));
}

bool PlanTally::isHopeless(const PlanBounds& bounds, Aim aim)
{
    const std::lock_guard lock(m_mutex);
    return aim == Aim::Best ? m_ranking.isLonger(bounds) : m_ranking.isBehind(bounds);
}

std::vector<PlanCandidate>& PlanTally::sortedOpen()
{
    std::sort(m_open.begin(), m_open.end(), [](const PlanCandidate& a, const PlanCandidate& b) {
        return std::tuple(a.bounds.step, a.bounds.peak, a.key()) < std::tuple(b.bounds.step, b.bounds.peak, b.key());
    });
    return m_open;
}

PlanResult PlanTally::finish(bool stopped, std::vector<RankedPlan>& found)
{
    if (stopped && m_request.save)
        m_request.save(m_state);
    std::sort(m_found.begin(), m_found.end());
    found = std::move(m_found);
    return std::move(m_result);
}

void PlanTally::report()
{
    saveIfDue();
    if (!m_request.progress)
        return;
    const std::size_t settings = m_settings.possible.size();
    const auto share = static_cast<double>(m_decided) / static_cast<double>(std::max<std::int64_t>(1, m_plans));
    m_request.progress({static_cast<std::size_t>(share * static_cast<double>(settings)), settings, m_ranking.best(),
                        std::chrono::duration<double>(Clock::now() - m_began).count(), m_result.considered,
                        m_result.predicted, complete});
}

/// Others wait, so it takes a small share of the time.
void PlanTally::saveIfDue()
{
    constexpr int rarely = 50; // times as long as saving takes
    const Clock::time_point before = Clock::now();
    if (!m_request.save || before < m_nextSave)
        return;
    m_request.save(m_state);
    const Clock::time_point after = Clock::now();
    m_nextSave = after + std::max<Clock::duration>(m_request.saveEvery, rarely * (after - before));
}

} // namespace pipewright
