// SPDX-License-Identifier: GPL-3.0-or-later
// The blocks of one lane, put together pixel by pixel and handed to the painter as one opaque picture. A window full
// of blocks is thousands of rectangles and letters a few pixels large; the calls that draw and blend them one by one
// cost ten times what their pixels do. Every texture repeats after the same few rows, so those rows are composed once
// across the lane and copied down it; then come what differs by row: rounded corners, merged columns and letters.
// The work is bounded by the pixels of the lane, with one pass of copies over them.
#pragma once

#include "gui/timeline/blocksprites.h"
#include "gui/timeline/lanegeometry.h"
#include "gui/widgets/theme.h"

#include <QHash>
#include <QImage>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

class QPainter;

namespace pipewright {

class BlockRaster {
public:
    /// `scale`: device pixels per pixel. Keeps references to `theme` and `sprites`.
    BlockRaster(const Theme& theme, const BlockSprites& sprites, double scale);

    /// `lane`: the part of the lane to paint, from top to bottom; `area`: where in it the blocks stand; `ground`: its
    /// colours beneath them, one row that holds for all, widthOf(axis) device pixels; `outlined`: of which the blocks
    /// are outlined besides, null for none.
    void paint(QPainter& painter, const TimeAxis& axis, const QRectF& lane, const QRectF& area,
               std::span<const QRgb> ground, const Lane& blocks, const LaneGeometry& geometry,
               const LaneGeometry* outlined = nullptr);
    int widthOf(const TimeAxis& axis) const;

private:
    /// Rows of one colour and texture, `period` high and a multiple of it wide.
    using Pattern = std::vector<QRgb>;
    /// How much ink covers each pixel of a letter, without its empty edges.
    struct Glyph {
        int x = 0, y = 0, width = 0, height = 0; ///< device pixels from the pen and from the line's top
        double advance = 0;                      ///< pixels
        std::vector<std::uint8_t> coverage;
    };
    struct Letters {
        QFont font;
        double height = 0; ///< of a line, in pixels
        QHash<char, Glyph> glyphs;
    };
    const Pattern& pattern(Op op, int chunk);
    const Glyph& glyph(Letters& letters, char character);
    double widthOf(Letters& letters, std::string_view text);

    /// Device pixels, whole: the nearest, and of two as near the greater, whatever a sum of fractions has lost.
    int device(double value) const
    {
        const double near = value * m_scale + 0.5 + 1e-6;
        const int towardsZero = static_cast<int>(near);
        return towardsZero - (near < towardsZero ? 1 : 0);
    }
    void composeRows(const TimeAxis& axis, std::span<const QRgb> ground, const Lane& lane,
                     const LaneGeometry& geometry);
    void roundCorners(const BlockRect& item, std::span<const QRgb> ground);
    void mergedColumns(const LaneGeometry& geometry);
    void label(const BlockRect& item, const LaneBlock& block);
    void outline(const QRectF& rect, int origin);
    void write(Letters& letters, std::string_view text, QPointF centre);
    /// Of the blocks' area.
    QRgb* row(int y)
    {
        return m_pixels.data() + static_cast<std::size_t>(y + m_above) * static_cast<std::size_t>(m_width);
    }

    const Theme& m_theme;
    const BlockSprites& m_sprites;
    double m_scale;
    int m_period; ///< device pixels after which every texture repeats, either way
    int m_patternWidth;
    std::array<std::array<Pattern, 2>, opCount> m_patterns; ///< by operation and shade, made when first met
    std::vector<QRgb> m_idle;                               ///< period x period, mostly transparent, premultiplied
    int m_corner;                                           ///< device pixels of a corner's square
    std::vector<std::uint8_t> m_cornerCoverage;             ///< of the top left one
    Letters m_letters, m_numbers;

    // Of the lane that is being painted.
    int m_left = 0, m_top = 0, m_width = 0, m_height = 0; ///< the blocks' area in device pixels
    int m_above = 0, m_below = 0;                         ///< rows of ground above it and below
    std::vector<QRgb> m_rows, m_pixels;
};

} // namespace pipewright
