// SPDX-License-Identifier: GPL-3.0-or-later
// What TimelineView shows above its lanes: arrows of dependencies, the plan of a drop with its explanation, the block
// that hangs at the cursor, and readings.
#include "gui/timeline/dependencies.h"
#include "gui/timeline/gesture.h"
#include "gui/timeline/timelineviewprivate.h"
#include "gui/widgets/timetext.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

/// Idle time that was clicked, and the chain of blocks that explains it.
void TimelineView::Private::addReason(OverlayContent& content) const
{
    const TimeAxis& axis = view.axis();
    const auto rectOf = [&](const Block& block) {
        int device = -1;
        const std::optional<LaneBlock> found = findShown(block, &device);
        return found ? blockRect(*found, axis, places.blocks(device), scale()) : QRectF();
    };
    const QRectF area = places.blocks(reason->device);
    const double left = std::max(axis.xOf(static_cast<double>(reason->start)), axis.left - 8.0);
    const double right = std::min(axis.xOf(static_cast<double>(reason->end)), axis.right() + 8.0);
    content.idle = QRectF(left, area.top(), std::max(1.0, right - left), area.height());
    QRectF next = reason->waiting ? rectOf(*reason->waiting) : QRectF();
    for (const Block& block : reason->chain) {
        const QRectF rect = rectOf(block);
        if (rect.isNull())
            break;
        content.chain.push_back(rect);
        // A block that merely stands before the next one touches it; the outlines say enough.
        if (!next.isNull() && rect.top() != next.top())
            content.arrows.push_back({{rect.right(), rect.center().y()}, {next.left(), next.center().y()}, false});
        next = rect;
    }
}

/// Arrows from what a block waits for, and to what waits for it.
void TimelineView::Private::addArrows(OverlayContent& content, const Block& subject) const
{
    const TimeAxis& axis = view.axis();
    struct Shown {
        QRectF rect;
        int device = -1;
    };
    const auto shownAt = [&](const Block& block) {
        Shown result;
        const LaneBlock found = *findShown(block, &result.device);
        result.rect = blockRect(found, axis, places.blocks(result.device), scale());
        return result;
    };
    const auto connect = [&](const Block& a, const Block& b) {
        const Shown from = shownAt(a), to = shownAt(b);
        if (from.device != to.device) {
            content.arrows.push_back(
                {{from.rect.right(), from.rect.center().y()}, {to.rect.left(), to.rect.center().y()}, false});
        } else {
            const double inset = 4; // off the corners, so that arrows of neighbours stay apart
            content.arrows.push_back({{from.rect.right() - std::min(inset, from.rect.width() / 2), from.rect.top()},
                                      {to.rect.left() + std::min(inset, to.rect.width() / 2), to.rect.top()},
                                      true});
        }
    };
    const Dependencies dependencies = dependenciesOf(document.design(), shown(), subject);
    for (const Block& input : dependencies.inputs)
        connect(input, subject);
    for (const Block& output : dependencies.outputs)
        connect(subject, output);
}

/// The block that hangs at the cursor.
void TimelineView::Private::addGhost(OverlayContent& content, const Block& block) const
{
    const TimeAxis& axis = view.axis();
    const int lane = places.at(cursor.y());
    double width = 32;
    double height = lane >= 0 ? places.blocks(lane).height() : places.pitch() - 21;
    OverlayContent::Ghost ghost{{}, block, 0};
    QPointF grab(width / 2, height / 2);
    if (const LaneBlock* now = layout().blockOf(block)) {
        ghost.chunk = now->chunk;
        const QRectF rect = blockRect(*now, axis, places.blocks(layout().find(block)->device), scale());
        width = rect.width();
        height = rect.height();
        if (const Gesture::HeldBlock* pressed = held())
            grab = pressed->grab;
    }
    // The ghost follows the cursor along the lane, lifted a little off it: the block in the lane below is
    // where it will land.
    constexpr double lift = 9;
    const double top = (lane >= 0 ? places.blocks(lane).top() : cursor.y() - grab.y()) - lift;
    ghost.rect = QRectF(std::round(cursor.x() - grab.x()), top, width, height);
    content.ghost = ghost;
    if (plan && plan->device >= 0 && !plan->legal && plan->index >= 0) {
        const QRectF area = places.blocks(plan->device);
        content.caret = QLineF(cursor.x(), area.top() - 4, cursor.x(), area.bottom() + 4);
    }
}

void TimelineView::Private::updateOverlay()
{
    OverlayContent content;
    content.plot = plotRect();
    content.cursor = cursor;
    content.frameTime = overlay->content().frameTime;
    const Gesture::HeldBlock* const moving = movingBlock();
    const bool plansBlock = !gesture || gesture->plansBlock(), planOfBlock = plan && plansBlock;
    const std::optional<Block> subject = planOfBlock ? std::optional(plan->block)
                                         : moving    ? std::optional(moving->block)
                                                     : document.selection();
    if (reason && !plan && !moving)
        addReason(content); // in place of the selection's arrows
    else if (subject && shown().find(*subject))
        addArrows(content, *subject);
    addReadings(content);
    if (plan && !arriving) {
        content.legal = plan->legal || !plan->request;
        content.title = plan->title;
        content.detail = plan->pending ? tr("working out what it changes …") : plan->detail;
    }
    if (showCrosshair && hovering && !plan && !(gesture && gesture->hidesCrosshair()))
        addCrosshair(content);
    if (gesture)
        gesture->addTo(content);
    // What comes from the tray hangs at the cursor already.
    const bool fromTray = plan && plan->is<PlaceBlock>() && !held();
    if (plansBlock && !fromTray && !arriving && (plan || moving))
        addGhost(content, plan ? plan->block : moving->block);
    if (pointed && !content.crosshair) {
        const double x = view.axis().xOf(static_cast<double>(*pointed));
        if (x >= view.axis().left && x < view.axis().right())
            content.pointed = OverlayContent::Mark{std::floor(x), timeText(*pointed, view.axis().nsPerPixel)};
    }
    overlay->setContent(std::move(content));
    if (TimeReadings now = view.readings(); !(now == handedOut)) {
        handedOut = std::move(now);
        Q_EMIT view.readingsChanged();
    }
}

} // namespace pipewright
