// SPDX-License-Identifier: GPL-3.0-or-later
// Composes the blocks of one lane pixel by pixel and hands them to the painter as one opaque picture. A full window has
// thousands of rectangles and letters of a few pixels each. Drawing and blending them by single painter calls costs ten
// times as much as writing their pixels. All textures repeat after the same few rows. These rows are composed once
// across the lane and copied down it. Then the parts that differ between rows are added: rounded corners, merged
// columns and letters. O(pixels of the lane).
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

    /// `lane`: the part of the lane to paint, from top to bottom. `area`: the part of `lane` that holds the blocks.
    /// `ground`: the background colours, one row of widthOf(axis) device pixels that is used for every row. `outlined`:
    /// another geometry whose blocks are drawn as outlines; null for none.
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

    /// Rounds to whole device pixels; halves round up. The small term makes up for rounding errors of summed fractions.
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
    /// A row of the blocks' area.
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
    std::vector<std::uint8_t> m_cornerCoverage;             ///< of the top left corner
    Letters m_letters, m_numbers;

    // State of the lane that is being painted.
    int m_left = 0, m_top = 0, m_width = 0, m_height = 0; ///< the blocks' area in device pixels
    int m_above = 0, m_below = 0;                         ///< rows of ground above it and below
    std::vector<QRgb> m_rows, m_pixels;
};

} // namespace pipewright
