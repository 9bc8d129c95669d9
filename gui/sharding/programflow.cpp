// SPDX-License-Identifier: GPL-3.0-or-later
// Builds one row per instruction and paints the visible ones. O(instructions) to build, O(visible rows) to paint.
#include "gui/sharding/programflow.h"

#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"

#include <QApplication>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int margin = 12, costWidth = 72, barShare = 28; // barShare in percent of the width
constexpr int indent = 22;                                // of collectives between computations

} // namespace

ProgramFlow::ProgramFlow(QWidget* parent) : QAbstractScrollArea(parent)
{
    setFocusPolicy(Qt::StrongFocus);
    setFrameShape(QFrame::NoFrame);
    setAccessibleName(tr("Program of the stage"));
    setMinimumSize(420, 200);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
}

void ProgramFlow::setProgram(const sharding::ShardingProgram& program, const TensorGraph& graph,
                             const sharding::Machine& machine, const sharding::Ratios& ratios)
{
    m_rows.clear();
    for (const sharding::ShardingInstruction& instruction : program.instructions) {
        Row& row = m_rows.emplace_back();
        const sharding::Relation relation = instruction.after.relation;
        row.action = QString::fromStdString(actionText(instruction, graph));
        row.relation = relation;
        row.relationText = QString::fromStdString(toString(relation));
        row.shares = ratios[relation.segment];
        row.computes = instruction.computes();
        row.communicates = std::any_of(instruction.charges.begin(), instruction.charges.end(),
                                       [](const sharding::Charge& charge) { return charge.communicates; });
        if (const double cost = seconds(instruction.charges, machine, ratios); cost > 0)
            row.cost = durationText(static_cast<Nanoseconds>(std::llround(cost * 1e9)));
    }
    m_current = std::min(m_current, rows() - 1);
    layOut();
    viewport()->update();
}

void ProgramFlow::clear()
{
    m_rows.clear();
    m_current = -1;
    m_drag = {};
    layOut();
    viewport()->update();
}

void ProgramFlow::setCurrentRow(int row)
{
    row = std::clamp(row, -1, rows() - 1);
    if (row == m_current)
        return;
    m_current = row;
    if (row >= 0) {
        QScrollBar& bar = *verticalScrollBar();
        bar.setValue(std::clamp(bar.value(), (row + 1) * rowHeight - viewport()->height(), row * rowHeight));
        setAccessibleDescription(rowText(row));
    }
    viewport()->update();
    Q_EMIT currentChanged(row);
}

QString ProgramFlow::rowText(int row) const
{
    const Row& one = m_rows[row];
    QString text = one.action + QStringLiteral(" → ") + one.relationText;
    if (one.relation.kind == sharding::RelationKind::Gather)
        for (std::size_t d = 0; d < one.shares.size(); ++d)
            text +=
                (d == 0 ? tr(": device %1 has %2") : tr(", device %1 has %2")).arg(d).arg(percentText(one.shares[d]));
    if (!one.cost.isEmpty())
        text += QStringLiteral(" · ") + one.cost;
    return text;
}

void ProgramFlow::layOut()
{
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setSingleStep(rowHeight);
    verticalScrollBar()->setRange(0, std::max(0, rows() * rowHeight - viewport()->height()));
}

void ProgramFlow::resizeEvent(QResizeEvent*)
{
    layOut();
}

int ProgramFlow::rowAt(int y) const
{
    const int row = (y + verticalScrollBar()->value()) / rowHeight;
    return row < rows() ? row : -1;
}

void ProgramFlow::paintEvent(QPaintEvent*)
{
    QPainter painter(viewport());
    painter.setRenderHint(QPainter::Antialiasing);
    const Theme& theme = Theme::of(*this);
    painter.fillRect(viewport()->rect(), theme.background);
    const int first = verticalScrollBar()->value() / rowHeight;
    const int last = std::min(rows(), first + viewport()->height() / rowHeight + 2);
    for (int row = first; row < last; ++row)
        paintRow(painter, m_rows[row],
                 {0, row * rowHeight - verticalScrollBar()->value(), viewport()->width(), rowHeight}, row == m_current);
    if (m_drag.slot >= 0)
        painter.fillRect(QRect(margin, m_drag.slot * rowHeight - verticalScrollBar()->value() - 1,
                               viewport()->width() - 2 * margin, 2),
                         theme.accent);
}

void ProgramFlow::paintRow(QPainter& painter, const Row& row, const QRect& area, bool current) const
{
    const Theme& theme = Theme::of(*this);
    if (current) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.control);
        painter.drawRoundedRect(QRectF(area).adjusted(4, 1, -4, -1), Theme::controlRadius, Theme::controlRadius);
        if (hasFocus()) {
            painter.setPen(QPen(theme.accent, 1));
            painter.setBrush(Qt::NoBrush);
            painter.drawRoundedRect(QRectF(area).adjusted(4.5, 1.5, -4.5, -1.5), Theme::controlRadius,
                                    Theme::controlRadius);
        }
    }
    // The flow's line, with a dot at every computation and a ring at every collective.
    const double x = margin + 4.5, y = area.center().y() + 0.5;
    painter.setPen(QPen(theme.hairline, 1));
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom() + 1));
    painter.setPen(QPen(row.communicates ? theme.accent : theme.dim, 1.4));
    painter.setBrush(row.computes ? QBrush(theme.dim) : QBrush(theme.background));
    if (row.computes)
        painter.drawEllipse(QPointF(x, y), 3.5, 3.5);
    else
        painter.drawRect(QRectF(x - 3, y - 3, 6, 6));

    const int barWidth = area.width() * barShare / 100;
    const int left = margin + indent + (row.computes ? 0 : indent / 2);
    const int barLeft = area.right() - margin - costWidth - barWidth;
    painter.setFont(Theme::words(row.computes ? TextSize::Normal : TextSize::Small));
    painter.setPen(row.communicates ? theme.accent : row.computes ? theme.text : theme.dim);
    const QRect words(left, area.top(), barLeft - left - margin, area.height());
    painter.drawText(words, Qt::AlignLeft | Qt::AlignVCenter,
                     painter.fontMetrics().elidedText(row.action, Qt::ElideRight, words.width()));
    paintBar(painter, row, QRectF(barLeft, area.top() + 7, barWidth, area.height() - 14));
    painter.setFont(Theme::numbers(TextSize::Small));
    painter.setPen(row.communicates ? theme.accent : theme.text);
    painter.drawText(QRect(area.right() - margin - costWidth, area.top(), costWidth, area.height()),
                     Qt::AlignRight | Qt::AlignVCenter, row.cost);
}

void ProgramFlow::paintBar(QPainter& painter, const Row& row, const QRectF& bar) const
{
    const Theme& theme = Theme::of(*this);
    const auto count = row.shares.size();
    // Every second device is paler; numbers where they fit.
    const auto fillOf = [&theme](std::size_t device) { return theme.fill(Op::F, static_cast<int>(device % 2)); };
    painter.setPen(Qt::NoPen);
    if (row.relation.kind == sharding::RelationKind::Gather) {
        double x = bar.left();
        painter.setFont(Theme::numbers(TextSize::Small));
        for (std::size_t d = 0; d < count; ++d) {
            const QRectF piece(x, bar.top(), bar.width() * row.shares[d], bar.height());
            x += piece.width();
            painter.setPen(Qt::NoPen);
            painter.setBrush(fillOf(d));
            painter.drawRoundedRect(piece.adjusted(0.5, 0, -0.5, 0), 2, 2);
            if (const QString number = QString::number(d);
                painter.fontMetrics().horizontalAdvance(number) + 4 < piece.width()) {
                painter.setPen(theme.ink);
                painter.drawText(piece, Qt::AlignCenter, number);
            }
        }
        return;
    }
    const double line = bar.height() / static_cast<double>(count);
    for (std::size_t d = 0; d < count; ++d) {
        const QRectF whole(bar.left(), bar.top() + static_cast<double>(d) * line, bar.width(), std::max(1.0, line - 1));
        painter.setBrush(fillOf(d));
        painter.drawRect(whole);
        if (row.relation.kind == sharding::RelationKind::Reduce) {
            painter.setBrush(QBrush(theme.background, Qt::BDiagPattern));
            painter.drawRect(whole);
        }
    }
}

void ProgramFlow::keyPressEvent(QKeyEvent* event)
{
    const int page = std::max(1, viewport()->height() / rowHeight - 1);
    if (event->modifiers() == Qt::AltModifier && (event->key() == Qt::Key_Up || event->key() == Qt::Key_Down)) {
        wantMove(m_current, m_current + (event->key() == Qt::Key_Up ? -1 : 1));
        return;
    }
    if (event->key() == Qt::Key_Escape && m_drag.row >= 0) {
        endDrag();
        return;
    }
    switch (event->key()) {
    case Qt::Key_Up: setCurrentRow(std::max(0, m_current - 1)); return;
    case Qt::Key_Down: setCurrentRow(m_current + 1); return;
    case Qt::Key_PageUp: setCurrentRow(std::max(0, m_current - page)); return;
    case Qt::Key_PageDown: setCurrentRow(m_current + page); return;
    case Qt::Key_Home: setCurrentRow(0); return;
    case Qt::Key_End: setCurrentRow(rows() - 1); return;
    default: QAbstractScrollArea::keyPressEvent(event);
    }
}

void ProgramFlow::mousePressEvent(QMouseEvent* event)
{
    setCurrentRow(rowAt(event->pos().y()));
    if (event->button() == Qt::LeftButton)
        m_drag = {m_current, event->pos().y(), -1};
}

void ProgramFlow::mouseMoveEvent(QMouseEvent* event)
{
    if (m_drag.row < 0
        || (m_drag.slot < 0 && std::abs(event->pos().y() - m_drag.pressedAt) < QApplication::startDragDistance()))
        return;
    m_drag.slot = slotAt(event->pos().y());
    viewport()->setCursor(Qt::ClosedHandCursor);
    viewport()->update();
}

void ProgramFlow::mouseReleaseEvent(QMouseEvent*)
{
    const Drag drag = m_drag;
    endDrag();
    if (drag.slot >= 0)
        wantMove(drag.row, drag.slot > drag.row ? drag.slot - 1 : drag.slot);
}

int ProgramFlow::slotAt(int y) const
{
    return std::clamp((y + verticalScrollBar()->value() + rowHeight / 2) / rowHeight, 0, rows());
}

void ProgramFlow::wantMove(int from, int to)
{
    if (from >= 0 && from < rows() && to >= 0 && to < rows() && to != from)
        Q_EMIT moveWanted(from, to);
}

void ProgramFlow::endDrag()
{
    m_drag = {};
    viewport()->unsetCursor();
    viewport()->update();
}

bool ProgramFlow::viewportEvent(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const int row = rowAt(help->pos().y());
        const QString text =
            row < 0 ? QString() : rowText(row) + tr("\nDrag it, or press Alt with an arrow key, to move it");
        QToolTip::showText(help->globalPos(), text, viewport());
        return true;
    }
    return QAbstractScrollArea::viewportEvent(event);
}

} // namespace pipewright

#include "moc_programflow.cpp"
