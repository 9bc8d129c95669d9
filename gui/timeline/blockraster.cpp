// SPDX-License-Identifier: GPL-3.0-or-later
// Composes the repeating rows of a lane once (ground, blocks, idle hatch), copies them down, and then draws corners,
// merged columns, letters and outlines into the pixels. O(pixels of the lane); letters come from a cache of rendered
// glyphs.
#include "gui/timeline/blockraster.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace pipewright {
namespace {

constexpr double roundedFromWidth = 7; // narrower blocks keep square corners
constexpr double outlinedFromWidth = 6;

/// `over`, of that coverage of 255, on `under`; both opaque. Two channels at a time.
QRgb blended(QRgb under, QRgb over, unsigned coverage)
{
    const unsigned rest = 255 - coverage;
    const auto shared = [](unsigned sum) { return (sum + ((sum >> 8) & 0xff00ffu)) >> 8 & 0xff00ffu; };
    const unsigned redBlue = shared((over & 0xff00ffu) * coverage + (under & 0xff00ffu) * rest + 0x800080u);
    const unsigned green = shared((over >> 8 & 0xffu) * coverage + (under >> 8 & 0xffu) * rest + 0x80u);
    return 0xff000000u | redBlue | green << 8;
}

/// A premultiplied pixel on an opaque one.
QRgb onGround(QRgb under, QRgb over)
{
    const int rest = 255 - qAlpha(over);
    const auto channel = [rest](int above, int below) { return above + (below * rest + 127) / 255; };
    return qRgb(channel(qRed(over), qRed(under)), channel(qGreen(over), qGreen(under)),
                channel(qBlue(over), qBlue(under)));
}

std::vector<QRgb> pixelsOf(const QPixmap& pixmap)
{
    const QImage image = pixmap.toImage().convertToFormat(QImage::Format_ARGB32_Premultiplied);
    std::vector<QRgb> pixels;
    for (int y = 0; y < image.height(); ++y) {
        const auto* line = reinterpret_cast<const QRgb*>(image.constScanLine(y));
        pixels.insert(pixels.end(), line, line + image.width());
    }
    return pixels;
}

} // namespace

BlockRaster::BlockRaster(const Theme& theme, const BlockSprites& sprites, double scale)
    : m_theme(theme), m_sprites(sprites), m_scale(scale), m_period(sprites.idleTexture().width()),
      m_patternWidth(m_period * (1 + 256 / m_period)), m_idle(pixelsOf(sprites.idleTexture())),
      m_corner(static_cast<int>(std::ceil(Theme::blockRadius * scale))),
      m_letters{sprites.letterFont(), QFontMetricsF(sprites.letterFont()).height(), {}},
      m_numbers{sprites.numberFont(), QFontMetricsF(sprites.numberFont()).height(), {}}
{
    QImage block(4 * m_corner, 4 * m_corner, QImage::Format_ARGB32_Premultiplied);
    block.fill(Qt::transparent);
    block.setDevicePixelRatio(scale);
    QPainter painter(&block);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(Qt::black);
    const double side = 4 * m_corner / scale;
    painter.drawRoundedRect(QRectF(0, 0, side, side), Theme::blockRadius, Theme::blockRadius);
    painter.end();
    for (int y = 0; y < m_corner; ++y)
        for (int x = 0; x < m_corner; ++x)
            m_cornerCoverage.push_back(static_cast<std::uint8_t>(qAlpha(block.pixel(x, y))));
}

int BlockRaster::widthOf(const TimeAxis& axis) const
{
    return std::max(0, device(axis.right()) - device(axis.left));
}

const BlockRaster::Pattern& BlockRaster::pattern(Op op, int chunk)
{
    Pattern& pattern = m_patterns[indexOf(op)][chunk % 2];
    if (!pattern.empty())
        return pattern;
    QImage image(m_patternWidth, m_period, QImage::Format_ARGB32_Premultiplied);
    image.fill(m_theme.fill(op, chunk));
    if (const QPixmap& texture = m_sprites.textureOf(op); !texture.isNull()) {
        QPixmap plain = texture; // pixel by pixel
        plain.setDevicePixelRatio(1);
        QPainter(&image).fillRect(image.rect(), QBrush(plain));
    }
    for (int y = 0; y < m_period; ++y) {
        const auto* line = reinterpret_cast<const QRgb*>(image.constScanLine(y));
        pattern.insert(pattern.end(), line, line + m_patternWidth);
    }
    return pattern;
}

const BlockRaster::Glyph& BlockRaster::glyph(Letters& letters, char character)
{
    if (const auto it = letters.glyphs.constFind(character); it != letters.glyphs.constEnd())
        return *it;
    const QString text(QLatin1Char{character});
    const QFontMetricsF metrics(letters.font);
    Glyph glyph;
    glyph.advance = metrics.horizontalAdvance(text);
    constexpr int beside = 2; // a letter may reach over its own width
    QImage image(device(glyph.advance) + 2 * beside + 1, device(letters.height) + 1,
                 QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::transparent);
    image.setDevicePixelRatio(m_scale);
    QPainter painter(&image);
    painter.setFont(letters.font);
    painter.setPen(Qt::black);
    painter.drawText(QPointF(beside / m_scale, std::round(metrics.ascent() * m_scale) / m_scale), text);
    painter.end();
    QRect inked;
    for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x)
            if (qAlpha(image.pixel(x, y)) > 0)
                inked |= QRect(x, y, 1, 1);
    glyph.x = inked.left() - beside;
    glyph.y = inked.top();
    glyph.width = inked.width();
    glyph.height = inked.height();
    for (int y = 0; y < glyph.height; ++y)
        for (int x = 0; x < glyph.width; ++x)
            glyph.coverage.push_back(static_cast<std::uint8_t>(qAlpha(image.pixel(inked.left() + x, inked.top() + y))));
    return *letters.glyphs.insert(character, glyph);
}

double BlockRaster::widthOf(Letters& letters, std::string_view text)
{
    double width = 0;
    for (const char character : text)
        width += glyph(letters, character).advance;
    return width;
}

void BlockRaster::paint(QPainter& painter, const TimeAxis& axis, const QRectF& lane, const QRectF& area,
                        std::span<const QRgb> ground, const Lane& blocks, const LaneGeometry& geometry,
                        const LaneGeometry* outlined)
{
    m_left = device(axis.left);
    m_top = device(area.top());
    m_width = static_cast<int>(ground.size());
    m_height = device(area.bottom()) - m_top;
    if (m_width <= 0 || m_height <= 0)
        return;
    m_above = std::max(0, m_top - device(lane.top()));
    m_below = std::max(0, device(lane.bottom()) - m_top - m_height);
    const int rows = m_above + m_height + m_below;
    composeRows(axis, ground, blocks, geometry);
    m_pixels.resize(static_cast<std::size_t>(m_width) * static_cast<std::size_t>(rows));
    for (int y = -m_above; y < m_height + m_below; ++y)
        if (y < 0 || y >= m_height)
            std::copy(ground.begin(), ground.end(), row(y));
    for (int y = 0; y < m_height; ++y)
        std::copy_n(m_rows.data() + static_cast<std::size_t>(y % m_period) * ground.size(), m_width, row(y));
    mergedColumns(geometry);
    for (const BlockRect& item : geometry.blocks) {
        roundCorners(item, ground);
        label(item, blocks.blocks()[item.index]);
    }
    if (outlined)
        for (const BlockRect& item : outlined->blocks)
            if (item.rect.width() >= outlinedFromWidth)
                outline(item.rect, columns(axis, 0, 0, m_scale).first - m_left);
    QImage picture(reinterpret_cast<const uchar*>(m_pixels.data()), m_width, rows,
                   m_width * static_cast<int>(sizeof(QRgb)), QImage::Format_RGB32);
    picture.setDevicePixelRatio(m_scale);
    painter.drawImage(QPointF(m_left, m_top - m_above) / m_scale, picture);
}

void BlockRaster::composeRows(const TimeAxis& axis, std::span<const QRgb> ground, const Lane& lane,
                              const LaneGeometry& geometry)
{
    m_rows.resize(ground.size() * static_cast<std::size_t>(m_period));
    const auto period = static_cast<std::size_t>(m_period), width = static_cast<std::size_t>(m_patternWidth);
    // [from, to) of a rectangle within the lane, and how much of it lies left of that.
    struct Extent {
        int from, to, hidden;
    };
    const auto extentOf = [this](const QRectF& rect) {
        const int from = device(rect.left()) - m_left, to = device(rect.right()) - m_left;
        return Extent{std::max(0, from), std::min(m_width, to), std::max(0, -from)};
    };
    // The hatch belongs to the content: it moves with it.
    const int origin = columns(axis, 0, 0, m_scale).first - m_left;
    for (std::size_t y = 0; y < period; ++y) {
        QRgb* const line = m_rows.data() + y * ground.size();
        std::copy(ground.begin(), ground.end(), line);
        for (const QRectF& rect : geometry.idle) {
            const Extent extent = extentOf(rect);
            int column = ((extent.from - origin) % m_period + m_period) % m_period;
            for (int x = extent.from; x < extent.to; ++x, column = column + 1 == m_period ? 0 : column + 1)
                line[x] = onGround(line[x], m_idle[y * period + static_cast<std::size_t>(column)]);
        }
    }
    for (const BlockRect& item : geometry.blocks) {
        const LaneBlock& block = lane.blocks()[item.index];
        const auto fill = [&](const QRectF& rect, const Pattern& pattern) {
            const Extent extent = extentOf(rect);
            for (std::size_t y = 0; y < period; ++y) {
                QRgb* const line = m_rows.data() + y * ground.size();
                std::size_t phase = extent.hidden % m_period;
                for (int x = extent.from; x < extent.to; phase = 0) {
                    const int count = std::min(extent.to - x, static_cast<int>(width - phase));
                    std::copy_n(pattern.data() + y * width + phase, count, line + x);
                    x += count;
                }
            }
        };
        fill(item.rect, pattern(block.block.op, block.chunk));
        if (block.recomputes > 0) { // what is made again comes first, as an R block would
            QRectF again = item.rect;
            again.setWidth(again.width() * block.recomputes / 255);
            fill(again, pattern(Op::R, block.chunk));
        }
    }
}

void BlockRaster::roundCorners(const BlockRect& item, std::span<const QRgb> ground)
{
    if (item.rect.width() < roundedFromWidth || m_height < 2 * m_corner)
        return;
    const int left = device(item.rect.left()) - m_left, right = device(item.rect.right()) - m_left - 1;
    for (int y = 0; y < m_corner; ++y)
        for (int x = 0; x < m_corner; ++x) {
            const unsigned coverage = m_cornerCoverage[y * m_corner + x];
            if (coverage == 255)
                continue;
            for (const int column : {left + x, right - x}) {
                if (column < 0 || column >= m_width)
                    continue;
                for (QRgb* const line : {row(y), row(m_height - 1 - y)})
                    line[column] = blended(ground[column], line[column], coverage);
            }
        }
}

void BlockRaster::mergedColumns(const LaneGeometry& geometry)
{
    for (std::size_t op = 0; op < geometry.merged.size(); ++op) {
        const QRgb colour = m_theme.fills[op].rgb();
        for (const QRectF& rect : geometry.merged[op]) {
            const int left = std::max(0, device(rect.left()) - m_left),
                      right = std::min(m_width, device(rect.right()) - m_left);
            const int bottom = std::min(m_height, device(rect.bottom()) - m_top);
            if (left >= right)
                continue;
            const int top = std::max(0, device(rect.top()) - m_top);
            QRgb* pixel = row(top) + left;
            for (int y = top; y < bottom; ++y, pixel += m_width)
                for (int x = 0; x < right - left; ++x)
                    pixel[x] = colour;
        }
    }
}

void BlockRaster::label(const BlockRect& item, const LaneBlock& block)
{
    if (item.label == BlockLabel::None)
        return;
    // In the middle of what is seen of the block.
    const double left = m_left / m_scale, right = (m_left + m_width) / m_scale;
    const QRectF seen(QPointF(std::max(item.rect.left(), left), item.rect.top()),
                      QPointF(std::min(item.rect.right(), right), item.rect.bottom()));
    std::array<char, 32> text;
    char* end = text.data();
    const auto put = [&](char each) {
        if (end != text.data() + text.size()) // there is room; GCC cannot know
            *end++ = each;
    };
    const auto write = [&](int value) { end = std::to_chars(end, text.data() + text.size(), value).ptr; };
    const auto written = [&] { return std::string_view(text.data(), static_cast<std::size_t>(end - text.data())); };
    const auto fits = [&](Letters& letters, std::string_view words) {
        return widthOf(letters, words) <= seen.width() - 2;
    };
    const bool pass = isPass(block.block.op);
    put(letter(block.block.op));
    if (item.label == BlockLabel::Name) { // as blockText() writes it
        write(block.block.stage);
        if (pass) {
            put('.');
            write(block.block.microbatch);
        }
        if (!fits(m_letters, written()))
            end = text.data() + 1;
    } else if (item.label == BlockLabel::LetterStageAndNumber) {
        write(block.block.stage);
    }
    if (!fits(m_letters, written()))
        return;
    const std::size_t letters = written().size();
    if (item.label >= BlockLabel::LetterAndNumber && pass)
        write(block.block.microbatch);
    std::string_view number = written().substr(letters);
    if (!fits(m_numbers, number))
        number = {};
    const QPointF centre = seen.center();
    const double apart = BlockSprites::halfLineOf(seen.height());
    if (!number.empty())
        this->write(m_numbers, number, centre + QPointF(0, apart));
    this->write(m_letters, written().substr(0, letters), centre - QPointF(0, number.empty() ? 0 : apart));
}

void BlockRaster::outline(const QRectF& rect, int origin)
{
    // Dashed brackets above and below, so that they are seen around a block in the same place and never cross a letter.
    constexpr int dash = 3, gap = 2;
    constexpr unsigned strength = 153; // of 255
    const QRgb colour = m_theme.text.rgb();
    const int thickness = std::max(1, static_cast<int>(m_scale)), period = (dash + gap) * thickness;
    const auto mark = [&](int x, int y) {
        if (x >= 0 && x < m_width && y >= -m_above && y < m_height + m_below)
            row(y)[x] = blended(row(y)[x], colour, strength);
    };
    const auto isOn = [&](int at) { return (at % period + period) % period < dash * thickness; };
    const int left = device(rect.left()) - m_left, right = device(rect.right()) - m_left;
    const int top = std::max(-m_above, device(rect.top()) - m_top - 4 * thickness);
    const int bottom = std::min(m_height + m_below, device(rect.bottom()) - m_top + 4 * thickness);
    const int foot = 3 * thickness; // the ends of a bracket point to the block, and stop outside it
    for (int x = std::max(0, left); x < std::min(m_width, right); ++x)
        for (int i = 0; i < thickness && isOn(x - origin); ++i) {
            mark(x, top + i);
            mark(x, bottom - 1 - i);
        }
    for (int y = thickness; y < foot; ++y)
        for (int i = 0; i < thickness; ++i)
            for (const int x : {left + i, right - 1 - i}) {
                mark(x, top + y);
                mark(x, bottom - 1 - y);
            }
}

void BlockRaster::write(Letters& letters, std::string_view text, QPointF centre)
{
    const QRgb ink = m_theme.ink.rgb();
    const double start = centre.x() - widthOf(letters, text) / 2;
    const int top = device(centre.y() - letters.height / 2) - m_top;
    double passed = 0;
    const int first = device(start) - m_left;
    for (const char character : text) {
        const Glyph& glyph = this->glyph(letters, character);
        const int left = first + device(passed) + glyph.x;
        passed += glyph.advance;
        const int from = std::max(0, -left), to = std::min(glyph.width, m_width - left);
        const int last = std::min(glyph.height, m_height - top - glyph.y);
        for (int y = std::max(0, -(top + glyph.y)); y < last; ++y) {
            const std::uint8_t* coverage = glyph.coverage.data() + y * glyph.width;
            QRgb* const line = row(top + glyph.y + y) + left;
            for (int x = from; x < to; ++x)
                if (coverage[x] > 0)
                    line[x] = blended(line[x], ink, coverage[x]);
        }
    }
}

} // namespace pipewright
