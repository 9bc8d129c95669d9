// SPDX-License-Identifier: GPL-3.0-or-later
// A cache of the stages of the last few designs; the key is the design without the order of its blocks. O(tasks · parts
// · members) for each prediction.
#include "gui/document/memberpredictor.h"

#include "core/program/compile.h"
#include "core/program/deadlock.h"

#include <QCoreApplication>

#include <algorithm>
#include <chrono>
#include <utility>

namespace pipewright {

namespace {

MemberPredictor::Stages byFormula(const Design& design)
{
    return {groupStages(design), design.costs, design.dataflow};
}

} // namespace

MemberPredictor::MemberPredictor() : MemberPredictor(byFormula) {}

MemberPredictor::MemberPredictor(Measure measure) : m_measure(std::move(measure)) {}

Design MemberPredictor::withoutOrder(Design design)
{
    design.name.clear();
    design.schedule.family.clear();
    design.schedule.pins.clear();
    design.schedule.transferOrder.clear();
    for (std::vector<Block>& order : design.schedule.order)
        order.clear(); // keeps the number of devices
    return design;
}

std::shared_ptr<MemberPredictor::Known> MemberPredictor::find(const Design& key)
{
    const std::lock_guard lock(m_mutex);
    const auto found = std::find_if(m_known.begin(), m_known.end(), [&](const auto& each) { return each->of == key; });
    return found == m_known.end() ? nullptr : *found;
}

MemberPredictor::Members MemberPredictor::members(const Design& design)
{
    if (Diagnostics why = whyNoMembers(design); !why.empty()) // the reason may be the order
        throw Error(std::move(why));
    Design key = withoutOrder(design);
    std::shared_ptr<Known> known = find(key);
    if (!known) {
        constexpr std::size_t kept = 8;
        known = std::make_shared<Known>();
        known->stages = std::make_shared<const Stages>(m_measure(design));
        known->of = std::move(key);
        const std::lock_guard lock(m_mutex);
        m_known.push_back(known);
        if (m_known.size() > kept)
            m_known.pop_front();
    }
    return members(design, *known);
}

MemberPredictor::Members MemberPredictor::members(const Design& design, Known& known)
{
    const auto start = std::chrono::steady_clock::now();
    const Stages& stages = *known.stages;
    const Program groups = compile(design.schedule, stages.costs, stages.dataflow);
    Members found{known.stages, memberProgram(groups, stages.stages, stages.costs, design.schedule.transferOrder), {}};
    if (Diagnostics why = checkDeadlock(found.program.program, found.program.program.communication); !why.empty())
        throw Error(std::move(why));
    found.prediction = predictMembers(found.program);
    known.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return found;
}

Prediction MemberPredictor::predictPlaced(const Design& design, Patience patience)
{
    Prediction prediction = pipewright::predictPlaced(design);
    if (!runsMemberByMember(design))
        return prediction;
    const bool isComplete = unplacedBlocks(design.schedule).empty();
    const auto take = [&](const Members& found) { takeMembers(prediction, found.prediction, found.stages->stages); };
    try {
        if (!isComplete) {
            // No member Program exists for an incomplete schedule.
        } else if (patience == Patience::Any) {
            take(members(design));
        } else if (const std::shared_ptr<Known> known = find(withoutOrder(design))) {
            const double expected = known->milliseconds;
            if (expected >= 0 && expected <= m_quick)
                take(members(design, *known));
        }
    } catch (const Error&) { // members() reports it; the groups' prediction remains
    }
    if (!prediction.memoryOfMembers)
        prediction.timeline.memory.clear();
    return prediction;
}

bool isMemoryPending(const Design& design, const Prediction& prediction)
{
    return !prediction.memoryOfMembers && runsMemberByMember(design);
}

PendingMemory pendingUntilDrop()
{
    return {QCoreApplication::translate("MemberPredictor", "after the drop"),
            QCoreApplication::translate("MemberPredictor", "What the members of the groups hold is predicted when the "
                                                           "cursor rests, or after the drop")};
}

} // namespace pipewright
