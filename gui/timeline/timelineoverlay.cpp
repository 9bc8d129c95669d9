// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/timelineoverlay.h"

#include "gui/timeline/timelinepainter.h"
#include "gui/widgets/arrows.h"

#include <QPainter>
#include <QPen>

#include <cmath>

namespace pipewright {
namespace {

constexpr int labelWidth = 380;

// Along a lane an arrow runs in the free strip above the blocks.
QPainterPath pathOf(const OverlayContent::Arrow& arrow)
{
    if (!arrow.sameLane)
        return arrowPath(arrow.from, arrow.to);
    constexpr double rise = 6, bend = 5;
    const double y = arrow.from.y() - rise;
    QPainterPath path(arrow.from);
    path.quadTo(QPointF(arrow.from.x(), y), QPointF(arrow.from.x() + bend, y));
    path.lineTo(std::max(arrow.from.x() + bend, arrow.to.x() - bend), y);
    path.quadTo(QPointF(arrow.to.x(), y), arrow.to);
    return path;
}

} // namespace

TimelineOverlay::~TimelineOverlay() = default;

TimelineOverlay::TimelineOverlay(QWidget* parent) : QWidget(parent)
{
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setAttribute(Qt::WA_NoSystemBackground);
    setFocusPolicy(Qt::NoFocus);
}

void TimelineOverlay::setContent(OverlayContent content)
{
    // Updating an area of the overlay repaints the lanes below it, so only the needed area is updated: usually none, or
    // the plot without the lane headers.
    const bool nothing = m_content.isEmpty() && content.isEmpty();
    const auto onPlot = [](const OverlayContent& shown) { return shown.title.isEmpty() && shown.frameTime.isEmpty(); };
    const bool plotOnly = onPlot(m_content) && onPlot(content) && m_content.plot.left() == content.plot.left();
    m_content = std::move(content);
    if (!nothing)
        update(plotOnly ? rect().adjusted(m_content.plot.left(), 0, 0, 0) : rect());
}

bool OverlayContent::isEmpty() const
{
    return arrows.empty() && !ghost && marks.empty() && !range && !crosshair && !pointed && !idle && chain.empty()
           && !band && !caret && title.isEmpty() && frameTime.isEmpty();
}

void TimelineOverlay::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    paintReadings(painter);
    painter.save();
    painter.setClipRect(m_content.plot);
    if (m_content.idle) {
        QColor wash = theme.accent;
        wash.setAlphaF(0.16f);
        painter.setPen(QPen(theme.accent, 1.5));
        painter.setBrush(wash);
        painter.drawRoundedRect(*m_content.idle, Theme::blockRadius, Theme::blockRadius);
    }
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme.accent, 2.5));
    for (const QRectF& rect : m_content.chain)
        painter.drawRoundedRect(rect.adjusted(-1, -1, 1, 1), Theme::blockRadius, Theme::blockRadius);
    const QColor arrowColor = m_content.ghost && !m_content.legal ? theme.bad : theme.selection;
    for (const OverlayContent::Arrow& arrow : m_content.arrows)
        paintArrow(painter, pathOf(arrow), arrowColor, theme.background);
    if (m_content.band) {
        QColor wash = theme.accent;
        wash.setAlphaF(0.14f);
        painter.setPen(QPen(theme.accent, 1));
        painter.setBrush(wash);
        painter.drawRect(m_content.band->adjusted(0.5, 0.5, -0.5, -0.5));
    }
    if (m_content.caret) {
        painter.setPen(QPen(m_content.legal ? theme.accent : theme.bad, 2));
        painter.drawLine(*m_content.caret);
    }
    if (m_content.ghost) {
        const OverlayContent::Ghost& ghost = *m_content.ghost;
        if (!m_blockPainter || !m_blockPainter->isFor(theme, devicePixelRatioF()))
            m_blockPainter = std::make_unique<TimelinePainter>(theme, devicePixelRatioF());
        const TimelinePainter& blockPainter = *m_blockPainter;
        painter.setOpacity(0.85);
        blockPainter.block(painter, ghost.rect, ghost.block, ghost.chunk,
                           ghost.rect.width() >= 11 ? BlockLabel::LetterAndNumber : BlockLabel::None);
        painter.setOpacity(1);
        blockPainter.selection(painter, ghost.rect, m_content.legal ? theme.accent : theme.bad);
    }
    painter.restore();
    if (!m_content.title.isEmpty())
        paintLabel(painter);
    if (!m_content.frameTime.isEmpty()) {
        painter.setFont(Theme::numbers(TextSize::Small));
        painter.setPen(theme.dim);
        painter.drawText(rect().adjusted(0, 0, -6, -4), Qt::AlignRight | Qt::AlignBottom, m_content.frameTime);
    }
}

void TimelineOverlay::paintReadings(QPainter& painter) const
{
    const Theme& theme = Theme::of(*this);
    painter.save();
    painter.setClipRect(QRect(m_content.plot.left(), 0, m_content.plot.width(), height()));
    const QFontMetrics metrics(Theme::numbers(TextSize::Small));
    painter.setFont(Theme::numbers(TextSize::Small));
    const auto tag = [&](double middle, int top, const QString& text, const QColor& ground, const QColor& ink) {
        const int width = metrics.horizontalAdvance(text) + 10;
        // Beside an end of the plot the tag moves inward; its line stays.
        const double left = std::clamp(middle - width / 2.0, double(m_content.plot.left()),
                                       std::max(double(m_content.plot.left()), double(m_content.plot.right() - width)));
        const QRectF box(left, top, width, 15);
        painter.setPen(Qt::NoPen);
        painter.setBrush(ground);
        painter.drawRoundedRect(box, Theme::blockRadius, Theme::blockRadius);
        painter.setPen(ink);
        painter.drawText(box, Qt::AlignCenter, text);
    };
    if (m_content.range) {
        const auto [from, to] = *m_content.range;
        QColor wash = theme.accent;
        wash.setAlphaF(0.10f);
        painter.fillRect(QRectF(from, 0, to - from, height()), wash);
        painter.setPen(QPen(theme.accent, 1));
        painter.drawLine(QPointF(from, 0), QPointF(from, height()));
        painter.drawLine(QPointF(to, 0), QPointF(to, height()));
        const double middle =
            (std::max(from, double(m_content.plot.left())) + std::min(to, double(m_content.plot.right()))) / 2;
        if (to > m_content.plot.left() && from < m_content.plot.right())
            tag(middle, 1, m_content.rangeText, theme.accent, theme.onAccent);
    }
    for (const OverlayContent::Mark& mark : m_content.marks) {
        if (mark.x < m_content.plot.left() || mark.x > m_content.plot.right())
            continue;
        painter.setPen(QPen(theme.text, 1, Qt::DashLine));
        painter.drawLine(QPointF(mark.x, 16), QPointF(mark.x, height()));
        tag(mark.x, 1, mark.text, theme.text, theme.background);
    }
    if (m_content.pointed) {
        painter.setPen(QPen(theme.dim, 1));
        painter.drawLine(QPointF(m_content.pointed->x + 0.5, 16), QPointF(m_content.pointed->x + 0.5, height()));
        tag(m_content.pointed->x, 1, m_content.pointed->text, theme.panel, theme.text);
    }
    if (m_content.crosshair) {
        painter.setPen(QPen(theme.dim, 1));
        painter.drawLine(QPointF(m_content.crosshair->x + 0.5, 16), QPointF(m_content.crosshair->x + 0.5, height()));
        painter.drawLine(QPointF(m_content.plot.left(), m_content.cursor.y() + 0.5),
                         QPointF(m_content.plot.right(), m_content.cursor.y() + 0.5));
        tag(m_content.crosshair->x, 1, m_content.crosshair->text, theme.panel, theme.text);
    }
    painter.restore();
}

void WrappedText::set(const QString& text, const QFont& font, int width)
{
    if (m_layout && m_text == text && m_layout->font() == font && m_width == width)
        return;
    m_text = text;
    m_width = width;
    m_size = {};
    m_layout = std::make_unique<QTextLayout>(QString(text).replace(QLatin1Char('\n'), QChar::LineSeparator), font);
    m_layout->setCacheEnabled(true);
    m_layout->beginLayout();
    double height = 0;
    for (QTextLine line = m_layout->createLine(); line.isValid(); line = m_layout->createLine()) {
        line.setLineWidth(width);
        line.setPosition(QPointF(0, height));
        height += line.height();
        m_size = QSize(std::max(m_size.width(), static_cast<int>(std::ceil(line.naturalTextWidth()))),
                       static_cast<int>(std::ceil(height)));
    }
    m_layout->endLayout();
    if (text.isEmpty())
        m_size = {};
}

void WrappedText::paint(QPainter& painter, QPoint topLeft) const
{
    m_layout->draw(&painter, topLeft);
}

void TimelineOverlay::paintLabel(QPainter& painter)
{
    const Theme& theme = Theme::of(*this);
    m_title.set(m_content.title, Theme::words(TextSize::Normal, QFont::DemiBold), labelWidth);
    m_detail.set(m_content.detail, Theme::words(TextSize::Normal), labelWidth);
    const QSize title = m_title.size(), detail = m_detail.size();
    const int gap = detail.isEmpty() ? 0 : 3;
    QRect box(0, 0, std::max(title.width(), detail.width()) + 22, title.height() + gap + detail.height() + 14);
    // Below and right of the cursor, unless that would leave the widget.
    box.moveTopLeft(m_content.cursor + QPoint(16, 20));
    if (box.right() > width() - 4)
        box.moveRight(std::max(box.width() + 4, std::min(width() - 4, m_content.cursor.x() - 12)));
    if (box.bottom() > height() - 4)
        box.moveBottom(std::max(box.height() + 4, m_content.cursor.y() - 14));

    painter.setPen(QPen(m_content.legal ? theme.hairline : theme.bad, 1));
    painter.setBrush(theme.panel);
    painter.drawRoundedRect(QRectF(box).adjusted(0.5, 0.5, -0.5, -0.5), Theme::controlRadius, Theme::controlRadius);
    const QRect text = box.adjusted(11, 7, -11, -7);
    painter.setPen(m_content.legal ? theme.text : theme.bad);
    m_title.paint(painter, text.topLeft());
    painter.setPen(theme.dim);
    m_detail.paint(painter, text.topLeft() + QPoint(0, title.height() + gap));
}

} // namespace pipewright
