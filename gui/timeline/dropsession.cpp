// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/dropsession.h"

#include "gui/timeline/blockselection.h"
#include "gui/timeline/laneplaces.h"
#include "gui/timeline/shownschedule.h"
#include "gui/timeline/timelinemap.h"
#include "gui/timeline/timelinetext.h"

#include <algorithm>

namespace pipewright {

DropSession::DropSession(Document& document, ShownSchedule& shown, const TimelineMap& map,
                         const BlockSelection& selection)
    : m_document(document), m_shown(shown), m_map(map), m_selection(selection), m_planner(document)
{
    connect(&m_planner, &DropPlanner::refined, this, [this](const DropPlan& plan) {
        if (m_plan && m_plan->isSamePlace(plan))
            set(plan);
    });
}

const Prediction* DropSession::prediction() const
{
    return m_plan ? m_plan->prediction.get() : nullptr;
}

const Design& DropSession::design() const
{
    return m_plan && m_plan->state == DropPlan::State::Exact ? *m_plan->edit.design : m_document.design();
}

/// The lane at `y`, or the block's own while that is near: a hand that slips does not move a whole stage.
int DropSession::laneFor(const Block& block, int y) const
{
    const int home = placeOf(m_document.design().schedule, m_shown.present(), block).device;
    if (home < 0)
        return m_map.places().at(y);
    const QRectF own = m_map.places().lane(home);
    const double near = std::min(24.0, own.height() / 3);
    return y >= own.top() - near && y <= own.bottom() + near ? home : m_map.places().at(y);
}

void DropSession::hold(const Block& block, QPoint position, Qt::KeyboardModifiers modifiers)
{
    constexpr double snapPixels = 48;
    const TimeAxis& axis = m_map.axis();
    DropTarget target;
    target.device = m_map.plot().contains(position) ? laneFor(block, position.y()) : -1;
    target.time = axis.timeAt(position.x());
    target.snapTime = modifiers & Qt::AltModifier ? 0 : snapPixels * axis.nsPerPixel;
    if (modifiers & Qt::ShiftModifier && target.device >= 0) {
        // Looks in the present layout: the preview has moved the blocks under the cursor.
        const Lane& lane = m_shown.present().lanes()[target.device];
        if (const auto under = lane.at(target.time);
            under && !(lane.blocks()[*under].block == block) && isPass(lane.blocks()[*under].block.op))
            target.exchange = lane.blocks()[*under].block;
    }
    const std::vector<Block> moving = m_selection.movingWith(block);
    target.ripple = modifiers & Qt::ControlModifier && !target.exchange && moving.empty();
    set(m_planner.plan(m_shown.present(), block, moving, target, plan()));
}

void DropSession::holdOrder(const Block& block, ReorderDevice order)
{
    const QString title = QString::fromStdString(order.name);
    set(m_planner.planOrder(block, std::move(order), title, plan()));
}

void DropSession::holdTransfer(const Transfer& transfer, const MoveTransfer& move, const QString& title)
{
    set(m_planner.planTransfer(transfer, move, title));
}

void DropSession::holdCollective(const MoveCollective& move, const QString& title)
{
    set(m_planner.planCollective(move, title));
}

void DropSession::holdGather(const MoveGather& move, int device, const QString& title)
{
    set(m_planner.planGather(move, device, title));
}

void DropSession::holdPaste(const PastePattern& paste, const QString& title)
{
    set(m_planner.planPaste(paste, title));
}

void DropSession::set(std::optional<DropPlan> next)
{
    const bool samePlace = m_plan && next && m_plan->isSamePlace(*next);
    const bool same = samePlace && m_plan->prediction == next->prediction && m_plan->state == next->state;
    const bool predicts = !same && ((m_plan && m_plan->prediction) || (next && next->prediction));
    // The exact result confirms the approximate one, so the lanes already show it.
    const bool confirmed =
        samePlace && m_plan->state == DropPlan::State::Approximate && next->state == DropPlan::State::Exact;
    const bool beginsOrEnds = m_plan.has_value() != next.has_value();
    m_plan = std::move(next);
    m_shown.setPlanning(m_plan.has_value());
    if (!m_plan)
        m_planner.stop();
    if (predicts)
        show(confirmed);
    if (predicts || beginsOrEnds)
        Q_EMIT previewChanged();
    Q_EMIT changed();
}

void DropSession::show(bool confirmed)
{
    const Prediction* prediction = m_plan ? m_plan->prediction.get() : nullptr;
    m_headers.clear();
    if (!prediction) {
        m_shown.setPreview(nullptr);
        return;
    }
    m_headers = laneHeaders(design(), prediction, nullptr, Side::Predicted, pendingUntilDrop().words);
    if (m_plan->state == DropPlan::State::Approximate)
        m_shown.previewRetimed(*prediction, m_plan->device, std::get<ReorderDevice>(*m_plan->request).positions,
                               m_plan->changedFrom);
    else if (!confirmed)
        m_shown.setPreview(m_plan->layout);
}

void DropSession::commit()
{
    if (!m_plan)
        return;
    const DropPlan done = *m_plan;
    m_planner.stop(); // the commit computes it
    if (DropPlanner::isSlow(done)) {
        m_document.applyLater({*done.request});
        m_isArriving = m_document.isWorking();
        if (!m_isArriving)
            clear();
        m_document.select(done.block);
        return;
    }
    Document::Edit edit = m_planner.editOf(done);
    if (!done.request || !done.isLegal() || hasErrors(edit.diagnostics)) {
        clear();
        if (done.request)
            Q_EMIT refused(edit.diagnostics, *done.request);
        return;
    }
    std::shared_ptr<Document::Outcome> outcome;
    if (done.state == DropPlan::State::Exact)
        outcome = std::make_shared<Document::Outcome>(
            Document::Outcome{done.prediction, {}, m_document.evaluationMilliseconds(), done.layout});
    m_document.commit(std::move(edit), std::move(outcome));
    // While the exact numbers of a large design are computed, the lanes keep showing the preview.
    if (m_document.isWorking())
        m_isArriving = true;
    else
        clear();
    m_document.select(done.block);
}

void DropSession::scheduleChanged()
{
    abandon();
    m_planner.forget();
}

void DropSession::abandon()
{
    m_isArriving = false;
    clear();
}

} // namespace pipewright

#include "moc_dropsession.cpp"
