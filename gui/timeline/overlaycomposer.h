// SPDX-License-Identifier: GPL-3.0-or-later
// The content of the overlay above the lanes: dependency arrows or the chain that explains idle time, the plan of a
// drop with its explanation, the block at the cursor, and readings. update() collects it from the other parts of the
// view. This class stores the cursor, the crosshair, the time that is pointed at, and the idle time that is explained.
#pragma once

#include "gui/timeline/timelineoverlay.h"
#include "gui/timeline/timelineview.h"

#include <QObject>

namespace pipewright {

class DropSession;
class Readings;
class ShownSchedule;
class TimelineMap;
class TimelineScroll;
struct GestureInHand;

class OverlayComposer : public QObject {
    Q_OBJECT

public:
    struct Sources {
        const Document& document;
        const ShownSchedule& shown;
        const TimelineMap& map;
        const TimelineScroll& scroll;
        const Readings& marks;
        const DropSession& drop;
        const GestureInHand& hand;
    };
    OverlayComposer(QWidget& viewport, Sources sources);

    void update();
    void fit(const QRect& viewport) { m_overlay->setGeometry(viewport); }
    void setFrameTime(const QString& text); ///< debugging; empty: none

    QPoint cursor() const { return m_cursor; }
    void setCursor(QPoint position) { m_cursor = position; }
    void hover(QPoint position); ///< the cursor is over the lanes, and nothing is dragged
    void leave();
    void showCrosshair(bool on);
    QString crosshairText() const;
    void pointAt(std::optional<Nanoseconds> time);
    TimeReadings readings() const;

    /// Shown until the next call; none ends it.
    void explain(std::optional<TimelineView::Reason> reason) { m_reason = std::move(reason); }
    const TimelineView::Reason* reason() const { return m_reason ? &*m_reason : nullptr; }

Q_SIGNALS:
    void readingsChanged();

private:
    void addReason(OverlayContent& content) const;
    void addArrows(OverlayContent& content, const Block& subject) const;
    void addGhost(OverlayContent& content, const Block& block) const;
    void addReadings(OverlayContent& content) const;
    QString busyText(const std::pair<Nanoseconds, Nanoseconds>& range) const;
    void addCrosshair(OverlayContent& content) const;
    QString liveAt(Nanoseconds time, int device) const;

    QWidget& m_viewport;
    const Sources m;
    TimelineOverlay* m_overlay;
    QPoint m_cursor;
    bool m_showsCrosshair = false;
    bool m_isHovering = false;            ///< the cursor is over the viewport
    std::optional<Nanoseconds> m_pointed; ///< the time under the cursor in a chart below
    std::optional<TimelineView::Reason> m_reason;
    TimeReadings m_handedOut;
};

} // namespace pipewright
