// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/activityview.h"

#include "gui/panels/words.h"
#include "gui/timeline/timelinepainter.h"

#include <QEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int headerWidth = 200;
constexpr int margin = 12;

} // namespace

ActivityView::ActivityView(QWidget* parent)
    : QAbstractScrollArea(parent), m_trace(std::make_shared<const StoredActivities>()), m_rows(*m_trace)
{
    setFrameShape(QFrame::NoFrame);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Lanes of the trace"));
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    viewport()->setMouseTracking(true);
}

ActivityView::~ActivityView() = default;

void ActivityView::setTrace(std::shared_ptr<const StoredActivities> trace)
{
    m_trace = std::move(trace);
    m_rows = ActivityRows(*m_trace);
    m_painter.reset();
    m_selected.reset();
    m_correlated.clear();
    m_highlight.clear();
    m_range.reset();
    m_total = 1;
    for (const Track& track : m_trace->tracks)
        if (track.size() > 0)
            m_total = std::max(m_total, track.end.back());
    for (const TraceCounter& counter : m_trace->counters)
        if (!counter.time.empty())
            m_total = std::max(m_total, counter.time.back());
    updateScroll();
    verticalScrollBar()->setValue(0);
    showAll();
    Q_EMIT selectionChanged();
}

int ActivityView::yOf(int contentY) const
{
    return contentY + TimelinePainter::rulerHeight - verticalScrollBar()->value();
}

int ActivityView::contentY(int y) const
{
    return y - TimelinePainter::rulerHeight + verticalScrollBar()->value();
}

void ActivityView::updateScroll()
{
    const int page = std::max(1, viewport()->height() - TimelinePainter::rulerHeight);
    verticalScrollBar()->setRange(0, std::max(0, m_rows.height() - page));
    verticalScrollBar()->setPageStep(page);
    verticalScrollBar()->setSingleStep(ActivityRows::trackHeight);
}

void ActivityView::setAxis(TimeAxis axis)
{
    axis.left = headerWidth;
    axis.width = std::max(1, viewport()->width() - headerWidth);
    axis = clamped(axis, double(m_total), margin);
    if (axis == m_axis)
        return;
    m_axis = axis;
    viewport()->update();
    Q_EMIT windowChanged();
}

void ActivityView::showAll()
{
    showRange(0, m_total);
}

void ActivityView::showRange(Nanoseconds from, Nanoseconds to)
{
    TimeAxis axis = m_axis;
    axis.left = headerWidth;
    axis.width = std::max(1, viewport()->width() - headerWidth);
    setAxis(fitted(axis, double(from), double(to), margin));
}

void ActivityView::zoomBy(double factor, double anchorX)
{
    setAxis(zoomed(m_axis, factor, std::max(anchorX, double(m_axis.left))));
}

void ActivityView::panBy(double pixels)
{
    setAxis(panned(m_axis, pixels));
}

void ActivityView::toggleRow(std::size_t row)
{
    m_rows.toggle(row);
    updateScroll();
    viewport()->update();
}

void ActivityView::revealDevice(int rank, int device)
{
    for (const ActivityRows::Row& row : m_rows.rows()) {
        if (row.kind != ActivityRows::Kind::Lane || row.tracks == 0)
            continue;
        const TraceLane& lane = m_trace->lanes[m_trace->tracks[row.firstTrack].lane];
        if (lane.rank == rank && lane.device == device) {
            verticalScrollBar()->setValue(m_rows.rows()[row.group].top);
            return;
        }
    }
}

std::pair<Nanoseconds, Nanoseconds> ActivityView::window() const
{
    return {static_cast<Nanoseconds>(std::max(0.0, m_axis.start)),
            static_cast<Nanoseconds>(std::min(double(m_total), m_axis.end()))};
}

void ActivityView::setRange(std::optional<std::pair<Nanoseconds, Nanoseconds>> range)
{
    if (range && range->first > range->second)
        std::swap(range->first, range->second);
    if (range && range->first == range->second)
        range.reset();
    m_range = range;
    viewport()->update();
    Q_EMIT windowChanged();
}

// --- slices ---------------------------------------------------------------------------------------------------

std::optional<SliceId> ActivityView::sliceAt(QPoint position) const
{
    if (position.x() < m_axis.left || position.y() < TimelinePainter::rulerHeight)
        return std::nullopt;
    const auto index = m_rows.trackAt(contentY(position.y()));
    if (!index)
        return std::nullopt;
    const Track& track = m_trace->tracks[*index];
    // What the pixel shows: its longest slice, with a pixel of mercy for the thin ones.
    for (const double reach : {0.5, 2.0}) {
        const auto from = static_cast<Nanoseconds>(std::floor(m_axis.timeAt(position.x() + 0.5 - reach)));
        const auto to = static_cast<Nanoseconds>(std::ceil(m_axis.timeAt(position.x() + 0.5 + reach)));
        const auto first =
            static_cast<std::size_t>(std::upper_bound(track.end.begin(), track.end.end(), from) - track.end.begin());
        const auto last = static_cast<std::size_t>(std::lower_bound(track.start.begin(), track.start.end(), to)
                                                   - track.start.begin());
        if (first < last)
            return SliceId{*index, track.longest(first, last)};
    }
    return std::nullopt;
}

QRectF ActivityView::rectOf(SliceId slice) const
{
    const auto top = m_rows.topOf(slice.track);
    if (!top)
        return {};
    const Track& track = m_trace->tracks[slice.track];
    const double scale = devicePixelRatioF();
    const auto [first, last] = columns(m_axis, double(track.start[slice.slice]), double(track.end[slice.slice]), scale);
    return {first / scale, double(yOf(*top)), (last - first) / scale, ActivityRows::trackHeight - 1.0};
}

QString ActivityView::describe(SliceId slice) const
{
    const Track& track = m_trace->tracks[slice.track];
    const Nanoseconds start = track.start[slice.slice], duration = track.end[slice.slice] - start;
    const auto row = m_rows.rowOf(slice.track);
    const std::string_view kind = nameOf(track.kind[slice.slice]);
    QString text =
        tr("%1, %2, %3 from %4 on")
            .arg(QString::fromStdString(m_trace->strings[track.name[slice.slice]]),
                 QString::fromUtf8(kind.data(), int(kind.size())), durationText(duration), durationText(start));
    if (row)
        text += tr(", %1 of %2").arg(m_rows.rows()[*row].name, m_rows.rows()[m_rows.rows()[*row].group].name);
    return text;
}

void ActivityView::select(std::optional<SliceId> slice, bool revealIt)
{
    m_selected = slice;
    m_correlated = slice ? correlated(*slice) : std::vector<SliceId>{};
    if (slice && revealIt)
        reveal(*slice);
    setAccessibleDescription(slice ? describe(*slice) : QString());
    viewport()->update();
    Q_EMIT selectionChanged();
}

void ActivityView::reveal(SliceId slice)
{
    const Track& track = m_trace->tracks[slice.track];
    if (const auto row = m_rows.rowOf(slice.track)) {
        const std::size_t group = m_rows.rows()[*row].group;
        if (m_rows.rows()[group].folded)
            m_rows.toggle(group);
        if (m_rows.rows()[*row].folded && slice.track != m_rows.rows()[*row].firstTrack)
            m_rows.toggle(*row);
        updateScroll();
    }
    const auto start = double(track.start[slice.slice]), end = double(track.end[slice.slice]);
    if (end < m_axis.start || start > m_axis.end() || (end - start) / m_axis.nsPerPixel > 2 * m_axis.width) {
        TimeAxis axis = m_axis;
        axis.start = (start + end) / 2 - axis.width * axis.nsPerPixel / 2;
        setAxis((end - start) / axis.nsPerPixel > axis.width ? fitted(axis, start, end, axis.width / 4) : axis);
    }
    if (const auto top = m_rows.topOf(slice.track)) {
        const int y = yOf(*top);
        if (y < TimelinePainter::rulerHeight || y + ActivityRows::trackHeight > viewport()->height())
            verticalScrollBar()->setValue(*top - (viewport()->height() - TimelinePainter::rulerHeight) / 3);
    }
}

void ActivityView::selectNeighbour(int direction)
{
    if (!m_selected)
        return;
    const auto count = m_trace->tracks[m_selected->track].size();
    const std::size_t next = m_selected->slice + static_cast<std::size_t>(direction);
    if (next < count) // -1 wraps around to a large number
        select(SliceId{m_selected->track, next}, true);
}

std::vector<SliceId> ActivityView::correlated(SliceId slice) const
{
    const Track& own = m_trace->tracks[slice.track];
    const std::uint32_t wanted = own.correlation.empty() ? 0 : own.correlation[slice.slice];
    std::vector<SliceId> found;
    if (wanted == 0)
        return found;
    const int rank = m_trace->lanes[own.lane].rank;
    for (std::size_t t = 0; t < m_trace->tracks.size(); ++t) {
        const Track& track = m_trace->tracks[t];
        if (m_trace->lanes[track.lane].rank != rank)
            continue;
        for (auto it = std::find(track.correlation.begin(), track.correlation.end(), wanted);
             it != track.correlation.end(); it = std::find(it + 1, track.correlation.end(), wanted)) {
            const SliceId other{t, static_cast<std::size_t>(it - track.correlation.begin())};
            if (!(other == slice))
                found.push_back(other);
        }
    }
    return found;
}

void ActivityView::followCorrelation(int direction)
{
    if (!m_selected)
        return;
    const Nanoseconds here = m_trace->tracks[m_selected->track].start[m_selected->slice];
    for (const SliceId& other : m_correlated) {
        const Nanoseconds there = m_trace->tracks[other.track].start[other.slice];
        if (direction > 0 ? there >= here : there <= here)
            return select(other, true);
    }
}

std::vector<bool> ActivityView::namesWith(const QString& text) const
{
    std::vector<bool> named(m_trace->strings.size());
    for (std::size_t i = 0; i < named.size(); ++i)
        named[i] = QString::fromStdString(m_trace->strings[i]).contains(text, Qt::CaseInsensitive);
    return named;
}

void ActivityView::highlight(const QString& text)
{
    m_highlight = text.isEmpty() ? std::vector<bool>{} : namesWith(text);
    viewport()->update();
}

bool ActivityView::find(const QString& text, int direction)
{
    if (text.isEmpty())
        return false;
    const std::vector<bool> named = namesWith(text);
    // By start, then track: every one comes once on the way through.
    const auto keyOf = [&](SliceId s) { return std::pair(m_trace->tracks[s.track].start[s.slice], s.track); };
    std::optional<SliceId> best;
    for (std::size_t t = 0; t < m_trace->tracks.size(); ++t) {
        const Track& track = m_trace->tracks[t];
        const auto matches = [&](std::size_t i) {
            const SliceId candidate{t, i};
            if (!named[track.name[i]] || (m_selected && candidate == *m_selected))
                return false;
            return !m_selected
                   || (direction > 0 ? keyOf(candidate) > keyOf(*m_selected) : keyOf(candidate) < keyOf(*m_selected));
        };
        const Nanoseconds from = m_selected      ? m_trace->tracks[m_selected->track].start[m_selected->slice]
                                 : direction > 0 ? 0
                                                 : m_total;
        const auto middle =
            static_cast<std::size_t>((direction > 0 ? std::lower_bound(track.start.begin(), track.start.end(), from)
                                                    : std::upper_bound(track.start.begin(), track.start.end(), from))
                                     - track.start.begin());
        std::optional<SliceId> own;
        if (direction > 0) {
            for (std::size_t i = middle; i < track.size() && !own; ++i)
                if (matches(i))
                    own = SliceId{t, i};
        } else {
            for (std::size_t i = middle; i-- > 0 && !own;)
                if (matches(i))
                    own = SliceId{t, i};
        }
        if (own && (!best || (direction > 0 ? keyOf(*own) < keyOf(*best) : keyOf(*own) > keyOf(*best))))
            best = own;
    }
    if (best)
        select(best, true);
    return best.has_value();
}

// --- events ---------------------------------------------------------------------------------------------------

void ActivityView::resizeEvent(QResizeEvent* event)
{
    QAbstractScrollArea::resizeEvent(event);
    const bool whole = m_axis.start <= 0 && m_axis.end() >= double(m_total);
    updateScroll();
    whole ? showAll() : setAxis(m_axis);
}

void ActivityView::scrollContentsBy(int, int)
{
    viewport()->update();
}

void ActivityView::changeEvent(QEvent* event)
{
    QAbstractScrollArea::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        viewport()->update();
}

void ActivityView::wheelEvent(QWheelEvent* event)
{
    const QPoint angle = event->angleDelta();
    const double notches = (angle.y() != 0 ? angle.y() : angle.x()) / 120.0;
    event->accept();
    if (event->modifiers() & Qt::ControlModifier)
        zoomBy(std::pow(1.25, notches), event->position().x());
    else if (event->modifiers() & Qt::ShiftModifier || angle.y() == 0)
        panBy(-notches * 90);
    else
        verticalScrollBar()->setValue(verticalScrollBar()->value() - static_cast<int>(std::lround(notches * 54)));
}

void ActivityView::mousePressEvent(QMouseEvent* event)
{
    m_pressedAt = event->pos();
    m_pressedAxis = m_axis;
    m_pressedScroll = verticalScrollBar()->value();
    m_moved = false;
    const bool ruler = event->pos().y() < TimelinePainter::rulerHeight && event->pos().x() >= m_axis.left;
    m_press = event->button() == Qt::MiddleButton               ? Press::Pan
              : event->button() != Qt::LeftButton               ? Press::None
              : ruler || event->modifiers() & Qt::ShiftModifier ? Press::Range
                                                                : Press::Pan;
    if (event->button() == Qt::LeftButton && event->pos().x() < m_axis.left && !ruler)
        if (const auto row = m_rows.at(contentY(event->pos().y()));
            row && event->pos().y() >= TimelinePainter::rulerHeight) {
            m_press = Press::None;
            toggleRow(*row);
        }
}

void ActivityView::mouseMoveEvent(QMouseEvent* event)
{
    if (m_press == Press::None) {
        const auto slice = sliceAt(event->pos());
        Q_EMIT hovered(slice ? describe(*slice) : QString());
        return;
    }
    m_moved = m_moved || (event->pos() - m_pressedAt).manhattanLength() > 4;
    if (!m_moved)
        return;
    if (m_press == Press::Range) {
        const auto timeAt = [&](int x) {
            return static_cast<Nanoseconds>(std::clamp(m_axis.timeAt(x), 0.0, double(m_total)));
        };
        setRange({{timeAt(m_pressedAt.x()), timeAt(event->pos().x())}});
    } else {
        setAxis(panned(m_pressedAxis, m_pressedAt.x() - event->pos().x()));
        verticalScrollBar()->setValue(m_pressedScroll + m_pressedAt.y() - event->pos().y());
    }
}

void ActivityView::mouseReleaseEvent(QMouseEvent* event)
{
    if (event->button() == Qt::LeftButton && !m_moved && m_press == Press::Pan)
        select(sliceAt(event->pos()));
    else if (event->button() == Qt::LeftButton && !m_moved && m_press == Press::Range)
        setRange(std::nullopt);
    m_press = Press::None;
}

void ActivityView::mouseDoubleClickEvent(QMouseEvent* event)
{
    const auto slice = sliceAt(event->pos());
    if (!slice)
        return;
    select(slice);
    const Track& track = m_trace->tracks[slice->track];
    const Nanoseconds start = track.start[slice->slice], end = track.end[slice->slice], room = (end - start) / 4;
    showRange(std::max<Nanoseconds>(0, start - room), end + room);
}

void ActivityView::keyPressEvent(QKeyEvent* event)
{
    const double middle = m_axis.left + m_axis.width / 2.0;
    const auto selected = [&] { return m_selected ? &m_trace->tracks[m_selected->track] : nullptr; };
    switch (event->key()) {
    case Qt::Key_W:
    case Qt::Key_Plus: return zoomBy(1.25, middle);
    case Qt::Key_S:
    case Qt::Key_Minus: return zoomBy(0.8, middle);
    case Qt::Key_A: return panBy(-0.1 * m_axis.width);
    case Qt::Key_D: return panBy(0.1 * m_axis.width);
    case Qt::Key_Left:
    case Qt::Key_Comma: return selectNeighbour(-1);
    case Qt::Key_Right:
    case Qt::Key_Period: return selectNeighbour(1);
    case Qt::Key_BracketLeft: return followCorrelation(-1);
    case Qt::Key_BracketRight: return followCorrelation(1);
    case Qt::Key_Home:
    case Qt::Key_0: return showAll();
    case Qt::Key_F:
        if (const Track* track = selected())
            showRange(track->start[m_selected->slice], track->end[m_selected->slice]);
        else if (m_range)
            showRange(m_range->first, m_range->second);
        return;
    case Qt::Key_R:
        if (const Track* track = selected())
            return setRange({{track->start[m_selected->slice], track->end[m_selected->slice]}});
        return setRange(std::nullopt);
    case Qt::Key_Escape:
        if (m_range)
            return setRange(std::nullopt);
        if (m_selected)
            return select(std::nullopt);
        break;
    default: break;
    }
    QAbstractScrollArea::keyPressEvent(event);
}

bool ActivityView::viewportEvent(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        if (const auto slice = sliceAt(help->pos()))
            QToolTip::showText(help->globalPos(), describe(*slice), viewport());
        else
            QToolTip::hideText();
        return true;
    }
    if (event->type() == QEvent::Leave)
        Q_EMIT hovered({});
    return QAbstractScrollArea::viewportEvent(event);
}

} // namespace pipewright
