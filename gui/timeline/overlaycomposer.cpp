// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/overlaycomposer.h"

#include "core/base/units.h"
#include "gui/timeline/dependencies.h"
#include "gui/timeline/dropsession.h"
#include "gui/timeline/gesture.h"
#include "gui/timeline/lanegeometry.h"
#include "gui/timeline/laneplaces.h"
#include "gui/timeline/readings.h"
#include "gui/timeline/shownschedule.h"
#include "gui/timeline/timelinemap.h"
#include "gui/timeline/timelinescroll.h"
#include "gui/widgets/timetext.h"
#include "gui/widgets/words.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

OverlayComposer::OverlayComposer(QWidget& viewport, Sources sources)
    : m_viewport(viewport), m(sources), m_overlay(new TimelineOverlay(&viewport))
{
}

void OverlayComposer::update()
{
    const TimeAxis& axis = m.map.axis();
    const DropPlan* const plan = m.drop.plan();
    const Gesture* const gesture = m.hand.left.get();
    OverlayContent content;
    content.plot = m.map.plot();
    content.cursor = m_cursor;
    content.frameTime = m_overlay->content().frameTime;
    const Gesture::HeldBlock* const moving = m.hand.moving();
    const bool plansBlock = gesture ? gesture->plansBlock() : !(plan && plan->is<PastePattern>()),
               planOfBlock = plan && plansBlock;
    const std::optional<Block> subject = planOfBlock ? std::optional(plan->block)
                                         : moving    ? std::optional(moving->block)
                                                     : m.document.selection();
    if (m_reason && !plan && !moving)
        addReason(content); // in place of the selection's arrows
    else if (subject && m.shown.find(*subject))
        addArrows(content, *subject);
    addReadings(content);
    if (plan && !m.drop.isArriving()) {
        content.legal = plan->isLegal() || !plan->request;
        content.title = plan->title;
        content.detail = plan->state == DropPlan::State::Pending ? tr("working out what it changes …") : plan->detail;
    }
    if (m_showsCrosshair && m_isHovering && !plan && !(gesture && gesture->hidesCrosshair()))
        addCrosshair(content);
    if (gesture)
        gesture->addTo(content);
    // For a block from the tray, the system's drag already draws it at the cursor.
    const bool fromTray = plan && plan->is<PlaceBlock>() && !m.hand.held();
    if (plansBlock && !fromTray && !m.drop.isArriving() && (plan || moving))
        addGhost(content, plan ? plan->block : moving->block);
    if (m_pointed && !content.crosshair) {
        const double x = axis.xOf(static_cast<double>(*m_pointed));
        if (x >= axis.left && x < axis.right())
            content.pointed = OverlayContent::Mark{std::floor(x), timeText(*m_pointed, axis.nsPerPixel)};
    }
    m_overlay->setContent(std::move(content));
    if (TimeReadings now = readings(); !(now == m_handedOut)) {
        m_handedOut = std::move(now);
        Q_EMIT readingsChanged();
    }
}

void OverlayComposer::setFrameTime(const QString& text)
{
    OverlayContent content = m_overlay->content();
    content.frameTime = text;
    m_overlay->setContent(std::move(content));
}

// ---- Dependencies and the drop --------------------------------------------------------------------

void OverlayComposer::addReason(OverlayContent& content) const
{
    const TimeAxis& axis = m.map.axis();
    const QRectF area = m.map.places().blocks(m_reason->device);
    const double left = std::max(axis.xOf(static_cast<double>(m_reason->start)), axis.left - 8.0);
    const double right = std::min(axis.xOf(static_cast<double>(m_reason->end)), axis.right() + 8.0);
    content.idle = QRectF(left, area.top(), std::max(1.0, right - left), area.height());
    QRectF next = m_reason->waiting ? m.map.rectOf(*m_reason->waiting) : QRectF();
    for (const Block& block : m_reason->chain) {
        const QRectF rect = m.map.rectOf(block);
        if (rect.isNull())
            break;
        content.chain.push_back(rect);
        // Blocks of the chain in the same lane touch; their outlines are enough.
        if (!next.isNull() && rect.top() != next.top())
            content.arrows.push_back({{rect.right(), rect.center().y()}, {next.left(), next.center().y()}, false});
        next = rect;
    }
}

/// Arrows from the inputs of a block, and to its consumers.
void OverlayComposer::addArrows(OverlayContent& content, const Block& subject) const
{
    struct Shown {
        QRectF rect;
        int device = -1;
    };
    const auto shownAt = [&](const Block& block) {
        Shown result{m.map.rectOf(block)};
        (void)m.shown.find(block, &result.device);
        return result;
    };
    const auto connect = [&](const Block& a, const Block& b) {
        const Shown from = shownAt(a), to = shownAt(b);
        if (from.device != to.device) {
            content.arrows.push_back(
                {{from.rect.right(), from.rect.center().y()}, {to.rect.left(), to.rect.center().y()}, false});
        } else {
            const double inset = 4; // distance from the corners, so that arrows of neighbours stay apart
            content.arrows.push_back({{from.rect.right() - std::min(inset, from.rect.width() / 2), from.rect.top()},
                                      {to.rect.left() + std::min(inset, to.rect.width() / 2), to.rect.top()},
                                      true});
        }
    };
    const Dependencies dependencies = dependenciesOf(m.document.design(), m.shown.layout(), subject);
    for (const Block& input : dependencies.inputs)
        connect(input, subject);
    for (const Block& output : dependencies.outputs)
        connect(subject, output);
}

void OverlayComposer::addGhost(OverlayContent& content, const Block& block) const
{
    const LanePlaces& places = m.map.places();
    const TimelineLayout& present = m.shown.present();
    const int lane = places.at(m_cursor.y());
    double width = 32;
    double height = lane >= 0 ? places.blocks(lane).height() : places.pitch() - 21;
    OverlayContent::Ghost ghost{{}, block, 0};
    QPointF grab(width / 2, height / 2);
    if (const LaneBlock* now = present.blockOf(block)) {
        ghost.chunk = now->chunk;
        const QRectF rect = blockRect(*now, m.map.axis(), places.blocks(present.find(block)->device), m.map.scale());
        width = rect.width();
        height = rect.height();
        if (const Gesture::HeldBlock* pressed = m.hand.held())
            grab = pressed->grab;
    }
    // The ghost follows the cursor along the lane, lifted a little off it: the block in the lane below is
    // where it will land.
    constexpr double lift = 9;
    const double top = (lane >= 0 ? places.blocks(lane).top() : m_cursor.y() - grab.y()) - lift;
    ghost.rect = QRectF(std::round(m_cursor.x() - grab.x()), top, width, height);
    content.ghost = ghost;
    const DropPlan* const plan = m.drop.plan();
    if (plan && plan->device >= 0 && !plan->isLegal() && plan->index >= 0) {
        const QRectF area = places.blocks(plan->device);
        content.caret = QLineF(m_cursor.x(), area.top() - 4, m_cursor.x(), area.bottom() + 4);
    }
}

// ---- Readings -------------------------------------------------------------------------------------

void OverlayComposer::hover(QPoint position)
{
    m_isHovering = true;
    if (!m_showsCrosshair)
        return;
    m_cursor = position;
    update();
}

void OverlayComposer::leave()
{
    m_isHovering = false;
    if (m_showsCrosshair)
        update();
}

void OverlayComposer::showCrosshair(bool on)
{
    m_showsCrosshair = on;
    m_cursor = m_viewport.mapFromGlobal(QCursor::pos());
    m_isHovering = m_viewport.rect().contains(m_cursor);
    update();
}

QString OverlayComposer::crosshairText() const
{
    const OverlayContent& content = m_overlay->content();
    return content.crosshair ? QStringLiteral("%1, %2, %3").arg(content.crosshair->text, content.title, content.detail)
                             : QString();
}

void OverlayComposer::pointAt(std::optional<Nanoseconds> time)
{
    m_pointed = time;
    update();
}

TimeReadings OverlayComposer::readings() const
{
    TimeReadings result{m.scroll.ticks(), m.marks.marks(), m.marks.range(), m_pointed};
    if (const OverlayContent& content = m_overlay->content(); content.crosshair)
        result.crosshair = static_cast<Nanoseconds>(std::llround(m.map.axis().timeAt(content.crosshair->x + 0.5)));
    return result;
}

void OverlayComposer::addReadings(OverlayContent& content) const
{
    const TimeAxis& axis = m.map.axis();
    for (const Nanoseconds mark : m.marks.marks())
        content.marks.push_back({axis.xOf(static_cast<double>(mark)), timeText(mark, axis.nsPerPixel)});
    if (const auto& range = m.marks.range()) {
        content.range = {{axis.xOf(static_cast<double>(range->first)), axis.xOf(static_cast<double>(range->second))}};
        content.rangeText = durationText(range->second - range->first);
        if (!m.drop.plan())
            content.rangeText += busyText(*range);
    }
}

/// " · busy 72.1 %", with its side where there are two; empty where nothing is predicted.
QString OverlayComposer::busyText(const std::pair<Nanoseconds, Nanoseconds>& range) const
{
    const Document::Range numbers = m.document.statistics(range.first, range.second);
    if (!numbers.predicted)
        return {};
    const QString busy = tr(" · busy %1")
                             .arg(sidedText(m.shown.side(), percentText(numbers.predicted->busyShare()),
                                            numbers.measured ? percentText(numbers.measured->busyShare()) : QString()));
    return numbers.measured ? tr("%1, %2").arg(busy, sideName(m.shown.side())) : busy;
}

void OverlayComposer::addCrosshair(OverlayContent& content) const
{
    const TimeAxis& axis = m.map.axis();
    if (!m.map.plot().contains(m_cursor))
        return;
    const double at = axis.timeAt(m_cursor.x() + 0.5);
    if (at < 0 || at > static_cast<double>(m.shown.layout().makespan()))
        return;
    const auto time = static_cast<Nanoseconds>(std::llround(at));
    content.crosshair = {{static_cast<double>(m_cursor.x()), timeText(time, axis.nsPerPixel)}};
    const int device = m.map.places().at(m_cursor.y());
    if (device < 0)
        return;
    content.title = deviceLabel(m.document.design(), device);
    if (const std::optional<Block> block = m.map.blockAt(m_cursor))
        content.title += QStringLiteral(" · ") + blockText(*block);
    else
        content.title += QStringLiteral(" · ") + tr("idle");
    content.detail = liveAt(time, device);
}

QString OverlayComposer::liveAt(Nanoseconds time, int device) const
{
    // Live memory is the last sample up to that time. The samples of a recording are used when it has any.
    const auto bytesOf = [&](const Timeline* timeline) -> std::optional<Bytes> {
        if (!timeline || device >= std::ssize(timeline->memory) || timeline->memory[device].empty())
            return std::nullopt;
        const std::vector<MemorySample>& samples = timeline->memory[device];
        const auto next = std::upper_bound(samples.begin(), samples.end(), time,
                                           [](Nanoseconds t, const MemorySample& s) { return t < s.time; });
        return next == samples.begin() ? samples.front().bytes : std::prev(next)->bytes;
    };
    const Document::Overlay* trace = m.document.overlay();
    const std::optional<Bytes> predicted =
        bytesOf(m.document.prediction() ? &m.document.prediction()->timeline : nullptr);
    if (trace)
        return tr("%1 live, %2")
            .arg(sidedSizes(m.shown.side(), predicted, bytesOf(&trace->measured)), sideName(m.shown.side()));
    return predicted ? tr("%1 live").arg(sizeText(*predicted)) : QString();
}

} // namespace pipewright

#include "moc_overlaycomposer.cpp"
