// SPDX-License-Identifier: GPL-3.0-or-later
// Painting of ActivityView: the visible rows, the selection with its launches, and the measured range.
#include "gui/timeline/timelinepainter.h"
#include "gui/trace/activityview.h"
#include "gui/widgets/arrows.h"
#include "gui/widgets/words.h"

#include <QPainter>

#include <algorithm>

namespace pipewright {

const ActivityPainter& ActivityView::painter()
{
    const Theme& theme = Theme::of(*this);
    if (!m_painter || !m_painter->isFor(theme, devicePixelRatioF()))
        m_painter = std::make_unique<ActivityPainter>(theme, *m_trace, devicePixelRatioF());
    return *m_painter;
}

void ActivityView::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    QPainter painter(viewport());
    painter.fillRect(viewport()->rect(), theme.background);
    if (!m_grounds || !m_grounds->isFor(theme, devicePixelRatioF()))
        m_grounds = std::make_unique<TimelinePainter>(theme, devicePixelRatioF());
    const TimelinePainter& grounds = *m_grounds;
    const std::vector<double> times = rulerTicks(m_axis);
    const int height = viewport()->height();
    for (std::size_t row = m_rows.at(contentY(TimelinePainter::rulerHeight)).value_or(0);
         row < m_rows.rows().size() && yOf(m_rows.rows()[row].top) < height; ++row)
        if (m_rows.rows()[row].height > 0)
            paintRow(painter, times, grounds, row);
    painter.setClipRect(
        QRect(m_axis.left, TimelinePainter::rulerHeight, m_axis.width, height - TimelinePainter::rulerHeight));
    paintSelection(painter);
    painter.setClipping(false);
    grounds.ruler(painter, m_axis, QRect(0, 0, viewport()->width(), TimelinePainter::rulerHeight), times);
    paintRange(painter);
}

void ActivityView::paintRow(QPainter& painter, const std::vector<double>& times, const TimelinePainter& grounds,
                            std::size_t index)
{
    const Theme& theme = Theme::of(*this);
    const ActivityRows::Row& row = m_rows.rows()[index];
    const int top = yOf(row.top), width = viewport()->width();
    const QRect whole(0, top, width, row.height);
    const auto mark = [&](bool foldable) {
        if (!foldable)
            return;
        painter.setPen(theme.dim);
        painter.setFont(Theme::words(TextSize::Small));
        painter.drawText(QRect(8, top, 14, ActivityRows::groupHeight), Qt::AlignCenter,
                         row.folded ? QStringLiteral("▸") : QStringLiteral("▾"));
    };
    if (row.kind == ActivityRows::Kind::Group) {
        painter.fillRect(whole, theme.control);
        mark(true);
        painter.setPen(theme.text);
        painter.setFont(Theme::words(TextSize::Normal, QFont::DemiBold));
        painter.drawText(whole.adjusted(26, 0, -8, 0), Qt::AlignLeft | Qt::AlignVCenter, row.name);
        return;
    }
    const LaneGround ground{whole, false, std::nullopt, {}};
    grounds.ground(painter, m_axis, ground, times);
    mark(row.kind == ActivityRows::Kind::Lane && row.tracks > 1);
    painter.setPen(theme.text);
    painter.setFont(Theme::words(TextSize::Small));
    const QRect title(26, top, m_axis.left - 34, std::min(row.height, ActivityRows::groupHeight));
    painter.drawText(title, Qt::AlignLeft | Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(row.name, Qt::ElideMiddle, title.width()));
    painter.save();
    painter.setClipRect(QRect(m_axis.left, std::max(top, TimelinePainter::rulerHeight), m_axis.width, row.height));
    if (row.kind == ActivityRows::Kind::Counter)
        this->painter().counter(painter, m_axis, QRect(m_axis.left, top + 2, m_axis.width, row.height - 4),
                                m_trace->counters[row.counter]);
    for (std::size_t t = 0; t < (row.folded ? std::min<std::size_t>(1, row.tracks) : row.tracks); ++t) {
        const int y = top + ActivityRows::laneMargin + static_cast<int>(t) * ActivityRows::trackHeight;
        if (y + ActivityRows::trackHeight >= TimelinePainter::rulerHeight && y < viewport()->height())
            this->painter().track(painter, m_axis, QRect(m_axis.left, y, m_axis.width, ActivityRows::trackHeight - 1),
                                  m_trace->tracks[row.firstTrack + t], grounds.groundRow(m_axis, ground, times),
                                  m_highlight);
    }
    painter.restore();
}

void ActivityView::paintSelection(QPainter& painter)
{
    if (!m_selected)
        return;
    const Theme& theme = Theme::of(*this);
    const QRectF own = rectOf(*m_selected);
    painter.setRenderHint(QPainter::Antialiasing);
    for (const SliceId& other : m_correlated) {
        const QRectF there = rectOf(other);
        if (own.isEmpty() || there.isEmpty())
            continue;
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(theme.selection, 1.5));
        painter.drawRect(there.adjusted(0.5, 0.5, -0.5, -0.5));
        const bool before = there.left() < own.left();
        const QRectF &from = before ? there : own, &to = before ? own : there;
        paintArrow(painter,
                   arrowPath({std::min(from.right(), to.left()), from.center().y()}, {to.left(), to.center().y()}),
                   theme.selection, theme.background);
    }
    painter.setBrush(Qt::NoBrush);
    if (!own.isEmpty()) {
        painter.setPen(QPen(theme.selection, 2));
        painter.drawRect(own.adjusted(-0.5, -0.5, 0.5, 0.5));
    }
}

void ActivityView::paintRange(QPainter& painter)
{
    if (!m_range)
        return;
    const Theme& theme = Theme::of(*this);
    const double left = std::max(double(m_axis.left), m_axis.xOf(double(m_range->first)));
    const double right = std::min(double(m_axis.right()), m_axis.xOf(double(m_range->second)));
    if (right < left)
        return;
    QColor veil = theme.background;
    veil.setAlphaF(0.55f);
    const int top = TimelinePainter::rulerHeight, height = viewport()->height() - top;
    painter.fillRect(QRectF(m_axis.left, top, left - m_axis.left, height), veil);
    painter.fillRect(QRectF(right, top, m_axis.right() - right, height), veil);
    painter.setPen(QPen(theme.accent, 1));
    painter.drawLine(QPointF(left, 0), QPointF(left, viewport()->height()));
    painter.drawLine(QPointF(right, 0), QPointF(right, viewport()->height()));
    const QString text = durationText(m_range->second - m_range->first);
    painter.setFont(Theme::numbers(TextSize::Small, QFont::DemiBold));
    const double width = painter.fontMetrics().horizontalAdvance(text) + 14;
    const QRectF label(std::clamp((left + right - width) / 2, double(m_axis.left), double(m_axis.right()) - width), 2,
                       width, 17);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.accent);
    painter.drawRoundedRect(label, Theme::blockRadius, Theme::blockRadius);
    painter.setPen(theme.onAccent);
    painter.drawText(label, Qt::AlignCenter, text);
}

} // namespace pipewright
