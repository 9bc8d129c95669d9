// SPDX-License-Identifier: GPL-3.0-or-later
// Slices of an ActivityView: hit testing, selection, correlation and search.
#include "gui/timeline/timelinepainter.h"
#include "gui/trace/activityview.h"
#include "gui/widgets/words.h"

#include <QScrollBar>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace pipewright {

std::optional<SliceId> ActivityView::sliceAt(QPoint position) const
{
    if (position.x() < m_axis.left || position.y() < TimelinePainter::rulerHeight)
        return std::nullopt;
    const auto index = m_rows.trackAt(contentY(position.y()));
    if (!index)
        return std::nullopt;
    const Track& track = m_trace->tracks[*index];
    // The longest slice in the pixel, else within 1.5 pixels beside it, for thin slices.
    for (const double reach : {0.5, 2.0}) {
        const auto from = static_cast<Nanoseconds>(std::floor(m_axis.timeAt(position.x() + 0.5 - reach)));
        const auto to = static_cast<Nanoseconds>(std::ceil(m_axis.timeAt(position.x() + 0.5 + reach)));
        std::vector<VisibleSlice> inside;
        findVisible(track, from, std::max(to, from + 1), 1, inside);
        const auto duration = [&](const VisibleSlice& one) { return track.end[one.slice] - track.start[one.slice]; };
        const auto longest =
            std::max_element(inside.begin(), inside.end(),
                             [&](const VisibleSlice& a, const VisibleSlice& b) { return duration(a) < duration(b); });
        if (longest != inside.end())
            return SliceId{*index, longest->slice};
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
    QString text = tr("%1, %2, %3 from %4 on")
                       .arg(QString::fromStdString(m_trace->strings[track.name[slice.slice]]), QString::fromUtf8(kind),
                            durationText(duration), durationText(start));
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
    const int rank = m_trace->lanes[own.lane].rank;
    for (std::size_t t = 0; wanted != 0 && t < m_trace->tracks.size(); ++t) {
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
    addJoined(slice, found);
    return found;
}

std::optional<SliceId> ActivityView::innermost(std::uint32_t lane, Nanoseconds time) const
{
    const auto below = [](const Track& track, std::uint32_t wanted) { return track.lane < wanted; };
    const auto first = std::lower_bound(m_trace->tracks.begin(), m_trace->tracks.end(), lane, below);
    std::optional<SliceId> found;
    for (auto track = first; track != m_trace->tracks.end() && track->lane == lane; ++track) {
        const auto next = std::upper_bound(track->start.begin(), track->start.end(), time);
        if (next == track->start.begin())
            continue;
        const auto slice = static_cast<std::size_t>(next - track->start.begin()) - 1;
        if (time <= track->end[slice])
            found = SliceId{static_cast<std::size_t>(track - m_trace->tracks.begin()), slice};
    }
    return found;
}

/// Each end of a flow belongs to the innermost slice at its time.
void ActivityView::addJoined(SliceId slice, std::vector<SliceId>& found) const
{
    const Track& own = m_trace->tracks[slice.track];
    const Nanoseconds start = own.start[slice.slice], end = own.end[slice.slice];
    const auto join = [&](std::uint32_t lane, Nanoseconds time, std::uint32_t otherLane, Nanoseconds otherTime) {
        if (lane != own.lane || time < start || time > end || innermost(lane, time) != slice)
            return;
        if (const auto other = innermost(otherLane, otherTime);
            other && *other != slice && std::find(found.begin(), found.end(), *other) == found.end())
            found.push_back(*other);
    };
    for (const TraceFlow& flow : m_trace->flows) {
        join(flow.fromLane, flow.from, flow.toLane, flow.to);
        join(flow.toLane, flow.to, flow.fromLane, flow.from);
    }
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
    // By start, track and place: a total order that visits every slice once, those without a length too.
    const auto keyOf = [&](SliceId s) { return std::tuple(m_trace->tracks[s.track].start[s.slice], s.track, s.slice); };
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
        const std::size_t middle = (direction > 0 ? std::lower_bound(track.start.begin(), track.start.end(), from)
                                                  : std::upper_bound(track.start.begin(), track.start.end(), from))
                                   - track.start.begin();
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

} // namespace pipewright
