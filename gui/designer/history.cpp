// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/history.h"

#include "gui/widgets/closingrow.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QPainter>
#include <QStyledItemDelegate>
#include <QUndoStack>
#include <QUndoView>

namespace pipewright {

namespace {

/// As in the family list: no box, the current state with the control colour and an accent bar, undone edits dimmed.
class EditDelegate : public QStyledItemDelegate {
public:
    EditDelegate(const QUndoStack* stack, QObject* parent) : QStyledItemDelegate(parent), m_stack(stack) {}
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        return {QStyledItemDelegate::sizeHint(option, index).width(), 26};
    }
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        const Theme& theme = Theme::of(option.palette);
        const bool present = index.row() == m_stack->index();
        painter->save();
        if (present || option.state & QStyle::State_MouseOver) {
            painter->setRenderHint(QPainter::Antialiasing);
            painter->setPen(Qt::NoPen);
            painter->setBrush(present ? theme.control : theme.lane);
            painter->drawRoundedRect(QRectF(option.rect).adjusted(0, 1, 0, -1), Theme::blockRadius, Theme::blockRadius);
            painter->setBrush(theme.accent);
            if (present)
                painter->drawRect(QRect(option.rect.left(), option.rect.top() + 1, 2, option.rect.height() - 2));
        }
        painter->setFont(Theme::words(TextSize::Normal, present ? QFont::DemiBold : QFont::Normal));
        painter->setPen(index.row() > m_stack->index() ? theme.dim : theme.text);
        const QRect text = option.rect.adjusted(12, 0, -8, 0);
        painter->drawText(text, Qt::AlignLeft | Qt::AlignVCenter,
                          painter->fontMetrics().elidedText(index.data().toString(), Qt::ElideRight, text.width()));
        painter->restore();
    }

private:
    const QUndoStack* m_stack;
};

} // namespace

HistoryWindow::HistoryWindow(QUndoStack* stack, QWidget* parent) : QDialog(parent), m_view(new QUndoView(stack, this))
{
    setWindowTitle(tr("History"));
    makePanel(this);
    m_view->setAccessibleName(tr("Edits"));
    m_view->setEmptyLabel(tr("As opened"));
    m_view->setFrameShape(QFrame::NoFrame);
    m_view->setMouseTracking(true);
    m_view->setItemDelegate(new EditDelegate(stack, m_view));
    auto* layout = makeLayout<QVBoxLayout>(this, {18, 16, 18, 16}, 10);
    layout->addWidget(makeHeading(tr("Edits, oldest first"), this));
    layout->addWidget(m_view, 1);
    auto* hint = makeCaption(tr("Click a line to go to the state after it."), TextSize::Small, this);
    layout->addWidget(hint);
    layout->addLayout(makeClosingRow(*this));
    resize(320, 420);
}

} // namespace pipewright

#include "moc_history.cpp"
