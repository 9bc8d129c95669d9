// SPDX-License-Identifier: GPL-3.0-or-later
// The whole schedule as a strip above the timeline, with a frame around what the timeline shows. The frame
// is dragged to pan, its edges to zoom; a press beside it moves it there, a double click shows everything, and a drag
// with Shift measures a range. With the keyboard focus, actions() do the same by key (a range: R in the timeline). Its
// height grows with the devices, so that each has a row (overviewrows.h). The picture is painted once per design and
// size, so the cost of moving the frame does not depend on the number of blocks.
#pragma once

#include "gui/timeline/overviewrows.h"
#include "gui/timeline/timelineview.h"

#include <QPixmap>
#include <QTimer>
#include <QWidget>

namespace pipewright {

class Minimap : public QWidget {
    Q_OBJECT

public:
    explicit Minimap(TimelineView& timeline, QWidget* parent = nullptr);
    QRect frame() const;                   ///< around what the timeline shows, in this widget's coordinates
    static constexpr int stripHeight = 34; ///< at least; it grows with the devices
    static constexpr int mostRows = 64;
    OverviewRows rows() const;

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    enum class Grip { None, Frame, Left, Right, Range };
    void fitHeight();
    Nanoseconds timeAt(double x) const; ///< within the schedule
    TimeAxis stripAxis() const;
    Grip gripAt(int x) const;
    void addActions();
    void pan(double share);                  ///< by so much of what is shown
    void beginAt(double time);               ///< moves the frame: its left edge to `time`, clamped
    void moveEdge(Grip side, double time);   ///< one edge of the frame to a time, the other stays
    void nudgeEdge(Grip side, double share); ///< by so much of what is shown
    void describe();                         ///< what is shown, for assistive technology
    void drop();                             ///< discards the picture; the next paint makes it anew
    void render();

    TimelineView& m_timeline;
    QPixmap m_picture;
    QTimer m_later; ///< runs until the picture shows the latest preview
    Grip m_grip = Grip::None;
    double m_offset = 0;    ///< pixels from the frame's left edge to the press
    Nanoseconds m_from = 0; ///< of Grip::Range
};

} // namespace pipewright
