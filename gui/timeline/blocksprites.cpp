// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/blocksprites.h"

#include <QPainter>
#include <QPen>

#include <cmath>

namespace pipewright {
namespace {

constexpr double spriteRoundedFromWidth = 7; // as in BlockRaster: narrower blocks keep square corners
constexpr std::int64_t mostBytes = 32 << 20;
constexpr qsizetype mostTexts = 20'000;
constexpr int textureSize = 8; // pixels; the same for all, see textureOf()

template<typename Draw>
QPixmap tile(int size, double scale, Draw draw)
{
    QPixmap pixmap(static_cast<int>(std::lround(size * scale)), static_cast<int>(std::lround(size * scale)));
    pixmap.setDevicePixelRatio(scale);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    painter.setRenderHint(QPainter::Antialiasing);
    draw(painter);
    return pixmap;
}

// Lines at 45 degrees that continue across tile borders.
QPixmap hatch(int size, double scale, const QColor& color, double width, bool rising, bool falling)
{
    return tile(size, scale, [&](QPainter& painter) {
        painter.setPen(QPen(color, width, Qt::SolidLine, Qt::FlatCap));
        for (const int offset : {-size, 0, size}) {
            if (rising)
                painter.drawLine(QPointF(offset - 1.0, size + 1.0), QPointF(offset + size + 1.0, -1.0));
            if (falling)
                painter.drawLine(QPointF(offset - 1.0, -1.0), QPointF(offset + size + 1.0, size + 1.0));
        }
    });
}

} // namespace

BlockSprites::BlockSprites(const Theme& theme, double scale)
    : m_theme(theme), m_scale(scale), m_letterFont(Theme::words(TextSize::Normal, QFont::Bold)),
      m_numberFont(Theme::words(TextSize::Normal))
{
    m_idle = hatch(textureSize, scale, theme.idle, 1.4, false, true);
    m_diagonal = hatch(textureSize, scale, theme.texture, 1.8, true, false);
    m_cross = hatch(textureSize, scale, theme.texture, 1.3, true, true);
    m_dots = tile(textureSize, scale, [&theme](QPainter& painter) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.texture);
        painter.drawEllipse(QPointF(2.5, 2.5), 1.3, 1.3);
    });
}

const QPixmap& BlockSprites::textureOf(Op op) const
{
    switch (op) {
    case Op::I: return m_diagonal;
    case Op::W: return m_dots;
    case Op::B: return m_cross;
    case Op::F:
    case Op::U:
    case Op::R: break;
    }
    return m_plain;
}

const QPixmap& BlockSprites::block(Op op, int chunk, QSize size)
{
    const int shade = chunk % 2; // as Theme::fill tells chunks apart
    const std::uint64_t key = static_cast<std::uint64_t>(size.width()) << 32
                              | static_cast<std::uint64_t>(size.height()) << 8 | static_cast<std::uint64_t>(shade) << 7
                              | static_cast<std::uint64_t>(op);
    if (const auto it = m_blocks.find(key); it != m_blocks.end())
        return *it;
    if (m_bytes > mostBytes) {
        m_blocks.clear();
        m_bytes = 0;
    }
    QPixmap pixmap(size);
    pixmap.setDevicePixelRatio(m_scale);
    pixmap.fill(Qt::transparent);
    {
        QPainter painter(&pixmap);
        const QRectF rect(0, 0, size.width() / m_scale, size.height() / m_scale);
        const bool rounded = rect.width() >= spriteRoundedFromWidth;
        painter.setRenderHint(QPainter::Antialiasing, rounded);
        painter.setPen(Qt::NoPen);
        const auto fill = [&](const QBrush& brush) {
            painter.setBrush(brush);
            if (rounded)
                painter.drawRoundedRect(rect, Theme::blockRadius, Theme::blockRadius);
            else
                painter.fillRect(rect, brush);
        };
        fill(m_theme.fill(op, shade));
        if (const QPixmap& texture = textureOf(op); !texture.isNull())
            fill(QBrush(texture));
    }
    m_bytes += std::int64_t{4} * size.width() * size.height();
    return *m_blocks.insert(key, pixmap);
}

const QStaticText& BlockSprites::text(std::uint64_t key, const QString& words, const QFont& font)
{
    if (const auto it = m_texts.constFind(key); it != m_texts.constEnd())
        return *it;
    if (m_texts.size() > mostTexts)
        m_texts.clear();
    QStaticText text(words);
    text.setTextFormat(Qt::PlainText);
    text.setPerformanceHint(QStaticText::AggressiveCaching);
    text.prepare(QTransform::fromScale(m_scale, m_scale), font);
    return *m_texts.insert(key, text);
}

const QStaticText& BlockSprites::letter(Op op, int stage)
{
    QString words(QLatin1Char(pipewright::letter(op)));
    if (stage >= 0)
        words += QString::number(stage);
    return text(std::uint64_t{1} << 63 | static_cast<std::uint64_t>(op) << 32 | static_cast<std::uint32_t>(stage + 1),
                words, m_letterFont);
}

const QStaticText& BlockSprites::number(int microbatch)
{
    return text(static_cast<std::uint32_t>(microbatch), QString::number(microbatch), m_numberFont);
}

} // namespace pipewright
