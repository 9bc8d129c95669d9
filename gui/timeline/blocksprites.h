// SPDX-License-Identifier: GPL-3.0-or-later
// Single blocks as ready-made pictures, and the textures and fonts of all. Filling a rounded rectangle twice, with a
// colour and with a texture, and laying out its letters costs microseconds; copying the result costs a tenth of that,
// and a grid of blocks has few different widths. A picture is made when it is first asked for and kept as long as all
// of them together stay small. Whatever else is to tell blocks apart becomes part of the key in here.
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
    /// From a block's middle to that of its letter above or number below.
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
    /// How an operation looks besides its colour; null where plain. All that there are repeat after as many pixels as
    /// idleTexture(), either way.
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
