// SPDX-License-Identifier: GPL-3.0-or-later
// The drop that a drag would make now: planned while hovering, shown, committed or refused.
#include "gui/document/namededits.h"
#include "gui/timeline/timelinetext.h"
#include "gui/timeline/timelineviewprivate.h"

namespace pipewright {

void TimelineView::Private::updatePlan(const Block& block, QPoint position, Qt::KeyboardModifiers modifiers)
{
    cursor = position;
    DropTarget target;
    target.device = plotRect().contains(position) ? places.at(position.y()) : -1;
    target.time = view.m_axis.timeAt(position.x());
    target.snapTime = modifiers & Qt::AltModifier ? 0 : snapPixels * view.m_axis.nsPerPixel;
    if (modifiers & Qt::ShiftModifier && target.device >= 0) {
        // In the lanes as they are: the preview has moved what is under the cursor.
        const Lane& lane = layout().lanes()[target.device];
        if (const auto under = lane.at(target.time);
            under && !(lane.blocks()[*under].block == block) && isPass(lane.blocks()[*under].block.op))
            target.exchange = lane.blocks()[*under].block;
    }
    // Ctrl takes the rest of the microbatch along.
    const std::vector<Block> moving = movingWith(block);
    target.ripple = modifiers & Qt::ControlModifier && !target.exchange && moving.empty();
    setPlan(planner.plan(layout(), block, moving, target, plan ? &*plan : nullptr));
}

void TimelineView::Private::setPlan(std::optional<DropPlan> next)
{
    const bool samePlace = plan && next && plan->isSamePlace(*next);
    const bool same = samePlace && plan->prediction == next->prediction && plan->live == next->live;
    const bool changed = !same && ((plan && plan->prediction) || (next && next->prediction));
    // What was shown at once is confirmed: the lanes stand as they will.
    const bool confirmed = samePlace && plan->live && next->prediction && !next->live;
    const bool beginsOrEnds = plan.has_value() != next.has_value();
    plan = std::move(next);
    // What a person can do about it, in the words of the button that a drop brings up.
    const bool quick = document.evaluationMilliseconds() < DropPlanner::quickMilliseconds;
    if (quick && plan && plan->request && !plan->legal && !plan->pending && !samePlace)
        if (const std::optional<EditRequest> remedy =
                remedyFor(*plan->request, document.sharedDesign(), document.prediction()))
            plan->detail = tr("drop it here to be offered: %1")
                               .arg(editName(*remedy, document.design(), document.prediction(),
                                             {document.sharedDesign(), {}, {}}));
    if (!plan)
        planner.stop();
    if (changed) {
        const Prediction* prediction = plan ? plan->prediction.get() : nullptr;
        previewHeaders.clear();
        if (!prediction) {
            layouts.setPreview(nullptr);
        } else {
            previewHeaders = laneHeaders(plan->live ? document.design() : *plan->edit.design, prediction);
            if (plan->live)
                layouts.previewRetimed(*prediction, plan->device, std::get<ReorderDevice>(*plan->request).positions,
                                       plan->changedFrom);
            else if (!confirmed)
                layouts.setPreview(plan->layout);
        }
    }
    if (changed || beginsOrEnds)
        Q_EMIT view.previewChanged();
    updateOverlay();
    view.viewport()->update();
}

bool TimelineView::Private::commitPlan()
{
    if (!plan)
        return false;
    const DropPlan done = *plan;
    planner.stop(); // whatever it still works out comes with the commit
    if (DropPlanner::isSlow(done)) {
        document.applyLater({*done.request});
        arriving = document.isWorking();
        if (!arriving)
            setPlan(std::nullopt);
        document.select(done.block);
        return done.changes;
    }
    Document::Edit edit = planner.editOf(done);
    if (!done.request || !done.legal || hasErrors(edit.diagnostics)) {
        setPlan(std::nullopt);
        if (done.request)
            refuse(done.legal ? edit.diagnostics : done.edit.diagnostics, *done.request, true);
        return false;
    }
    std::shared_ptr<Document::Outcome> outcome;
    if (!done.live && !done.pending && done.prediction && done.layout)
        outcome = std::make_shared<Document::Outcome>(
            Document::Outcome{done.prediction, {}, document.evaluationMilliseconds(), done.layout});
    document.commit(std::move(edit), std::move(outcome));
    // While a large design's exact numbers are under way, the lanes stay as they were shown last.
    if (document.isWorking())
        arriving = true;
    else
        setPlan(std::nullopt);
    document.select(done.block);
    return done.changes;
}

void TimelineView::Private::refuse(const Diagnostics& diagnostics, const EditRequest& request, bool atCursor)
{
    QString hint;
    const QString what = explain(diagnostics, &hint);
    if (what.isEmpty())
        return;
    const QRect selected = document.selection() ? view.rectOfBlock(*document.selection()) : QRect();
    const bool remedied = refusal->offer(request, what, atCursor ? cursor : selected.center());
    Q_EMIT view.editRefused(remedied || hint.isEmpty() ? what : QStringLiteral("%1: %2").arg(what, hint));
}

} // namespace pipewright
