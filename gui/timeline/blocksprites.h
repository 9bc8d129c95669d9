// SPDX-License-Identifier: GPL-3.0-or-later
// A cache of pictures of single blocks, and the textures and fonts of all blocks. Filling a rounded rectangle twice
// (colour and texture) and laying out its letters takes microseconds; copying a picture takes a tenth of that, and
// blocks have few different widths. A picture is made at its first use and kept while all pictures together stay small.
// A new visual difference between blocks must become part of the cache key here.
#pragma once

#include "gui/widgets/theme.h"

#include <QFont>
#include <QHash>
#include <QPixmap>
#include <QStaticText>

#include <algorithm>
#include <cstdint>

namespace pipewright {

class BlockSprites {
public:
    /// Distance from a block's middle to the middle of the letter above it or of the number below it.
    static double halfLineOf(double height) { return std::min(8.5, height / 4); }

    /// `scale`: device pixels per pixel. Keeps a reference to `theme`.
    BlockSprites(const Theme& theme, double scale);

    bool isFor(const Theme& theme, double scale) const { return &m_theme == &theme && m_scale == scale; }
    /// A block's ground of `size` device pixels: colour, texture, and rounded corners where there is room.
    /// Valid until the next call.
    const QPixmap& block(Op op, int chunk, QSize size);
    /// "F", or with a stage "F4"; `stage` -1 for the letter alone. Valid until the next call.
    const QStaticText& letter(Op op, int stage);
    const QStaticText& number(int microbatch);
    const QFont& letterFont() const { return m_letterFont; }
    const QFont& numberFont() const { return m_numberFont; }
    const QPixmap& idleTexture() const { return m_idle; }
    /// The texture of an operation; null for a plain colour. All textures repeat after the same number of pixels as
    /// idleTexture(), in both directions.
    const QPixmap& textureOf(Op op) const;

private:
    const QStaticText& text(std::uint64_t key, const QString& words, const QFont& font);

    const Theme& m_theme;
    double m_scale;
    QFont m_letterFont, m_numberFont;
    QPixmap m_plain, m_idle, m_diagonal, m_dots, m_cross;
    QHash<std::uint64_t, QPixmap> m_blocks;
    std::int64_t m_bytes = 0; ///< of m_blocks
    QHash<std::uint64_t, QStaticText> m_texts;
};

} // namespace pipewright
