// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/timelinepainter.h"

#include <QCoreApplication>
#include <QFontMetricsF>
#include <QLocale>
#include <QPainter>
#include <QPen>
#include <QPolygonF>
#include <QStaticText>

#include <array>
#include <cmath>

namespace pipewright {
namespace {

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
    return QLocale::c().toString(time / unit->size, 'f', decimals) + QChar(0x00A0) + QString::fromUtf8(unit->name);
}

TimelinePainter::TimelinePainter(const Theme& theme, double scale)
    : m_theme(theme), m_scale(scale), m_sprites(theme, scale), m_raster(theme, m_sprites, scale)
{
}

std::vector<double> rulerTicks(const TimeAxis& axis)
{
    // Labels must not touch: the last one is the longest.
    const double least = tickStep(axis, 62);
    const double labelWidth =
        QFontMetricsF(Theme::words(TextSize::Small)).horizontalAdvance(tickLabel(axis.end(), least, axis.end()));
    const double step = tickStep(axis, std::max(62.0, labelWidth + 20));
    std::vector<double> result;
    for (double time = std::ceil(std::max(0.0, axis.start) / step - 1e-9) * step; time <= axis.end(); time += step)
        result.push_back(time);
    return result;
}

void TimelinePainter::ruler(QPainter& painter, const TimeAxis& axis, const QRect& area,
                            const std::vector<double>& times) const
{
    if (m_scale != std::floor(m_scale)) // as for keptHeader()
        return drawRuler(painter, axis, area, times);
    if (m_ruler.picture.size() != area.size() * m_scale || !(m_ruler.axis == axis) || m_ruler.times != times) {
        m_ruler = {axis, times, QPixmap(area.size() * m_scale)};
        m_ruler.picture.setDevicePixelRatio(m_scale);
        m_ruler.picture.fill(m_theme.background);
        QPainter inside(&m_ruler.picture);
        drawRuler(inside, axis, QRect(QPoint(0, 0), area.size()), times);
    }
    painter.drawPixmap(area.topLeft(), m_ruler.picture);
}

void TimelinePainter::drawRuler(QPainter& painter, const TimeAxis& axis, const QRect& area,
                                const std::vector<double>& times) const
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
        // At the right edge, where what is beside the axis begins, a label stands beside its tick rather than be cut.
        // The same at the left edge, where the lane headers are not repainted when the view scrolls.
        const double end = std::min<double>(area.right(), axis.right());
        const double place = std::min(std::max(x - width / 2, double(axis.left)), end - width - 2);
        painter.drawText(QPointF(place, area.bottom() - 14), label);
    }
    painter.fillRect(QRect(area.left(), area.bottom(), area.width(), 1), m_theme.hairline);
}

void TimelinePainter::ground(QPainter& painter, const TimeAxis& axis, const LaneGround& ground,
                             const std::vector<double>& times) const
{
    const QRect& lane = ground.lane;
    std::array<QRect, 4> parts{lane};
    // With a fractional scale, blocks() may leave part of a pixel at the edges unpainted.
    const int free = m_scale == std::floor(m_scale) ? 0 : 1;
    const QRect plot =
        QRect(axis.left, ground.painted.top(), axis.width, ground.painted.height()).adjusted(free, free, -free, -free);
    if (const QRect covered = plot.isEmpty() ? QRect() : plot & lane; !covered.isEmpty())
        parts = {QRect(lane.topLeft(), QPoint(lane.right(), covered.top() - 1)),
                 QRect(QPoint(lane.left(), covered.bottom() + 1), lane.bottomRight()),
                 QRect(QPoint(lane.left(), covered.top()), QPoint(covered.left() - 1, covered.bottom())),
                 QRect(QPoint(covered.right() + 1, covered.top()), QPoint(lane.right(), covered.bottom()))};
    const QColor line = faded(m_theme.hairline, 0.7);
    for (const QRect& part : parts) {
        if (part.isEmpty())
            continue;
        painter.fillRect(part, m_theme.lane);
        if (part.height() == 1 && part.bottom() == lane.bottom())
            continue; // the line is drawn over it
        if (ground.target)
            painter.fillRect(part, faded(m_theme.accent, 0.10));
        for (const double time : times) {
            const double x = columns(axis, time, time, m_scale).first / m_scale;
            if (x >= part.left() && x <= part.right())
                painter.fillRect(QRectF(x, part.top(), 1 / m_scale, part.height()), line);
        }
    }
    painter.fillRect(QRect(lane.left(), lane.bottom(), lane.width(), 1), m_theme.hairline);
    if (!ground.room)
        return;
    const double from = std::max(ground.room->first, axis.left - 4.0),
                 to = std::min(ground.room->second, axis.right() + 4.0);
    const QRectF room = QRectF(from, lane.top() + 1, to - from, lane.height() - 2)
                        & QRectF(axis.left, lane.top(), axis.width, lane.height());
    if (to <= from || room.isEmpty())
        return;
    painter.fillRect(room, faded(m_theme.accent, 0.16));
    painter.fillRect(QRectF(from, room.top(), 2, room.height()) & room, m_theme.accent);
    painter.fillRect(QRectF(to - 2, room.top(), 2, room.height()) & room, m_theme.accent);
}

void TimelinePainter::keptHeader(QPainter& painter, std::size_t lane, const QRect& area, const LaneHeader& header,
                                 const LaneStanding& standing) const
{
    if (m_scale != std::floor(m_scale)) // the picture may begin inside a device pixel and would be blurred
        return this->header(painter, area, header, standing);
    if (m_headers.size() <= lane)
        m_headers.resize(lane + 1);
    KeptHeader& kept = m_headers[lane];
    const QSize size = area.size() * m_scale;
    if (kept.picture.size() != size || !(kept.header == header) || !(kept.standing == standing)) {
        kept = {header, standing, QPixmap(size)};
        kept.picture.setDevicePixelRatio(m_scale);
        kept.picture.fill(m_theme.lane);
        QPainter inside(&kept.picture);
        this->header(inside, QRect(QPoint(0, 0), area.size()), header, standing);
    }
    painter.drawPixmap(area.topLeft(), kept.picture);
}

void TimelinePainter::header(QPainter& painter, const QRect& area, const LaneHeader& header,
                             const LaneStanding& standing) const
{
    // Four lines when there is room, name and memory bar when there is not, and at last the name alone.
    constexpr int indent = 18;
    const int width = area.width() - indent - 14;
    const bool roomy = area.height() >= 60, nameOnly = area.height()<38, withMemory = standing.memoryAt> 0;
    const int top = withMemory ? area.top() + 11 : area.top() + (area.height() - (roomy ? 58 : nameOnly ? 16 : 26)) / 2;
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
        painter.drawPolygon(QPolygonF(
            {{area.left() + 7.0, middle - 3.5}, {area.left() + 12.0, middle}, {area.left() + 7.0, middle + 3.5}}));
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
    if (withMemory)
        return peakBeside(painter,
                          QRect(area.left() + indent, area.top() + standing.memoryAt, area.width() - indent - 6,
                                area.height() - standing.memoryAt),
                          header);
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
        QString memory = header.memory;
        if (metrics.horizontalAdvance(memory) > width)
            font.setPixelSize(10);
        // With two different units and room for one value, the limit is left out.
        if (const QString own = memory.section(QStringLiteral(" / "), 0, 0);
            own.endsWith(QLatin1Char('B')) && QFontMetrics(font).horizontalAdvance(memory) > area.width() - indent)
            memory = own;
        painter.setFont(font);
        painter.setPen(header.over ? m_theme.bad : m_theme.dim);
        painter.drawText(QRect(area.left() + indent, top + 43, area.width() - indent, 15),
                         Qt::AlignLeft | Qt::AlignVCenter, memory);
    }
}

void TimelinePainter::peakBeside(QPainter& painter, const QRect& area, const LaneHeader& header) const
{
    const QString separator = QStringLiteral(" / ");
    QString peak = header.memory.section(separator, 0, 0), limit = header.memory.section(separator, 1);
    if (!limit.isEmpty() && !peak.endsWith(QLatin1Char('B'))) // the unit of both stands once
        peak += QChar(0x00A0) + limit.section(QChar(0x00A0), 1);
    const QRect first(area.left(), area.top(), area.width(), 16),
        second(area.left(), area.top() + 15, area.width(), 15);
    QFont font = Theme::numbers(TextSize::Normal);
    if (QFontMetrics(font).horizontalAdvance(peak) > area.width())
        font = Theme::numbers(TextSize::Small);
    painter.setFont(font);
    painter.setPen(header.over ? m_theme.bad : m_theme.text);
    const QString arrow = QStringLiteral(" → ");
    if (limit.isEmpty() && peak.contains(arrow) && QFontMetrics(font).horizontalAdvance(peak) > area.width()) {
        painter.drawText(first, Qt::AlignLeft | Qt::AlignVCenter, peak.section(arrow, 0, 0) + QStringLiteral(" →"));
        painter.drawText(second, Qt::AlignLeft | Qt::AlignVCenter, peak.section(arrow, 1));
        return;
    }
    painter.drawText(first, Qt::AlignLeft | Qt::AlignVCenter, peak);
    if (limit.isEmpty())
        return;
    painter.setFont(Theme::words(TextSize::Small));
    painter.setPen(m_theme.dim);
    painter.drawText(second, Qt::AlignLeft | Qt::AlignVCenter,
                     QCoreApplication::translate("TimelineView", "of %1").arg(limit));
}

const std::vector<QRgb>& TimelinePainter::groundRow(const TimeAxis& axis, const LaneGround& ground,
                                                    const std::vector<double>& times) const
{
    GroundRow& known = m_groundRow;
    if (!known.pixels.empty() && known.axis == axis && known.ground.target == ground.target
        && known.ground.room == ground.room && known.times == times)
        return known.pixels;
    known.axis = axis;
    known.ground = ground;
    known.times = times;
    known.pixels.assign(m_raster.widthOf(axis), 0);
    if (known.pixels.empty())
        return known.pixels;
    QImage row(reinterpret_cast<uchar*>(known.pixels.data()), static_cast<int>(known.pixels.size()), 1,
               QImage::Format_RGB32);
    QPainter painter(&row);
    // In device pixels: the row starts at a device pixel that need not be a whole pixel of the lane.
    painter.translate(-std::floor(axis.left * m_scale + 0.5), 0);
    painter.scale(m_scale, m_scale);
    LaneGround middle = ground;
    middle.lane = QRect(axis.left, -8, axis.width + 1, 32);
    this->ground(painter, axis, middle, times);
    return known.pixels;
}

void TimelinePainter::blocks(QPainter& painter, const TimeAxis& axis, const LaneGround& ground,
                             const std::vector<double>& times, const QRectF& area, const Lane& lane,
                             const LaneGeometry& geometry, const LaneGeometry* outlined) const
{
    m_raster.paint(painter, axis, ground.painted.isEmpty() ? area : QRectF(ground.painted), area,
                   groundRow(axis, ground, times), lane, geometry, outlined);
    painter.save();
    pairFrames(painter, lane, geometry);
    painter.restore();
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

void TimelinePainter::gradientSums(QPainter& painter, const TimeAxis& axis, const QRectF& area, const Lane& lane) const
{
    if (lane.gradientSums().empty())
        return;
    painter.save();
    painter.setClipRect(area, Qt::IntersectClip);
    painter.setFont(m_sprites.letterFont());
    for (const LaneSum& sum : lane.gradientSums()) {
        const QRectF rect = gradientSumRect(sum, axis, area);
        if (!rect.intersects(area))
            continue;
        painter.setPen(QPen(m_theme.dim, 1));
        painter.setBrush(m_theme.control);
        painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5));
        if (rect.width() < 12)
            continue;
        painter.setPen(m_theme.text);
        painter.drawText(rect, Qt::AlignCenter, QStringLiteral("Σ"));
    }
    painter.restore();
}

void TimelinePainter::fill(QPainter& painter, const QRectF& rect, Op op, int chunk) const
{
    // No cached picture for very wide blocks: only a small part of them is visible.
    constexpr double widestPicture = 600;
    if (rect.width() <= widestPicture) {
        const auto whole = [this](double length) {
            return static_cast<int>(std::lround(length * m_scale + 1e-6));
        }; // as BlockRaster
        const QSize size(whole(rect.width()), whole(rect.height()));
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
    return isPass(block.op) && m_sprites.number(block.microbatch).size().width() <= rect.width() - 2;
}

void TimelinePainter::letter(QPainter& painter, const QRectF& rect, const Block& block, BlockLabel label) const
{
    const bool above = label >= BlockLabel::LetterAndNumber && hasNumber(rect, block);
    const QStaticText& words = m_sprites.letter(block.op, label == BlockLabel::LetterStageAndNumber ? block.stage : -1);
    place(painter, words,
          QPointF(rect.center().x(), rect.center().y() - (above ? BlockSprites::halfLineOf(rect.height()) : 0)));
}

void TimelinePainter::number(QPainter& painter, const QRectF& rect, const Block& block) const
{
    if (hasNumber(rect, block))
        place(painter, m_sprites.number(block.microbatch),
              QPointF(rect.center().x(), rect.center().y() + BlockSprites::halfLineOf(rect.height())));
}

void TimelinePainter::place(QPainter& painter, const QStaticText& text, QPointF centre) const
{
    // On whole device pixels, or every position would be rendered anew.
    const QSizeF size = text.size();
    const auto whole = [this](double value) { return std::round(value * m_scale) / m_scale; };
    painter.drawStaticText(QPointF(whole(centre.x() - size.width() / 2), whole(centre.y() - size.height() / 2)), text);
}

void TimelinePainter::block(QPainter& painter, const QRectF& rect, const Block& block, int chunk,
                            BlockLabel label) const
{
    fill(painter, rect, block.op, chunk);
    painter.setPen(m_theme.ink);
    if (label == BlockLabel::None)
        return;
    painter.setFont(m_sprites.letterFont());
    letter(painter, rect, block, label);
    painter.setFont(m_sprites.numberFont());
    if (label >= BlockLabel::LetterAndNumber)
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
            for (const double y : {item.rect.top() - 3.5, item.rect.bottom() + 3.5})
                painter.drawLine(QPointF(item.rect.left() + 0.5, y), QPointF(item.rect.right() - 0.5, y));
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
