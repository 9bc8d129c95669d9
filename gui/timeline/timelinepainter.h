// SPDX-License-Identifier: GPL-3.0-or-later
// Paints the parts of the timeline into one viewport from geometry that was computed before: ruler, lane
// grounds and headers, blocks, measured blocks with the outline of their prediction. A block is a copy of a
// ready-made picture (BlockSprites) and its letters are laid out once, so a painter is kept from frame to
// frame. Every operation has its own texture besides its colour.
#pragma once

#include "gui/theme.h"
#include "gui/timeline/blocksprites.h"
#include "gui/timeline/lanegeometry.h"

#include <QImage>
#include <QRect>
#include <QString>

#include <functional>

class QPainter;

namespace pipewright {

struct LaneHeader {
    QString name;    ///< "GPU 0"
    QString detail;  ///< "layers 0–7"
    QString memory;  ///< "68.8 / 80 GiB"
    double fill = 0; ///< peak as a share of the limit (or of the largest peak when there is no limit)
    bool over = false; ///< peak above limit
};

/// How a lane stands in the view, as far as its header shows it.
struct LaneStanding {
    bool current = false; ///< keys act on it
    bool pinned = false, folded = false;
};

class TimelinePainter {
public:
    /// `scale`: device pixels per pixel. Keeps a reference to `theme`.
    TimelinePainter(const Theme& theme, double scale);

    static constexpr int rulerHeight = 40;

    /// `times`: ticks(axis), here and for the grounds; found once per paint.
    void ruler(QPainter& painter, const TimeAxis& axis, const QRect& area, const std::vector<double>& times) const;
    /// Lane background, grid lines at the ruler's ticks, the line below.
    void ground(QPainter& painter, const TimeAxis& axis, const QRect& lane, const std::vector<double>& times, bool target) const;
    void header(QPainter& painter, const QRect& area, const LaneHeader& header, const LaneStanding& standing) const;
    /// Returns the number of drawing primitives issued.
    std::int64_t blocks(QPainter& painter, const TimeAxis& axis, const Lane& lane, const LaneGeometry& geometry) const;
    /// Dashed outlines of the individually drawn blocks of a predicted lane.
    void outlines(QPainter& painter, const LaneGeometry& geometry) const;
    /// The red foot below blocks for which `late` holds.
    void feet(QPainter& painter, const Lane& lane, const LaneGeometry& geometry,
              const std::function<bool(const LaneBlock&)>& late) const;
    /// A line above the blocks for which `critical` holds.
    void critical(QPainter& painter, const Lane& lane, const LaneGeometry& geometry,
                  const std::function<bool(const LaneBlock&)>& critical) const;
    void selection(QPainter& painter, const QRectF& rect, const QColor& color) const;
    /// Frames of the blocks that are selected together.
    void group(QPainter& painter, const Lane& lane, const LaneGeometry& geometry,
               const std::function<bool(const LaneBlock&)>& selected) const;
    /// The stretch of a lane in which a held block may be dropped; its ends are marked.
    void room(QPainter& painter, const QRectF& area) const;
    /// One block by itself, as in the lanes; for ghosts and for swatches elsewhere.
    void block(QPainter& painter, const QRectF& rect, const Block& block, int chunk, BlockText text) const;

    /// Ticks of the ruler that are visible, in nanoseconds.
    std::vector<double> ticks(const TimeAxis& axis) const;
    bool isFor(const Theme& theme, double scale) const { return m_sprites.isFor(theme, scale); }

private:
    /// A frame around the two of each overlapped pair.
    void pairFrames(QPainter& painter, const Lane& lane, const LaneGeometry& geometry) const;
    /// What is narrow, merged columns and blocks without a letter, put together as one picture.
    void narrow(QPainter& painter, const Lane& lane, const LaneGeometry& geometry) const;
    static bool isNarrow(const BlockRect& item);
    void ground(QPainter& painter, const QRectF& rect, Op op, int chunk) const;
    bool hasNumber(const QRectF& rect, const Block& block) const;
    void letter(QPainter& painter, const QRectF& rect, const Block& block, BlockText text) const;
    void number(QPainter& painter, const QRectF& rect, const Block& block) const;
    void place(QPainter& painter, const QStaticText& text, QPointF centre) const;

    const Theme& m_theme;
    double m_scale;
    mutable BlockSprites m_sprites; ///< grows as a painter meets new widths and numbers
    mutable QImage m_columns;       ///< room to put what is narrow together
};

/// A label for the time of a tick: one unit for the whole ruler, as many decimals as the step needs.
QString tickLabel(double time, double step, double visibleEnd);

} // namespace pipewright
