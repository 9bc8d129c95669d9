// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/timelinepainter.h"

#include <QFontMetricsF>
#include <QLocale>
#include <QPainter>
#include <QPen>
#include <QPolygonF>
#include <QStaticText>

#include <cmath>

namespace pipewright {
namespace {

constexpr double halfLine = 8.5; // from a block's middle to the middle of its letter above and number below

QColor faded(QColor color, double alpha)
{
    color.setAlphaF(static_cast<float>(color.alphaF() * alpha));
    return color;
}

} // namespace

QString tickLabel(double time, double step, double visibleEnd)
{
    struct Unit {
        double size;
        const char* name;
    };
    static constexpr Unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};
    const Unit* unit = &units[3];
    for (const Unit& candidate : units) {
        if (std::max(visibleEnd, step) >= candidate.size) {
            unit = &candidate;
            break;
        }
    }
    const int decimals = std::clamp(static_cast<int>(std::ceil(std::log10(unit->size / step) - 1e-9)), 0, 9);
    return QLocale::c().toString(time / unit->size, 'f', decimals) + QLatin1Char(' ') + QString::fromUtf8(unit->name);
}

TimelinePainter::TimelinePainter(const Theme& theme, double scale) : m_theme(theme), m_scale(scale), m_sprites(theme, scale) {}

std::vector<double> TimelinePainter::ticks(const TimeAxis& axis) const
{
    // Labels must not touch: the last one is the longest.
    const double least = tickStep(axis, 62);
    const double labelWidth = QFontMetricsF(Theme::words(TextSize::Small)).horizontalAdvance(tickLabel(axis.end(), least, axis.end()));
    const double step = tickStep(axis, std::max(62.0, labelWidth + 20));
    std::vector<double> result;
    for (double time = std::ceil(std::max(0.0, axis.start) / step - 1e-9) * step; time <= axis.end(); time += step)
        result.push_back(time);
    return result;
}

void TimelinePainter::ruler(QPainter& painter, const TimeAxis& axis, const QRect& area, const std::vector<double>& times) const
{
    painter.fillRect(area, m_theme.background);
    painter.setFont(Theme::words(TextSize::Small));
    const double step = times.size() > 1 ? times[1] - times[0] : tickStep(axis, 62);
    const QFontMetricsF metrics(painter.font());
    for (const double time : times) {
        const double x = columns(axis, time, time, m_scale).first / m_scale;
        const QString label = tickLabel(time, step, axis.end());
        const double width = metrics.horizontalAdvance(label);
        painter.fillRect(QRectF(x, area.bottom() - 7, 1, 8), m_theme.dim);
        painter.setPen(m_theme.dim);
        // At the right edge a label stands beside its tick rather than be cut.
        painter.drawText(QPointF(std::min(x - width / 2, area.right() - width - 2), area.bottom() - 14), label);
    }
    painter.fillRect(QRect(area.left(), area.bottom(), area.width(), 1), m_theme.hairline);
}

void TimelinePainter::ground(QPainter& painter, const TimeAxis& axis, const QRect& lane, const std::vector<double>& times,
                             bool target) const
{
    painter.fillRect(lane, m_theme.lane);
    if (target)
        painter.fillRect(lane, faded(m_theme.accent, 0.10));
    for (const double time : times) {
        const double x = columns(axis, time, time, m_scale).first / m_scale;
        painter.fillRect(QRectF(x, lane.top(), 1 / m_scale, lane.height()), faded(m_theme.hairline, 0.7));
    }
    painter.fillRect(QRect(lane.left(), lane.bottom(), lane.width(), 1), m_theme.hairline);
}

void TimelinePainter::header(QPainter& painter, const QRect& area, const LaneHeader& header, const LaneStanding& standing) const
{
    // Four lines when there is room, name and memory bar when there is not, and at last the name alone.
    constexpr int indent = 18;
    const int width = area.width() - indent - 14;
    const bool roomy = area.height() >= 60, nameOnly = area.height() < 38;
    const int top = area.top() + (area.height() - (roomy ? 58 : nameOnly ? 16 : 26)) / 2;
    if (standing.current)
        painter.fillRect(QRect(area.left(), area.top(), 3, area.height()), m_theme.accent);
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(m_theme.dim);
    const double middle = top + 8.5;
    if (standing.pinned) { // a drawing pin: head, shaft
        const double x = area.right() - 9;
        painter.drawEllipse(QPointF(x, middle - 2), 3, 3);
        painter.drawRect(QRectF(x - 0.75, middle, 1.5, 6));
    }
    if (standing.folded) // a triangle that points to what is folded away
        painter.drawPolygon(QPolygonF({{area.left() + 7.0, middle - 3.5}, {area.left() + 12.0, middle}, {area.left() + 7.0, middle + 3.5}}));
    painter.restore();

    painter.setFont(Theme::words(nameOnly ? TextSize::Small : TextSize::Large, QFont::DemiBold));
    painter.setPen(standing.folded ? m_theme.dim : m_theme.text);
    painter.drawText(QRect(area.left() + indent, top, width, 16), Qt::AlignLeft | Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(header.name, Qt::ElideRight, width));
    if (nameOnly)
        return;
    int barTop = top + 20;
    if (roomy) {
        painter.setFont(Theme::words(TextSize::Small));
        painter.setPen(m_theme.dim);
        painter.drawText(QRect(area.left() + indent, top + 17, width, 15), Qt::AlignLeft | Qt::AlignVCenter,
                         painter.fontMetrics().elidedText(header.detail, Qt::ElideRight, width));
        barTop = top + 36;
    }
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setPen(Qt::NoPen);
    const QRectF bar(area.left() + indent, barTop, width, 5);
    painter.setBrush(m_theme.isDark ? m_theme.control : m_theme.hairline);
    painter.drawRoundedRect(bar, 2.5, 2.5);
    const double filled = std::clamp(header.fill, 0.0, 1.0) * bar.width();
    if (filled >= 1) {
        painter.setBrush(header.over ? m_theme.bad : m_theme.accent);
        painter.drawRoundedRect(QRectF(bar.left(), bar.top(), std::max(filled, 5.0), bar.height()), 2.5, 2.5);
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
    if (roomy) {
        QFont font = Theme::numbers(TextSize::Small);
        const QFontMetrics metrics(font);
        // Two sizes of 11 px figures do not always fit beside the bar's width; a little tighter they do.
        if (metrics.horizontalAdvance(header.memory) > width)
            font.setPixelSize(10);
        painter.setFont(font);
        painter.setPen(header.over ? m_theme.bad : m_theme.dim);
        painter.drawText(QRect(area.left() + indent, top + 43, area.width() - indent, 15),
                         Qt::AlignLeft | Qt::AlignVCenter, header.memory);
    }
}

std::int64_t TimelinePainter::blocks(QPainter& painter, const TimeAxis& axis, const Lane& lane,
                                     const LaneGeometry& geometry) const
{
    painter.save();
    // The hatch belongs to the content: it moves with it.
    painter.setBrushOrigin(QPointF(columns(axis, 0, 0, m_scale).first / m_scale, 0));
    const QBrush idle(m_sprites.idleTexture());
    for (const QRectF& rect : geometry.idle)
        painter.fillRect(rect, idle);
    narrow(painter, lane, geometry);
    for (const BlockRect& item : geometry.blocks) {
        if (isNarrow(item))
            continue;
        const LaneBlock& block = lane.blocks()[item.index];
        ground(painter, item.rect, block.block.op, block.chunk);
    }
    // One font after the other: changing it costs more than a letter.
    painter.setPen(m_theme.ink);
    painter.setFont(m_sprites.letterFont());
    for (const BlockRect& item : geometry.blocks)
        if (item.text != BlockText::None)
            letter(painter, item.rect, lane.blocks()[item.index].block, item.text);
    painter.setFont(m_sprites.numberFont());
    for (const BlockRect& item : geometry.blocks)
        if (item.text >= BlockText::LetterAndNumber)
            number(painter, item.rect, lane.blocks()[item.index].block);
    pairFrames(painter, lane, geometry);
    painter.restore();
    return geometry.primitives();
}

void TimelinePainter::pairFrames(QPainter& painter, const Lane& lane, const LaneGeometry& geometry) const
{
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(m_theme.text, 1));
    for (std::size_t i = 0; i + 1 < geometry.blocks.size(); ++i) {
        const BlockRect &first = geometry.blocks[i], &second = geometry.blocks[i + 1];
        if (lane.blocks()[first.index].pair != LaneBlock::Pair::First || second.index != first.index + 1)
            continue;
        const QRectF both = first.rect | second.rect;
        if (both.width() >= 8)
            painter.drawRoundedRect(both.adjusted(0.5, -1.5, -0.5, 1.5), 3, 3);
    }
}

bool TimelinePainter::isNarrow(const BlockRect& item)
{
    return item.text == BlockText::None && item.rect.width() < 12;
}

void TimelinePainter::narrow(QPainter& painter, const Lane& lane, const LaneGeometry& geometry) const
{
    // Tens of thousands of rectangles and blocks, each a few pixels wide: written into a picture of the lane and
    // copied at once, they cost less than the calls to draw them one by one.
    QRectF covered;
    for (const std::vector<QRectF>& rects : geometry.merged)
        for (const QRectF& rect : rects)
            covered |= rect;
    for (const BlockRect& item : geometry.blocks)
        if (isNarrow(item))
            covered |= item.rect;
    if (covered.isEmpty())
        return;
    const auto device = [this](double value) { return static_cast<int>(std::lround(value * m_scale)); };
    const QPoint origin(device(covered.left()), device(covered.top()));
    const QSize size(device(covered.right()) - origin.x(), device(covered.bottom()) - origin.y());
    if (m_columns.width() < size.width() || m_columns.height() < size.height())
        m_columns = QImage(size.expandedTo(m_columns.size()), QImage::Format_ARGB32_Premultiplied);
    m_columns.setDevicePixelRatio(1);
    for (int y = 0; y < size.height(); ++y)
        std::fill_n(reinterpret_cast<QRgb*>(m_columns.scanLine(y)), size.width(), 0u);
    QRgb* pixels = reinterpret_cast<QRgb*>(m_columns.bits());
    const auto pitch = m_columns.bytesPerLine() / static_cast<qsizetype>(sizeof(QRgb));
    for (std::size_t op = 0; op < geometry.merged.size(); ++op) {
        const QRgb colour = m_theme.fills[op].rgb();
        for (const QRectF& rect : geometry.merged[op]) {
            const int left = device(rect.left()) - origin.x(), width = device(rect.right()) - origin.x() - left;
            const int bottom = device(rect.bottom()) - origin.y();
            for (int y = device(rect.top()) - origin.y(); y < bottom; ++y)
                std::fill_n(pixels + y * pitch + left, width, colour);
        }
    }
    for (const BlockRect& item : geometry.blocks) {
        if (!isNarrow(item))
            continue;
        const LaneBlock& block = lane.blocks()[item.index];
        const QPoint at(device(item.rect.left()) - origin.x(), device(item.rect.top()) - origin.y());
        const QSize own(device(item.rect.width()), device(item.rect.height()));
        // Rounding may give its picture a pixel more than there is room.
        const int width = std::min(own.width(), size.width() - at.x()),
                  height = std::min(own.height(), size.height() - at.y());
        const QImage& sprite = m_sprites.pixels(block.block.op, block.chunk, own);
        const uchar* from = sprite.constBits();
        for (int y = 0; y < height; ++y, from += sprite.bytesPerLine())
            std::copy_n(reinterpret_cast<const QRgb*>(from), width, pixels + (at.y() + y) * pitch + at.x());
    }
    m_columns.setDevicePixelRatio(m_scale);
    painter.drawImage(QRectF(covered.topLeft(), QSizeF(size) / m_scale), m_columns, QRectF(QPointF(0, 0), QSizeF(size)));
}

void TimelinePainter::ground(QPainter& painter, const QRectF& rect, Op op, int chunk) const
{
    // A picture wider than the window would be copied for the little of it that is seen.
    constexpr double widestPicture = 600;
    if (rect.width() <= widestPicture) {
        const QSize size(static_cast<int>(std::lround(rect.width() * m_scale)), static_cast<int>(std::lround(rect.height() * m_scale)));
        painter.drawPixmap(rect.topLeft(), m_sprites.block(op, chunk, size));
        return;
    }
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrushOrigin(rect.topLeft());
    painter.setPen(Qt::NoPen);
    painter.setBrush(m_theme.fill(op, chunk));
    painter.drawRoundedRect(rect, Theme::blockRadius, Theme::blockRadius);
    if (const QPixmap& texture = m_sprites.textureOf(op); !texture.isNull()) {
        painter.setBrush(QBrush(texture));
        painter.drawRoundedRect(rect, Theme::blockRadius, Theme::blockRadius);
    }
    painter.restore();
}

bool TimelinePainter::hasNumber(const QRectF& rect, const Block& block) const
{
    return block.op != Op::U && m_sprites.number(block.microbatch).size().width() <= rect.width() - 2;
}

void TimelinePainter::letter(QPainter& painter, const QRectF& rect, const Block& block, BlockText text) const
{
    const bool above = text >= BlockText::LetterAndNumber && hasNumber(rect, block);
    const QStaticText& words = m_sprites.letter(block.op, text == BlockText::LetterStageAndNumber ? block.stage : -1);
    place(painter, words, QPointF(rect.center().x(), rect.center().y() - (above ? halfLine : 0)));
}

void TimelinePainter::number(QPainter& painter, const QRectF& rect, const Block& block) const
{
    if (hasNumber(rect, block))
        place(painter, m_sprites.number(block.microbatch), QPointF(rect.center().x(), rect.center().y() + halfLine));
}

void TimelinePainter::place(QPainter& painter, const QStaticText& text, QPointF centre) const
{
    // On whole device pixels, or every position would be rendered anew.
    const QSizeF size = text.size();
    const auto whole = [this](double value) { return std::round(value * m_scale) / m_scale; };
    painter.drawStaticText(QPointF(whole(centre.x() - size.width() / 2), whole(centre.y() - size.height() / 2)), text);
}

void TimelinePainter::block(QPainter& painter, const QRectF& rect, const Block& block, int chunk, BlockText text) const
{
    ground(painter, rect, block.op, chunk);
    painter.setPen(m_theme.ink);
    if (text == BlockText::None)
        return;
    painter.setFont(m_sprites.letterFont());
    letter(painter, rect, block, text);
    painter.setFont(m_sprites.numberFont());
    if (text >= BlockText::LetterAndNumber)
        number(painter, rect, block);
}

void TimelinePainter::outlines(QPainter& painter, const LaneGeometry& geometry) const
{
    QPen pen(faded(m_theme.text, 0.6), 1);
    pen.setDashPattern({3, 2});
    painter.setPen(pen);
    painter.setBrush(Qt::NoBrush);
    for (const BlockRect& item : geometry.blocks) {
        if (item.rect.width() >= 6)
            painter.drawRect(item.rect.adjusted(0.5, -2.5, -0.5, 1.5));
    }
}

void TimelinePainter::feet(QPainter& painter, const Lane& lane, const LaneGeometry& geometry,
                           const std::function<bool(const LaneBlock&)>& late) const
{
    for (const BlockRect& item : geometry.blocks) {
        if (late(lane.blocks()[item.index]))
            painter.fillRect(QRectF(item.rect.left(), item.rect.bottom() - 4, item.rect.width(), 4), m_theme.bad);
    }
}

void TimelinePainter::critical(QPainter& painter, const Lane& lane, const LaneGeometry& geometry,
                               const std::function<bool(const LaneBlock&)>& critical) const
{
    for (const BlockRect& item : geometry.blocks) {
        if (critical(lane.blocks()[item.index]))
            painter.fillRect(QRectF(item.rect.left(), item.rect.top() - 5, item.rect.width() + 1, 2), m_theme.text);
    }
}

void TimelinePainter::group(QPainter& painter, const Lane& lane, const LaneGeometry& geometry,
                            const std::function<bool(const LaneBlock&)>& selected) const
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(m_theme.selection, 2));
    painter.setBrush(Qt::NoBrush);
    for (const BlockRect& item : geometry.blocks)
        if (selected(lane.blocks()[item.index]))
            painter.drawRoundedRect(item.rect.adjusted(0.5, 0.5, -0.5, -0.5), Theme::blockRadius, Theme::blockRadius);
    painter.restore();
}

void TimelinePainter::room(QPainter& painter, const QRectF& area) const
{
    painter.fillRect(area, faded(m_theme.accent, 0.16));
    painter.fillRect(QRectF(area.left(), area.top(), 2, area.height()), m_theme.accent);
    painter.fillRect(QRectF(area.right() - 2, area.top(), 2, area.height()), m_theme.accent);
}

void TimelinePainter::selection(QPainter& painter, const QRectF& rect, const QColor& color) const
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(color, 2));
    painter.drawRoundedRect(rect.adjusted(-2, -2, 2, 2), Theme::blockRadius + 2, Theme::blockRadius + 2);
    painter.restore();
}

} // namespace pipewright
