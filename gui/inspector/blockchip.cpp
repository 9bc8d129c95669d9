// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/inspector/blockchip.h"

#include "gui/timeline/timelineview.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"

#include <QApplication>
#include <QContextMenuEvent>
#include <QDrag>
#include <QKeyEvent>
#include <QMimeData>
#include <QMouseEvent>
#include <QPainter>

namespace pipewright {

void paintBlockFill(QPainter& painter, const QRectF& rect, Op op, const QWidget& widget)
{
    const Theme& theme = Theme::of(widget);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.fill(op));
    painter.drawRoundedRect(rect, Theme::blockRadius, Theme::blockRadius);
    Qt::BrushStyle style = Qt::NoBrush;
    switch (op) {
    case Op::I: style = Qt::BDiagPattern; break;
    case Op::W: style = Qt::Dense6Pattern; break;
    case Op::B: style = Qt::DiagCrossPattern; break;
    case Op::F:
    case Op::U:
    case Op::R: return;
    }
    painter.setBrush(QBrush(theme.texture, style));
    painter.drawRoundedRect(rect, Theme::blockRadius, Theme::blockRadius);
}

BlockChip::BlockChip(const Block& block, QWidget* parent) : QWidget(parent), m_block(block)
{
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    setBlock(block);
}

void BlockChip::setBlock(const Block& block)
{
    m_block = block;
    const QString text = tr("%1, stage %2").arg(blockTitle(block)).arg(block.stage);
    setAccessibleName(text);
    setToolTip(m_draggable ? text + tr("\nDrag it into its lane, or press Return to place it") : text);
    update();
}

void BlockChip::setDraggable(bool draggable)
{
    m_draggable = draggable;
    setFocusPolicy(draggable ? Qt::StrongFocus : Qt::NoFocus);
    setCursor(draggable ? Qt::OpenHandCursor : Qt::ArrowCursor);
    setBlock(m_block);
}

QSize BlockChip::sizeHint() const
{
    return m_draggable ? QSize(54, 34) : QSize(34, 34);
}

QMimeData* BlockChip::mimeData() const
{
    auto* data = new QMimeData;
    data->setData(QLatin1String(blockMimeType), QByteArray::fromStdString(toString(m_block)));
    return data;
}

void BlockChip::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF rect = QRectF(this->rect()).adjusted(1, 1, -1, -1);
    paintBlockFill(painter, rect, m_block.op, *this);
    painter.setPen(theme.ink);
    painter.setFont(Theme::words(TextSize::Normal, QFont::DemiBold));
    QString text = blockText(m_block);
    if (painter.fontMetrics().horizontalAdvance(text) > rect.width() - 4) { // a long number goes below its letter
        text.insert(1, QLatin1Char('\n'));
        painter.setFont(Theme::words(TextSize::Small, QFont::DemiBold));
    }
    painter.drawText(rect, Qt::AlignCenter, text);
    if (hasFocus()) {
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(theme.selection, 1.5));
        painter.drawRoundedRect(rect, Theme::blockRadius, Theme::blockRadius);
    }
}

void BlockChip::mousePressEvent(QMouseEvent* event)
{
    if (event->button() == Qt::LeftButton && m_draggable)
        m_pressedAt = event->pos();
    else
        QWidget::mousePressEvent(event);
}

void BlockChip::mouseMoveEvent(QMouseEvent* event)
{
    if (!m_draggable || !(event->buttons() & Qt::LeftButton)
        || (event->pos() - m_pressedAt).manhattanLength() < QApplication::startDragDistance())
        return;
    auto* drag = new QDrag(this);
    drag->setMimeData(mimeData());
    drag->setPixmap(grab());
    drag->setHotSpot(event->pos());
    Q_EMIT dragStarted(m_block);
    drag->exec(Qt::MoveAction);
}

void BlockChip::mouseDoubleClickEvent(QMouseEvent* event)
{
    if (m_draggable && event->button() == Qt::LeftButton)
        Q_EMIT activated(m_block);
}

void BlockChip::keyPressEvent(QKeyEvent* event)
{
    const bool places =
        event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter || event->key() == Qt::Key_Space;
    if (m_draggable && places) {
        Q_EMIT activated(m_block);
    } else if (event->key() == Qt::Key_F10 && event->modifiers() & Qt::ShiftModifier) { // like the menu key
        QContextMenuEvent menu(QContextMenuEvent::Keyboard, rect().center(), mapToGlobal(rect().center()));
        QApplication::sendEvent(this, &menu);
    } else {
        QWidget::keyPressEvent(event);
    }
}

void BlockChip::focusInEvent(QFocusEvent* event)
{
    QWidget::focusInEvent(event);
    const Qt::FocusReason reason = event->reason();
    if (reason == Qt::MouseFocusReason || reason == Qt::TabFocusReason || reason == Qt::BacktabFocusReason)
        Q_EMIT chosen(m_block);
}

} // namespace pipewright

#include "moc_blockchip.cpp"
