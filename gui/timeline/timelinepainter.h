// SPDX-License-Identifier: GPL-3.0-or-later
// Paints the parts of the timeline into one viewport from geometry that was computed before: ruler, lane grounds and
// headers, blocks, measured blocks with the outline of their prediction. The blocks of a lane are composed into one
// picture (BlockRaster); a single block is drawn from a cached picture (BlockSprites). Both are caches, so a painter is
// kept between frames. Every operation has its own texture besides its colour.
#pragma once

#include "gui/timeline/blockraster.h"
#include "gui/timeline/blocksprites.h"
#include "gui/timeline/lanegeometry.h"
#include "gui/widgets/theme.h"

#include <QPixmap>
#include <QRect>
#include <QString>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

class QPainter;

namespace pipewright {

struct LaneHeader {
    QString name;      ///< "GPU 0"
    QString detail;    ///< "layers 0–7"
    QString memory;    ///< "68.8 / 80 GiB"
    double fill = 0;   ///< peak as a share of the limit (or of the largest peak when there is no limit)
    bool over = false; ///< peak above limit
    bool operator==(const LaneHeader&) const = default;
};

/// How a lane stands in the view, as far as its header shows it.
struct LaneStanding {
    bool current = false; ///< keys act on it
    bool pinned = false, folded = false;
    int memoryAt = 0; ///< below the header's top, where its memory over time begins; 0: it is not shown
    bool operator==(const LaneStanding&) const = default;
};

/// What lies beneath the blocks of a lane.
struct LaneGround {
    QRect lane;
    bool target = false;                           ///< a held block may be dropped anywhere in it …
    std::optional<std::pair<double, double>> room; ///< … or in this stretch, x from and to; its ends are marked
    QRect painted;                                 ///< the part of the lane whose plot is left to blocks(); empty: none
};

class TimelinePainter {
public:
    /// `scale`: device pixels per pixel. Keeps a reference to `theme`.
    TimelinePainter(const Theme& theme, double scale);
    TimelinePainter(const TimelinePainter&) = delete;
    TimelinePainter& operator=(const TimelinePainter&) = delete;

    static constexpr int rulerHeight = 40;

    /// `times`: ticks(axis), here and for the grounds; found once per paint.
    void ruler(QPainter& painter, const TimeAxis& axis, const QRect& area, const std::vector<double>& times) const;
    /// Lane background, grid lines at the ruler's ticks, the line below.
    void ground(QPainter& painter, const TimeAxis& axis, const LaneGround& ground,
                const std::vector<double>& times) const;
    /// One pixel row of a ground, the same at every height of the blocks: opaque, one value per device pixel of the
    /// axis. Valid until the next call.
    /// A device's peak and its limit, beside its memory over time.
    void peakBeside(QPainter& painter, const QRect& area, const LaneHeader& header) const;
    const std::vector<QRgb>& groundRow(const TimeAxis& axis, const LaneGround& ground,
                                       const std::vector<double>& times) const;
    void header(QPainter& painter, const QRect& area, const LaneHeader& header, const LaneStanding& standing) const;
    /// The same on a lane's plain ground; the picture is cached until the header changes.
    void keptHeader(QPainter& painter, std::size_t lane, const QRect& area, const LaneHeader& header,
                    const LaneStanding& standing) const;
    /// The blocks in `area`, and the whole ground.painted below and around them. `outlined`: dashed brackets above and
    /// below the individually drawn blocks of this geometry.
    void blocks(QPainter& painter, const TimeAxis& axis, const LaneGround& ground, const std::vector<double>& times,
                const QRectF& area, const Lane& lane, const LaneGeometry& geometry,
                const LaneGeometry* outlined = nullptr) const;
    /// Dashes above and below the individually drawn blocks of a predicted lane, over the present pixels.
    void outlines(QPainter& painter, const LaneGeometry& geometry) const;
    /// Sums of gradients, in the same place as blocks.
    void gradientSums(QPainter& painter, const TimeAxis& axis, const QRectF& area, const Lane& lane) const;
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
    /// One block by itself, as in the lanes; for ghosts and for swatches elsewhere.
    void block(QPainter& painter, const QRectF& rect, const Block& block, int chunk, BlockLabel label) const;

    bool isFor(const Theme& theme, double scale) const { return m_sprites.isFor(theme, scale); }

private:
    /// A frame around the two of each overlapped pair.
    void pairFrames(QPainter& painter, const Lane& lane, const LaneGeometry& geometry) const;
    void fill(QPainter& painter, const QRectF& rect, Op op, int chunk) const;
    bool hasNumber(const QRectF& rect, const Block& block) const;
    void letter(QPainter& painter, const QRectF& rect, const Block& block, BlockLabel label) const;
    void number(QPainter& painter, const QRectF& rect, const Block& block) const;
    void place(QPainter& painter, const QStaticText& text, QPointF centre) const;
    void drawRuler(QPainter& painter, const TimeAxis& axis, const QRect& area, const std::vector<double>& times) const;

    const Theme& m_theme;
    double m_scale;
    mutable BlockSprites m_sprites; ///< grows with new widths and numbers
    mutable BlockRaster m_raster;
    /// The last ground row with its inputs; most lanes of a window share one.
    struct GroundRow {
        TimeAxis axis;
        LaneGround ground; ///< its lane does not matter
        std::vector<double> times;
        std::vector<QRgb> pixels;
    };
    mutable GroundRow m_groundRow;
    struct KeptHeader {
        LaneHeader header;
        LaneStanding standing;
        QPixmap picture;
    };
    mutable std::vector<KeptHeader> m_headers; ///< by lane
    struct KeptRuler {
        TimeAxis axis;
        std::vector<double> times;
        QPixmap picture;
    };
    mutable KeptRuler m_ruler;
};

/// Ticks of the ruler that are visible, in nanoseconds.
std::vector<double> rulerTicks(const TimeAxis& axis);
/// A label for the time of a tick: one unit for the whole ruler, as many decimals as the step needs.
QString tickLabel(double time, double step, double visibleEnd);

} // namespace pipewright
