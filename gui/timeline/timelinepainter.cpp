// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/timelinepainter.h"

#include <QFontMetricsF>
#include <QLocale>
#include <QPainter>
#include <QPen>

namespace pipewright {
namespace {

constexpr double roundedFromWidth = 7; // narrower blocks keep square corners, which fill faster

template <typename Draw>
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

void fillBlocks(QPainter& painter, const std::vector<QRectF>& square, const std::vector<QRectF>& rounded,
                const QBrush& brush)
{
    for (const QRectF& rect : square)
        painter.fillRect(rect, brush);
    if (rounded.empty())
        return;
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setPen(Qt::NoPen);
    painter.setBrush(brush);
    for (const QRectF& rect : rounded)
        painter.drawRoundedRect(rect, Theme::blockRadius, Theme::blockRadius);
    painter.setRenderHint(QPainter::Antialiasing, false);
}

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

TimelinePainter::TimelinePainter(const Theme& theme, double scale)
    : m_theme(theme), m_scale(scale), m_letterFont(Theme::words(TextSize::Normal, QFont::Bold)),
      m_numberFont(Theme::words(TextSize::Normal))
{
    m_idle = hatch(8, scale, theme.idle, 1.4, false, true);
    m_diagonal = hatch(8, scale, theme.texture, 1.8, true, false);
    m_cross = hatch(8, scale, theme.texture, 1.3, true, true);
    m_dots = tile(7, scale, [&theme](QPainter& painter) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.texture);
        painter.drawEllipse(QPointF(2.5, 2.5), 1.3, 1.3);
    });
}

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

void TimelinePainter::ruler(QPainter& painter, const TimeAxis& axis, const QRect& area) const
{
    painter.fillRect(area, m_theme.background);
    painter.setFont(Theme::words(TextSize::Small));
    const std::vector<double> times = ticks(axis);
    const double step = times.size() > 1 ? times[1] - times[0] : tickStep(axis, 62);
    const QFontMetricsF metrics(painter.font());
    for (const double time : times) {
        const double x = columns(axis, time, time, m_scale).first / m_scale;
        const QString label = tickLabel(time, step, axis.end());
        const double width = metrics.horizontalAdvance(label);
        painter.fillRect(QRectF(x, area.bottom() - 7, 1, 8), m_theme.dim);
        painter.setPen(m_theme.dim);
        // A label that would be cut is left out; its tick stays.
        if (x + width / 2 <= area.right())
            painter.drawText(QPointF(x - width / 2, area.bottom() - 14), label);
    }
    painter.fillRect(QRect(area.left(), area.bottom(), area.width(), 1), m_theme.hairline);
}

void TimelinePainter::ground(QPainter& painter, const TimeAxis& axis, const QRect& lane, bool target) const
{
    painter.fillRect(lane, m_theme.lane);
    if (target)
        painter.fillRect(lane, faded(m_theme.accent, 0.10));
    for (const double time : ticks(axis)) {
        const double x = columns(axis, time, time, m_scale).first / m_scale;
        painter.fillRect(QRectF(x, lane.top(), 1 / m_scale, lane.height()), faded(m_theme.hairline, 0.7));
    }
    painter.fillRect(QRect(lane.left(), lane.bottom(), lane.width(), 1), m_theme.hairline);
}

void TimelinePainter::header(QPainter& painter, const QRect& area, const LaneHeader& header) const
{
    // Four lines when there is room, name and memory bar when there is not.
    constexpr int indent = 18;
    const int width = area.width() - indent - 14;
    const bool roomy = area.height() >= 66;
    const int top = area.top() + (area.height() - (roomy ? 58 : 26)) / 2;

    painter.setFont(Theme::words(TextSize::Large, QFont::DemiBold));
    painter.setPen(m_theme.text);
    painter.drawText(QRect(area.left() + indent, top, width, 16), Qt::AlignLeft | Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(header.name, Qt::ElideRight, width));
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

QBrush TimelinePainter::textureOf(Op op) const
{
    switch (op) {
    case Op::I: return QBrush(m_diagonal);
    case Op::W: return QBrush(m_dots);
    case Op::B: return QBrush(m_cross);
    case Op::F:
    case Op::U:
    case Op::R: break;
    }
    return {};
}

std::int64_t TimelinePainter::blocks(QPainter& painter, const TimeAxis& axis, const Lane& lane,
                                     const LaneGeometry& geometry, double opacity) const
{
    std::int64_t primitives = 0;
    painter.save();
    painter.setOpacity(opacity);
    // Textures belong to the content: they move with it.
    painter.setBrushOrigin(QPointF(columns(axis, 0, 0, m_scale).first / m_scale, 0));
    const QBrush idle(m_idle);
    for (const QRectF& rect : geometry.idle) {
        painter.fillRect(rect, idle);
        ++primitives;
    }
    for (std::size_t op = 0; op < geometry.merged.size(); ++op) {
        for (const QRectF& rect : geometry.merged[op])
            painter.fillRect(rect, m_theme.fills[op]);
        primitives += static_cast<std::int64_t>(geometry.merged[op].size());
    }

    struct Batch {
        std::vector<QRectF> square, rounded;
    };
    std::array<std::array<Batch, 2>, opCount> batches; // by operation and shade
    for (const BlockRect& item : geometry.blocks) {
        const LaneBlock& block = lane.blocks()[item.index];
        Batch& batch = batches[static_cast<std::size_t>(block.block.op)][block.chunk % 2];
        (item.rect.width() < roundedFromWidth ? batch.square : batch.rounded).push_back(item.rect);
    }
    for (std::size_t op = 0; op < batches.size(); ++op) {
        const QBrush texture = textureOf(static_cast<Op>(op));
        for (int shade = 0; shade < 2; ++shade) {
            const Batch& batch = batches[op][static_cast<std::size_t>(shade)];
            fillBlocks(painter, batch.square, batch.rounded, m_theme.fill(static_cast<Op>(op), shade));
            if (texture.style() != Qt::NoBrush)
                fillBlocks(painter, batch.square, batch.rounded, texture);
            primitives += static_cast<std::int64_t>(batch.square.size() + batch.rounded.size());
        }
    }
    for (const BlockRect& item : geometry.blocks) {
        if (item.text == BlockText::None)
            continue;
        letters(painter, item.rect, lane.blocks()[item.index].block, item.text);
        ++primitives;
    }
    painter.restore();
    return primitives;
}

void TimelinePainter::letters(QPainter& painter, const QRectF& rect, const Block& block, BlockText text) const
{
    painter.setPen(m_theme.ink);
    painter.setFont(m_letterFont);
    QString letterText(QLatin1Char(letter(block.op)));
    if (text == BlockText::LetterStageAndNumber)
        letterText += QString::number(block.stage);
    const QString number = QString::number(block.microbatch);
    const double numberWidth = QFontMetricsF(m_numberFont).horizontalAdvance(number);
    if (block.op == Op::U || text == BlockText::Letter || numberWidth > rect.width() - 2) {
        painter.drawText(rect, Qt::AlignCenter, letterText);
        return;
    }
    const double middle = rect.center().y();
    painter.drawText(QRectF(rect.left(), middle - 17, rect.width(), 17), Qt::AlignCenter, letterText);
    painter.setFont(m_numberFont);
    painter.drawText(QRectF(rect.left(), middle, rect.width(), 17), Qt::AlignCenter, number);
}

void TimelinePainter::block(QPainter& painter, const QRectF& rect, const Block& block, int chunk, BlockText text) const
{
    fillBlocks(painter, {}, {rect}, m_theme.fill(block.op, chunk));
    const QBrush texture = textureOf(block.op);
    if (texture.style() != Qt::NoBrush)
        fillBlocks(painter, {}, {rect}, texture);
    if (text != BlockText::None)
        letters(painter, rect, block, text);
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
