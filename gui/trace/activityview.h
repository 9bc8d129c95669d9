// SPDX-License-Identifier: GPL-3.0-or-later
// View of an imported trace: lanes of devices, streams and threads under a time ruler. Zoom, pan and keys as in the
// timeline; a click selects a slice, arrows are drawn from a launch to its kernel and along the trace's flows, a drag
// over the ruler measures a range. The trace is shared and read-only.
#pragma once

#include "gui/trace/activitypainter.h"
#include "gui/trace/activityrows.h"

#include <QAbstractScrollArea>

#include <memory>
#include <optional>

namespace pipewright {

struct SliceId {
    std::size_t track = 0, slice = 0;
    bool operator==(const SliceId&) const = default;
};

class ActivityView : public QAbstractScrollArea {
    Q_OBJECT

public:
    explicit ActivityView(QWidget* parent = nullptr);
    ~ActivityView() override;

    void setTrace(std::shared_ptr<const StoredActivities> trace);
    const StoredActivities* trace() const { return m_trace.get(); } ///< never null; empty before one is set
    std::shared_ptr<const StoredActivities> sharedTrace() const { return m_trace; } ///< for work on other threads
    const ActivityRows& rows() const { return m_rows; }
    const TimeAxis& axis() const { return m_axis; }
    Nanoseconds total() const { return m_total; }

    void showAll();
    void showRange(Nanoseconds from, Nanoseconds to);
    void zoomBy(double factor, double anchorX);
    void panBy(double pixels);
    void toggleRow(std::size_t row);         ///< folds or unfolds
    void revealDevice(int rank, int device); ///< scrolls its lanes into view

    std::optional<SliceId> selection() const { return m_selected; }
    void select(std::optional<SliceId> slice, bool reveal = false);
    void selectNeighbour(int direction);   ///< the next or previous slice of the track
    void followCorrelation(int direction); ///< from a launch to its kernel or along a flow (1), or back (-1)
    /// Selects the next (or previous) slice in time, from the selection on, whose name contains the text; false: none.
    bool find(const QString& text, int direction);
    /// Slices with other names are pale; empty: none are.
    void highlight(const QString& text);

    /// The measured range; nullopt: the visible range is used.
    std::optional<std::pair<Nanoseconds, Nanoseconds>> range() const { return m_range; }
    void setRange(std::optional<std::pair<Nanoseconds, Nanoseconds>> range);
    std::pair<Nanoseconds, Nanoseconds> window() const; ///< the visible range

    std::optional<SliceId> sliceAt(QPoint position) const; ///< in viewport coordinates
    QRectF rectOf(SliceId slice) const;                    ///< in viewport coordinates; empty when folded
    QString describe(SliceId slice) const;                 ///< "sgemm, kernel, 4.2 ms from 12 ms on, stream 7 of GPU 0"

    QSize sizeHint() const override { return {1000, 600}; }

Q_SIGNALS:
    void selectionChanged();
    void windowChanged(); ///< the visible or the measured range
    void hovered(const QString& text);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void scrollContentsBy(int dx, int dy) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool viewportEvent(QEvent* event) override;

private:
    int yOf(int contentY) const;
    int contentY(int y) const;
    void setAxis(TimeAxis axis);
    void updateScroll();
    void reveal(SliceId slice);
    std::vector<SliceId> correlated(SliceId slice) const; ///< by a launch or by a flow
    void addJoined(SliceId slice, std::vector<SliceId>& found) const;
    std::optional<SliceId> innermost(std::uint32_t lane, Nanoseconds time) const;
    std::vector<bool> namesWith(const QString& text) const;
    const ActivityPainter& painter();
    void paintRow(QPainter& painter, const std::vector<double>& times, const class TimelinePainter& grounds,
                  std::size_t row);
    void paintSelection(QPainter& painter);
    void paintRange(QPainter& painter);

    std::shared_ptr<const StoredActivities> m_trace;
    ActivityRows m_rows;
    std::unique_ptr<ActivityPainter> m_painter;
    std::unique_ptr<class TimelinePainter> m_grounds; ///< for the look and scale of the last paint
    Nanoseconds m_total = 0;
    TimeAxis m_axis;
    std::optional<SliceId> m_selected;
    std::vector<SliceId> m_correlated; ///< of the selection
    std::vector<bool> m_highlight;     ///< by name
    std::optional<std::pair<Nanoseconds, Nanoseconds>> m_range;
    enum class Press { None, Pan, Range } m_press = Press::None;
    QPoint m_pressedAt;
    TimeAxis m_pressedAxis;
    int m_pressedScroll = 0;
    bool m_moved = false;
};

} // namespace pipewright
